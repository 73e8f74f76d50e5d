#pragma once
// A kernel is a named model of how long an operator takes, with constants of its own. hw/kernels/table.cpp lists all.

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

/// Relative standard deviations that are added to a fit's own, as independent of it. With the first two, nine of ten
/// rows lie within their interval when constants are transferred blindly between measured GPUs; with the last, when a
/// measured kernel's constants are taken away and others stand in. Source: docs/equations.md#intervals.
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

/// What the table says of a kernel.
struct KernelFacts {
  std::string_view name;  ///< its key among the constants of a GPU
  std::string_view help;  ///< one line: whose it is and what it computes
  std::string_view form;  ///< the page and section that give its equations
  Unexplained unexplained{};
  /// Whose constants stand in where it was not measured, field by field of one name: the first that was.
  std::array<const Kernel*, 2> lenders{};
  bool scored_apart = false;  ///< its error is the `discrepancy_elsewhere` of its first lender
};

/// A constant, whatever its kernel.
struct FieldFacts {
  std::string_view name;
  double low = 0, high = 0;
  Transfer transfer = Transfer::kKept;
  std::string_view meaning;
  bool held = false;
};

/// Constants of one kernel in one format, with their fit, whatever their type.
struct ConstantsBlock {
  std::shared_ptr<const void> values;  ///< the kernel's parameter struct; null: none
  const FitRecord* record = nullptr;   ///< lives as long as `values`
  /// Whence another GPU's came; null: they hold on this one as measured.
  std::shared_ptr<const CarriedFrom> carried = nullptr;
  explicit operator bool() const { return values != nullptr; }
};

/// Constants before they were carried over.
struct CarriedFrom {
  std::shared_ptr<const GpuSpec> gpu;  ///< where they hold
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
  /// Its place in kernels(), for those that stand there.
  std::size_t id() const { return id_; }

  virtual std::vector<FieldFacts> fields() const = 0;
  /// The values in the order of fields(), and back.
  virtual std::vector<double> numbers(const ConstantsBlock& block) const = 0;
  virtual ConstantsBlock from_numbers(std::span<const double> values, FitRecord record = {}) const = 0;
  /// {parameter: value, ..., fit: {...}}
  virtual ConstantsBlock read(ConfigReader in) const = 0;
  /// What is assumed on a GPU that was not measured. Fits start from it.
  virtual ConstantsBlock assumed(const GpuSpec& gpu, Dtype dtype) const = 0;
  /// The defaults of the parameter struct.
  virtual ConstantsBlock defaults() const = 0;
  /// The lender's constants as this kernel's; what the lender does not have stays at its default.
  ConstantsBlock borrowed(const Kernel& lender, const ConstantsBlock& lent) const;
  /// What constants measured on one GPU are worth on another.
  virtual ConstantsBlock carried_over(const ConstantsBlock& measured, const CarryOverCase& to) const = 0;

 private:
  friend std::span<const Kernel* const> kernels();
  KernelKind kind_;
  KernelFacts facts_;
  mutable std::size_t id_ = static_cast<std::size_t>(-1);
};

/// Every kernel there is. hw/kernels/table.cpp.
std::span<const Kernel* const> kernels();

}  // namespace roofcast
