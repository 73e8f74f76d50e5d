#include "hw/kernels/benchmark_loops.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "hw/kernels/latent/latent_kernel.h"

namespace roofcast {
namespace {

template <class P>
constexpr std::array<Parameter<P>, 1> kPlainFields{{
    {"benchmark_us", &P::benchmark_us, 0.0, 40.0, Transfer::kCycles,
     "timed with the GEMM: launch of a dynamic quantization, plug-in call"},
}};
template <class P>
constexpr std::array<Parameter<P>, 4> kQuantizationFields{{
    {"quantization_row_us", &P::quantization_row_us, 0.0, 2.0, Transfer::kCycles,
     "quantization of one row; an SM does one row at a time"},
    {"quantization_step_us", &P::quantization_step_us, 0.0, 2.0, Transfer::kCycles, "per 2048 elements of such a row"},
    {"quantization_memory_ratio", &P::quantization_memory_ratio, 0.05, 1.0, Transfer::kMemoryShare,
     "DRAM rate of the quantization over the datasheet's"},
    {"quantization_l2_ratio", &P::quantization_l2_ratio, 0.2, 4.0, Transfer::kL2OverMemory,
     "L2 rate of the quantization over the DRAM datasheet's"},
}};
template <class P>
constexpr std::array<Parameter<P>, 4> kHostFields{{
    {"host_floor_us", &P::host_floor_us, 0.0, 400.0, Transfer::kHost, "minimum host time, other kernels"},
    {"host_floor_deep_gemm_us", &P::host_floor_deep_gemm_us, 0.0, 400.0, Transfer::kHost,
     "minimum host time, DeepGEMM"},
    {"host_odd_rows_us", &P::host_odd_rows_us, 0.0, 100.0, Transfer::kHost,
     "additional time for DeepGEMM if m is not a multiple of 4 and scales are copied to align them"},
    {"host_floor_flash_infer_us", &P::host_floor_flash_infer_us, 0.0, 400.0, Transfer::kHost,
     "minimum host time, FlashInfer"},
}};

struct Plain : GemmLoopParameters {
  static std::span<const Parameter<Plain>> fields() { return kPlainFields<Plain>; }
};
struct Quantizing : GemmLoopParameters {
  static std::span<const Parameter<Quantizing>> fields() {
    static constexpr auto kFields = joined(kPlainFields<Quantizing>, kQuantizationFields<Quantizing>);
    return kFields;
  }
};
struct Eager : GemmLoopParameters {
  static std::span<const Parameter<Eager>> fields() {
    static constexpr auto kFields = joined(kPlainFields<Eager>, kQuantizationFields<Eager>, kHostFields<Eager>);
    return kFields;
  }
};

/// Blackwell's DeepGEMM needs scales packed into exponents. For fp32 scales the host launches five more kernels per
/// call: arange, divide, select and pack for the weights, pack for the activations. If rows are not a multiple of four,
/// PyTorch launches five kernels for the activations instead of one; on Hopper it is a single copy, which is the unit
/// here. Source: deepseek-ai/DeepGEMM, csrc/apis/layout.hpp and csrc/jit_kernels/impls/smxx_layout.hpp.
constexpr double kPackingLaunches = 5.0, kOddLaunches = 4.0;
void follow_scales(GemmLoopParameters& p, const GpuSpec& from, const GpuSpec& to) {
  if (from.architecture == Architecture::kHopper && to.architecture == Architecture::kBlackwell) {
    p.host_floor_deep_gemm_us += kPackingLaunches * p.host_odd_rows_us;
    p.host_odd_rows_us *= kOddLaunches;
  } else if (from.architecture == Architecture::kBlackwell && to.architecture == Architecture::kHopper) {
    p.host_odd_rows_us /= kOddLaunches;
    p.host_floor_deep_gemm_us = std::max(0.0, p.host_floor_deep_gemm_us - kPackingLaunches * p.host_odd_rows_us);
  }
}

template <class P>
class LoopOf final : public KernelOf<P, GemmLoop> {
 public:
  using KernelOf<P, GemmLoop>::KernelOf;
  const GemmLoopParameters& parameters(const ConstantsBlock& constants) const override {
    return this->in(constants)->value;
  }
  ConstantsBlock with_parameters(const GemmLoopParameters& values) const override {
    return this->block_of({P{values}, {}});
  }

