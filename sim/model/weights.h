#pragma once
// Every weight of a layer, once. Parameter counts, bytes per GPU and the GEMMs of a step all come from this list, so
// that no weight is missing in one of them and counted in another.

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
  kFloat32,  ///< stored and multiplied in fp32 whatever the precision
};

/// Source of a product's input: engines quantize it in the kernel that writes it, or not at all.
enum class ProductInput {
  kAnything,
  kNorm,       ///< the norm before the mixer or the block
  kAttention,  ///< the output of an attention kernel
  kEarlier,    ///< input of an earlier product of the layer, already quantized
};

/// A matrix of k rows (inputs) and n columns (outputs) on one GPU.
struct WeightMatrix {
  std::string name;
  double k = 0, n = 0;
  WeightRole role = WeightRole::kFeedForward;
  double copies = 1;  ///< on the GPU: number of local experts
  double used = 1;    ///< by one token: top_k
  ProductInput input = ProductInput::kAnything;
  bool projection = true;        ///< every token of a step passes it as one GEMM; else it is priced elsewhere
  Stage stage = Stage::kEntry;   ///< of a layer with routed experts
  std::vector<double> merges{};  ///< columns of the checkpoint's matrices that it holds; empty: it is one of them
};

struct LayerWeights {
  std::vector<WeightMatrix> matrices;
  double vectors = 0;         ///< norms, biases, decay rates and the like on one GPU
  double expert_vectors = 0;  ///< of one expert
};

LayerWeights layer_weights(const ModelSpec& model, const LayerKind& kind, const Sharding& sharding);

Dtype dtype_of(WeightRole role, const Precision& precision);
/// Whether a weight's matrix is stored and multiplied as 2:4. Routed experts are not, because grouped products have no
/// such kernels.
bool is_two_of_four(WeightRole role, const Precision& precision);
/// Stored bytes of one weight, with scales and outliers. 2:4 keeps half of the values, each with a 2-bit index (NVIDIA,
/// Mishra et al. 2021, arXiv:2104.08378, section 3.1): 9 of 16 bits, 5 of 8, 3 of 4.
double bytes_per_weight(WeightRole role, const Precision& precision);
/// Input format of products with such weights: 16 bit if the weights are, else precision.activations.
Dtype activations_for(WeightRole role, const Precision& precision);

/// Heads on one GPU: query heads are split; a key-value head that cannot be split further is replicated.
double heads_of(double heads, const Sharding& sharding);
double kv_heads_of(double kv_heads, const Sharding& sharding);
/// A state mixer on one GPU; groups that share keys are replicated like key-value heads.
StateMixer mixer_of(const StateMixer& whole, const Sharding& sharding);

/// First layer of each pipeline stage, and the end: pp + 1 numbers. Remaining layers go to the stages before the last,
/// which also holds the head (as in vLLM's get_pp_indices).
std::vector<int> stage_bounds(int layers, int pp);

}  // namespace roofcast
