#pragma once
// Shared by the kernels of latent attention; each kernel has its own file in this folder. Source of the equations:
// docs/equations-attention.md#latent-prefill and #latent-decode.

#include "hw/kernel_of.h"
#include "hw/kernels/attention_math.h"
#include "hw/kernels/latent_attention.h"

namespace roofcast::attention {

struct LatentPrefillParameters {
  double launch_us = 14.0;
  double tile_us = 1.0, compute_fraction = 0.64;
  double imbalance = 1.45, lone_slowdown = 1.0, overlap = 4.0;
  double bandwidth_fraction = 0.9, write_bandwidth_fraction = 0.9, token_ns = 0.5;
  static std::span<const Parameter<LatentPrefillParameters>> fields();
};

struct LatentDecodeParameters {
  double launch_us = 12.0, launch_heads_us = 2.5;
  double sequence_ns = 5.0, tile_us = 4.0, tile_head_us = 0.15, compute_fraction = 0.9, pairing = 0.4;
  double reread = 0.3, overlap = 2.2, bandwidth_fraction = 0.9, combine_us = 0.5;
  static std::span<const Parameter<LatentDecodeParameters>> fields();
};

/// Heads are padded to the 64 rows of a tensor core tile.
inline constexpr double kHeadTile = 64;

/// A prefill kernel, over expanded heads.
class LatentPrefillKernel : public KernelOf<LatentPrefillParameters> {
 public:
  explicit LatentPrefillKernel(const KernelFacts& facts) : KernelOf(KernelKind::kLatentPrefill, facts) {}
  virtual double tile_rows() const { return 128; }
  virtual double tile_keys() const { return 128; }
  /// The format of the block that prices it: that of the GEMMs, or of the cache that the heads are expanded from.
  virtual Dtype format(const LatentHeads& heads, const GpuSpec& gpu) const = 0;
  /// The format of the GEMMs.
  virtual Dtype products(const LatentHeads& heads, const GpuSpec& gpu) const { return format(heads, gpu); }

 protected:
  /// There is one head dimension only, so the share of the peak includes the exponentials.
  void follow(LatentPrefillParameters& p, const CarryOverCase& to) const override;
};

/// Longest chain of tiles on one SM.
struct LatentPath {
  Seconds path, combine;
};

/// A decode kernel: every head attends to the latent itself (weight absorption).
class LatentDecodeKernel : public KernelOf<LatentDecodeParameters> {
 public:
  explicit LatentDecodeKernel(const KernelFacts& facts) : KernelOf(KernelKind::kLatentDecode, facts) {}
  std::vector<FieldFacts> fields() const override;
  virtual LatentPath path(const DecodeShape& shape, const LatentHeads& heads, const LatentDecodeParameters& p,
                          const Chip& chip) const = 0;
  /// Share of the cache that further tiles of heads read again: `reread` is the L2 miss rate of each.
  virtual double read_again(const DecodeShape& shape, const LatentHeads& heads, const LatentDecodeParameters& p) const {
    return p.reread * (ceil_div(heads.heads * shape.query_len, kHeadTile) - 1);
  }
  /// The engine runs prompts and chunks of up to this many tokens as decode.
  virtual double absorbed_queries() const { return 0; }
  virtual bool multiplies_fp8() const { return true; }
  /// Two thread blocks of a tile share an SM, and no context is split.
  virtual bool is_resident() const { return false; }

 protected:
  void follow(LatentDecodeParameters& p, const CarryOverCase& to) const override;
};

/// A call of a given kernel by its parts: T = launch + (tiles^p + memory^p)^(1/p) + write.
struct LatentPrefillParts {
  Cost work;       ///< FLOPs and bytes; no time
  Seconds launch;  ///< of a kernel alone in its CUDA graph
  Seconds tiles, memory, write;
  double overlap = 1;
  Cost total(Seconds launch_there) const;
};
LatentPrefillParts latent_prefill_parts(const PrefillShape& shape, const LatentHeads& heads,
                                        const LatentPrefillKernel& kernel, const ConstantsBlock& constants,
                                        const GpuSpec& gpu);

/// The same for decode: T = launch + (path^p + memory^p)^(1/p) + combine.
struct LatentDecodeParts {
  Cost work;  ///< FLOPs and bytes; no time
  Chip chip;
  Seconds launch;  ///< of a kernel alone in its CUDA graph
  LatentPath path;
  Bytes read;                  ///< from the cache
  BytesPerSecond memory_rate;  ///< of reading the cache from memory
  double overlap = 1;
  Cost total(Seconds launch_there, Seconds memory) const;
};
LatentDecodeParts latent_decode_parts(const DecodeShape& shape, const LatentHeads& heads,
                                      const LatentDecodeKernel& kernel, const ConstantsBlock& constants,
                                      const GpuSpec& gpu);

/// A prefill kernel under vLLM.
class LatentPrefillOfVllm : public LatentPrefillKernel {
 public:
  using LatentPrefillKernel::LatentPrefillKernel;
  LatentPrefillParameters prior(const GpuSpec& gpu, Dtype products) const override {
    LatentPrefillParameters p;
    if (computes_fp8(gpu, products)) p.launch_us = 17, p.overlap = 1.3;
    p.token_ns = 3.5, p.compute_fraction = 0.85, p.write_bandwidth_fraction = 0.4;
    return p;
  }
};

/// The format of the GEMMs over this cache: fp8 where the engine can multiply it. Ada has fp8 units, but TensorRT-LLM's
/// latent kernels stay at 16 bit there (mFP8ContextMLA of its attention op).
Dtype narrow_products(const LatentHeads& heads, const GpuSpec& gpu);

inline constexpr Unexplained kLatentPrefillUnexplained{0.1, 0.27, 0.35}, kLatentDecodeUnexplained{0.1, 0.75, 0.35};

const LatentPrefillKernel& fmha_v2_mla_wgmma_prefill();
const LatentPrefillKernel& fmha_v2_mla_prefill();
const LatentPrefillKernel& trtllm_gen_mla_prefill();
const LatentPrefillKernel& trtllm_gen_mla_vllm_prefill();
const LatentPrefillKernel& flash_attention_3_mla_prefill();
const LatentPrefillKernel& flash_attention_2_mla_prefill();

const LatentDecodeKernel& flash_mla_decode();
const LatentDecodeKernel& fmha_mla_decode();
const LatentDecodeKernel& trtllm_gen_mla_decode();
const LatentDecodeKernel& trtllm_gen_mla_vllm_decode();
const LatentDecodeKernel& flash_mla_vllm_decode();
const LatentDecodeKernel& flash_attention_3_mla_decode();
const LatentDecodeKernel& triton_mla_decode();

}  // namespace roofcast::attention
