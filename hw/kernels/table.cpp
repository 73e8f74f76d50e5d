// All kernels. A new one needs a file of its own and a line here, after its lender.

#include <vector>

#include "hw/collectives.h"
#include "hw/exchange.h"
#include "hw/kernel.h"
#include "hw/kernels/benchmark_loops.h"
#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/elementwise.h"
#include "hw/kernels/experts/experts_kernel.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/kernels/latent/latent_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"
#include "hw/kernels/state/state_kernel.h"

namespace roofcast {

std::span<const Kernel* const> kernels() {
  static const std::vector<const Kernel*> table = [] {
    std::vector<const Kernel*> all{
        &cublaslt(),
        &cublaslt_mma_sync(),
        &cublaslt_fp8(),
        &cublaslt_mma_sync_fp8(),
        &cutlass_fp8(),
        &cutlass_mma_sync_fp8(),
        &deep_gemm(),
        &deep_gemm_trtllm(),
        &blockwise_fp8(),
        &trtllm_gen_gemm(),
        &cutlass_nvfp4_untuned(),
        &cutlass_nvfp4(),
        &cutlass_int8(),
        &weight_only(),
        &hipblaslt(),
        &hipblaslt_fp8(),
        &attention::trtllm_gen_prefill(),
        &attention::flashinfer_prefill(),
        &attention::trtllm_gen_vllm_prefill(),
        &attention::triton_prefill(),
        &attention::flash_attention_3_prefill(),
        &attention::flash_attention_4_prefill(),
        &attention::flash_attention_2_prefill(),
        &attention::fmha_v2_wgmma_prefill(),
        &attention::fmha_v2_prefill(),
        &attention::flash_attention_3_decode(),
        &attention::flash_attention_4_decode(),
        &attention::trtllm_gen_decode(),
        &attention::trtllm_gen_vllm_decode(),
        &attention::triton_decode(),
        &attention::flash_attention_2_decode(),
        &attention::flash_split_decode(),
        &attention::paged_attention_decode(),
        &attention::flashinfer_decode(),
        &attention::xqa_decode(),
        &attention::xqa_uncut_decode(),
        &attention::xqa_wgmma_decode(),
        &attention::mmha_blackwell_decode(),
        &attention::mmha_decode(),
        &attention::trtllm_gen_mla_prefill(),
        &attention::trtllm_gen_mla_vllm_prefill(),
        &attention::fmha_v2_mla_wgmma_prefill(),
        &attention::fmha_v2_mla_prefill(),
        &attention::flash_attention_3_mla_prefill(),
        &attention::flash_attention_2_mla_prefill(),
        &attention::trtllm_gen_mla_decode(),
        &attention::trtllm_gen_mla_vllm_decode(),
        &attention::flash_mla_decode(),
        &attention::fmha_mla_decode(),
        &attention::flash_mla_vllm_decode(),
        &attention::flash_attention_3_mla_decode(),
        &attention::triton_mla_decode(),
        &fused_state(),
        &chunked_state(),
        &block_convolution(),
        &mamba_block_convolution(),
        &strip_convolution(),
        &mamba_strip_convolution(),
        &elementwise_kernel(),
        &custom_all_reduce_kernel(),
        &fused_all_reduce_kernel(),
        &nccl_kernel(Collective::kAllReduce),
        &nccl_kernel(Collective::kAllGather),
        &nccl_kernel(Collective::kReduceScatter),
        &nccl_kernel(Collective::kAllToAll),
        &nccl_kernel(Collective::kSend),
        &exchange_kernel(ExchangeKernel::kNormal),
        &exchange_kernel(ExchangeKernel::kLowLatency),
        &exchange_kernel(ExchangeKernel::kOneSided),
        &plain_gemm_loop(),
        &quantizing_gemm_loop(),
        &eager_gemm_loop(),
        &eager_experts_loop(),
        &triton_experts(),
        &triton_block_experts(),
        &triton_mma_sync_experts(),
        &oai_triton_experts(),
        &rocm_experts(),
        &marlin_experts(),
        &marlin_blackwell_experts(),
        &cutlass_experts(),
        &cutlass_untuned_experts(),
        &cutlass_mma_sync_experts(),
        &cutlass_block_experts(),
        &cutlass_nvfp4_experts(),
        &cutlass_ungated_experts(),
        &cutlass_ungated_fp8_experts(),
        &cutlass_ungated_nvfp4_experts(),
        &flashinfer_cutlass_block_experts(),
        &flashinfer_cutlass_experts(),
        &flashinfer_cutlass_nvfp4_experts(),
        &deep_gemm_experts(),
        &trtllm_gen_bf16_experts(),
        &trtllm_gen_fp8_experts(),
        &trtllm_gen_block_experts(),
        &trtllm_gen_block_modular_experts(),
        &trtllm_gen_nvfp4_experts(),
        &trtllm_gen_mxfp4_experts(),
        &trtllm_gen_mxfp8_experts(),
        &trtllm_gen_mxfp4_trtllm_experts(),
        &trtllm_gen_mxfp8_trtllm_experts(),
        &deep_gemm_masked_experts(),
        &deep_gemm_contiguous_experts(),
        &deep_gemm_reserved_experts(),
        &cutlass_wide_block_experts(),
        &cutlass_wide_nvfp4_experts(),
        &trtllm_gen_latency_experts(),
    };
    for (const Kernel* loop : attention_loops(all)) all.push_back(loop);
    for (std::size_t i = 0; i < all.size(); ++i) all[i]->id_ = i;
    return all;
  }();
  return table;
}

}  // namespace roofcast
