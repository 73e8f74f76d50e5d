#pragma once
// The calibrated constants of one GPU under one set of kernels: those of every kernel that was measured, by format.

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

class Efficiency {
 public:
  /// Nothing is measured of the kernels of configs/kernels/NAME.yaml, "vllm" unless another is named.
  Efficiency();
  explicit Efficiency(std::shared_ptr<const KernelRules> rules);
  explicit Efficiency(const std::string& kernels);

  std::string carried_over_from;  ///< the GPU that was measured, empty when this one was
  bool ampere_kernels = false;    ///< products and attention are those of an Ampere GPU
  double without_aiter = 1.0;     ///< share of their rate that attention, experts and block fp8 keep without AITER

  /// Null where the kernel was not measured in this format: its prior holds.
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
  /// Formats that 8 bits or fewer store count as fp8, and bf16 stands in for what was not measured. Null: neither was.
  const ConstantsBlock* block_by_width(const Kernel& kernel, Dtype dtype) const {
    const ConstantsBlock& narrow = block(kernel, Dtype::kFp8);
    if (element_bits(dtype) <= 8 && narrow) return &narrow;
    const ConstantsBlock& wide = block(kernel, Dtype::kBf16);
    return wide ? &wide : nullptr;
  }
  /// That block, else what the kernel assumes on a GPU that was not measured.
  ConstantsBlock constants(const Kernel& kernel, Dtype dtype, const GpuSpec& gpu) const {
    const ConstantsBlock* measured = block_by_width(kernel, dtype);
    return measured != nullptr ? *measured : kernel.assumed(gpu, dtype);
  }
  void put_block(const Kernel& kernel, Dtype dtype, ConstantsBlock block);
  /// All formats of a kernel, from another set.
  void take(const Kernel& kernel, const Efficiency& from);
  bool has(const Kernel& kernel) const;
  /// The rules of another set, or of one release of its engine, from here on.
  void follow(std::shared_ptr<const KernelRules> rules) { rules_ = std::move(rules); }
  void at_release(std::string_view release);
  /// Kernels that were not measured take what their lenders have.
  void borrow();

  /// Which kernel runs what.
  const KernelRules& rules() const { return *rules_; }
  /// The name of the set: vllm, sglang, trtllm.
  const std::string& kernels() const;

 private:
  using Blocks = std::vector<std::array<ConstantsBlock, kDtypeCount>>;  ///< by Kernel::id()
  std::shared_ptr<const KernelRules> rules_;
  std::shared_ptr<const Blocks> blocks_;  ///< shared by copies until one changes
};

/// A GPU with its constants. A GPU file names them inline (`efficiency: {vllm: {...}}`) or as a file beside
/// it (`efficiency: {vllm: efficiency/h100-sxm-vllm.yaml}`), or another GPU's
/// (`efficiency: {carried_over_from: h100-sxm, another_generation: true}`), whose fractions of peak then apply
/// to this GPU's peaks, while what they leave unexplained grows, more so from another generation (hw/carry_over.h). Own
/// constants win over those carried over, format by format, and those over another set's.
struct CalibratedGpu {
  GpuSpec spec;
  Efficiency efficiency;
};
CalibratedGpu load_gpu(const ConfigTree& tree, const std::string& kernels = kDefaultKernels);

/// The fit whose constants price the work of a format. Null: priors do.
struct Evidence {
  const FitRecord* fit = nullptr;
  double lent = 0.0;  ///< Unexplained::lent where they are another format's or kernel's, else 0
  /// Relative standard deviation, of shapes that the constants' own kernel runs or `other_kernel` does.
  double discrepancy(bool other_kernel) const;
};
/// The constants of `dtype`, else those of bf16.
Evidence evidence_of(const Efficiency& efficiency, const Kernel& kernel, Dtype dtype);

}  // namespace roofcast
