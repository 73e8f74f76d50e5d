#include "sim/step/operator_error.h"

#include "hw/collectives.h"
#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/elementwise.h"
#include "hw/kernels/latent/latent_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"
#include "hw/kernels/state/state_kernel.h"
#include "hw/rooflines.h"

namespace roofcast {
namespace {

/// The fit that prices a decode: caches of 8 bits or fewer use that of fp8.
template <class Heads>
Dtype cache(const Heads& heads) {
  return element_bits(heads.kv) <= 8 ? Dtype::kFp8 : Dtype::kBf16;
}

/// Prompts and chunks that an engine runs as decode are priced by the constants of decode.
struct EvidenceOf {
  const Efficiency& e;
  const GpuSpec& gpu;
  Evidence operator()(const GemmShape& w) const { return gemm_evidence(w, gpu, e); }
  Evidence operator()(const MoeShape& w) const { return experts_evidence(w, {.gpu = &gpu, .efficiency = &e}); }
  Evidence operator()(const ElementwiseWork&) const { return evidence_of(e, elementwise_kernel(), Dtype::kBf16); }
  Evidence operator()(const PrefillWork& w) const {
    if (runs_as_decode(w.shape, w.heads, e.rules())) return (*this)(DecodeWork{as_decode(w.shape), w.heads});
    const attention::PrefillKernel& kernel = prefill_kernel(w.shape, w.heads, gpu, e.rules());
    return evidence_of(e, kernel, prefill_products(w.heads, kernel, gpu));
  }
  Evidence operator()(const DecodeWork& w) const {
    return evidence_of(e, decode_kernel(w.shape, w.heads, gpu, e.rules()), cache(w.heads));
  }
  Evidence operator()(const LatentPrefillWork& w) const {
    if (runs_as_decode(w.shape, w.heads, gpu, e.rules())) return latent_decode_of(w.heads);
    const attention::LatentPrefillKernel& kernel = latent_prefill_kernel(w.heads, gpu, e.rules());
    return evidence_of(e, kernel, kernel.format(w.heads, gpu));
  }
  Evidence operator()(const LatentDecodeWork& w) const { return latent_decode_of(w.heads); }
  Evidence operator()(const StatePrefillWork& w) const { return state(w.mixer); }
  Evidence operator()(const StateDecodeWork& w) const { return state(w.mixer); }
  Evidence operator()(const CollectiveWork& w) const { return evidence_of(e, nccl_kernel(w.kind), Dtype::kBf16); }
  Evidence operator()(const ExchangeShape& w) const { return evidence_of(e, exchange_kernel(w.kernel), Dtype::kBf16); }
  Evidence operator()(const AdapterShape&) const { return evidence_of(e, elementwise_kernel(), Dtype::kBf16); }

  Evidence latent_decode_of(const LatentHeads& heads) const {
    return evidence_of(e, latent_decode_kernel(heads, gpu, e.rules()), cache(heads));
  }
  /// A short convolution has no recurrence.
  Evidence state(const StateMixer& mixer) const {
    if (mixer.kind == StateMixer::Kind::kConvolution)
      return evidence_of(e, convolution_kernel(mixer, gpu, e.rules()), Dtype::kBf16);
    return evidence_of(e, state_kernel(mixer, gpu, e.rules()), Dtype::kBf16);
  }
};

/// Whether the constants describe another kernel than the one that runs.
struct RunsOtherKernel {
  const Efficiency& e;
  const GpuSpec& gpu;
  bool operator()(const GemmShape&) const { return false; }
  bool operator()(const MoeShape&) const { return false; }
  bool operator()(const ElementwiseWork&) const { return false; }
  bool operator()(const PrefillWork& w) const {
    return prefill_kernel(w.shape, w.heads, gpu, e.rules()).facts().scored_apart;
  }
  bool operator()(const DecodeWork& w) const {
    return decode_kernel(w.shape, w.heads, gpu, e.rules()).facts().scored_apart;
  }
  bool operator()(const LatentPrefillWork&) const { return false; }
  bool operator()(const LatentDecodeWork&) const { return false; }
  bool operator()(const StatePrefillWork&) const { return false; }
  bool operator()(const StateDecodeWork&) const { return true; }
  bool operator()(const CollectiveWork&) const { return false; }
  bool operator()(const ExchangeShape&) const { return false; }
  bool operator()(const AdapterShape&) const { return true; }
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
  OperatorFamily operator()(const ExchangeShape&) const { return OperatorFamily::kCollective; }
  OperatorFamily operator()(const AdapterShape&) const { return OperatorFamily::kElementwise; }
};

}  // namespace

OperatorFamily family_of(const Work& work) { return std::visit(FamilyOf{}, work); }

const FitRecord* record_of(const Work& work, const Efficiency& efficiency, const GpuSpec& gpu) {
  return std::visit(EvidenceOf{efficiency, gpu}, work).fit;
}

double discrepancy_of(const Work& work, const Efficiency& efficiency, const GpuSpec& gpu,
                      const RooflineBackend* roofline) {
  if (roofline != nullptr) return roofline->discrepancy;
  if (by_roofline(gpu.architecture)) return assumed_roofline().discrepancy;
  const bool other = std::visit(RunsOtherKernel{efficiency, gpu}, work);
  return std::visit(EvidenceOf{efficiency, gpu}, work).discrepancy(other);
}

}  // namespace roofcast
