#include "hw/kernels/latent_attention.h"

#include <array>

#include "base/error.h"
#include "hw/kernels/attention_math.h"

namespace roofcast {

std::span<const Parameter<LatentPrefillParameters>> LatentPrefillParameters::fields() {
  using P = LatentPrefillParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 11> kFields{{
      {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch,
       "launch of the cache write, the attention kernel and its set-up"},
      {"eager_device_us", &P::eager_device_us, 0.0, 120.0, kHost,
       "gaps between kernels when a benchmark runs them eagerly"},
      {"eager_host_us", &P::eager_host_us, 0.0, 500.0, kHost,
       "host time of an eager call, a lower bound in benchmarks"},
      {"tile_us", &P::tile_us, 0.0, 12.0, kCycles, "start and end of a tile"},
      {"compute_fraction", &P::compute_fraction, 0.1, 1.0, kKept, "of the datasheet peak, softmax included"},
      {"imbalance", &P::imbalance, 1.0, 12.0, kKept, "1: the longest tile adds to the mean; large: the larger counts"},
      {"lone_slowdown", &P::lone_slowdown, 1.0, 3.0, kKept, "of a tile that is alone on its SM"},
      {"overlap", &P::overlap, 1.0, 8.0, kKept, "of tiles and memory; 1: they add, large: the larger counts"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "of the datasheet bandwidth, reading q, k and v"},
      {"write_bandwidth_fraction", &P::write_bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "the same, writing keys and values"},
      {"token_ns", &P::token_ns, 0.0, 6.0, kCycles, "of the write, a token"},
  }};
  return kFields;
}

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

namespace {

using attention::ceil_div;
using attention::Chip;

constexpr double kHeadTile = 64;  ///< heads are padded to the 64 rows of a tensor core tile

/// An eager benchmark is bound by whichever is longer, the host or the device; sharp, hence the 8th power.
Seconds in_benchmark(Seconds device, double eager_device_us, double eager_host_us, Timing timing) {
  if (timing == Timing::kServed) return device;
  return attention::overlapped(device + eager_device_us * kMicrosecond, eager_host_us * kMicrosecond, 8);
}

/// FlashMLA and its like on Hopper, FlashAttention-3 for vLLM's 16-bit caches there, trtllm-gen on Blackwell; elsewhere
/// unsplit (TensorRT-LLM) or Triton (vLLM).
enum class LatentKernel { kBalanced, kPaired, kGenerated, kResident, kTriton };
LatentKernel kernel_of(const GpuSpec& gpu, KernelFamily family, Dtype kv) {
  if (gpu.architecture == Architecture::kBlackwell) return LatentKernel::kGenerated;
  const bool fa3 = family == KernelFamily::kVllm && element_bits(kv) > 8;
  if (gpu.architecture == Architecture::kHopper) return fa3 ? LatentKernel::kPaired : LatentKernel::kBalanced;
  return family == KernelFamily::kTrtllm ? LatentKernel::kResident : LatentKernel::kTriton;
}

/// GPUs without fp8 units keep 16-bit latents whatever was asked for: their kernels have no other form.
double row_bytes(const LatentHeads& h, const GpuSpec& gpu) {
  const Dtype kv = gpu.peak(Dtype::kFp8) > FlopsPerSecond{} ? h.kv : Dtype::kBf16;
  return h.cache_bytes_per_token > 0 ? h.cache_bytes_per_token : cached_bytes(kv, h.latent_dim + h.rope_dim);
}

/// Rows are (head, token) pairs in tiles of 64, and each tile of rows walks the latents of its sequence. The work is
/// spread evenly over the SMs, cut at `grain` tokens: path = (tiles per SM - 1) tile + max(blocks per SM, L / s) row,
/// row = 2 (2 latent + rope) 64 / (compute_fraction F / SMs). FlashAttention-3 cuts as if every tile had a second one
/// (`in_pairs`): up to 64 heads half of the SMs stay idle.
struct LatentPath {
  Seconds path, combine;
};
LatentPath balanced_path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p, const Chip& chip,
                         double grain, double most_splits, bool in_pairs) {
  const double rows = h.heads * s.query_len, units = s.batch * ceil_div(rows, kHeadTile);
  const double longest = std::max(s.max_context, s.mean_context);
  const double slots = in_pairs ? s.batch * 2 * ceil_div(rows, 2 * kHeadTile) : units;
  const double wanted = std::min(std::floor(longest / grain), std::floor(chip.sms / slots));
  const double splits = std::clamp(wanted, 1.0, most_splits);
  const Seconds tile = (p.tile_us + p.tile_head_us * std::min(rows, kHeadTile)) * kMicrosecond;
  const Seconds row = Flops(2 * (2 * h.latent_dim + h.rope_dim) * kHeadTile) / (chip.per_sm() * p.compute_fraction);
  const double keys = std::max(64 * units * ceil_div(s.mean_context, 64) / chip.sms, longest / splits);
  return {(ceil_div(units * splits, chip.sms) - 1) * tile + keys * row,
          (splits > 1 ? p.combine_us : 0.0) * kMicrosecond};
}

/// Without a split (TensorRT-LLM on Ampere): two blocks a tile of heads, two resident on an SM at 1 + pairing the
/// time of one.
LatentPath resident_path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p,
                         const Chip& chip) {
  const double rows = h.heads * s.query_len, units = 2 * s.batch * ceil_div(rows, kHeadTile);
  const double deep = ceil_div(units, chip.sms);
  const double turns = std::floor(deep / 2) * (1 + p.pairing) + std::fmod(deep, 2.0);
  const double mean = std::max(0.0, s.mean_context - 64), longest = std::max(0.0, s.max_context - 64);
  const Seconds tile = (p.tile_us + p.tile_head_us * std::min(rows, kHeadTile)) * kMicrosecond;
  const Seconds row = Flops((2 * h.latent_dim + h.rope_dim) * kHeadTile) / (chip.per_sm() * p.compute_fraction);
  return {(turns - 1) * tile + std::max(turns * mean, longest) * row, Seconds{}};
}

