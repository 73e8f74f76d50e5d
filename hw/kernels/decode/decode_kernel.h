#pragma once
// Shared by the decode attention kernels; each kernel has its own file in this folder. Source of the equations:
// docs/equations-attention.md#decode.

#include "hw/kernel_of.h"
#include "hw/kernels/attention_math.h"

namespace roofcast::attention {

/// Input of a decode kernel.
struct DecodeCall {
  double units;  ///< (sequence, kv head) pairs
  double rows;   ///< query rows that share one read of the cache: group x query_len
  double group;
  double heads;  ///< (sequence, head) pairs
  double context, visible, longest, longest_visible;
  double dim, dims;  ///< mean of k and v; their sum
  bool windowed;     ///< the layer has a window
  bool has_window;   ///< ... and the context is longer
  bool fp8;          ///< products in fp8
  double query_len;
  double batch, kv_heads;
};

/// Base of all kernels' constants: how the cache is read.
struct CacheReads {
  double bandwidth_fraction = 0.88;
};
/// The last entries of every kernel's list of fields.
template <class P>
inline constexpr std::array<Parameter<P>, 1> kCacheReadFields{{
    {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 0.95, Transfer::kMemoryShare,
     "of the datasheet memory bandwidth"},
}};

/// Result of a kernel. `path` is the longest chain of tiles on one SM.
struct DecodeTime {
  Seconds launch{};  ///< of a kernel alone in its CUDA graph
  Seconds path{}, combine{};
  double overlap = 3;           ///< exponent p that combines path and memory
  bool filled = true;           ///< every SM has work
  double reads = 1.0;           ///< how often the cache is read from memory
  double fp8_operations = 0.0;  ///< to convert one value, for kernels that read the cache once per query head
  double most_bandwidth = 1.0;  ///< largest share of the memory bandwidth of any call
  Bytes resident{};             ///< keys of the concurrently running blocks; 0: negligible
};

class DecodeKernel : public Kernel {
 public:
  explicit DecodeKernel(const KernelFacts& facts) : Kernel(KernelKind::kAttentionDecode, facts) {}
  virtual DecodeTime time(const DecodeCall& call, const ConstantsBlock& constants, const Chip& chip) const = 0;
  virtual const CacheReads& reads(const ConstantsBlock& constants) const = 0;
  /// Whether it multiplies fp8 caches in fp8 where the GPU can. Other kernels unpack them to 16 bit.
  virtual bool multiplies_fp8() const { return true; }
};

/// A decode kernel whose constants are a P.
template <class P>
class DecodeKernelOf : public KernelOf<P, DecodeKernel> {
 public:
  using KernelOf<P, DecodeKernel>::KernelOf;
  DecodeTime time(const DecodeCall& call, const ConstantsBlock& constants, const Chip& chip) const final {
    return time_with(call, this->in(constants)->value, chip);
  }
  const CacheReads& reads(const ConstantsBlock& constants) const final { return this->in(constants)->value; }

 protected:
  virtual DecodeTime time_with(const DecodeCall& call, const P& p, const Chip& chip) const = 0;
  void follow(P& p, const CarryOverCase& to) const override {
    if constexpr (requires { p.compute_fraction; }) {
      p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions);
      p.compute_fraction = std::min(p.compute_fraction, to.how.matrix_limit);
    }
  }
};

/// Error of decode kernels beyond their fits.
inline constexpr Unexplained kDecodeUnexplained{0.05, 0.38, 0.3};

/// Operations per fp8 value of the cache on a GPU without fp8, per query head of a group. From steps of llama-3.1-8b on
/// an A100 with 16-bit and fp8 caches (Argonne LLM-Inference-Bench): 9.6 ps per value under TensorRT-LLM, 20 under
/// vLLM, for each of the four query heads.
inline constexpr double kMmhaConversion = 24, kPagedConversion = 50;

/// A call of a given kernel by its parts: T = launch + (path^p + memory^p)^(1/p) + combine.
struct DecodeParts {
  Cost work;  ///< FLOPs and bytes; no time
  Chip chip;
  DecodeTime time;
  Bytes read;                  ///< from the cache
  BytesPerSecond memory_rate;  ///< of reading cache bytes from memory
  Cost total(Seconds launch, Seconds memory) const;
};
DecodeParts decode_parts(const DecodeShape& shape, const AttentionHeads& heads, const DecodeKernel& kernel,
                         const ConstantsBlock& constants, const GpuSpec& gpu);

inline Seconds launch_at(double launch_us, double launch_head_dim_us, double dim) {
  return (launch_us + launch_head_dim_us * dim / 128) * kMicrosecond;
}

const DecodeKernel& flash_attention_3_decode();
const DecodeKernel& flash_attention_4_decode();
const DecodeKernel& flash_attention_2_decode();
const DecodeKernel& flash_split_decode();
const DecodeKernel& paged_attention_decode();
const DecodeKernel& trtllm_gen_decode();
const DecodeKernel& trtllm_gen_vllm_decode();
const DecodeKernel& triton_decode();
const DecodeKernel& flashinfer_decode();
const DecodeKernel& xqa_decode();
const DecodeKernel& xqa_uncut_decode();
const DecodeKernel& xqa_wgmma_decode();
const DecodeKernel& mmha_decode();
const DecodeKernel& mmha_blackwell_decode();

}  // namespace roofcast::attention
