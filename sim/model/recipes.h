#pragma once
// Formats by name: plain ones and recipes that set several at once.

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

/// The weights of all blocks in `dtype`, activations in what engines then compute with: fp8, nvfp4 as the weights,
/// integers and mxfp4 unpacked to 16 bit.
void set_weights(Precision& precision, Dtype dtype);

/// A scenario's `precision`: a name (a format or a recipe) or a map
///   {weights, activations, kv_cache, attention_weights, expert_weights, head, group_size}
/// over the checkpoint's own formats. `asked` becomes true where the activations are named.
Precision parse_precision(const ModelSpec& model, const ConfigTree& tree, bool& asked);

/// The activations that engines choose for a checkpoint on this GPU: mxfp4 experts take mxfp8 activations where the GPU
/// multiplies mxfp4 (TensorRT-LLM's and FlashInfer's kernels on Blackwell); a format the GPU has no unit for runs in
/// 16 bit.
void choose_activations(Precision& precision, const GpuSpec& gpu);

}  // namespace roofcast