/// Triton (vLLM on Ampere): tiles of 16 heads, always four splits, each of whole blocks of 32 keys. A single head is no
/// group to it (`decode_attention_fwd` of vllm/v1/attention/ops/triton_decode_attention.py): its kernel for multi-head
/// attention runs, whose products are sums of the CUDA cores, a key as long as 4.6 of the tile's.
LatentPath triton_path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p, const Chip& chip) {
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

LatentPath path_of(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p, const Chip& chip,
                   LatentKernel kernel) {
  switch (kernel) {
    case LatentKernel::kResident:
      return resident_path(s, h, p, chip);
    case LatentKernel::kTriton:
      return triton_path(s, h, p, chip);
    case LatentKernel::kGenerated:
      return balanced_path(s, h, p, chip, 256, 16, false);
    case LatentKernel::kBalanced:
    case LatentKernel::kPaired:
      break;
  }
  const bool fp8 = element_bits(h.kv) <= 8;
  return balanced_path(s, h, p, chip, fp8 ? 128 : 64, 1e9, kernel == LatentKernel::kPaired);
}

/// Share of the cache that is read again by further tiles of heads: the L2 misses `reread` of each.
double read_again(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p, LatentKernel kernel) {
  const double rows = h.heads * s.query_len;
  switch (kernel) {
    case LatentKernel::kGenerated:
      return h.heads > 16 && h.heads <= 32 ? p.reread : 0.0;  // two passes, by its times
    case LatentKernel::kTriton:
      return p.reread * (ceil_div(rows, 16) - 1);
    case LatentKernel::kResident:
    case LatentKernel::kBalanced:
    case LatentKernel::kPaired:
      break;
  }
  return p.reread * (ceil_div(rows, kHeadTile) - 1);
}

/// As in decode attention: a benchmark's loop finds part of the cache in the L2.
Seconds memory_time(Bytes bytes, const LatentDecodeParameters& p, const Chip& chip, Timing timing) {
  const double over = bytes / (chip.l2 * p.l2_share) - 1;
  const double hit = timing == Timing::kBenchmark ? std::clamp(1 - over, 0.0, 1.0) : 0.0;
  const BytesPerSecond l2 = std::max(BytesPerSecond(p.l2_bandwidth_tb_per_s * 1e12), chip.bandwidth);
  return bytes * (1 - hit) / (chip.bandwidth * p.bandwidth_fraction) + bytes * hit / l2;
}

/// flops = 2 h (2 latent + rope) a visible pair; bytes = cache once for all heads + q (latent + rope) and output
/// (latent) of every head in 16 bit.
Cost decode_work(const DecodeShape& s, const LatentHeads& h, double bytes_a_token) {
  const double dims = 2 * h.latent_dim + h.rope_dim;
  const double pairs = attention::visible_pairs(s.mean_context - s.query_len, s.query_len, 0);
  Cost cost;
  cost.flops = Flops(2 * s.batch * h.heads * pairs * dims);
  cost.bytes = Bytes(s.batch * (s.mean_context * bytes_a_token + 2 * h.heads * s.query_len * dims));
  return cost;
}

/// Over expanded heads: every head has its own k and v, in 16 bit.
Cost prefill_work(const PrefillShape& s, const LatentHeads& h) {
  const double dims = h.qk_dim + h.value_dim, context = s.context_before + s.query_len;
  Cost cost;
  cost.flops = Flops(2 * s.batch * h.heads * attention::visible_pairs(s.context_before, s.query_len, 0) * dims);
  cost.bytes = Bytes(2 * s.batch * h.heads * dims * (context + s.query_len));
  return cost;
}

attention::PrefillTiling latent_tiling(const PrefillShape& s, const LatentHeads& h, LatentKernel kernel) {
  attention::PrefillTiling t;
  t.tile_rows = kernel == LatentKernel::kResident ? 64 : 128;
  t.tile_keys = kernel == LatentKernel::kTriton ? 64 : 128;
  t.units = s.batch * h.heads;
  t.tiles = ceil_div(s.query_len, t.tile_rows);
  t.positions = t.tile_rows;
  t.before = s.context_before, t.queries = s.query_len;
  return t;
}

}  // namespace

