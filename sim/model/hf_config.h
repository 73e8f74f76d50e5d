#pragma once
// Reads a Hugging Face config.json (or the same keys in YAML) under the key names of each family.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "sim/model/model_spec.h"

namespace roofcast {

using Names = std::initializer_list<std::string_view>;

constexpr Range kExpertCount{1, 100000};  ///< the simulation loops over experts

/// Each getter takes all names of a key. The first one present counts; all of them count as read.
class HfConfig {
 public:
  /// `whole` is the document. Its text_config (llm_config ...) is read first, the document itself is the fallback.
  explicit HfConfig(const ConfigTree& whole);

  bool has(Names names) const;
  double number(Names names);  ///< required; an integer >= 0
  double number(Names names, double default_value);
  double factor(Names names, double default_value);  ///< any number >= 0
  int integer(Names names);
  int integer(Names names, int default_value);
  bool flag(Names names, bool default_value);
  std::string text(Names names, std::string_view default_value);
  std::vector<double> numbers(Names names);     ///< empty if absent or not a list
  std::vector<std::string> texts(Names names);  ///< the same
  ConfigTree tree(Names names);                 ///< null when absent
  bool is_list(Names names) const;

  const std::string& model_type() const { return model_type_; }
  const std::vector<std::string>& architectures() const { return architectures_; }
  ConfigReader& reader() { return text_; }
  ConfigReader& outer() { return whole_; }
  bool nested() const { return nested_; }
  /// Records an assumption once. said() returns all of them, including defaults for sizes that a nested text config
  /// omits.
  void say(const std::string& assumption);
  const std::vector<std::string>& said() const { return said_; }
  /// Meaningful keys that nothing has read; known after finish().
  const std::vector<std::string>& unread() const { return unread_; }
  [[noreturn]] void fail(std::string_view key, const std::string& message) const { text_.fail(key, message); }
  /// Throws ConfigError for unread keys if `ours`; foreign configs may contain more.
  void finish(bool ours);

 private:
  std::string_view key_of(Names names) const;  ///< the first name present, else the first name

  std::vector<std::string> said_, unread_;
  ConfigReader whole_;
  ConfigReader text_;
  bool nested_ = false;
  std::string model_type_;
  std::vector<std::string> architectures_;
};

/// Properties of a family's layers that the config does not state.
struct Traits {
  bool tied = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false, head_bias = false;
  bool qk_norm = false, sinks = false, output_gate = false;
  bool norm_bias = false;
  bool gated = true;
  bool parallel_block = false;
  bool rotary = true;
  double norms = 2;
  bool bias_on_output = true;  ///< `attention_bias` covers the output projection too
  double inter_factor = 0;     ///< default of feed-forward width / hidden; 0: the config must state it
  double heads = 0, kv_heads = 0, head_dim = 0, vocabulary = 0;  ///< defaults; 0: the config must state it
  bool expert_bias = false, router_bias = false, shared_gate = false;
};

/// Reads what every family has: widths, vocabulary, tied embeddings.
ModelSpec start_model(HfConfig& in, const Traits& traits);
GroupedAttention read_attention(HfConfig& in, const Traits& traits);
DenseFeedForward read_dense(HfConfig& in, const Traits& traits);
/// Reads experts under their usual key names; `shared_inter` is the total width of all shared experts.
ExpertFeedForward read_experts(HfConfig& in, const Traits& traits);
int layer_count(HfConfig& in);
LayerKind make_layer(Mixer mixer, FeedForward feed_forward, const Traits& traits);
/// Appends one layer, merged with an equal kind if there is one.
void append_layer(ModelSpec& model, LayerKind kind);

/// Window of each layer; 0: global. From layer_types, else sliding_window with max_window_layers, else every
/// `pattern`-th layer is global (pattern 0: all layers have the window).
std::vector<double> read_windows(HfConfig& in, int layers, int pattern = 0);
/// Which layers have experts, from any of the usual keys (a list, a frequency, first_k_dense_replace, mlp_only_layers).
std::vector<bool> read_sparse_layers(HfConfig& in, int layers);

/// Formats of the checkpoint: dtype and quantization_config. Throws ConfigError if its groups do not divide the
/// matrices.
Precision read_checkpoint_precision(HfConfig& in, const ModelSpec& model);

}  // namespace roofcast
