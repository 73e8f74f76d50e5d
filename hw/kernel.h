#pragma once
// A kernel is a named model of an operator's time with its own constants. hw/kernels/table.cpp lists all kernels.

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

/// Relative standard deviations that are added to a fit's residual as independent errors. The first two are set so that
/// nine of ten rows lie within their interval when constants are transferred blindly between measured GPUs. The last
/// one does the same when a kernel's constants are removed and those of another stand in. Source:
/// docs/equations.md#intervals.
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
  std::string_view name;  ///< its key in the constants of a GPU
  std::string_view help;  ///< one line: the library it is from and what it computes
  std::string_view form;  ///< document and section with its equations
  Unexplained unexplained{};
  /// Kernels whose constants stand in if this one was not measured: the first measured one, matched by field name.
  std::array<const Kernel*, 2> lenders{};
  bool scored_apart = false;  ///< the error of this kernel is the `discrepancy_elsewhere` of its first lender
};

/// A constant of any kernel, without its type.
struct FieldFacts {
  std::string_view name;
  double low = 0, high = 0;
  Transfer transfer = Transfer::kKept;
  std::string_view meaning;
  bool fixed = false;
};

/// Constants of one kernel in one format, with their fit, without their type.
struct ConstantsBlock {
  std::shared_ptr<const void> values;  ///< the kernel's parameter struct; null: none
  const FitRecord* record = nullptr;   ///< lives as long as `values`
  /// The transfer of the constants, if they were measured on another GPU; else null.
  std::shared_ptr<const CarriedFrom> carried = nullptr;
  explicit operator bool() const { return values != nullptr; }
};

/// Constants before their transfer.
struct CarriedFrom {
  std::shared_ptr<const GpuSpec> gpu;  ///< the GPU that they apply to
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
  /// Converts between a block and its values in the order of fields().
  virtual std::vector<double> numbers(const ConstantsBlock& block) const = 0;
  virtual ConstantsBlock from_numbers(std::span<const double> values, FitRecord record = {}) const = 0;
  /// Reads {parameter: value, ..., fit: {...}}. Throws ConfigError.
  virtual ConstantsBlock read(ConfigReader in) const = 0;
  /// Assumed constants for an unmeasured GPU. Fits start from them.
  virtual ConstantsBlock assumed(const GpuSpec& gpu, Dtype dtype) const = 0;
  /// The defaults of the parameter struct.
  virtual ConstantsBlock defaults() const = 0;
  /// The lender's constants as constants of this kernel. Fields that the lender lacks have their defaults.
  ConstantsBlock borrowed(const Kernel& lender, const ConstantsBlock& lent) const;
  /// The constants measured on one GPU, transferred to another.
  virtual ConstantsBlock carried_over(const ConstantsBlock& measured, const CarryOverCase& to) const = 0;

 private:
  friend std::span<const Kernel* const> kernels();
  KernelKind kind_;
  KernelFacts facts_;
  mutable std::size_t id_ = static_cast<std::size_t>(-1);
};

/// All kernels (hw/kernels/table.cpp).
std::span<const Kernel* const> kernels();

}  // namespace roofcast