double attention::absorbed_queries(const GpuSpec& gpu, KernelFamily family, Dtype kv) {
  if (family == KernelFamily::kTrtllm) return 0;
  if (gpu.architecture != Architecture::kHopper) return 1;
  return element_bits(kv) <= 8 ? 128 : 512;
}

Dtype latent_products(const LatentHeads& heads, const GpuSpec& gpu, KernelFamily family) {
  if (gpu.architecture == Architecture::kAda) return Dtype::kBf16;
  return attention::product_dtype(gpu, family, heads.compute, heads.kv);
}

Dtype latent_prompt_products(const LatentHeads& heads, const GpuSpec& gpu, KernelFamily family) {
  const bool wide = family == KernelFamily::kVllm && gpu.architecture == Architecture::kBlackwell && !heads.fp8_prompts;
  return wide ? Dtype::kBf16 : latent_products(heads, gpu, family);
}

bool runs_as_decode(const PrefillShape& shape, const LatentHeads& heads, const GpuSpec& gpu, KernelFamily family) {
  const Dtype narrow = latent_products(heads, gpu, family);
  return shape.query_len <= attention::absorbed_queries(gpu, family, narrow);
}

Cost latent_decode_with(const DecodeShape& shape, const LatentHeads& heads, const LatentDecodeParameters& p,
                        const GpuSpec& gpu, KernelFamily family, Timing timing) {
  const LatentKernel kernel = kernel_of(gpu, family, heads.kv);
  const Chip chip = attention::chip_of(gpu, latent_products(heads, gpu, family));
  const double token = row_bytes(heads, gpu);
  Cost cost = decode_work(shape, heads, token);
  const LatentPath path = path_of(shape, heads, p, chip, kernel);
  const Bytes again(shape.batch * shape.mean_context * token * read_again(shape, heads, p, kernel));
  const Seconds memory = memory_time(cost.bytes + again, p, chip, timing);
  const double launch_us = p.launch_us + p.launch_heads_us * heads.heads / 128 + shape.batch * p.sequence_ns * 1e-3;
  const Seconds launch = attention::launch_in(timing, launch_us * kMicrosecond);
  const Seconds body = attention::overlapped(path.path, memory, p.overlap) + path.combine;
  cost.time = in_benchmark(launch + body, p.eager_device_us, p.eager_host_us, timing);
  cost.bound = launch + path.combine > std::max(path.path, memory) ? Bound::kLatency
               : path.path > memory                                ? Bound::kCompute
                                                                   : Bound::kMemory;
  return cost;
}

Cost latent_decode(const DecodeShape& shape, const LatentHeads& heads, const Machine& machine) {
  SIM_CHECK(shape.batch > 0 && shape.query_len >= 1 && shape.mean_context >= shape.query_len, "an empty decode step");
  SIM_CHECK(heads.heads > 0, "attention without heads");
  const GpuSpec& gpu = *machine.gpu;
  if (machine.fidelity == Fidelity::kIdeal) {
    const Chip chip = attention::chip_of(gpu, heads.compute);
    const Cost work = decode_work(shape, heads, row_bytes(heads, gpu));
    return roofline(work.flops, work.bytes, chip.peak, chip.bandwidth);
  }
  const KernelFamily family = attention::family_of(machine);
  if (const auto* p = attention::measured(machine.efficiency, &Efficiency::latent_decode, heads.kv)) {
    return latent_decode_with(shape, heads, *p, gpu, family, machine.timing);
  }
  return latent_decode_with(shape, heads, latent_decode_prior(gpu, family, heads.kv), gpu, family, machine.timing);
}

