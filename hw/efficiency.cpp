#include "hw/efficiency.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/config_library.h"
#include "base/text.h"
#include "hw/carry_over.h"

namespace roofcast {
namespace {

constexpr std::size_t kCollectiveCount = 5;
constexpr int kLongestChain = 4;  ///< of GPUs that each name another; a circle would not end

/// No constants: every kernel falls back on the priors of its parameters.
Efficiency priors(KernelFamily family) {
  Efficiency efficiency;
  efficiency.family = family;
  return efficiency;
}

/// {bf16: {...}, fp8: {...}}, over what is there
template <class P>
void read_by_dtype(ConfigReader in, ByDtype<P>& families) {
  std::array<bool, kDtypeCount> read{};
  for (const ConfigNode::Entry& entry : in.whole()->entries) {
    const Dtype dtype = parse_dtype(entry.key, entry.key_mark);
    bool& again = read[static_cast<std::size_t>(dtype)];
    if (again) throw ConfigError(entry.key_mark, "'" + entry.key + "' names a format twice");
    again = true;
    families.put(dtype, read_fitted<P>(in.child(entry.key)));
  }
  in.finish();
}

template <class P>
void read_family(ConfigReader& in, std::string_view key, ByDtype<P>& families) {
  if (std::optional<ConfigReader> child = in.optional_child(key)) read_by_dtype<P>(std::move(*child), families);
}

CalibratedGpu load(const ConfigTree& tree, KernelFamily family, int chain);

/// Another GPU, of whose constants some apply here.
CalibratedGpu load_source(const std::string& name, const Mark& mark, KernelFamily family, int chain) {
  if (chain >= kLongestChain) throw ConfigError(mark, "GPUs carry over from each other in a circle");
  return load(load_named("hardware", name, mark), family, chain + 1);
}

/// Experts in 16 bit run by mma.sync there, too: Triton's and CUTLASS's, with a gate or without.
void take_ampere_experts(Efficiency& mine, const Efficiency& ampere) {
  const auto* fitted = ampere.moe.find(Dtype::kBf16);
  if (fitted == nullptr) return;
  mine.moe.put(Dtype::kBf16, *fitted);
  auto& without_gate = mine.moe_variants[static_cast<std::size_t>(MoeVariant::kTwoMatrices)];
  if (without_gate.find(Dtype::kBf16) != nullptr) without_gate.put(Dtype::kBf16, *fitted);
}

/// fp8 by mma.sync is the pipeline of 16 bit at another rate, in products and in TensorRT-LLM's prompts (both
/// fmha_v2_flash_attention_*_sm89, where Hopper's are *_tma_ws_sm90): Ampere's constants for 16 bit stand for it. An
/// A100's 8-bit products come out 9.2 % off with those of its 16-bit ones, 8.1 % with their own.
void lend_to_fp8(Efficiency& ampere) {
  if (const auto* wide = ampere.gemm.find(Dtype::kBf16)) ampere.gemm.put(Dtype::kFp8, *wide);
  const auto* prompts = ampere.attention_prefill.find(Dtype::kBf16);
  if (prompts != nullptr && ampere.family == KernelFamily::kTrtllm) {
    ampere.attention_prefill.put(Dtype::kFp8, *prompts);
  }
}

/// What a benchmark times beside a product in fp8 stays with the other source.
void take_ampere_fp8(ByDtype<GemmParameters>& mine, const ByDtype<GemmParameters>& ampere) {
  const auto* old = mine.find(Dtype::kFp8);
  const auto* lent = ampere.find(Dtype::kFp8);
  if (old == nullptr || lent == nullptr) return;
  Fitted<GemmParameters> fitted = *lent;
  for (const Parameter<GemmParameters>& field : GemmParameters::fields()) {
    const bool beside =
        field.name.starts_with("quantization_") || field.name == "benchmark_us" || field.name == "gemv_us";
    if (beside) fitted.value.*field.member = old->value.*field.member;
  }
  mine.put(Dtype::kFp8, std::move(fitted));
}

/// XQA multiplies fp8 caches by wgmma on Hopper alone, where it also rotates and writes what is new; elsewhere they run
/// in its 16-bit kernel (TensorRT-LLM, decoderXQAImplJIT/kernelUtils.cpp: supportConfigQGMMA demands SM 90). MMHA is
/// the same.
void take_wide_decode(ByDtype<DecodeParameters>& decode) {
  const auto* wide = decode.find(Dtype::kBf16);
  const auto* narrow = decode.find(Dtype::kFp8);
  if (wide == nullptr || narrow == nullptr) return;
  Fitted<DecodeParameters> fitted = *narrow;
  for (const Parameter<DecodeParameters>& field : DecodeParameters::fields()) {
    if (!field.name.starts_with("scalar_")) fitted.value.*field.member = wide->value.*field.member;
  }
  decode.put(Dtype::kFp8, std::move(fitted));
}

/// Kernels that an architecture without wgmma and tcgen05 shares with Ampere: cuBLAS's and CUTLASS's products by
/// mma.sync, FlashAttention-2, latent attention, experts. Products in narrower formats than fp8 stay with the other
/// source, a GPU of architecture `from`.
void take_ampere_kernels(Efficiency& mine, const Efficiency& ampere, Architecture from) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kInt8, Dtype::kInt4}) {
    if (const auto* fitted = ampere.gemm.find(dtype)) mine.gemm.put(dtype, *fitted);
  }
  take_ampere_fp8(mine.gemm, ampere.gemm);
  mine.ampere_kernels = true;
  mine.latent_prefill = ampere.latent_prefill;
  mine.latent_decode = ampere.latent_decode;
  take_ampere_experts(mine, ampere);
  if (mine.family == KernelFamily::kTrtllm) {
    // Its decode kernels (XQA, MMHA) are one source for every architecture but Blackwell's data centre parts, which
    // decode by tcgen05: of a GPU that has them, the nearer in clock, which the others are carried over from, says
    // more.
    if (from == Architecture::kBlackwell) mine.attention_decode = ampere.attention_decode;
    take_wide_decode(mine.attention_decode);
    for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp8}) {
      if (const auto* fitted = ampere.attention_prefill.find(dtype)) mine.attention_prefill.put(dtype, *fitted);
    }
    return;
  }
  mine.attention_prefill = ampere.attention_prefill;
  mine.attention_decode = ampere.attention_decode;
}

