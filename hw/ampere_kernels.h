#pragma once
// GPUs whose matrix units have mma.sync alone run Ampere's kernels, whatever generation the rest of their constants is
// carried over from. `ampere_kernels_from` in a GPU file names the Ampere GPU.

namespace roofcast {

class Efficiency;

/// fp8 by mma.sync is the 16-bit pipeline at another rate, in products and in TensorRT-LLM's prompt attention
/// (fmha_v2_flash_attention_*_sm89; Hopper's are *_tma_ws_sm90): Ampere's 16-bit constants stand in for it. An A100's
/// 8-bit products are 9.2 % off with the constants of its 16-bit ones, 8.1 % with their own. The same holds for fp8
/// experts under vLLM, which are Triton's on both.
void lend_to_fp8(Efficiency& ampere);

/// Kernels that an architecture without wgmma and tcgen05 shares with Ampere: products of cuBLAS and CUTLASS by
/// mma.sync, FlashAttention-2, latent attention, experts. Int8 and 4-bit-weight products are Ampere's wherever that was
/// measured; formats that only the other source has keep that source.
void take_ampere_kernels(Efficiency& mine, const Efficiency& ampere);

}  // namespace roofcast
