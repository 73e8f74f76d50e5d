// Prefill by trtllm-gen, the generated kernels for data-center Blackwell, and by the kernels that engines run in their
// place.

#include "hw/kernels/prefill/prefill_kernel.h"

namespace roofcast::attention {
namespace {

constexpr std::string_view kForm = "equations-attention.md#prefill";

struct Constants : PrefillParameters {
  static std::span<const Parameter<Constants>> fields();
};
std::span<const Parameter<Constants>> Constants::fields() {
  static constexpr auto kFields = joined(kPrefillFields<Constants>, kWideHeadField<Constants>);
  return kFields;
}

PrefillTraits generated(double d) { return {.tile_rows = d <= 128 ? 256.0 : 128.0, .tile_keys = 128}; }

template <class P>
P generated_prior(bool fp8) {
  P p;
  p.tile_us = 1.2, p.score_ns = 0.032, p.compute_fraction = 0.95, p.imbalance = 1.4, p.lone_slowdown = 1;
  p.window_blocks = 1.5, p.overlap = 1.05, p.bandwidth_fraction = 0.5, p.launch_head_dim_us = 0.1;
  p.wide_head_penalty = fp8 ? 0.3 : 0.0;
  return p;
}

class TrtllmGen final : public PrefillKernelOf<Constants> {
 public:
  using PrefillKernelOf::PrefillKernelOf;
  PrefillTraits traits(double d, bool) const override {
    PrefillTraits t = generated(d);
    t.rewrites_queries = true;
    return t;
  }
  Constants prior(const GpuSpec& gpu, Dtype products) const override {
    auto p = generated_prior<Constants>(computes_fp8(gpu, products));
    p.launch_us = 13.4, p.token_ns = 0.01;
    return p;
  }
};

struct VllmConstants : PrefillParameters {
  static std::span<const Parameter<VllmConstants>> fields();
};
std::span<const Parameter<VllmConstants>> VllmConstants::fields() {
  using P = VllmConstants;
  static constexpr auto kFields = joined(kPrefillFields<P>, kWideHeadField<P>, kTokenThreadsField<P>);
  return kFields;
}

class TrtllmGenVllm final : public PrefillKernelOf<VllmConstants> {
 public:
  TrtllmGenVllm(const KernelFacts& facts, double most_compute) : PrefillKernelOf(facts), most_compute_(most_compute) {}
  PrefillTraits traits(double d, bool) const override {
    PrefillTraits t = generated(d);
    t.most_compute = most_compute_;
    return t;
  }
  VllmConstants prior(const GpuSpec& gpu, Dtype products) const override {
    auto p = generated_prior<VllmConstants>(computes_fp8(gpu, products));
    p.launch_us = 9.4, p.token_ns = 0.4, p.token_threads_ns = 4.0;
    return p;
  }

 private:
  double most_compute_;
};

}  // namespace

const PrefillKernel& trtllm_gen_prefill() {
  static const TrtllmGen kernel({.name = "trtllm_gen_prefill",
                                 .help = "trtllm-gen as TensorRT-LLM calls it, prefill",
                                 .form = kForm,
                                 .unexplained = kPrefillUnexplained});
  return kernel;
}
/// TensorRT-LLM runs it on Blackwell for heads wider than 256, and for heads of 256 with a window.
const PrefillKernel& flashinfer_prefill() {
  static const TrtllmGen kernel({.name = "flashinfer_prefill",
                                 .help = "FlashInfer under TensorRT-LLM on Blackwell, prefill",
                                 .form = kForm,
                                 .unexplained = kPrefillUnexplained,
                                 .lenders = {&trtllm_gen_prefill()},
                                 .scored_apart = true});
  return kernel;
}
const PrefillKernel& trtllm_gen_vllm_prefill() {
  static const TrtllmGenVllm kernel({.name = "trtllm_gen_vllm_prefill",
                                     .help = "trtllm-gen as FlashInfer calls it for vLLM, prefill",
                                     .form = kForm,
                                     .unexplained = kPrefillUnexplained,
                                     .lenders = {&trtllm_gen_prefill()}},
                                    1.0);
  return kernel;
}
/// vLLM runs it for head dimensions that trtllm-gen lacks.
const PrefillKernel& triton_prefill() {
  static const TrtllmGenVllm kernel({.name = "triton_prefill",
                                     .help = "vLLM's Triton kernel on Blackwell, prefill",
                                     .form = kForm,
                                     .unexplained = kPrefillUnexplained,
                                     .lenders = {&trtllm_gen_vllm_prefill()},
                                     .scored_apart = true},
                                    kTritonCompute);
  return kernel;
}

}  // namespace roofcast::attention
