#pragma once
// One replica: a model on GPUs under an engine, with its memory plan.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/cost.h"
#include "hw/gpu_spec.h"
#include "hw/kernels/routing.h"
#include "sim/model/adapters.h"
#include "sim/model/encoder_spec.h"
#include "sim/model/memory.h"
#include "sim/model/model_spec.h"
#include "sim/model/precision.h"
#include "sim/model/sharding.h"
#include "sim/step/engine_spec.h"
#include "sim/step/price_quote.h"

namespace roofcast {

struct OperatorContext;
enum class AttentionKernel;
class KernelRules;

/// Bytes of the fullest GPU.
struct MemoryPlan {
  Bytes capacity{};  ///< of the GPU
  Bytes weights{};
  Bytes copied_weights{};        ///< of `weights`: copies made beside those that are loaded
  Bytes adapters{};              ///< of `weights`: slots of adapters
  Bytes activations{};           ///< at the profiling batch
  Bytes encoders{};              ///< of `activations`: buffers of encoders and their output
  Bytes cache{};                 ///< left for KV blocks, and for states where these share it
  Bytes states{};                ///< set aside for the states of recurrent layers; 0: they share the cache
  std::int64_t state_block = 0;  ///< tokens of a block of every layer's cache that is as large as a layer's state
  double places = 1e9;           ///< sequences whose states fit what is set aside
  CacheLayout layout;
  std::optional<Infeasible> infeasible;  ///< weights and activations do not fit

  /// Divides the cache anew into states and KV blocks, as SGLang does: by their ratio where prefixes are cached, whose
  /// states take two places of three; otherwise one state per sequence that may run (model_runner_kv_cache_mixin.py,
  /// _handle_max_mamba_cache). Infeasible without room for one sequence.
  void set_states_apart(const EngineSpec& engine);
  /// The layout of what sequences share: without states that are set aside.
  CacheLayout pooled() const;
  /// Sequences of `tokens` that fit together, and the longest single one.
  double max_batch(double tokens, double block) const;
  double max_context(double block) const;
};

struct Deployment {
  ModelSpec model;
  GpuSpec gpu;
  bool gpu_changed = false;  ///< the scenario writes figures over those of the named GPU
  std::shared_ptr<const Efficiency> efficiency = nothing_measured();
  EngineSpec engine;
  Sharding sharding;
  Precision precision;
  Routing routing;
  std::optional<AdapterSpec> adapters;
  double guided = 0;               ///< share of sequences whose tokens follow a grammar
  std::vector<EncoderWork> media;  ///< pictures and sounds of the largest request; empty: prompts are text
  std::vector<PriceQuote> offers;  ///< by price per GPU, the lowest first; a bill chooses one; empty: no price is known
  std::string recipe;              ///< the name of configs/recipes that launches the engine; empty: not known
  Fidelity fidelity = Fidelity::kCalibrated;
  MemoryPlan memory;

  const KernelRules& kernel_rules() const;  ///< of `efficiency`
  /// The GPU whose constants it has; empty: they were measured on this one.
  const std::string& carried_over_from() const;
  /// The shares of the roofline that price the engine's kernels here; null: they are priced one by one.
  const RooflineBackend* roofline() const;
  Machine machine() const;
  OperatorContext operator_context() const;
  AttentionKernel attention_kernel() const;  ///< the kernel that the engine's setting names
  Bytes loaded_weights() const {
    return (memory.weights - memory.copied_weights - memory.adapters) * sharding.gpus();
  }                               ///< of all GPUs
  Bytes reserved_memory() const;  ///< per GPU, beside weights and activations
  int seats() const;              ///< sequences that run at once, over all attention-DP ranks
  /// Buffers of one GPU for a step of `tokens` tokens, each of which may see `context` tokens. `logit_rows` of them are
  /// sampled from.
  Bytes activations(double tokens, double logit_rows, double context) const;
};

/// Plans the memory of a deployment whose other parts are set.
MemoryPlan plan_memory(const Deployment& deployment);

}  // namespace roofcast