 private:
  void follow(P& p, const CarryOverCase& to) const override {
    if (p.benchmark_us > 0.0) keep_gap(p.benchmark_us, to.ratios.time);
    follow_scales(p, to.from, to.to);
  }
};

constexpr std::string_view kForm = "equations-gemm.md#serving-and-benchmarks";
constexpr Unexplained kUnexplained{0.05, 0.27, 0.2};

}  // namespace

const GemmLoop& plain_gemm_loop() {
  static const LoopOf<Plain> loop(
      {"plain_gemm_loop", "overhead timed by a GEMM benchmark: a plug-in call", kForm, kUnexplained});
  return loop;
}
const GemmLoop& quantizing_gemm_loop() {
  static const LoopOf<Quantizing> loop({"quantizing_gemm_loop",
                                        "overhead timed by a GEMM benchmark: the quantization of the activations",
                                        kForm, kUnexplained});
  return loop;
}
const GemmLoop& eager_gemm_loop() {
  static const LoopOf<Eager> loop(
      {"eager_gemm_loop", "overhead timed by a GEMM benchmark without a CUDA graph: quantization and host time", kForm,
       kUnexplained});
  return loop;
}

std::span<const Parameter<ExpertsLoopParameters>> ExpertsLoopParameters::fields() {
  using P = ExpertsLoopParameters;
  static constexpr std::array<Parameter<P>, 2> kFields{{
      {"host_lead_us", &P::host_lead_us, 0.0, 2000.0, Transfer::kHost, "host time before the first GEMM"},
      {"host_floor_us", &P::host_floor_us, 0.0, 4000.0, Transfer::kHost, "host time of the whole layer"},
  }};
  return kFields;
}
const KernelOf<ExpertsLoopParameters>& eager_experts_loop() {
  static const KernelOf<ExpertsLoopParameters> loop({"eager_experts_loop",
                                                     "overhead timed by a benchmark of experts: host time",
                                                     "equations-moe.md",
                                                     {0.05, 0.35, 0.5}});
  return loop;
}

namespace {

template <class P>
constexpr std::array<Parameter<P>, 2> kCacheFields{{
    {"l2_share", &P::l2_share, 0.05, 1.0, Transfer::kKept,
     "share of L2 that still holds the cache in the loop; none when serving"},
    {"l2_bandwidth_tb_per_s", &P::l2_bandwidth_tb_per_s, 1.0, 25.0, Transfer::kL2Rate, "bandwidth of L2 in that loop"},
}};
template <class P>
constexpr std::array<Parameter<P>, 2> kEagerFields{{
    {"eager_device_us", &P::eager_device_us, 0.0, 120.0, Transfer::kHost,
     "gaps between kernels of a call without a CUDA graph"},
    {"eager_host_us", &P::eager_host_us, 0.0, 500.0, Transfer::kHost, "host time of such a call, a lower bound"},
}};

/// Makes the loop around one kernel.
template <class P>
std::unique_ptr<const Kernel> loop_of(const Kernel& kernel, std::string_view name, std::string_view help,
                                      const std::array<const Kernel*, 2>& lenders) {
  return std::make_unique<KernelOf<P>>(KernelFacts{.name = name,
                                                   .help = help,
                                                   .form = kernel.facts().form,
                                                   .unexplained = kernel.facts().unexplained,
                                                   .lenders = lenders});
}

std::map<const Kernel*, std::unique_ptr<const Kernel>>& known_attention_loops() {
  static std::map<const Kernel*, std::unique_ptr<const Kernel>> known;
  return known;
}

/// Decode kernels of all kinds have a loop; prefill kernels only if they are timed without a CUDA graph.
bool has_attention_loop(const Kernel& kernel) {
  const KernelKind kind = kernel.kind();
  return kind == KernelKind::kAttentionDecode || kind == KernelKind::kLatentDecode ||
         (kind == KernelKind::kLatentPrefill && is_timed_eagerly(kernel));
}

}  // namespace

std::span<const Parameter<CacheLoop>> CacheLoop::fields() {
  using P = CacheLoop;
  static constexpr auto kFields = joined(
      std::array<Parameter<P>, 1>{{{"benchmark_reuse", &P::benchmark_reuse, 0.0, 0.7, Transfer::kKept,
                                    "share of the cache that repeats other pages (TensorRT-LLM before Hopper)", true}}},
      kCacheFields<P>,
      std::array<Parameter<P>, 1>{{{"l2_cliff", &P::l2_cliff, 0.5, 10.0, Transfer::kKept,
                                    "how fast l2_share falls as the cache outgrows it"}}});
  return kFields;
}
std::span<const Parameter<EagerLoop>> EagerLoop::fields() { return kEagerFields<EagerLoop>; }
std::span<const Parameter<LatentLoop>> LatentLoop::fields() {
  static constexpr auto kFields = joined(kEagerFields<LatentLoop>, kCacheFields<LatentLoop>);
  return kFields;
}

bool is_timed_eagerly(const Kernel& kernel) {
  using namespace attention;
  static const std::array<const Kernel*, 7> eager{
      &trtllm_gen_mla_vllm_prefill(), &flash_attention_3_mla_prefill(), &flash_attention_2_mla_prefill(),
      &trtllm_gen_mla_vllm_decode(),  &flash_mla_vllm_decode(),         &flash_attention_3_mla_decode(),
      &triton_mla_decode(),
  };
  return std::find(eager.begin(), eager.end(), &kernel) != eager.end();
}

std::vector<const Kernel*> attention_loops(std::span<const Kernel* const> kernels) {
  static std::deque<std::string> words;  // the facts point to these
  auto& known = known_attention_loops();
  std::vector<const Kernel*> loops;
  for (const Kernel* kernel : kernels) {
    if (!has_attention_loop(*kernel)) continue;
    const std::string_view name = words.emplace_back(std::string(kernel->name()) + "_loop");
    const std::string_view help = words.emplace_back("overhead timed by a benchmark of " + std::string(kernel->name()));
    std::array<const Kernel*, 2> lenders{};
    std::size_t count = 0;
    for (const Kernel* lender : kernel->facts().lenders) {
      if (lender == nullptr || !has_attention_loop(*lender)) continue;
      const auto found = known.find(lender);
      SIM_CHECK(found != known.end(),
                "a kernel that lends constants must be listed before the kernels that borrow them");
      lenders.at(count++) = found->second.get();
    }
    auto& loop = known[kernel];
    if (kernel->kind() == KernelKind::kLatentPrefill) {
      loop = loop_of<EagerLoop>(*kernel, name, help, lenders);
    } else if (kernel->kind() == KernelKind::kLatentDecode) {
      loop = loop_of<LatentLoop>(*kernel, name, help, lenders);
    } else {
      loop = loop_of<CacheLoop>(*kernel, name, help, lenders);
    }
    loops.push_back(loop.get());
  }
  return loops;
}

const Kernel* attention_loop_of(const Kernel& kernel) {
  kernels();  // creates them
  const auto& known = known_attention_loops();
  const auto found = known.find(&kernel);
  return found == known.end() ? nullptr : found->second.get();
}

}  // namespace roofcast
