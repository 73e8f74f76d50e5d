#include "sim/step/operator_error.h"

namespace roofcast {
namespace {

template <class P>
const FitRecord* record(const ByDtype<P>& fits, Dtype dtype) {
  if (const auto* fitted = fits.find(dtype)) return &fitted->record;
  if (const auto* fitted = fits.find(Dtype::kBf16)) return &fitted->record;
  return nullptr;
}

/// The block that prices a decode: caches of 8 bits or fewer are those of fp8.
template <class Heads>
Dtype cache(const Heads& heads) {
  return element_bits(heads.kv) <= 8 ? Dtype::kFp8 : Dtype::kBf16;
}

/// Prompts and chunks that an engine runs as decode are priced by the constants of decode.
struct RecordOf {
  const Efficiency& e;
  const GpuSpec& gpu;
  const FitRecord* operator()(const GemmShape& w) const { return record(e.gemm, w.weights); }
  const FitRecord* operator()(const MoeShape& w) const { return record(e.moe, w.weights); }
  const FitRecord* operator()(const ElementwiseWork&) const { return record(e.elementwise, Dtype::kBf16); }
  const FitRecord* operator()(const PrefillWork& w) const {
    if (runs_as_decode(w.shape, w.heads, e.family)) return record(e.attention_decode, cache(w.heads));
    return record(e.attention_prefill, prefill_products(w.heads, gpu, e.family));
  }
  const FitRecord* operator()(const DecodeWork& w) const { return record(e.attention_decode, cache(w.heads)); }
  const FitRecord* operator()(const LatentPrefillWork& w) const {
    const bool decodes = runs_as_decode(w.shape, w.heads, gpu, e.family);
    return decodes ? record(e.latent_decode, cache(w.heads))
                   : record(e.latent_prefill, latent_prompt_products(w.heads, gpu, e.family));
  }
  const FitRecord* operator()(const LatentDecodeWork& w) const { return record(e.latent_decode, cache(w.heads)); }
  const FitRecord* operator()(const StatePrefillWork& w) const { return state(w.mixer); }
  const FitRecord* operator()(const StateDecodeWork& w) const { return state(w.mixer); }
  const FitRecord* operator()(const CollectiveWork& w) const {
    return record(e.nccl[static_cast<std::size_t>(w.kind)], Dtype::kBf16);
  }

  /// A short convolution has no recurrence.
  const FitRecord* state(const StateMixer& mixer) const {
    if (mixer.kind == StateMixer::Kind::kConvolution) return record(e.convolution, Dtype::kBf16);
    return record(e.state, Dtype::kBf16);
  }
};

struct FamilyOf {
  OperatorFamily operator()(const GemmShape&) const { return OperatorFamily::kGemm; }
  OperatorFamily operator()(const MoeShape&) const { return OperatorFamily::kExperts; }
  OperatorFamily operator()(const ElementwiseWork&) const { return OperatorFamily::kElementwise; }
  OperatorFamily operator()(const PrefillWork&) const { return OperatorFamily::kAttentionPrefill; }
  OperatorFamily operator()(const LatentPrefillWork&) const { return OperatorFamily::kAttentionPrefill; }
  OperatorFamily operator()(const DecodeWork&) const { return OperatorFamily::kAttentionDecode; }
  OperatorFamily operator()(const LatentDecodeWork&) const { return OperatorFamily::kAttentionDecode; }
  OperatorFamily operator()(const StatePrefillWork&) const { return OperatorFamily::kState; }
  OperatorFamily operator()(const StateDecodeWork&) const { return OperatorFamily::kState; }
  OperatorFamily operator()(const CollectiveWork&) const { return OperatorFamily::kCollective; }
};

}  // namespace

OperatorFamily family_of(const Work& work) { return std::visit(FamilyOf{}, work); }

const FitRecord* record_of(const Work& work, const Efficiency& efficiency, const GpuSpec& gpu) {
  return std::visit(RecordOf{efficiency, gpu}, work);
}

double discrepancy_of(const Work& work, const Efficiency& efficiency, const GpuSpec& gpu) {
  const FitRecord* record = record_of(work, efficiency, gpu);
  if (record == nullptr) return kDiscrepancyOfPriors;
  const AttentionHeads* heads = nullptr;
  if (const auto* prefill = std::get_if<PrefillWork>(&work)) heads = &prefill->heads;
  if (const auto* decode = std::get_if<DecodeWork>(&work)) heads = &decode->heads;
  const bool other = std::holds_alternative<StateDecodeWork>(work) ||
                     (heads != nullptr && is_other_kernel(*heads, gpu, efficiency.family));
  return record->discrepancy_of(other);
}

}  // namespace roofcast
