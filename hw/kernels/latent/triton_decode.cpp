// vLLM's Triton kernel for latent decode.

#include <algorithm>

#include "hw/kernels/latent/decode_path.h"

namespace roofcast::attention {
namespace {

constexpr std::string_view kForm = "equations-attention.md#latent-decode";

/// Tiles of 16 heads and always four splits, each of whole blocks of 32 keys. A single head does not count as a group
/// (`decode_attention_fwd` of vllm/v1/attention/ops/triton_decode_attention.py): the kernel for multi-head attention
/// runs then, which multiplies on CUDA cores. A key then takes as long as 4.6 keys of a tile.
class Triton final : public LatentDecodeKernel {
 public:
  using LatentDecodeKernel::LatentDecodeKernel;
  LatentPath path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p,
                  const Chip& chip) const override {
    constexpr double kSplits = 4, kBlock = 32, kPlainKey = 4.6;
    const auto keys_of = [&](double context) { return kBlock * ceil_div(ceil_div(context, kSplits), kBlock); };
    const double rows = h.heads * s.query_len, units = s.batch * ceil_div(rows, 16);
    const double longest = std::max(s.max_context, s.mean_context);
    const bool plain = rows == 1;
    const double splits = std::min(kSplits, std::ceil(longest)), blocks = units * splits;
    const double waves = plain ? std::max(1.0, blocks / chip.sms) : ceil_div(blocks, chip.sms);
    const Seconds tile = (p.tile_us + p.tile_head_us * std::min(rows, 16.0)) * kMicrosecond;
    const Seconds tile_row = Flops(2 * (2 * h.latent_dim + h.rope_dim) * 16) / (chip.per_sm() * p.compute_fraction);
    const Seconds row = tile_row * (plain ? kPlainKey : 1.0);
    const double keys = std::max(waves * keys_of(s.mean_context), keys_of(longest));
    return {(waves - 1) * tile + keys * row, p.combine_us * kMicrosecond};
  }
  double read_again(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p) const override {
    return p.reread * (ceil_div(h.heads * s.query_len, 16) - 1);
  }
  double absorbed_queries() const override { return 1; }
  bool multiplies_fp8() const override { return false; }
  LatentDecodeParameters prior(const GpuSpec& gpu, Dtype kv) const override {
    return vllm_latent_decode_prior(gpu, kv);
  }
};

}  // namespace

const LatentDecodeKernel& triton_mla_decode() {
  static const Triton kernel({.name = "triton_mla_decode",
                              .help = "vLLM's Triton kernel, latent decode",
                              .form = kForm,
                              .unexplained = kLatentDecodeUnexplained,
                              .lenders = {&flash_attention_3_mla_decode(), &flash_mla_vllm_decode()}});
  return kernel;
}

}  // namespace roofcast::attention
