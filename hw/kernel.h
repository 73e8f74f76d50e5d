#pragma once
// A kernel is a named model of an operator's time, with constants of its own. hw/kernels/table.cpp lists all of them.

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "hw/carry_over.h"
#include "hw/parameters.h"

namespace roofcast {

/// Relative standard deviations added to a fit's own, independent of it. With the first two, nine of ten rows lie
/// within their interval when constants are transferred blindly between measured GPUs; with the last, when a measured
/// kernel's constants are removed and others stand in. Source: docs/equations.md#intervals.
struct Unexplained {
  double same_generation = 0.05, other_generation = 0.27;  ///< constants of another GPU
  double lent = 0.0;                                       ///< constants of another format or kernel of the same engine
};

/// What a kernel computes.
enum class KernelKind {
  kOther,
  kGemm,
  kAttentionPrefill,
  kAttentionDecode,
  kLatentPrefill,
  kLatentDecode,
  kExperts,
  kConvolution,
  kState
};
inline constexpr std::size_t kKernelKindCount = 9;
std::string_view name_of(KernelKind kind);

class Kernel;
struct CarriedFrom;

/// A kernel's entry in the table.
struct KernelFacts {
  std::string_view name;  ///< its key among the constants of a GPU
  std::string_view help;  ///< one line: where the kernel is from and what it computes
  std::string_view form;  ///< page and section with its equations
  Unexplained unexplained{};
  /// Kernels whose constants stand in when this one was not measured: fields of the same name, from the first one
  /// measured.
  std::array<const Kernel*, 2> lenders{};
  bool scored_apart = false;  ///< its error is the `discrepancy_elsewhere` of its first lender
};

/// A constant of any kernel.
struct FieldFacts {
  std::string_view name;
  double low = 0, high = 0;
  Transfer transfer = Transfer::kKept;
  std::string_view meaning;
  bool held = false;
};

/// Constants of one kernel in one format, with their fit; untyped.
struct ConstantsBlock {
  std::shared_ptr<const void> values;  ///< the kernel's parameter struct; null: none
  const FitRecord* record = nullptr;   ///< lives as long as `values`
  /// Where they were measured, if on another GPU; null: they hold on this one as measured.
  std::shared_ptr<const CarriedFrom> carried = nullptr;
  explicit operator bool() const { return values != nullptr; }
};

/// Constants before they were carried over.
struct CarriedFrom {
  std::shared_ptr<const GpuSpec> gpu;  ///< the GPU that they hold for
  ConstantsBlock measured;
  CarryOver how;
};

class Kernel {
 public:
  explicit Kernel(const KernelFacts& facts) : Kernel(KernelKind::kOther, facts) {}
  Kernel(KernelKind kind, const KernelFacts& facts) : kind_(kind), facts_(facts) {}
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  KernelKind kind() const { return kind_; }
  std::string_view name() const { return facts_.name; }
  const KernelFacts& facts() const { return facts_; }
  /// Its index in kernels().
  std::size_t id() const { return id_; }

  virtual std::vector<FieldFacts> fields() const = 0;
  /// The values in the order of fields(), and the reverse.
  virtual std::vector<double> numbers(const ConstantsBlock& block) const = 0;
  virtual ConstantsBlock from_numbers(std::span<const double> values, FitRecord record = {}) const = 0;
  /// {parameter: value, ..., fit: {...}}
  virtual ConstantsBlock read(ConfigReader in) const = 0;
  /// Assumed constants on a GPU that was not measured. Fits start from them.
  virtual ConstantsBlock assumed(const GpuSpec& gpu, Dtype dtype) const = 0;
  /// The defaults of the parameter struct.
  virtual ConstantsBlock defaults() const = 0;
  /// The lender's constants as this kernel's; fields that the lender lacks keep their defaults.
  ConstantsBlock borrowed(const Kernel& lender, const ConstantsBlock& lent) const;
  /// Constants measured on one GPU, converted to another.
  virtual ConstantsBlock carried_over(const ConstantsBlock& measured, const CarryOverCase& to) const = 0;

 private:
  friend std::span<const Kernel* const> kernels();
  KernelKind kind_;
  KernelFacts facts_;
  mutable std::size_t id_ = static_cast<std::size_t>(-1);
};

/// All kernels. hw/kernels/table.cpp.
std::span<const Kernel* const> kernels();

}  // namespace roofcast
