#include <cmath>

#include "hw/kernels/decode/decode_kernel.h"

namespace roofcast::attention {
namespace {

struct Constants : CacheReads {
  double launch_us = 9.0, launch_head_dim_us = 1.0;
  double key_ns = 5.8, lone = 0.4, uncut_slowdown = 1.0, overlap = 3.0, merge_us = 6.0;
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  using enum Transfer;
  static constexpr auto kFields =
      joined(std::array<Parameter<P>, 7>{{
                 {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch, "launch of the cache write and the attention kernel"},
                 {"launch_head_dim_us", &P::launch_head_dim_us, 0.0, 5.0, kCycles,
                  "additional launch time per 128 of head dimension"},
                 {"key_ns", &P::key_ns, 0.0, 100.0, kCycles, "time per cached token of one head at head dimension 64"},
                 {"lone", &P::lone, 0.0, 4.0, kKept, "key_ns of a block alone on its SM, as a multiple"},
                 {"uncut_slowdown", &P::uncut_slowdown, 1.0, 4.0, kKept,
                  "time per cached token of one head in a context that is not split"},
                 {"overlap", &P::overlap, 1.0, 8.0, kKept, "exponent; 1: keys and memory add, large: their maximum"},
                 {"merge_us", &P::merge_us, 0.0, 20.0, kCycles, "merging a split context"},
             }},
             kCacheReadFields<P>);
  return kFields;
}

/// vLLM's own paged attention, for years its only kernel on AMD GPUs: one thread block per query head, which reads the
/// cache itself. While sequences x heads are at most 512, a long context is split into partitions; above that it is not
/// (vllm/attention/ops/paged_attn.py). Blocks of unsplit contexts drift apart, so each query head of a group reads the
/// cache from memory; blocks of a partition find it in L2.
class PagedAttention final : public DecodeKernelOf<Constants> {
 public:
  PagedAttention()
      : DecodeKernelOf({.name = "paged_attention_decode",
                        .help = "vLLM's paged attention, which reads the cache once per query head",
                        .form = "equations-attention.md#decode",
                        .unexplained = kDecodeUnexplained,
                        .lenders = {&flash_split_decode()}}) {}
  bool multiplies_fp8() const override { return false; }
  Constants prior(const GpuSpec&, Dtype) const override {
    Constants p;
    p.launch_us = 12.4, p.launch_head_dim_us = 0.1, p.bandwidth_fraction = 0.74;
    return p;
  }

 private:
  DecodeTime time_with(const DecodeCall& c, const Constants& p, const Chip& chip) const override {
    constexpr double kPartition = 512, kCutHeads = 512;
    const double partitions = ceil_div(c.longest, kPartition);
    const bool whole = partitions > 1 && c.heads > kCutHeads;
    const double splits = whole ? 1 : partitions;
    const double row = p.key_ns * std::pow(c.dim / 64, 0.7) * (whole ? p.uncut_slowdown : 1.0);
    const double rows = std::max(c.heads * c.visible / chip.sms, p.lone * c.longest_visible / splits);
    return {.launch = launch_at(p.launch_us, p.launch_head_dim_us, c.dim),
            .path = rows * row * 1e-3 * kMicrosecond,
            .combine = (splits > 1 ? p.merge_us : 0.0) * kMicrosecond,
            .overlap = p.overlap,
            .filled = c.heads * splits >= chip.sms,
            .reads = whole ? c.group : 1.0,
            .fp8_operations = kPagedConversion};
  }
};

}  // namespace

const DecodeKernel& paged_attention_decode() {
  static const PagedAttention kernel;
  return kernel;
}

}  // namespace roofcast::attention
