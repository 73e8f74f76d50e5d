// Latent attention of new tokens, absorbed.

#include <algorithm>
#include <array>

#include "hw/kernels/latent/latent_kernel.h"

namespace roofcast::attention {

std::span<const Parameter<LatentDecodeParameters>> LatentDecodeParameters::fields() {
  using P = LatentDecodeParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 15> kFields{{
      {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch, "launch of the cache write and the attention kernel"},
      {"launch_heads_us", &P::launch_heads_us, 0.0, 10.0, kCycles, "more of it for each 128 heads"},
      {"eager_device_us", &P::eager_device_us, 0.0, 120.0, kHost,
       "gaps between kernels when a benchmark runs them eagerly"},
      {"eager_host_us", &P::eager_host_us, 0.0, 500.0, kHost,
       "host time of an eager call, a lower bound in benchmarks"},
      {"sequence_ns", &P::sequence_ns, 0.0, 50.0, kCycles, "of the tile scheduler's scan, a sequence"},
      {"tile_us", &P::tile_us, 0.0, 15.0, kCycles, "start and end of a tile"},
      {"tile_head_us", &P::tile_head_us, 0.0, 1.0, kCycles, "more of it for each head of the tile"},
      {"compute_fraction", &P::compute_fraction, 0.05, 1.0, kKept, "of the datasheet peak, in the padded products"},
      {"pairing", &P::pairing, 0.0, 1.0, kKept,
       "share of a second resident block's time that is not hidden (no split)"},
      {"reread", &P::reread, 0.0, 1.0, kKept, "share of the cache that further tiles of heads read from memory again"},
      {"overlap", &P::overlap, 1.0, 8.0, kKept, "of tiles and memory; 1: they add, large: the larger counts"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 0.95, kMemoryShare, "of the datasheet memory bandwidth"},
      {"l2_share", &P::l2_share, 0.05, 1.0, kKept,
       "of the L2 that a benchmark's loop finds its cache in; served: none"},
      {"l2_bandwidth_tb_per_s", &P::l2_bandwidth_tb_per_s, 1.0, 25.0, kL2Rate, "of the L2, in that loop"},
      {"combine_us", &P::combine_us, 0.0, 10.0, kCycles, "merging the partial outputs of a split context"},
  }};
  return kFields;
}

std::vector<FieldFacts> LatentDecodeKernel::fields() const {
  std::vector<FieldFacts> all = KernelOf::fields();
  for (FieldFacts& field : all) {
    const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), field.name) != names.end();
    };
    // An eager benchmark does not see the launch that a CUDA graph would pay: it stays assumed.
    field.held = timed_eagerly() ? is_one_of({"launch_us", "launch_heads_us", "sequence_ns", "l2_share",
                                              "l2_bandwidth_tb_per_s", "combine_us"})
                                 : is_one_of({"eager_device_us", "eager_host_us"});
    if (field.name == (is_resident() ? "combine_us" : "pairing")) field.held = true;
  }
  return all;
}

void LatentDecodeKernel::follow(LatentDecodeParameters& p, const CarryOverCase& to) const {
  p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions);
  p.compute_fraction = std::min(p.compute_fraction, to.how.matrix_limit);
}

namespace {

constexpr std::string_view kForm = "equations-attention.md#latent-decode";

/// How the work is spread over the SMs.
struct Balance {
  double grain = 64;         ///< tokens of the smallest part of a context
  double most_splits = 1e9;  ///< parts of a context
  bool in_pairs = false;     ///< cuts as if every tile had a second one
};

/// Rows are (head, token) pairs in tiles of 64, and each tile of rows walks the latents of its sequence. The work is
/// spread evenly over the SMs, cut at `grain` tokens: path = (tiles per SM - 1) tile + max(blocks per SM, L / s) row,
/// row = 2 (2 latent + rope) 64 / (compute_fraction F / SMs). FlashAttention-3 cuts in pairs: up to 64 heads half of
/// the SMs stay idle.
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

LatentDecodeParameters prior_of(const GpuSpec& gpu, Dtype kv) {
  LatentDecodeParameters p;
  if (computes_fp8(gpu, kv)) p.tile_us = 3.0, p.tile_head_us = 0.2;
  if (gpu.architecture == Architecture::kBlackwell)
    p.launch_us = 9.5, p.launch_heads_us = 1.2, p.tile_us = 2.5, p.tile_head_us = 0.07;
  if (gpu.architecture == Architecture::kAmpere) p.compute_fraction = 0.2, p.bandwidth_fraction = 0.65, p.overlap = 5;
  return p;
}

LatentDecodeParameters eager_prior_of(const GpuSpec& gpu, Dtype kv) {
  LatentDecodeParameters p = prior_of(gpu, kv);
  p.l2_share = 0.05, p.eager_device_us = 55, p.eager_host_us = gpu.architecture == Architecture::kAmpere ? 338 : 180;
  p.bandwidth_fraction = computes_fp8(gpu, kv) ? 0.5 : p.bandwidth_fraction;
  return p;
}

/// FlashMLA and its like on Hopper.
class FlashMla final : public LatentDecodeKernel {
 public:
  FlashMla(const KernelFacts& facts, bool eager, bool in_pairs, double absorbed)
      : LatentDecodeKernel(facts), eager_(eager), in_pairs_(in_pairs), absorbed_(absorbed) {}
  LatentPath path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p,
                  const Chip& chip) const override {
    return balanced_path(s, h, p, chip, {.grain = element_bits(h.kv) <= 8 ? 128.0 : 64.0, .in_pairs = in_pairs_});
  }
  double absorbed_queries() const override { return absorbed_; }
  bool timed_eagerly() const override { return eager_; }
  LatentDecodeParameters prior(const GpuSpec& gpu, Dtype kv) const override {
    return eager_ ? eager_prior_of(gpu, kv) : prior_of(gpu, kv);
  }

