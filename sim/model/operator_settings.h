#pragma once
// Settings of an engine that decide which kernels run.

#include "hw/kernels/requested_experts.h"

namespace roofcast {

class MatmulKernel;

/// How attention-DP ranks bring their tokens to the experts and back.
enum class ExpertExchange {
  kAllGather,  ///< every rank sees every token, then reduce-scatter (vLLM's and TensorRT-LLM's default)
  kAllToAll,   ///< a token goes to the ranks of its experts alone (DeepEP)
};

/// Settings of an engine that its operators see: EngineSpec has them, and so does OperatorContext.
struct OperatorSettings {
  RequestedExperts moe_kernel = RequestedExperts::kDefault;  ///< the experts' kernel, where the engine is told which
  bool expanded_experts = false;  ///< DeepGEMM in block fp8 on Blackwell copies every choice twice more
  /// The kernel asked for of dense products in block fp8 on Blackwell; null: the one that the rules name.
  const MatmulKernel* block_products = nullptr;
  int rows_quantized_at_once = 0;  ///< before a product in block fp8 on Blackwell; 0: all
  /// Query heads of a KV head for which a decode kernel reads the cache once. 0: any number; 1: none. Others are
  /// decoded head by head.
  int shared_query_heads = 0;
  bool fp8_latent_prompts = false;     ///< prompts multiply in fp8 over an fp8 cache of latents (SGLang)
  bool own_all_reduce = true;          ///< small all-reduces inside a node by the engine's kernel; false: all by NCCL
  bool compiled_quantization = false;  ///< norms and activations write 8 bit where scales are known, attention does not
  bool fused_elementwise = true;   ///< a norm, a rotation, an activation are a kernel each; false: PyTorch's several
  bool merged_projections = true;  ///< queries, keys and values are one product, and so are gate and up
  bool copied_cache = false;       ///< every step copies the keys and values of a layer to longer tensors (torch.cat)
  ExpertExchange expert_exchange = ExpertExchange::kAllGather;
};

}  // namespace roofcast
