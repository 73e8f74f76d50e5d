#pragma once
// A GPU whose matrix units have only mma.sync runs Ampere's kernels, whatever generation its other constants are
// transferred from. `ampere_kernels_from` in a GPU file names the Ampere GPU.

namespace roofcast {

class Efficiency;

/// Uses Ampere's 16-bit constants for its fp8 kernels. By mma.sync, fp8 is the 16-bit pipeline at another rate, both in
/// GEMMs and in TensorRT-LLM's prefill attention (fmha_v2_flash_attention_*_sm89; Hopper's are *_tma_ws_sm90). An
/// A100's 8-bit GEMMs are 9.2 % off with the constants of its 16-bit ones, 8.1 % with their own. The same holds for fp8
/// experts under vLLM, which run Triton kernels on both.
void lend_to_fp8(Efficiency& ampere);

/// Takes from `ampere` the kernels that an architecture without wgmma and tcgen05 shares with it: GEMMs of cuBLAS and
/// CUTLASS by mma.sync, FlashAttention-2, latent attention, experts. Also takes int8 and 4-bit-weight GEMMs if Ampere
/// has constants for them. Formats that only `mine` has are kept.
void take_ampere_kernels(Efficiency& mine, const Efficiency& ampere);

}  // namespace roofcast
