#pragma once
// Number formats of storage and computation.

#include <string>

#include "hw/dtype.h"

namespace roofcast {

/// Formats of weights, activations and KV cache. The defaults are those of the model's checkpoint.
struct Precision {
  Dtype weights = Dtype::kBf16;      ///< linear layers
  Dtype activations = Dtype::kBf16;  ///< inputs of linear layers
  Dtype kv_cache = Dtype::kBf16;
  Dtype attention_weights = Dtype::kBf16;  ///< projections of mixers, if a recipe treats them separately
  Dtype expert_weights = Dtype::kBf16;     ///< routed experts
  Dtype head = Dtype::kBf16;               ///< LM head and embedding
  Dtype other = Dtype::kBf16;              ///< norms, router, biases
  Scales weight_scales{};                  ///< group 0: the native scales of the format
  Scales head_scales{};                    ///< for embedding and head
  bool static_activations = false;         ///< static scales: quantization fuses into the previous kernel
  bool two_of_four = false;                ///< 2:4 sparsity of dense weights
  double outlier_fraction = 0.0;           ///< fraction of input columns kept in 16 bit (LLM.int8())
  bool scaled_latents = false;             ///< see EngineSpec
  std::string recipe;                      ///< awq, gptq, ... empty for plain formats
};

}  // namespace roofcast
