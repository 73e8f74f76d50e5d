#pragma once
// Shared by the prefill attention kernels; each kernel has its own file in this folder. Source of the equations:
// docs/equations-attention.md#prefill.

#include <array>
#include <cmath>

#include "hw/carried_power.h"
#include "hw/kernel_of.h"
#include "hw/kernels/attention_math.h"

namespace roofcast::attention {

/// Constants of a prefill kernel. A kernel without one of them has its default, which has no effect.
struct PrefillParameters {
  double launch_us = 12.0, launch_head_dim_us = 0.5;
  double tile_us = 1.8;
  double score_ns = 0.031, compute_fraction = 0.8, wide_head_penalty = 0.0;
  double imbalance = 1.4, lone_slowdown = 1.2, window_blocks = 1.0, overlap = 1.5;
  double bandwidth_fraction = 0.8, write_bandwidth_fraction = 0.8, token_ns = 0.4;
  double token_threads_ns = 0.0, combine_us = 0.0;
};

template <class P>
inline constexpr std::array<Parameter<P>, 12> kPrefillFields{{
    {"launch_us", &P::launch_us, 0.0, 60.0, Transfer::kLaunch,
     "launch of the cache write, the attention kernel and its set-up"},
    {"launch_head_dim_us", &P::launch_head_dim_us, 0.0, 5.0, Transfer::kCycles,
     "additional launch time per 128 of head dimension"},
    {"tile_us", &P::tile_us, 0.0, 12.0, Transfer::kCycles,
     "start and end of a tile: load the queries, store the output"},
    {"score_ns", &P::score_ns, 0.0, 0.1, Transfer::kExponential, "exponential of one score on one SM"},
    {"compute_fraction", &P::compute_fraction, 0.1, 1.0, Transfer::kKept,
     "share of the datasheet peak in the two GEMMs"},
    {"imbalance", &P::imbalance, 1.0, 12.0, Transfer::kKept,
     "exponent; 1: the longest tile adds to the mean, large: their maximum"},
    {"lone_slowdown", &P::lone_slowdown, 1.0, 3.0, Transfer::kKept, "slowdown of a tile that is alone on its SM"},
    {"window_blocks", &P::window_blocks, 0.0, 5.0, Transfer::kKept,
     "additional key blocks per tile at the borders of a window"},
    {"overlap", &P::overlap, 1.0, 8.0, Transfer::kKept, "exponent; 1: tiles and memory add, large: their maximum"},
    {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 1.0, Transfer::kMemoryShare,
     "share of the datasheet bandwidth when reading q, k and v"},
    {"write_bandwidth_fraction", &P::write_bandwidth_fraction, 0.1, 1.0, Transfer::kMemoryShare,
     "share of the datasheet bandwidth when writing the cache"},
    {"token_ns", &P::token_ns, 0.0, 6.0, Transfer::kCycles, "cache write, which starts one thread block per token"},
}};
template <class P>
inline constexpr std::array<Parameter<P>, 1> kWideHeadField{{
    {"wide_head_penalty", &P::wide_head_penalty, 0.0, 1.0, Transfer::kKept,
     "relative extra time per score at head dimension 256 in fp8"},
}};
/// For vLLM's cache write.
template <class P>
inline constexpr std::array<Parameter<P>, 1> kTokenThreadsField{{
    {"token_threads_ns", &P::token_threads_ns, 0.0, 15.0, Transfer::kCycles,
     "additional time of the cache write for a block of 512 threads"},
}};

/// Properties of the kernel that are not fitted.
struct PrefillTraits {
  double tile_rows = 128, tile_keys = 64;
  bool packs_groups = false;      ///< the query heads of a group share a tile
  bool splits_keys = false;       ///< few tiles are split over the keys
  bool persistent = false;        ///< tiles are scheduled longest first, even if all fit at once
  bool rewrites_queries = false;  ///< the cache write also applies RoPE and rewrites the queries
  double most_compute = 1.0;      ///< largest share of the 16-bit peak of any call
};

class PrefillKernel : public Kernel {
 public:
  explicit PrefillKernel(const KernelFacts& facts) : Kernel(KernelKind::kAttentionPrefill, facts) {}
  virtual const PrefillParameters& parameters(const ConstantsBlock& constants) const = 0;
  virtual PrefillTraits traits(double head_dim, bool fp8) const = 0;
  /// Whether it multiplies fp8 caches in fp8 where the GPU can.
  virtual bool multiplies_fp8() const { return true; }
  /// Whether that needs queries in fp8, too.
  virtual bool wants_fp8_queries() const { return false; }
};

/// A prefill kernel whose constants are a P.
template <class P>
class PrefillKernelOf : public KernelOf<P, PrefillKernel> {
 public:
  using KernelOf<P, PrefillKernel>::KernelOf;
  const PrefillParameters& parameters(const ConstantsBlock& constants) const final {
    return this->in(constants)->value;
  }

 protected:
  void follow(P& p, const CarryOverCase& to) const override {
    p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions);
    const CarriedPower power = carried_power(to);
    // Missing watts slow only the matrix units of a higher peak: 1 / share = GEMMs + instructions.
    p.compute_fraction = 1.0 / (1.0 / p.compute_fraction + 1.0 / std::sqrt(power.peak) - 1.0);
    // A board at its power limit lowers the clock, which slows all work on the SMs.
    const double clock = clock_under_power(power.board);
    p.compute_fraction = std::min(p.compute_fraction * clock, to.how.matrix_limit);
    p.score_ns /= clock;
  }
};

/// A call of a given kernel by its parts: T = launch + (tiles^p + memory^p)^(1/p) + write.
struct PrefillParts {
  Cost work;       ///< FLOPs and bytes; no time
  Seconds launch;  ///< of a kernel alone in its CUDA graph
  Seconds tiles, memory, write;
  double overlap = 1;
  Seconds least;  ///< minimum time of the GEMMs, for a kernel that never reaches the peak
  Cost total(Seconds launch_there) const;
};
PrefillParts prefill_parts(const PrefillShape& shape, const AttentionHeads& heads, const PrefillKernel& kernel,
                           const ConstantsBlock& constants, const GpuSpec& gpu);

inline constexpr Unexplained kPrefillUnexplained{0.05, 0.28, 0.3};

const PrefillKernel& flash_attention_3_prefill();
const PrefillKernel& flash_attention_4_prefill();
const PrefillKernel& flash_attention_2_prefill();
const PrefillKernel& fmha_v2_wgmma_prefill();
const PrefillKernel& fmha_v2_prefill();
const PrefillKernel& trtllm_gen_prefill();
const PrefillKernel& trtllm_gen_vllm_prefill();
const PrefillKernel& triton_prefill();
const PrefillKernel& flashinfer_prefill();

}  // namespace roofcast::attention