 private:
  bool eager_, in_pairs_;
  double absorbed_;
};

class TrtllmGen final : public LatentDecodeKernel {
 public:
  TrtllmGen(const KernelFacts& facts, bool eager) : LatentDecodeKernel(facts), eager_(eager) {}
  LatentPath path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p,
                  const Chip& chip) const override {
    return balanced_path(s, h, p, chip, {.grain = 256, .most_splits = 16});
  }
  /// Two passes, by its times.
  double read_again(const DecodeShape&, const LatentHeads& h, const LatentDecodeParameters& p) const override {
    return h.heads > 16 && h.heads <= 32 ? p.reread : 0.0;
  }
  double absorbed_queries() const override { return eager_ ? 1 : 0; }
  bool timed_eagerly() const override { return eager_; }
  LatentDecodeParameters prior(const GpuSpec& gpu, Dtype kv) const override {
    return eager_ ? eager_prior_of(gpu, kv) : prior_of(gpu, kv);
  }

 private:
  bool eager_;
};

/// Without a split: two blocks a tile of heads, two resident on an SM at 1 + pairing the time of one.
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
  LatentDecodeParameters prior(const GpuSpec& gpu, Dtype kv) const override { return prior_of(gpu, kv); }
};

/// Tiles of 16 heads, always four splits, each of whole blocks of 32 keys. A single head is no group to it
/// (`decode_attention_fwd` of vllm/v1/attention/ops/triton_decode_attention.py): its kernel for multi-head attention
/// runs, whose products are sums of the CUDA cores, a key as long as 4.6 of the tile's.
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
  bool timed_eagerly() const override { return true; }
  LatentDecodeParameters prior(const GpuSpec& gpu, Dtype kv) const override { return eager_prior_of(gpu, kv); }
};

}  // namespace

const LatentDecodeKernel& flash_mla_decode() {
  static const FlashMla kernel({.name = "flash_mla_decode",
                                .help = "FlashMLA on Hopper as TensorRT-LLM calls it, new tokens",
                                .form = kForm,
                                .unexplained = kLatentDecodeUnexplained},
                               false, false, 0);
  return kernel;
}
const LatentDecodeKernel& fmha_mla_decode() {
  static const Resident kernel({.name = "fmha_mla_decode",
                                .help = "TensorRT-LLM's latent attention by mma.sync, new tokens",
                                .form = kForm,
                                .unexplained = kLatentDecodeUnexplained,
                                .lenders = {&flash_mla_decode(), &trtllm_gen_mla_decode()}});
  return kernel;
}
const LatentDecodeKernel& trtllm_gen_mla_decode() {
  static const TrtllmGen kernel({.name = "trtllm_gen_mla_decode",
                                 .help = "trtllm-gen as TensorRT-LLM calls it, latents of new tokens",
                                 .form = kForm,
                                 .unexplained = kLatentDecodeUnexplained},
                                false);
  return kernel;
}
const LatentDecodeKernel& trtllm_gen_mla_vllm_decode() {
  static const TrtllmGen kernel({.name = "trtllm_gen_mla_vllm_decode",
                                 .help = "trtllm-gen as vLLM calls it, latents of new tokens",
                                 .form = kForm,
                                 .unexplained = kLatentDecodeUnexplained,
                                 .lenders = {&trtllm_gen_mla_decode()}},
                                true);
  return kernel;
}
const LatentDecodeKernel& flash_mla_vllm_decode() {
  static const FlashMla kernel({.name = "flash_mla_vllm_decode",
                                .help = "FlashMLA on Hopper as vLLM calls it, fp8 caches, new tokens",
                                .form = kForm,
                                .unexplained = kLatentDecodeUnexplained},
                               true, false, 128);
  return kernel;
}
const LatentDecodeKernel& flash_attention_3_mla_decode() {
  static const FlashMla kernel({.name = "flash_attention_3_mla_decode",
                                .help = "FlashAttention-3 on Hopper, 16-bit latents of new tokens",
                                .form = kForm,
                                .unexplained = kLatentDecodeUnexplained,
                                .lenders = {&trtllm_gen_mla_vllm_decode()}},
                               true, true, 512);
  return kernel;
}
const LatentDecodeKernel& triton_mla_decode() {
  static const Triton kernel({.name = "triton_mla_decode",
                              .help = "vLLM's Triton kernel for latents of new tokens",
                              .form = kForm,
                              .unexplained = kLatentDecodeUnexplained,
                              .lenders = {&flash_attention_3_mla_decode(), &flash_mla_vllm_decode()}});
  return kernel;
}

}  // namespace roofcast::attention
