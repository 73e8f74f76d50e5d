#pragma once
// The interface of a kind of mixer. Each kind is one class in its own file in sim/model/mixers/. No function and no
// fact has a default, so a kind that omits something does not compile. See docs/extending/attention-kind.md.

#include <memory>
#include <optional>
#include <string>

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

class HfConfig;

/// What a mixer stores per token.
enum class TokenCache { kNothing, kHeads, kLatent };

/// Facts about a mixer that engines, kernel rules and pages need.
struct MixerFacts {
  TokenCache cache;
  bool present;           ///< false: the layer has no mixer
  bool indexer;           ///< an indexer scores the cached tokens
  double chosen_tokens;   ///< cached tokens that the indexer selects; 0: all
  bool norms_keys;        ///< queries and keys are normalized
  bool captured_prefill;  ///< SGLang captures its prefill in piecewise CUDA graphs
  bool fused_nvfp4;       ///< engines fuse nvfp4 quantization into the kernels before its products
  bool borrows_cache;     ///< it reads what an earlier layer has cached
  double query_group;     ///< query heads that read the same keys and values; 0 = none do
};

/// KV heads of the whole model.
struct CachedHeads {
  double heads, head_dim, value_dim, window;
};

/// Shape of the up-projection of the latents in the whole model, which decode absorbs into queries and outputs.
struct AbsorbedProjection {
  double heads, latent_dim, nope_dim, value_dim;
};

/// Bytes of one layer's cache on one GPU.
struct LayerCache {
  double all_tokens = 0;            ///< bytes per token of the whole context
  double windowed = 0, window = 0;  ///< bytes per token in the window; size of the window in tokens
  double state = 0;                 ///< bytes per sequence
};

class MixerModel {
 public:
  virtual ~MixerModel() = default;

  virtual std::string name() const = 0;  ///< "attention, window 1024", "mamba2" ...
  virtual MixerFacts facts() const = 0;
  virtual std::optional<CachedHeads> cached_heads() const = 0;
  virtual std::optional<AbsorbedProjection> absorbed() const = 0;

  /// Throws ConfigError for invalid sizes, at their key in the config.
  virtual void check(const HfConfig& in) const = 0;
  /// Throws CannotSplit if the heads cannot be split; the message names `model`.
  virtual void check_sharding(const std::string& model, int tp, const SourceLocation& location) const = 0;
  /// The same mixer without its window if no context exceeds the window.
  virtual Mixer without_wide_window(double max_context) const = 0;

  /// Adds the matrices and vectors on one GPU.
  virtual void add_weights(LayerWeights& out, double hidden, const Sharding& sharding) const = 0;
  virtual LayerCache cache(const Precision& precision, const Sharding& sharding) const = 0;
  /// Activation values per token that are live at the same time: projections and output.
  virtual double activation_values(const Sharding& sharding) const = 0;
  /// Heads on one GPU that compute a score per query and visible token; 0 without attention.
  virtual double scoring_heads(const Sharding& sharding) const = 0;

  /// Adds the kernels of `count` layers that depend only on the number of tokens, except projections.
  virtual void add_token_operators(OperatorList& list, double count, double tokens) const = 0;
  /// Add the kernels that depend on the context: for a prefill chunk, and for decode.
  virtual void add_prefill(OperatorList& list, double count, const PrefillShape& shape) const = 0;
  virtual void add_decode(OperatorList& list, double count, const DecodeShape& shape) const = 0;
  /// Adds the kernels that process `tokens` encoder output tokens, once per request.
  virtual void add_encoded(OperatorList& list, double count, double tokens) const = 0;
};

std::unique_ptr<const MixerModel> model_of(const Mixer& mixer);
inline MixerFacts facts_of(const Mixer& mixer) { return model_of(mixer)->facts(); }

}  // namespace roofcast
