#include "hw/efficiency.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/config_library.h"
#include "base/text.h"

namespace roofcast {
namespace {

constexpr std::size_t kCollectiveCount = 5;
/// Constants of another GPU leave more unexplained. Within a generation hardly more: H100 to H200 and B200 to
/// GB200 GEMMs err 1.0-1.5x as much as with constants of their own. Across generations far more: Hopper's on an L40S
/// 4-5x (28-32 % in the mean), so those files set `widening: 4`.
constexpr double kCarriedOverWidening = 1.5;
constexpr int kLongestChain = 4;  ///< of GPUs that each name another; a circle would not end

/// No constants: every kernel falls back on the priors of its parameters.
Efficiency priors(KernelFamily family) {
  Efficiency efficiency;
  efficiency.family = family;
  return efficiency;
}

/// {bf16: {...}, fp8: {...}}
template <class P>
ByDtype<P> read_by_dtype(ConfigReader in) {
  ByDtype<P> families;
  for (const ConfigNode::Entry& entry : in.whole()->entries) {
    const Dtype dtype = parse_dtype(entry.key, entry.key_mark);
    if (families.find(dtype)) throw ConfigError(entry.key_mark, "'" + entry.key + "' names a format twice");
    families.put(dtype, read_fitted<P>(in.child(entry.key)));
  }
  in.finish();
  return families;
}

template <class P>
void read_family(ConfigReader& in, std::string_view key, ByDtype<P>& families) {
  if (std::optional<ConfigReader> child = in.optional_child(key)) families = read_by_dtype<P>(std::move(*child));
}

/// Calls `change` with the record of every set of constants.
template <class P, class F>
void for_each_record(ByDtype<P>& families, F&& change) {
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    if (const Fitted<P>* old = families.find(dtype)) {
      Fitted<P> fitted = *old;
      change(fitted.record);
      families.put(dtype, std::move(fitted));
    }
  }
}

template <class F>
void for_each_record(Efficiency& efficiency, F&& change) {
  for_each_record(efficiency.gemm, change);
  for_each_record(efficiency.gemm_tuned, change);
  for_each_record(efficiency.attention_prefill, change);
  for_each_record(efficiency.attention_decode, change);
  for_each_record(efficiency.latent_prefill, change);
  for_each_record(efficiency.latent_decode, change);
  for_each_record(efficiency.moe, change);
  for (ByDtype<MoeParameters>& of_variant : efficiency.moe_variants) for_each_record(of_variant, change);
  for_each_record(efficiency.state, change);
  for_each_record(efficiency.convolution, change);
  for_each_record(efficiency.mamba_convolution, change);
  for_each_record(efficiency.elementwise, change);
  for_each_record(efficiency.custom_all_reduce, change);
  for (ByDtype<NcclParameters>& of_collective : efficiency.nccl) for_each_record(of_collective, change);
}

CalibratedGpu load(const ConfigTree& tree, KernelFamily family, int chain);

Efficiency carry_over(const std::string& source, double widening, const Mark& mark, KernelFamily family, int chain) {
  if (chain >= kLongestChain) throw ConfigError(mark, "GPUs carry over from each other in a circle");
  const CalibratedGpu measured = load(load_named("hardware", source, mark), family, chain + 1);
  Efficiency efficiency = measured.efficiency;
  if (efficiency.carried_over_from.empty()) efficiency.carried_over_from = measured.spec.name;
  for_each_record(efficiency, [widening](FitRecord& record) {
    record.standing = Standing::kCarriedOver;
    record.discrepancy *= widening;
  });
  return efficiency;
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

Efficiency read_constants(const ConfigTree& value, KernelFamily family) {
  return parse_efficiency(ConfigReader(constants_tree(value), "the constants of a GPU"), family);
}

/// The family asked for; else another GPU's; else this GPU's other family; else priors. A file of the
/// other family is not opened: start-up time counts.
Efficiency read_efficiency(const ConfigTree& tree, KernelFamily family, int chain) {
  ConfigReader in(tree, "an efficiency block");
  const KernelFamily other = family == KernelFamily::kVllm ? KernelFamily::kTrtllm : KernelFamily::kVllm;
  const ConfigTree own = in.tree(name_of(family));
  const ConfigTree others = in.tree(name_of(other));
  const std::string source = in.text("carried_over_from", "");
  const double widening = in.number("widening", kCarriedOverWidening, kAtLeastOne);
  in.finish();
  if (own) return read_constants(own, family);
  if (!source.empty()) return carry_over(source, widening, in.mark_of("carried_over_from"), family, chain);
  return others ? read_constants(others, other) : priors(family);
}

CalibratedGpu load(const ConfigTree& tree, KernelFamily family, int chain) {
  CalibratedGpu gpu{.spec = parse_gpu_spec(ConfigReader(tree, "a GPU")), .efficiency = priors(family)};
  const ConfigTree* efficiency = tree->find("efficiency");
  if (efficiency && (*efficiency)->kind != ConfigNode::Kind::kNull) {
    gpu.efficiency = read_efficiency(*efficiency, family, chain);
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
  Efficiency efficiency = priors(family);
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
