#pragma once
// What a kind of mixer says about itself. Each kind has one class, in a file of its own under sim/model/mixers/.
// No function and no fact has a default: a kind that leaves something out does not compile. See
// docs/extending/attention-kind.md.

#include <memory>
#include <optional>
#include <string>

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

class HfConfig;

/// What a mixer keeps of each token.
enum class TokenCache { kNothing, kHeads, kLatent };

/// What engines, rules and pages ask about a mixer.
struct MixerFacts {
  TokenCache cache;
  bool present;           ///< false: the layer has no mixer
  bool indexer;           ///< it has one, which scores cached tokens
  double chosen_tokens;   ///< cached tokens that an indexer leaves visible, 0 = all
  bool norms_keys;        ///< queries and keys are normed
  bool captured_prefill;  ///< SGLang captures its prompts in piecewise CUDA graphs
  bool fused_nvfp4;       ///< engines quantize to nvfp4 in the kernels before its layer's products
};

/// Heads that keep keys and values of their own, of the whole model.
struct CachedHeads {
  double heads, head_dim, value_dim, window;
};

/// The up-projection of latents, which decode absorbs into queries and outputs, of the whole model.
struct AbsorbedProjection {
  double heads, latent_dim, nope_dim, value_dim;
};

/// Bytes of one layer's cache on one GPU.
struct LayerCache {
  double all_tokens = 0;            ///< a token, kept for the whole context
  double windowed = 0, window = 0;  ///< a token, kept while the window holds it
  double state = 0;                 ///< a sequence
};

class MixerModel {
 public:
  virtual ~MixerModel() = default;

  virtual std::string name() const = 0;  ///< "attention, window 1024", "mamba2" ...
  virtual MixerFacts facts() const = 0;
  virtual std::optional<CachedHeads> cached_heads() const = 0;
  virtual std::optional<AbsorbedProjection> absorbed() const = 0;

  /// Refuses sizes that no reader may let through, at their key in the config.
  virtual void check(const HfConfig& in) const = 0;
  /// Refuses heads that cannot be split; `model` is its name.
  virtual void check_sharding(const std::string& model, int tp, const Mark& mark) const = 0;
  /// The same mixer without a window that no context outgrows.
  virtual Mixer without_wide_window(double max_context) const = 0;

  /// Matrices and vectors of one GPU.
  virtual void add_weights(LayerWeights& out, double hidden, const Sharding& sharding) const = 0;
  virtual LayerCache cache(const Precision& precision, const Sharding& sharding) const = 0;
  /// Values a token that it holds at once: projections and output.
  virtual double activation_values(const Sharding& sharding) const = 0;
  /// Heads of one GPU that have a score for each query and token it may see; 0 without attention.
  virtual double scoring_heads(const Sharding& sharding) const = 0;

  /// Kernels of `count` layers that depend on the number of tokens alone, without the products with weights.
  virtual void add_token_operators(OperatorList& list, double count, double tokens) const = 0;
  /// Kernels that depend on contexts: over a prompt's chunk, and in decode.
  virtual void add_prefill(OperatorList& list, double count, const PrefillShape& shape) const = 0;
  virtual void add_decode(OperatorList& list, double count, const DecodeShape& shape) const = 0;
  /// Kernels over `tokens` that an encoder made of the input, once a request.
  virtual void add_encoded(OperatorList& list, double count, double tokens) const = 0;
};

std::unique_ptr<const MixerModel> model_of(const Mixer& mixer);
inline MixerFacts facts_of(const Mixer& mixer) { return model_of(mixer)->facts(); }

}  // namespace roofcast