/// A map as it is, or the file beside the document that names it.
ConfigTree constants_tree(const ConfigTree& value) {
  if (value->kind == ConfigNode::Kind::kMap) return value;
  if (value->kind != ConfigNode::Kind::kScalar || value->scalar.empty()) {
    throw ConfigError(value->mark, "must name a file of constants, or hold them");
  }
  const std::filesystem::path path = std::filesystem::path(value->mark.path).parent_path() / value->scalar;
  if (!std::filesystem::is_regular_file(path)) {
    throw ConfigError(value->mark, "no file '" + path.string() + "' with the constants");
  }
  return parse_config_file(path.string());
}

Efficiency read_constants(const ConfigTree& value, Efficiency beneath) {
  return parse_efficiency(ConfigReader(constants_tree(value), "the constants of a GPU"), std::move(beneath));
}

/// The family asked for; else another GPU's; else this GPU's other family; else priors. A file of the
/// other family is not opened: start-up time counts.
Efficiency read_efficiency(const ConfigTree& tree, const GpuSpec& gpu, KernelFamily family, int chain) {
  ConfigReader in(tree, "an efficiency block");
  const KernelFamily other = family == KernelFamily::kVllm ? KernelFamily::kTrtllm : KernelFamily::kVllm;
  const ConfigTree own = in.tree(name_of(family));
  const ConfigTree others = in.tree(name_of(other));
  const std::string source = in.text("carried_over_from", "");
  const std::string ampere = in.text("ampere_kernels_from", "");
  const CarryOver how{.another_generation = in.boolean("another_generation", false),
                      .matrix_limit = in.number("matrix_limit", 1.0, Range{0.1, 1.0}),
                      .memory_ecc = in.boolean("memory_ecc", true)};
  in.finish();
  if (gpu.architecture == Architecture::kGeneric && (own || others || !source.empty()))
    throw ConfigError(tree->mark,
                      "a generic architecture has no kernels and takes no constants: leave 'efficiency' out");
  if (!source.empty()) {
    const CalibratedGpu measured = load_source(source, in.mark_of("carried_over_from"), family, chain);
    Efficiency mine = carry_over(measured.efficiency, measured.spec, gpu, how);
    if (!ampere.empty()) {
      CalibratedGpu second = load_source(ampere, in.mark_of("ampere_kernels_from"), family, chain);
      lend_to_fp8(second.efficiency);
      if (second.efficiency.family == mine.family) {
        take_ampere_kernels(mine, carry_over(second.efficiency, second.spec, gpu, how), measured.spec.architecture);
        mine.carried_over_from += ", " + second.spec.name;
      }
    }
    if (own) mine.family = family;  // whose kernels its own constants are of
    return own ? read_constants(own, std::move(mine)) : mine;
  }
  for (const char* key : {"ampere_kernels_from", "matrix_limit", "memory_ecc", "another_generation"}) {
    if (in.has(key)) in.fail(key, "needs 'carried_over_from' beside it");
  }
  if (own) return read_constants(own, priors(family));
  return others ? read_constants(others, priors(other)) : priors(family);
}