/// attention_prefill's form without grouping. trtllm-gen's kernels multiply the heads expanded from an fp8 cache in
/// fp8, vLLM's own on Hopper in 16 bit.
Cost latent_prefill_with(const PrefillShape& shape, const LatentHeads& heads, const LatentPrefillParameters& p,
                         const GpuSpec& gpu, KernelFamily family, Timing timing) {
  const bool trtllm_gen = family == KernelFamily::kTrtllm || gpu.architecture == Architecture::kBlackwell;
  const Dtype narrow = latent_prompt_products(heads, gpu, family);
  const Chip chip = attention::chip_of(gpu, trtllm_gen ? narrow : Dtype::kBf16);
  const double dims = heads.qk_dim + heads.value_dim, tokens = shape.batch * shape.query_len;
  attention::PrefillTileCosts costs;
  costs.score = Flops(2 * dims) / (chip.per_sm() * p.compute_fraction);
  costs.tile = p.tile_us * kMicrosecond;
  costs.imbalance = p.imbalance, costs.lone_slowdown = p.lone_slowdown;
  const Seconds tiles =
      attention::prefill_makespan(latent_tiling(shape, heads, kernel_of(gpu, family, heads.kv)), costs, chip.sms);
  Cost cost = prefill_work(shape, heads);
  const Seconds memory = cost.bytes / attention::reading_rate(cost.bytes, chip, p.bandwidth_fraction);
  const Bytes written(tokens * heads.heads * dims * (2 + (narrow == Dtype::kFp8 ? 1 : 2)));
  const Seconds write = written / attention::reading_rate(written, chip, p.write_bandwidth_fraction) +
                        tokens * p.token_ns * 1e-3 * kMicrosecond;
  const Seconds launch = attention::launch_in(timing, p.launch_us * kMicrosecond);
  const Seconds body = attention::overlapped(tiles, memory, p.overlap) + write;
  cost.time = in_benchmark(launch + body, p.eager_device_us, p.eager_host_us, timing);
  cost.bound = launch > tiles + memory ? Bound::kLatency : tiles > memory + write ? Bound::kCompute : Bound::kMemory;
  return cost;
}

/// time = max(latent_decode's, 2 tokens padded heads (2 latent + rope) visible / (share x peak)). Rates of FlashMLA's
/// README (MIT): 640 TFLOP/s on an H800 and 1450 on a B200 in prompts, 410 and 350 in decode. Padding:
/// sglang/srt/layers/attention/nsa_backend.py, _forward_flashmla_sparse.
Cost latent_sparse(const DecodeShape& shape, const LatentHeads& heads, FlashMla kernel, const Machine& machine) {
  Cost cost = latent_decode(shape, heads, machine);
  const Architecture architecture = machine.gpu->architecture;
  const bool hopper = architecture == Architecture::kHopper, prompt = kernel == FlashMla::kPrefill;
  if (machine.fidelity == Fidelity::kIdeal || !(hopper || architecture == Architecture::kBlackwell)) return cost;
  const double share = prompt ? 0.64 : hopper ? 0.41 : 0.155, tile = prompt && !hopper ? 128.0 : 64.0;
  const double padded = std::ceil(heads.heads / tile) * tile, dims = 2 * heads.latent_dim + heads.rope_dim;
  const Flops work(2 * shape.batch * shape.query_len * padded * shape.mean_context * dims);
  const Seconds products = work / (attention::chip_of(*machine.gpu, Dtype::kBf16).peak * share);
  if (products > cost.time) cost.bound = Bound::kCompute;
  cost.time = std::max(cost.time, products);
  return cost;
}

Cost latent_prefill(const PrefillShape& shape, const LatentHeads& heads, const Machine& machine) {
  SIM_CHECK(shape.batch > 0 && shape.query_len > 0 && shape.context_before >= 0, "an empty prefill chunk");
  SIM_CHECK(heads.heads > 0, "attention without heads");
  const GpuSpec& gpu = *machine.gpu;
  if (machine.fidelity == Fidelity::kIdeal) {
    const Chip chip = attention::chip_of(gpu, heads.compute);
    const Cost work = prefill_work(shape, heads);
    return roofline(work.flops, work.bytes, chip.peak, chip.bandwidth);
  }
  const KernelFamily family = attention::family_of(machine);
  const Dtype narrow = latent_prompt_products(heads, gpu, family);
  if (runs_as_decode(shape, heads, gpu, family)) {
    const double context = shape.context_before + shape.query_len;
    return latent_decode({shape.batch, context, context, shape.query_len}, heads, machine);
  }
  if (const auto* p = attention::measured(machine.efficiency, &Efficiency::latent_prefill, narrow)) {
    return latent_prefill_with(shape, heads, *p, gpu, family, machine.timing);
  }
  return latent_prefill_with(shape, heads, latent_prefill_prior(gpu, family, narrow), gpu, family, machine.timing);
}

}  // namespace roofcast
