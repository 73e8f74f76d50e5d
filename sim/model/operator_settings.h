#pragma once
// Settings of an engine that decide which kernels run.

#include "hw/kernels/requested_experts.h"

namespace roofcast {

class MatmulKernel;

/// How attention-DP ranks dispatch tokens to the experts and combine the results.
enum class ExpertExchange {
  kAllGather,  ///< every rank sees every token, then reduce-scatter (vLLM's and TensorRT-LLM's default)
  kAllToAll,   ///< a token is sent only to the ranks of its experts (DeepEP)
};

/// Engine settings that affect the operators; base of EngineSpec and OperatorContext.
struct OperatorSettings {
  RequestedExperts moe_kernel = RequestedExperts::kDefault;  ///< the experts' kernel, if set explicitly
  bool expanded_experts = false;  ///< DeepGEMM in block fp8 on Blackwell copies every token-expert pair twice more
  /// The kernel for dense products in block fp8 on Blackwell, if set explicitly; null: chosen by the rules.
  const MatmulKernel* block_products = nullptr;
  int rows_quantized_at_once = 0;  ///< rows per quantization call before a block fp8 product on Blackwell; 0: all
  /// Up to this many query heads per KV head, a decode kernel reads the cache once for all of them. 0: any number; 1:
  /// none. With more, each query head reads the cache separately.
  int shared_query_heads = 0;
  bool fp8_latent_prompts = false;  ///< prefill computes in fp8 over an fp8 latent cache (SGLang)
  bool own_all_reduce = true;       ///< small all-reduces within a node use the engine's kernel; false: NCCL
  bool compiled_quantization =
      false;                       ///< norms and activations write 8 bit where scales are static; attention does not
  bool fused_elementwise = true;   ///< each norm, rotary embedding, activation is one kernel; false: several
  bool merged_projections = true;  ///< q, k and v are one product, as are gate and up
  bool copied_cache = false;       ///< every step copies the keys and values to longer tensors (torch.cat)
  ExpertExchange expert_exchange = ExpertExchange::kAllGather;
};

}  // namespace roofcast
