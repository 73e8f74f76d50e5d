#include "sim/step/operator_cost.h"

#include <algorithm>

#include "base/overloaded.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/elementwise.h"
#include "hw/kernels/experts/experts_kernel.h"
#include "hw/rooflines.h"

namespace roofcast {
namespace {

bool from_cpp(const Machine& m) { return m.efficiency != nullptr && m.efficiency->rules().engine().launched_from_cpp; }

/// Calls from the host. Fused operators (CUTLASS and trtllm-gen; on Blackwell also what vLLM and SGLang take by
/// themselves) start their kernels from C++; otherwise routing, counts, sort, padding, permutation, two quantizations,
/// two grouped GEMMs and their set-up, activation and combination are about thirty.
double expert_launches(const MoeShape& shape, const Machine& m) {
  // Permutation, offsets, copy, two products, activation, gathering and combination, of Triton and DeepGEMM from
  // Python.
  if (expands_choices(shape, *m.gpu)) return 12.0;
  // Behind DeepEP: product, activation with quantization, product; normal mode also copies, quantizes separately and
  // sums (sglang/srt/layers/moe/moe_runner/deep_gemm.py).
  if (shape.layout == ExpertLayout::kMasked) return 4.0;
  if (shape.layout == ExpertLayout::kContiguous) return 10.0;
  const bool named = shape.asked == RequestedExperts::kLowLatency || shape.asked == RequestedExperts::kCutlass;
  // CUTLASS's path for scales by blocks has kernels of its own for all that is around the products.
  const bool apart = shape.weights == Dtype::kFp8Block && shape.asked != RequestedExperts::kLowLatency;
  if (from_cpp(m)) return named && !apart ? 4.0 : 30.0;
  const bool own = (shape.asked == RequestedExperts::kDefault || shape.asked == RequestedExperts::kTrtllmGen) &&
                   m.gpu->architecture == Architecture::kBlackwell &&
                   !choose_experts(shape, m).kernel->traits().gathers;
  return named || own ? 4.0 : 30.0;
}

/// Chunked forms: convolution, gates, norms, chunk states, scan, output are twelve kernels of Triton; around each
/// Python checks, reshapes and copies, gathers and scatters states. All of it is some 72 calls of the host, as first
/// tokens at light load say: those of Qwen3.5-397B under SGLang, 45 such layers, take 173 ms on B300 (median of 14
/// runs), 174 by this count. Twelve of Triton's launches alone (49 us each with many arguments,
/// github.com/triton-lang/triton/pull/3638) fall 40 % short there, and 16 % on B200. Mamba-1's scan is one kernel of
/// CUDA, a short convolution is nothing but itself between two gates.
double state_prefill_launches(const StateMixer& mixer) {
  if (mixer.kind == StateMixer::Kind::kConvolution) return 3.0;
  return mixer.by_channel() ? 12.0 : 72.0;
}

/// Shrink and expand are Triton kernels; TensorRT-LLM's grouped GEMMs launch from C++.
double adapter_launches(const Machine& m) { return from_cpp(m) ? 2.0 : 12.0; }

/// Expanded, splits and concatenations of latent and rotary parts stand around the kernel.
double latent_prefill_launches(const LatentPrefillWork& w, const Machine& m) {
  const bool decodes = m.efficiency != nullptr && runs_as_decode(w.shape, w.heads, *m.gpu, m.efficiency->rules());
  return decodes ? 2.0 : 12.0;
}

const RooflineBackend* backend_of(const Machine& m) {
  if (m.roofline != nullptr) return m.roofline;
  return by_roofline(m.gpu->architecture) ? &assumed_roofline() : nullptr;
}

constexpr double kMostKernels = 12;  ///< of an operator; more are the calls that a launcher in Python takes for one

/// Attention, states and norms read 16 bit, whatever the weights are.
WeightWork weights_of(const Work& work) {
  if (const auto* w = std::get_if<GemmShape>(&work)) return {w->weights, w->n * w->k, w->m};
  if (const auto* w = std::get_if<MoeShape>(&work)) return {w->weights, expert_values(*w), w->tokens};
  return {};
}

/// Whether AITER has its own kernel. GEMMs in 16 bit and in fp8 per tensor use hipBLASLt in any case.
bool runs_by_aiter(const Work& work) {
  return std::visit(
      Overloaded{[](const GemmShape& w) { return w.weights == Dtype::kFp8Block; }, [](const MoeShape&) { return true; },
                 [](const PrefillWork&) { return true; }, [](const DecodeWork&) { return true; },
                 [](const LatentPrefillWork&) { return true; }, [](const LatentDecodeWork&) { return true; },
                 [](const StatePrefillWork&) { return false; }, [](const StateDecodeWork&) { return false; },
                 [](const ElementwiseWork&) { return false; }, [](const CollectiveWork&) { return false; },
                 [](const ExchangeShape&) { return false; }, [](const AdapterShape&) { return false; }},
      work);
}

/// Without AITER (VLLM_ROCM_USE_AITER, SGLANG_USE_AITER) Triton kernels run instead.
double share_without_aiter(const Work& work, const Machine& m) {
  if (m.aiter || m.efficiency == nullptr || m.fidelity == Fidelity::kIdeal) return 1.0;
  return runs_by_aiter(work) ? m.efficiency->without_aiter : 1.0;
}

Cost with_aiter(const Work& work, const Machine& m) {
  return std::visit(
      Overloaded{[&](const GemmShape& w) { return gemm(w, m); }, [&](const MoeShape& w) { return moe_experts(w, m); },
                 [&](const ElementwiseWork& w) {
                   Cost cost = elementwise(w.bytes, m.fidelity == Fidelity::kIdeal ? Flops(0) : w.indexing, w.launches,
                                           m, w.chain);
                   cost.flops = Flops(0);
                   return cost;
                 },
                 [&](const PrefillWork& w) { return attention_prefill(w.shape, w.heads, m); },
                 [&](const DecodeWork& w) { return attention_decode(w.shape, w.heads, m); },
                 [&](const LatentPrefillWork& w) { return latent_prefill(w.shape, w.heads, m); },
                 [&](const LatentDecodeWork& w) {
                   return w.sparse == FlashMla::kNone ? latent_decode(w.shape, w.heads, m)
                                                      : latent_sparse(w.shape, w.heads, w.sparse, m);
                 },
                 [&](const StatePrefillWork& w) { return state_prefill(w.batch, w.query_len, w.mixer, m); },
                 [&](const StateDecodeWork& w) { return state_decode(w.batch, w.mixer, m); },
                 [&](const CollectiveWork& w) {
                   if (w.stages > 1) return pipeline_send(w.bytes, w.gpus, w.stages, m);
                   const Group group{w.gpus, std::min(w.gpus, m.gpu->node.fabric_domain)};
                   if (w.norms) return all_reduce_norm(w.bytes, group, m);
                   return w.library ? nccl(w.kind, w.bytes, group, m) : collective(w.kind, w.bytes, group, m);
                 },
                 [&](const ExchangeShape& w) { return exchange(w, m); },
                 [&](const AdapterShape& w) { return adapter_product(w, m); }},
      work);
}

}  // namespace

Cost cost_of(const Work& work, const Machine& m) {
  if (const RooflineBackend* backend = backend_of(m); backend != nullptr && m.fidelity == Fidelity::kCalibrated) {
    if (const Launches launches = launches_of(work, m); !launches.collective) {
      Machine ideal = m;
      ideal.fidelity = Fidelity::kIdeal;
      return roofline_cost(cost_of(work, ideal), std::min(launches.replayed, kMostKernels), weights_of(work), *m.gpu,
                           *backend);
    }
  }
  Cost cost = with_aiter(work, m);
  cost.time *= 1.0 / share_without_aiter(work, m);
  return cost;
}

/// In a graph a product is one kernel: the quantization of its input, scales by blocks included, is an operator by
/// itself. Experts that run as separate kernels are about twelve there: routing and sorting (three), permutation, two
/// quantizations, two products, activation, combination, and their set-up without what only the host does.
Launches launches_of(const Work& work, const Machine& m) {
  const auto kernels = [](double n) { return Launches{.eager = n, .replayed = n, .collective = false}; };
  return std::visit(
      Overloaded{// scales by blocks are padded and laid out anew for the GEMM
                 [](const GemmShape& w) {
                   const double eager = w.weights == Dtype::kFp8Block ? 3.0 : 1.0;
                   return Launches{.eager = eager, .replayed = 1.0, .collective = false};
                 },
                 [&](const MoeShape& w) {
                   const double eager = expert_launches(w, m);
                   return Launches{.eager = eager, .replayed = std::min(eager, 12.0), .collective = false};
                 },
                 [&](const ElementwiseWork& w) { return kernels(w.launches); },
                 [&](const PrefillWork&) { return kernels(1.0); }, [&](const DecodeWork&) { return kernels(1.0); },
                 [&](const LatentPrefillWork& w) { return kernels(latent_prefill_launches(w, m)); },
                 [&](const LatentDecodeWork&) { return kernels(2.0); },
                 [&](const StatePrefillWork& w) { return kernels(state_prefill_launches(w.mixer)); },
                 [&](const StateDecodeWork&) { return kernels(2.0); },
                 [](const CollectiveWork&) { return Launches{.eager = 1.0, .replayed = 1.0, .collective = true}; },
                 // DeepEP's normal mode first counts who gets what
                 [](const ExchangeShape& w) {
                   const double starts = w.kernel == ExchangeKernel::kNormal && !w.combine ? 3.0 : 1.0;
                   return Launches{.eager = starts, .replayed = starts, .collective = true};
                 },
                 [&](const AdapterShape&) {
                   return Launches{.eager = adapter_launches(m), .replayed = 2.0, .collective = false};
                 }},
      work);
}

}  // namespace roofcast
