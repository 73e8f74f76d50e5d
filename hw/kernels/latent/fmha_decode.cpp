// TensorRT-LLM's latent decode by mma.sync.

#include <algorithm>

#include "hw/kernels/latent/decode_path.h"

namespace roofcast::attention {
namespace {

constexpr std::string_view kForm = "equations-attention.md#latent-decode";

/// No context is split. Each tile of heads has two blocks; two blocks on an SM take 1 + pairing times as long as one.
class Resident final : public LatentDecodeKernel {
 public:
  using LatentDecodeKernel::LatentDecodeKernel;
  bool is_resident() const override { return true; }
  LatentPath path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p,
                  const Chip& chip) const override {
    const double rows = h.heads * s.query_len, units = 2 * s.batch * ceil_div(rows, kHeadTile);
    const double deep = ceil_div(units, chip.sms);
    const double turns = std::floor(deep / 2) * (1 + p.pairing) + std::fmod(deep, 2.0);
    const double mean = std::max(0.0, s.mean_context - 64), longest = std::max(0.0, s.max_context - 64);
    const Seconds tile = (p.tile_us + p.tile_head_us * std::min(rows, kHeadTile)) * kMicrosecond;
    const Seconds row = Flops((2 * h.latent_dim + h.rope_dim) * kHeadTile) / (chip.per_sm() * p.compute_fraction);
    return {(turns - 1) * tile + std::max(turns * mean, longest) * row, Seconds{}};
  }
  LatentDecodeParameters prior(const GpuSpec& gpu, Dtype kv) const override { return latent_decode_prior(gpu, kv); }
};

}  // namespace

const LatentDecodeKernel& fmha_mla_decode() {
  static const Resident kernel({.name = "fmha_mla_decode",
                                .help = "TensorRT-LLM's latent attention by mma.sync, latent decode",
                                .form = kForm,
                                .unexplained = kLatentDecodeUnexplained,
                                .lenders = {&flash_mla_decode(), &trtllm_gen_mla_decode()}});
  return kernel;
}

}  // namespace roofcast::attention
