#pragma once
// The interface of a kind of mixer. Each kind is one class in a file of its own in sim/model/mixers/. No function and
// no fact has a default, so a kind that leaves something out does not compile. See docs/extending/attention-kind.md.

#include <memory>
#include <optional>
#include <string>

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

class HfConfig;

/// What a mixer stores per token.
enum class TokenCache { kNothing, kHeads, kLatent };

/// Facts that engines, rules and pages need about a mixer.
struct MixerFacts {
  TokenCache cache;
  bool present;           ///< false: the layer has no mixer
  bool indexer;           ///< it has an indexer, which scores cached tokens
  double chosen_tokens;   ///< cached tokens that an indexer leaves visible; 0 = all
  bool norms_keys;        ///< queries and keys are normed
  bool captured_prefill;  ///< SGLang captures its prompts in piecewise CUDA graphs
  bool fused_nvfp4;       ///< engines quantize to nvfp4 in the kernels before its layer's products
  bool borrows_cache;     ///< it reads what an earlier layer has cached
  double query_group;     ///< query heads that read the same keys and values; 0 = none do
};

/// Heads of the whole model that keep keys and values of their own.
struct CachedHeads {
  double heads, head_dim, value_dim, window;
};

/// Sizes of the latents' up-projection in the whole model, which decode absorbs into queries and outputs.
struct AbsorbedProjection {
  double heads, latent_dim, nope_dim, value_dim;
};

/// Bytes of one layer's cache on one GPU.
struct LayerCache {
  double all_tokens = 0;            ///< per token, for the whole context
  double windowed = 0, window = 0;  ///< per token, while it is in the window
  double state = 0;                 ///< per sequence
};

class MixerModel {
 public:
  virtual ~MixerModel() = default;

  virtual std::string name() const = 0;  ///< "attention, window 1024", "mamba2" ...
  virtual MixerFacts facts() const = 0;
  virtual std::optional<CachedHeads> cached_heads() const = 0;
  virtual std::optional<AbsorbedProjection> absorbed() const = 0;

  /// Refuses invalid sizes, at their key in the config.
  virtual void check(const HfConfig& in) const = 0;
  /// Refuses heads that cannot be split; `model` is the name for the message.
  virtual void check_sharding(const std::string& model, int tp, const Mark& mark) const = 0;
  /// The same mixer without its window, if no context outgrows it.
  virtual Mixer without_wide_window(double max_context) const = 0;

  /// Matrices and vectors on one GPU.
  virtual void add_weights(LayerWeights& out, double hidden, const Sharding& sharding) const = 0;
  virtual LayerCache cache(const Precision& precision, const Sharding& sharding) const = 0;
  /// Values per token in use at the same time: projections and output.
  virtual double activation_values(const Sharding& sharding) const = 0;
  /// Heads on one GPU that score each query against each visible token; 0 without attention.
  virtual double scoring_heads(const Sharding& sharding) const = 0;

  /// Kernels of `count` layers that depend only on the number of tokens, without the products with weights.
  virtual void add_token_operators(OperatorList& list, double count, double tokens) const = 0;
  /// Kernels that depend on contexts: for a chunk of a prompt, and in decode.
  virtual void add_prefill(OperatorList& list, double count, const PrefillShape& shape) const = 0;
  virtual void add_decode(OperatorList& list, double count, const DecodeShape& shape) const = 0;
  /// Kernels over `tokens` that an encoder made of the input, once per request.
  virtual void add_encoded(OperatorList& list, double count, double tokens) const = 0;
};

std::unique_ptr<const MixerModel> model_of(const Mixer& mixer);
inline MixerFacts facts_of(const Mixer& mixer) { return model_of(mixer)->facts(); }

}  // namespace roofcast
