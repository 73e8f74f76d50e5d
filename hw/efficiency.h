#pragma once
// The calibrated constants of one GPU for one kernel set, by kernel and number format.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/config_reader.h"
#include "hw/dtype.h"
#include "hw/gpu_spec.h"
#include "hw/kernel_of.h"
#include "hw/kernel_sets.h"

namespace roofcast {

class KernelRules;
struct Machine;

class Efficiency {
 public:
  /// No measured constants, with the rules of configs/kernels/NAME.yaml ("vllm" by default).
  Efficiency();
  explicit Efficiency(std::shared_ptr<const KernelRules> rules);
  explicit Efficiency(const std::string& kernels);

  std::string carried_over_from;  ///< the measured GPU; empty if this GPU was measured
  bool ampere_kernels = false;    ///< GEMMs and attention have the constants of an Ampere GPU
  double without_aiter = 1.0;     ///< share of their rate that attention, experts and block fp8 keep without AITER

  /// Null if the kernel was not measured in this format; its prior applies then.
  template <class P, class Base>
  const Fitted<P>* find(const KernelOf<P, Base>& kernel, Dtype dtype) const {
    return KernelOf<P, Base>::in(block(kernel, dtype));
  }
  template <class P, class Base>
  void put(const KernelOf<P, Base>& kernel, Dtype dtype, std::type_identity_t<Fitted<P>> fitted) {
    put_block(kernel, dtype, KernelOf<P, Base>::block_of(std::move(fitted)));
  }
  const ConstantsBlock& block(const Kernel& kernel, Dtype dtype) const {
    return (*blocks_)[kernel.id()][static_cast<std::size_t>(dtype)];
  }
  /// The constants of fp8 for formats of 8 bits or fewer, else those of bf16. Null if neither was measured.
  const ConstantsBlock* block_by_width(const Kernel& kernel, Dtype dtype) const {
    const ConstantsBlock& narrow = block(kernel, Dtype::kFp8);
    if (element_bits(dtype) <= 8 && narrow) return &narrow;
    const ConstantsBlock& wide = block(kernel, Dtype::kBf16);
    return wide ? &wide : nullptr;
  }
  /// That block, else the kernel's assumption for an unmeasured GPU.
  ConstantsBlock constants(const Kernel& kernel, Dtype dtype, const GpuSpec& gpu) const {
    const ConstantsBlock* measured = block_by_width(kernel, dtype);
    return measured != nullptr ? *measured : kernel.assumed(gpu, dtype);
  }
  void put_block(const Kernel& kernel, Dtype dtype, ConstantsBlock block);
  /// Copies all formats of a kernel from another set of constants.
  void take(const Kernel& kernel, const Efficiency& from);
  bool has(const Kernel& kernel) const;
  /// Switches to other rules: of another kernel set, or of one release of its engine.
  void follow(std::shared_ptr<const KernelRules> rules) { rules_ = std::move(rules); }
  void at_release(std::string_view release);
  /// Gives each unmeasured kernel the constants of its first measured lender.
  void borrow();

  /// The rules that choose the kernel of a call.
  const KernelRules& rules() const { return *rules_; }
  /// The name of the kernel set: vllm, sglang, trtllm.
  const std::string& kernels() const;

 private:
  using Blocks = std::vector<std::array<ConstantsBlock, kDtypeCount>>;  ///< by Kernel::id()
  std::shared_ptr<const KernelRules> rules_;
  std::shared_ptr<const Blocks> blocks_;  ///< shared by copies until one changes
};

/// The machine's constants; without any, those of a GPU on which no kernel was measured.
const Efficiency& efficiency_of(const Machine& machine);

/// A GPU with its constants. A GPU file has them inline (`efficiency: {vllm: {...}}`), in a file
/// (`efficiency: {vllm: efficiency/h100-sxm-vllm.yaml}`), or from another GPU
/// (`efficiency: {carried_over_from: h100-sxm, another_generation: true}`). In the last case they are transferred, and
/// their residuals grow, more so from another generation (hw/carry_over.h). For each format, the GPU's own constants
/// take precedence over transferred ones, and those over the constants of another kernel set.
struct CalibratedGpu {
  GpuSpec spec;
  Efficiency efficiency;
};
CalibratedGpu load_gpu(const ConfigTree& tree, const std::string& kernels = kDefaultKernels);

/// The fit whose constants price work in a format. `fit` is null if priors do.
struct Evidence {
  const FitRecord* fit = nullptr;
  double lent = 0.0;  ///< Unexplained::lent if the constants are those of another format or kernel, else 0
  /// Relative standard deviation for shapes that the constants' own kernel runs, or for those of another kernel.
  double discrepancy(bool other_kernel) const;
};
/// The constants of `dtype`, else those of bf16.
Evidence evidence_of(const Efficiency& efficiency, const Kernel& kernel, Dtype dtype);

}  // namespace roofcast
