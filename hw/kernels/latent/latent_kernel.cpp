
#include <algorithm>
#include <array>

#include "hw/kernels/latent/decode_path.h"

namespace roofcast::attention {

std::span<const Parameter<LatentDecodeParameters>> LatentDecodeParameters::fields() {
  using P = LatentDecodeParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 11> kFields{{
      {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch, "launch of the cache write and the attention kernel"},
      {"launch_heads_us", &P::launch_heads_us, 0.0, 10.0, kCycles, "additional launch time per 128 heads"},
      {"sequence_ns", &P::sequence_ns, 0.0, 50.0, kCycles, "scan of the tile scheduler, per sequence"},
      {"tile_us", &P::tile_us, 0.0, 15.0, kCycles, "start and end of a tile"},
      {"tile_head_us", &P::tile_head_us, 0.0, 1.0, kCycles, "additional tile time per head of the tile"},
      {"compute_fraction", &P::compute_fraction, 0.05, 1.0, kKept, "share of the datasheet peak in the padded GEMMs"},
      {"pairing", &P::pairing, 0.0, 1.0, kKept,
       "share of a second block's time on an SM that is not hidden (without splits)"},
      {"reread", &P::reread, 0.0, 1.0, kKept, "share of the cache that further tiles of heads read from memory again"},
      {"overlap", &P::overlap, 1.0, 8.0, kKept, "exponent; 1: tiles and memory add, large: their maximum"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 0.95, kMemoryShare,
       "share of the datasheet memory bandwidth"},
      {"combine_us", &P::combine_us, 0.0, 10.0, kCycles, "merging the partial outputs of a split context"},
  }};
  return kFields;
}

std::vector<FieldFacts> LatentDecodeKernel::fields() const {
  const std::string_view without_effect = is_resident() ? "combine_us" : "pairing";
  std::vector<FieldFacts> fields = KernelOf::fields();
  for (FieldFacts& field : fields) field.fixed = field.name == without_effect;
  return fields;
}

void LatentDecodeKernel::follow(LatentDecodeParameters& p, const CarryOverCase& to) const {
  p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions);
  p.compute_fraction = std::min(p.compute_fraction, to.how.matrix_limit);
}

LatentPath balanced_path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p, const Chip& chip,
                         const Balance& how) {
  const double rows = h.heads * s.query_len, units = s.batch * ceil_div(rows, kHeadTile);
  const double longest = std::max(s.max_context, s.mean_context);
  const double slots = how.in_pairs ? s.batch * 2 * ceil_div(rows, 2 * kHeadTile) : units;
  const double wanted = std::min(std::floor(longest / how.grain), std::floor(chip.sms / slots));
  const double splits = std::clamp(wanted, 1.0, how.most_splits);
  const Seconds tile = (p.tile_us + p.tile_head_us * std::min(rows, kHeadTile)) * kMicrosecond;
  const Seconds row = Flops(2 * (2 * h.latent_dim + h.rope_dim) * kHeadTile) / (chip.per_sm() * p.compute_fraction);
  const double keys = std::max(64 * units * ceil_div(s.mean_context, 64) / chip.sms, longest / splits);
  return {(ceil_div(units * splits, chip.sms) - 1) * tile + keys * row,
          (splits > 1 ? p.combine_us : 0.0) * kMicrosecond};
}

LatentDecodeParameters latent_decode_prior(const GpuSpec& gpu, Dtype kv) {
  LatentDecodeParameters p;
  if (computes_fp8(gpu, kv)) p.tile_us = 3.0, p.tile_head_us = 0.2;
  if (gpu.architecture == Architecture::kBlackwell)
    p.launch_us = 9.5, p.launch_heads_us = 1.2, p.tile_us = 2.5, p.tile_head_us = 0.07;
  if (gpu.architecture == Architecture::kAmpere) p.compute_fraction = 0.2, p.bandwidth_fraction = 0.65, p.overlap = 5;
  return p;
}

LatentDecodeParameters vllm_latent_decode_prior(const GpuSpec& gpu, Dtype kv) {
  LatentDecodeParameters p = latent_decode_prior(gpu, kv);
  p.bandwidth_fraction = computes_fp8(gpu, kv) ? 0.5 : p.bandwidth_fraction;
  return p;
}

std::span<const Parameter<LatentPrefillParameters>> LatentPrefillParameters::fields() {
  using P = LatentPrefillParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 9> kFields{{
      {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch,
       "launch of the cache write, the attention kernel and its set-up"},
      {"tile_us", &P::tile_us, 0.0, 12.0, kCycles, "start and end of a tile"},
      {"compute_fraction", &P::compute_fraction, 0.1, 1.0, kKept, "share of the datasheet peak, including softmax"},
      {"imbalance", &P::imbalance, 1.0, 12.0, kKept,
       "exponent; 1: the longest tile adds to the mean, large: their maximum"},
      {"lone_slowdown", &P::lone_slowdown, 1.0, 3.0, kKept, "slowdown of a tile that is alone on its SM"},
      {"overlap", &P::overlap, 1.0, 8.0, kKept, "exponent; 1: tiles and memory add, large: their maximum"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "share of the datasheet bandwidth when reading q, k and v"},
      {"write_bandwidth_fraction", &P::write_bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "share of the datasheet bandwidth when writing keys and values"},
      {"token_ns", &P::token_ns, 0.0, 6.0, kCycles, "cache write, per token"},
  }};
  return kFields;
}

void LatentPrefillKernel::follow(LatentPrefillParameters& p, const CarryOverCase& to) const {
  const double slower = to.from.exponentials_per_clock / to.to.exponentials_per_clock;
  p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions * slower);
  p.compute_fraction = std::min(p.compute_fraction, to.how.matrix_limit);
}

Dtype narrow_products(const LatentHeads& heads, const GpuSpec& gpu) {
  if (gpu.architecture == Architecture::kAda) return Dtype::kBf16;
  return multiplies_fp8(gpu, heads.compute, heads.kv) ? Dtype::kFp8 : Dtype::kBf16;
}

}  // namespace roofcast::attention
