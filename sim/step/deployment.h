#pragma once
// One replica: a model on GPUs with an engine, and its memory plan.

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

/// Bytes on the GPU that holds most.
struct MemoryPlan {
  Bytes capacity{};  ///< memory of the GPU
  Bytes weights{};
  Bytes copied_weights{};        ///< part of `weights`: copies made after loading
  Bytes adapters{};              ///< part of `weights`: adapter slots
  Bytes activations{};           ///< at the batch that the engine profiles
  Bytes encoders{};              ///< part of `activations`: encoder buffers and outputs
  Bytes cache{};                 ///< left for KV blocks, and for states if they share it
  Bytes states{};                ///< reserved for the states of recurrent layers; 0: they share the cache
  std::int64_t state_block = 0;  ///< tokens per block whose KV is as large as the state of a layer
  double max_sequences = 1e9;    ///< sequences whose states or contiguous caches fit
  CacheLayout layout;
  std::optional<Infeasible> infeasible;  ///< weights and activations do not fit

  /// Splits the cache into states and KV blocks, as SGLang does: by state_memory_ratio with prefix caching (the cached
  /// states then take two slots of three), otherwise one state per sequence that may run
  /// (model_runner_kv_cache_mixin.py, _handle_max_mamba_cache). Infeasible if not even one sequence fits.
  void set_states_apart(const EngineSpec& engine);
  /// The layout of the shared cache: without states that have reserved memory.
  CacheLayout pooled() const;
  /// The number of sequences of `tokens` tokens that fit together.
  double max_batch(double tokens, double block) const;
  double max_context(double block) const;
};

struct Deployment {
  ModelSpec model;
  GpuSpec gpu;
  bool gpu_changed = false;  ///< the scenario overrides figures of the named GPU
  std::shared_ptr<const Efficiency> efficiency = nothing_measured();
  EngineSpec engine;
  Sharding sharding;
  Precision precision;
  Routing routing;
  std::optional<AdapterSpec> adapters;
  double guided = 0;               ///< fraction of sequences with guided decoding (a grammar)
  std::vector<EncoderWork> media;  ///< images and audio of the largest request; empty: text only
  std::vector<PriceQuote> offers;  ///< by price per GPU, lowest first; a bill chooses one; empty: no known price
  std::string recipe;              ///< launch recipe in configs/recipes; empty: unknown
  Fidelity fidelity = Fidelity::kCalibrated;
  MemoryPlan memory;

  const KernelRules& kernel_rules() const;  ///< of `efficiency`
  /// The GPU whose constants it has; empty: they were measured on this one.
  const std::string& carried_over_from() const;
  /// Roofline efficiencies that price the engine's kernels here; null: kernels have their own models.
  const RooflineBackend* roofline() const;
  Machine machine() const;
  OperatorContext operator_context() const;
  AttentionKernel attention_kernel() const;  ///< the kernel that the engine's setting names
  Bytes loaded_weights() const {
    return (memory.weights - memory.copied_weights - memory.adapters) * sharding.gpus();
  }                               ///< of all GPUs
  Bytes reserved_memory() const;  ///< per GPU, in addition to weights and activations
  int max_sequences() const;      ///< maximum running sequences, over all attention-DP ranks
  /// Activation bytes of one GPU for a step of `tokens` tokens with up to `context` visible tokens each. `logit_rows`
  /// of them are sampled.
  Bytes activations(double tokens, double logit_rows, double context) const;
};

/// Computes the memory plan; all other members of `deployment` must be set.
MemoryPlan plan_memory(const Deployment& deployment);

}  // namespace roofcast
