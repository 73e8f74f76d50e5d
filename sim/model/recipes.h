#pragma once
// Number formats by name: plain formats, and recipes that set several at once.

#include <span>
#include <string_view>

#include "hw/gpu_spec.h"
#include "sim/model/precision.h"

namespace roofcast {

struct ModelSpec;

struct Recipe {
  std::string_view name, help;
  void (*set)(Precision&);
};
std::span<const Recipe> recipes();

/// Sets the weights of all blocks to `dtype`, and the activations to what engines then compute with: the same format
/// for fp8 and nvfp4, 16 bit for integers and mxfp4 (which are dequantized).
void set_weights(Precision& precision, Dtype dtype);

/// Parses a scenario's `precision`: a name (a format or a recipe) or a map
///   {weights, activations, kv_cache, attention_weights, expert_weights, head, group_size}
/// that overrides the formats of the checkpoint. Sets `asked` if it names the activations. Throws ConfigError.
Precision parse_precision(const ModelSpec& model, const ConfigTree& tree, bool& asked);

/// Sets the activations that engines choose for a checkpoint on this GPU: mxfp8 for mxfp4 experts where the GPU
/// multiplies mxfp4 (TensorRT-LLM's and FlashInfer's kernels on Blackwell), 16 bit for formats that the GPU cannot
/// multiply.
void choose_activations(Precision& precision, const GpuSpec& gpu);

}  // namespace roofcast
