#pragma once
// The parts of a layer: one struct per kind of mixer and of feed-forward block. The class returned by make_model()
// holds the cost and memory of a kind: see sim/model/mixer_model.h and feed_forward_model.h.

#include <memory>
#include <string>
#include <variant>

#include "hw/kernels/state.h"

namespace roofcast {

class MixerModel;
class FeedForwardModel;

/// Softmax attention over a cache of keys and values: MHA, GQA and MQA by kv_heads.
struct GroupedAttention {
  double heads = 0, kv_heads = 0;
  double head_dim = 0, value_dim = 0;
  double input_dim = 0;    ///< input width of the q, k and v projections; 0: hidden (Zamba2: twice that)
  double window = 0;       ///< maximum number of visible tokens; 0: all
  bool chunked = false;    ///< the window is a chunk aligned to its multiples (Llama-4), on average half full
  bool owns_cache = true;  ///< false: reuses the keys and values of an earlier layer (CLA)
  bool qkv_bias = false, output_bias = false;
  bool key_bias = true;  ///< keys have a bias if queries and values have one (false for Whisper)
  bool qk_norm = false;
  bool qk_norm_over_heads = false;  ///< one norm over all heads (MiniMax-M2): TP ranks all-reduce its sum of squares
  bool sinks = false;               ///< one learned logit per head
  bool output_gate = false;         ///< a second query-sized projection gates the output (Qwen3-Next)
  bool rotary = true;
  bool value_projection = true;           ///< false: values are the keys, unrotated (Gemma-4's global layers)
  bool both_ways = false;                 ///< bidirectional, without a cache (BERT)
  double encoded_dim = 0;                 ///< width of the encoder output for cross-attention (T5); 0: none
  double sparse_tokens = 0;               ///< cached tokens that an indexer selects; 0: dense (MiniMax-M3)
  double index_heads = 0, index_dim = 0;  ///< size of that indexer
  bool operator==(const GroupedAttention&) const = default;
};
std::unique_ptr<const MixerModel> make_model(const GroupedAttention& attention);

/// Multi-head latent attention, with the DeepSeek-V3.2 indexer where top_k > 0.
struct LatentAttention {
  double heads = 0;
  double latent_dim = 512, rope_dim = 64, nope_dim = 128, value_dim = 128;
  double query_rank = 0;                                         ///< 0: queries have no low-rank projection
  double indexer_top_k = 0, indexer_heads = 0, indexer_dim = 0;  ///< heads 0: reuses the selection of an earlier layer
  double compression = 1;                                        ///< tokens that share one cached entry (DeepSeek-V4)
  double window = 0;                                             ///< most recent tokens that are kept uncompressed
  bool shared_vector =
      false;  ///< the cached vector is key and value of every head, without up-projection (DeepSeek-V4)
  double output_groups = 0, output_rank = 0;  ///< output projection in two factors, the first block-diagonal
  bool output_gate = false;
  bool owns_cache = true;  ///< false: reuses the latents of an earlier layer with its own up-projection
  bool operator==(const LatentAttention&) const = default;
};
std::unique_ptr<const MixerModel> make_model(const LatentAttention& attention);

/// A mixer with a constant-size state per sequence: hidden -> in_features, convolution, scan, out_features -> hidden.
/// S4 scans its input directly: in_features is 0.
struct StateLayer {
  StateMixer mixer;             ///< before tensor parallelism
  double in_features = 0;       ///< total columns of all input projections
  double out_features = 0;      ///< rows of the output projection
  double extra_parameters = 0;  ///< A, D, dt bias, convolution, inner norm, low-rank projections ...
  bool gated_output = false;    ///< the output projection is twice as wide; one half gates the other (S4)
  double extra_projection =
      0;  ///< part of extra_parameters in matrices: one multiply-add per token (Mamba-1's x and dt)
  bool operator==(const StateLayer&) const = default;
};
std::unique_ptr<const MixerModel> make_model(const StateLayer& layer);

struct NoMixer {
  bool operator==(const NoMixer&) const = default;
};
std::unique_ptr<const MixerModel> make_model(const NoMixer&);

using Mixer = std::variant<GroupedAttention, LatentAttention, StateLayer, NoMixer>;

struct DenseFeedForward {
  double inter = 0;
  bool gated = true;
  bool bias = false;
  bool operator==(const DenseFeedForward&) const = default;
};
std::unique_ptr<const FeedForwardModel> make_model(const DenseFeedForward& block);

/// Routed experts, with shared experts that every token passes.
struct ExpertFeedForward {
  double experts = 0, top_k = 0, inter = 0;
  bool gated = true;
  bool bias = false;
  double shared_inter = 0;   ///< total width of all shared experts; 0: none
  bool shared_gate = false;  ///< a learned scalar gate on the shared experts
  bool router_bias = false;
  bool float32_router = false;         ///< the router runs in fp32 on the CUDA cores
  double dense_inter = 0;              ///< width of a dense block in parallel to the experts (Arctic); 0: none
  double groups = 1, groups_kept = 1;  ///< the experts of a token come from `groups_kept` of `groups`
  double latent = 0;                   ///< input width of the routed experts; 0: hidden (Nemotron-3 Super)
  bool operator==(const ExpertFeedForward&) const = default;
};
std::unique_ptr<const FeedForwardModel> make_model(const ExpertFeedForward& block);

struct NoFeedForward {
  bool operator==(const NoFeedForward&) const = default;
};
std::unique_ptr<const FeedForwardModel> make_model(const NoFeedForward&);

using FeedForward = std::variant<DenseFeedForward, ExpertFeedForward, NoFeedForward>;

/// `count` equal layers.
struct LayerKind {
  std::string name;  ///< "attention", "attention, window 1024", "mamba2" ...
  Mixer mixer;
  FeedForward feed_forward;
  int count = 0;
  double weight_sets = 0;  ///< sets of weights that its layers share in rotation (Zamba2); 0: each layer has its own
  double norms = 2;        ///< hidden-wide norms per layer
  bool norm_bias = false;  ///< true for LayerNorm, false for RMSNorm
  bool parallel_block = false;  ///< mixer and feed-forward read the same norm and share one all-reduce (GPT-J, Falcon)
  double streams = 1;           ///< residual streams that hyper-connections mix (DeepSeek-V4)
  double extra_parameters = 0;  ///< used once per token outside of the blocks (Gemma-3n's per-layer projections)
};

}  // namespace roofcast
