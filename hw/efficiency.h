#pragma once
// The calibrated constants of one GPU under one engine family.

#include <array>
#include <string>

#include "base/config_reader.h"
#include "hw/collectives.h"
#include "hw/gpu_spec.h"
#include "hw/kernels/attention.h"
#include "hw/kernels/elementwise.h"
#include "hw/kernels/gemm.h"
#include "hw/kernels/latent_attention.h"
#include "hw/kernels/moe.h"
#include "hw/kernels/state.h"
#include "hw/parameters.h"

namespace roofcast {

/// Whose kernels were measured.
enum class KernelFamily { kTrtllm, kVllm };
std::string_view name_of(KernelFamily family);

struct Efficiency {
  KernelFamily family = KernelFamily::kVllm;
  std::string carried_over_from;                 ///< the GPU that was measured, empty when this one was
  bool ampere_kernels = false;                   ///< products and attention are those of an Ampere GPU
  ByDtype<GemmParameters> gemm;                  ///< by format of the weights
  ByDtype<GemmParameters> gemm_tuned;            ///< of served steps, where an engine tunes what the tables ran untuned
  ByDtype<PrefillParameters> attention_prefill;  ///< by format of the products
  ByDtype<DecodeParameters> attention_decode;    ///< by format of the cache
  ByDtype<LatentPrefillParameters> latent_prefill;
  ByDtype<LatentDecodeParameters> latent_decode;
  ByDtype<MoeParameters> moe;                                         ///< by format of the weights
  std::array<ByDtype<MoeParameters>, kMoeVariantCount> moe_variants;  ///< by MoeVariant; the default one stands above
  ByDtype<StateParameters> state;                                     ///< bf16
  ByDtype<ConvolutionParameters> convolution;                         ///< bf16; before a state mixer
  ByDtype<ConvolutionParameters> mamba_convolution;                   ///< bf16; Mamba's, where it was measured apart
  ByDtype<ElementwiseParameters> elementwise;                         ///< bf16
  ByDtype<CustomAllReduceParameters> custom_all_reduce;               ///< bf16
  ByDtype<CustomAllReduceParameters> fused_all_reduce;  ///< bf16; that norms, too, where it is another engine's kernel
  std::array<ByDtype<NcclParameters>, 5> nccl;          ///< by Collective; bf16
};

/// Calls `change` with every set of constants, a ByDtype each.
template <class F>
void for_each_family(Efficiency& efficiency, F&& change) {
  change(efficiency.gemm);
  change(efficiency.gemm_tuned);
  change(efficiency.attention_prefill);
  change(efficiency.attention_decode);
  change(efficiency.latent_prefill);
  change(efficiency.latent_decode);
  change(efficiency.moe);
  for (ByDtype<MoeParameters>& of_variant : efficiency.moe_variants) change(of_variant);
  change(efficiency.state);
  change(efficiency.convolution);
  change(efficiency.mamba_convolution);
  change(efficiency.elementwise);
  change(efficiency.custom_all_reduce);
  change(efficiency.fused_all_reduce);
  for (ByDtype<NcclParameters>& of_collective : efficiency.nccl) change(of_collective);
}

/// {gemm: {bf16: {...}}, ..., nccl: {all_reduce: {...}}}; families that are absent keep nothing, and their
/// kernels fall back on the priors of the parameter structs.
Efficiency parse_efficiency(ConfigReader in, KernelFamily family);
/// The same over `beneath`: families and formats that are absent keep what it has.
Efficiency parse_efficiency(ConfigReader in, Efficiency beneath);

/// A GPU with its constants. A GPU file names them inline (`efficiency: {vllm: {...}}`) or as a file beside
/// it (`efficiency: {vllm: efficiency/h100-sxm-vllm.yaml}`), or another GPU's
/// (`efficiency: {carried_over_from: h100-sxm, another_generation: true}`), whose fractions of peak then apply
/// to this GPU's peaks, while what they leave unexplained grows, more so from another generation (hw/carry_over.h). Own
/// constants win over those carried over, format by format, and those over the other family's.
struct CalibratedGpu {
  GpuSpec spec;
  Efficiency efficiency;
};
CalibratedGpu load_gpu(const ConfigTree& tree, KernelFamily family);

}  // namespace roofcast
