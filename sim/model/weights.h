#pragma once
// Lists every weight of a layer once. Parameter counts, bytes per GPU and the GEMMs of a step all derive from this
// list.

#include <string>
#include <vector>

#include "sim/model/model_spec.h"
#include "sim/model/sharding.h"
#include "sim/model/stage.h"

namespace roofcast {

/// Which format of Precision stores a weight.
enum class WeightRole {
  kMixer,
  kFeedForward,
  kExpert,
  kHead,
  kOther,
  kFloat32,  ///< stored and multiplied in fp32 whatever the precision
};

/// Source of a product's input. Depending on it, engines fuse the quantization into the kernel that writes it.
enum class ProductInput {
  kAnything,
  kNorm,       ///< the norm before the mixer or feed-forward block
  kAttention,  ///< the output of an attention kernel
  kEarlier,    ///< the input of an earlier product in the layer, already quantized
};

/// A matrix of k rows (inputs) and n columns (outputs) on one GPU.
struct WeightMatrix {
  std::string name;
  double k = 0, n = 0;
  WeightRole role = WeightRole::kFeedForward;
  double copies = 1;  ///< per GPU: number of local experts
  double used = 1;    ///< copies used per token: top_k
  ProductInput input = ProductInput::kAnything;
  bool projection = true;        ///< one GEMM over all tokens of a step; false: priced elsewhere
  Stage stage = Stage::kEntry;   ///< in a layer with routed experts
  std::vector<double> merges{};  ///< columns of the checkpoint's matrices that are merged in it; empty: not merged
};

struct LayerWeights {
  std::vector<WeightMatrix> matrices;
  double vectors = 0;         ///< norms, biases, decay rates and similar on one GPU
  double expert_vectors = 0;  ///< per expert
};

LayerWeights layer_weights(const ModelSpec& model, const LayerKind& kind, const Sharding& sharding);

Dtype dtype_of(WeightRole role, const Precision& precision);
/// Whether the weight is stored and multiplied with 2:4 sparsity. Routed experts are not, because grouped GEMMs have no
/// such kernels.
bool is_two_of_four(WeightRole role, const Precision& precision);
/// Stored bytes of one weight, with scales and outliers. 2:4 keeps half of the values, each with a 2-bit index (NVIDIA,
/// Mishra et al. 2021, arXiv:2104.08378, section 3.1): 9 of 16 bits, 5 of 8, 3 of 4.
double bytes_per_weight(WeightRole role, const Precision& precision);
/// Input format of products with such weights: 16 bit if the weights are 16 bit, else precision.activations.
Dtype activations_for(WeightRole role, const Precision& precision);

/// Heads on one GPU: query heads are split; KV heads are replicated once there are fewer than GPUs.
double heads_of(double heads, const Sharding& sharding);
double kv_heads_of(double kv_heads, const Sharding& sharding);
/// A state mixer on one GPU. Groups that share keys are replicated like KV heads.
StateMixer mixer_of(const StateMixer& whole, const Sharding& sharding);

/// First layer of each pipeline stage, and the end: pp + 1 numbers. Remaining layers go to the stages before the last,
/// which also holds the LM head (vLLM, get_pp_indices).
std::vector<int> stage_bounds(int layers, int pp);

}  // namespace roofcast
