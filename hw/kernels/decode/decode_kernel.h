#pragma once
// What the kernels of decode attention share. Each is a file of its own beside this one.
// Source of their forms: docs/equations-attention.md#decode.

#include "hw/kernel_of.h"
#include "hw/kernels/attention_math.h"

namespace roofcast::attention {

/// What a decode kernel is given.
struct DecodeCall {
  double units;  ///< (sequence, kv head) pairs
  double rows;   ///< query rows that share one read of the cache: group x query_len
  double group;
  double heads;  ///< (sequence, head) pairs
  double context, visible, longest, longest_visible;
  double dim, dims;  ///< mean of k and v; their sum
  bool windowed;     ///< the layer has a window
  bool has_window;   ///< and the context is longer
  bool fp8;          ///< products in fp8
  double query_len;
  double batch, kv_heads;
};

/// How a kernel reads the cache from memory.
struct CacheReads {
  double bandwidth_fraction = 0.88;
  double l2_share = 0.5, l2_cliff = 1.0, l2_bandwidth_tb_per_s = 8.0;  ///< in a benchmark's loop
};
/// The list of a kernel's fields holds these, too.
template <class P>
inline constexpr std::array<Parameter<P>, 4> kCacheReadFields{{
    {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 0.95, Transfer::kMemoryShare,
     "of the datasheet memory bandwidth"},
    {"l2_share", &P::l2_share, 0.05, 1.0, Transfer::kKept,
     "of the L2 that a benchmark's loop finds its cache in; served: none"},
    {"l2_cliff", &P::l2_cliff, 0.5, 10.0, Transfer::kKept, "how fast that share is lost as the cache outgrows it"},
    {"l2_bandwidth_tb_per_s", &P::l2_bandwidth_tb_per_s, 1.0, 25.0, Transfer::kL2Rate, "of the L2, in that loop"},
}};

/// The path is the longest chain of tiles on one SM. T = launch + (path^p + memory^p)^(1/p) + combine.
struct DecodeTime {
  Seconds launch, path, combine;
  double overlap = 3;
  bool filled = true;           ///< every SM has work
  double reused = 0.0;          ///< share of the cache that a benchmark reads twice
  double reads = 1.0;           ///< times that the cache comes from memory
  double fp8_operations = 0.0;  ///< to convert a value, of kernels that read the cache for each query head
  double most_bandwidth = 1.0;  ///< share of the memory bandwidth that no call exceeds
  CacheReads memory{};
};

class DecodeKernel : public Kernel {
 public:
  explicit DecodeKernel(const KernelFacts& facts) : Kernel(KernelKind::kAttentionDecode, facts) {}
  virtual DecodeTime time(const DecodeCall& call, const ConstantsBlock& constants, const Chip& chip) const = 0;
  /// Does it multiply fp8 caches in fp8 where the GPU can? Others unpack them to 16 bit.
  virtual bool multiplies_fp8() const { return true; }
};

/// A decode kernel whose constants are a P.
template <class P>
class DecodeKernelOf : public KernelOf<P, DecodeKernel> {
 public:
  using KernelOf<P, DecodeKernel>::KernelOf;
  DecodeTime time(const DecodeCall& call, const ConstantsBlock& constants, const Chip& chip) const final {
    const P& p = this->in(constants)->value;
    DecodeTime out = time_with(call, p, chip);
    out.memory = p;
    return out;
  }

 protected:
  virtual DecodeTime time_with(const DecodeCall& call, const P& p, const Chip& chip) const = 0;
  void follow(P& p, const CarryOverCase& to) const override {
    if constexpr (requires { p.compute_fraction; }) {
      p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions);
      p.compute_fraction = std::min(p.compute_fraction, to.how.matrix_limit);
    }
  }
};

/// The tables of TensorRT-LLM 1.0 beat the datasheet's bandwidth by 1.7: their keys and values are the same pages.
inline double reuse_before_hopper(const GpuSpec& gpu) { return gpu.architecture == Architecture::kHopper ? 0.0 : 0.5; }

/// Relative standard deviations of decode kernels beyond their fits.
inline constexpr Unexplained kDecodeUnexplained{0.05, 0.38, 0.3};

/// Operations that turn an fp8 value of the cache into the kernel's own format on a GPU without fp8, from steps of
/// llama-3.1-8b on an A100 with either cache (Argonne LLM-Inference-Bench): 9.6 ps a value under TensorRT-LLM, 20 under
/// vLLM, each for the four query heads of a group.
inline constexpr double kMmhaConversion = 24, kPagedConversion = 50;

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
