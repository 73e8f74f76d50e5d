#pragma once
// The number formats in which values are stored and computed.

#include <string>

#include "hw/dtype.h"

namespace roofcast {

/// Formats of weights, activations and KV cache. The defaults are those of the model's checkpoint.
struct Precision {
  Dtype weights = Dtype::kBf16;      ///< of the linear layers
  Dtype activations = Dtype::kBf16;  ///< operands of the products with them
  Dtype kv_cache = Dtype::kBf16;
  Dtype attention_weights = Dtype::kBf16;  ///< of the mixers' projections, if a recipe treats them separately
  Dtype expert_weights = Dtype::kBf16;     ///< of the routed experts
  Dtype head = Dtype::kBf16;               ///< LM head and embedding
  Dtype other = Dtype::kBf16;              ///< norms, router, biases
  Scales weight_scales{};                  ///< group 0: the format's native ones
  Scales head_scales{};                    ///< the same for embedding and head
  bool static_activations = false;         ///< scales known beforehand: quantization fuses into the kernel before
  bool two_of_four = false;                ///< half of the weights of dense products are zeros, two of any four
  double outlier_fraction = 0.0;           ///< of input columns kept in 16 bit (LLM.int8())
  bool scaled_latents = false;             ///< EngineSpec's
  std::string recipe;                      ///< awq, gptq, ... empty for plain formats
};

}  // namespace roofcast
