#pragma once
// Every weight of a layer, once. Parameter counts, bytes a GPU and the GEMMs of a step are all read off this
// list, so that none can be forgotten in one place and counted in another.

#include <string>
#include <vector>

#include "sim/model/model_spec.h"
#include "sim/model/sharding.h"
#include "sim/model/stage.h"

namespace roofcast {

/// Which format of a Precision a weight is kept in.
enum class WeightRole {
  kMixer,
  kFeedForward,
  kExpert,
  kHead,
  kOther,
  kFloat32,  ///< kept and multiplied in fp32 whatever the precision
};

/// What a product reads: engines quantize its input in the kernel that writes it, or not again.
enum class ProductInput {
  kAnything,
  kNorm,       ///< the norm before the mixer or the block
  kAttention,  ///< the output of an attention kernel
  kEarlier,    ///< what an earlier product of the layer has read, already quantized
};

/// A matrix of k rows (inputs) and n columns (outputs) on one GPU.
struct WeightMatrix {
  std::string name;
  double k = 0, n = 0;
  WeightRole role = WeightRole::kFeedForward;
  double copies = 1;  ///< on the GPU: experts that live there
  double used = 1;    ///< by one token: top_k
  ProductInput input = ProductInput::kAnything;
  bool projection = true;       ///< every token of a step passes it as one GEMM; else it is priced elsewhere
  Stage stage = Stage::kEntry;  ///< of a layer with routed experts
};

struct LayerWeights {
  std::vector<WeightMatrix> matrices;
  double vectors = 0;         ///< norms, biases, decay rates ... of one GPU
  double expert_vectors = 0;  ///< of one expert
};

LayerWeights layer_weights(const ModelSpec& model, const LayerKind& kind, const Sharding& sharding);

Dtype dtype_of(WeightRole role, const Precision& precision);
/// Whether a weight's matrix is stored and multiplied 2:4. Routed experts are not: their grouped products have no such
/// kernels.
bool is_two_of_four(WeightRole role, const Precision& precision);
/// Stored bytes of one weight, scales and outliers included. 2:4: half of them, each with its place of 2 bits (NVIDIA,
/// Mishra et al. 2021, arXiv:2104.08378, section 3.1): 9 of 16 bits, 5 of 8, 3 of 4.
double bytes_per_weight(WeightRole role, const Precision& precision);
/// What the products with such weights take in: 16 bit where the weights are, else precision.activations.
Dtype activations_for(WeightRole role, const Precision& precision);

/// Heads of one GPU: query heads are split, a key-value head that cannot be split further is replicated.
double heads_of(double heads, const Sharding& sharding);
double kv_heads_of(double kv_heads, const Sharding& sharding);
/// A state mixer on one GPU; groups that share keys are replicated like key-value heads.
StateMixer mixer_of(const StateMixer& whole, const Sharding& sharding);

/// First layer of each pipeline stage, and the end: pp + 1 numbers. What does not divide goes to the stages before
/// the last, which holds the head (as vLLM's get_pp_indices does).
std::vector<int> stage_bounds(int layers, int pp);

}  // namespace roofcast