CalibratedGpu load(const ConfigTree& tree, KernelFamily family, int chain) {
  CalibratedGpu gpu{.spec = parse_gpu_spec(ConfigReader(tree, "a GPU")), .efficiency = priors(family)};
  const ConfigTree* efficiency = tree->find("efficiency");
  if (efficiency && (*efficiency)->kind != ConfigNode::Kind::kNull) {
    gpu.efficiency = read_efficiency(*efficiency, gpu.spec, family, chain);
  }
  return gpu;
}

}  // namespace

std::string_view name_of(KernelFamily family) {
  switch (family) {
    case KernelFamily::kTrtllm:
      return "trtllm";
    case KernelFamily::kVllm:
      return "vllm";
  }
  fail_check("family", __FILE__, __LINE__, "no such kernel family");
}

Efficiency parse_efficiency(ConfigReader in, KernelFamily family) {
  return parse_efficiency(std::move(in), priors(family));
}

Efficiency parse_efficiency(ConfigReader in, Efficiency efficiency) {
  read_family(in, "gemm", efficiency.gemm);
  read_family(in, "gemm_tuned", efficiency.gemm_tuned);
  read_family(in, "attention_prefill", efficiency.attention_prefill);
  read_family(in, "attention_decode", efficiency.attention_decode);
  read_family(in, "latent_prefill", efficiency.latent_prefill);
  read_family(in, "latent_decode", efficiency.latent_decode);
  read_family(in, "moe", efficiency.moe);
  if (std::optional<ConfigReader> variants = in.optional_child("moe_variants")) {
    for (std::size_t i = 1; i < kMoeVariantCount; ++i) {
      read_family(*variants, name_of(static_cast<MoeVariant>(i)), efficiency.moe_variants[i]);
    }
    variants->finish();
  }
  read_family(in, "state", efficiency.state);
  read_family(in, "convolution", efficiency.convolution);
  read_family(in, "mamba_convolution", efficiency.mamba_convolution);
  read_family(in, "elementwise", efficiency.elementwise);
  read_family(in, "custom_all_reduce", efficiency.custom_all_reduce);
  read_family(in, "fused_all_reduce", efficiency.fused_all_reduce);
  if (std::optional<ConfigReader> nccl = in.optional_child("nccl")) {
    for (std::size_t i = 0; i < kCollectiveCount; ++i) {
      read_family(*nccl, name_of(static_cast<Collective>(i)), efficiency.nccl[i]);
    }
    nccl->finish();
  }
  in.finish();
  return efficiency;
}

CalibratedGpu load_gpu(const ConfigTree& tree, KernelFamily family) { return load(tree, family, 0); }

}  // namespace roofcast
