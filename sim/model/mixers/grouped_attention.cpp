// Softmax attention over a cache of keys and values.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/model/hf_config.h"
#include "sim/model/mixer_model.h"
#include "sim/model/mixers/context_parallel.h"
#include "sim/model/mixers/indexer.h"

namespace roofcast {
namespace {

class GroupedModel final : public MixerModel {
 public:
  explicit GroupedModel(const GroupedAttention& a) : a_(a) {}

  std::string name() const override {
    std::string name = a_.owns_cache ? "attention" : "attention, shared cache";
    if (a_.both_ways) name += ", both ways";
    if (a_.encoded_dim > 0) name += ", to an encoder too";
    if (a_.window > 0) name += fmt::format(", {} {}", a_.chunked ? "chunk" : "window", a_.window);
    if (a_.sparse_tokens > 0) name += fmt::format(", sparse {}", a_.sparse_tokens);
    return name;
  }
  MixerFacts facts() const override {
    return {.cache = a_.both_ways ? TokenCache::kNothing : TokenCache::kHeads,
            .present = true,
            .indexer = a_.index_heads > 0,
            .chosen_tokens = a_.sparse_tokens,
            .norms_keys = a_.qk_norm,
            .captured_prefill = a_.sparse_tokens <= 0,
            .fused_nvfp4 = true,
            .borrows_cache = !a_.owns_cache,
            .query_group = a_.heads / a_.kv_heads};
  }
  std::optional<CachedHeads> cached_heads() const override {
    return CachedHeads{.heads = a_.heads, .head_dim = a_.head_dim, .value_dim = a_.value_dim, .window = a_.window};
  }
  std::optional<AbsorbedProjection> absorbed() const override { return std::nullopt; }

  void check(const HfConfig& in) const override;
  void check_sharding(const std::string& model, int tp, const SourceLocation& location) const override;
  Mixer without_wide_window(double max_context) const override {
    GroupedAttention out = a_;
    if (out.window >= max_context) out.window = 0;
    return out;
  }

  void add_weights(LayerWeights& out, double hidden, const Sharding& s) const override;
  LayerCache cache(const Precision& p, const Sharding& s) const override;
  double activation_values(const Sharding& s) const override;
  double scoring_heads(const Sharding& s) const override { return heads_of(a_.heads, s); }

  void add_token_operators(OperatorList& list, double count, double tokens) const override;
  void add_prefill(OperatorList& list, double count, const PrefillShape& chunk) const override;
  void add_decode(OperatorList& list, double count, const DecodeShape& shape) const override;
  void add_encoded(OperatorList& list, double count, double tokens) const override;

 private:
  Indexer indexer() const { return {a_.index_heads, a_.index_dim}; }
  /// Bytes per cached token over all ranks that share it.
  double token_bytes(const Precision& p, const Sharding& s) const {
    return kv_heads_of(a_.kv_heads, s) *
           (cached_bytes(p.kv_cache, a_.head_dim) + cached_bytes(p.kv_cache, a_.value_dim));
  }
  /// Keys and values of the heads on one GPU.
  double cached_columns(const Sharding& s) const {
    return kv_heads_of(a_.kv_heads, s) * (a_.head_dim + (a_.value_projection ? a_.value_dim : 0.0));
  }
  /// Columns of q, k and v; empty if q is separate.
  std::vector<double> merged_columns(double queries, const Sharding& s) const {
    if (!a_.owns_cache) return {};
    std::vector<double> columns{queries, kv_heads_of(a_.kv_heads, s) * a_.head_dim};
    if (a_.value_projection) columns.push_back(kv_heads_of(a_.kv_heads, s) * a_.value_dim);
    return columns;
  }
  /// Columns of key biases that the model lacks.
  double missing_biases(const Sharding& s) const {
    return a_.key_bias ? 0.0 : kv_heads_of(a_.kv_heads, s) * a_.head_dim;
  }
  void add_cross_weights(LayerWeights& out, double hidden, const Sharding& s) const;
  void add_cache_copy(OperatorList& list, double count, double rows, double tokens, double context) const;
  static void add_two_decodes(OperatorList& list, double count, DecodeShape shape, const AttentionHeads& heads);
  double visible_window(double context) const;
  AttentionHeads heads_on_gpu(const OperatorContext& c, double context) const;

  GroupedAttention a_;
};

void GroupedModel::check(const HfConfig& in) const {
  if (a_.kv_heads < 1 || std::fmod(a_.heads, a_.kv_heads) != 0.0) {
    in.fail("num_key_value_heads", fmt::format("{} key-value heads do not divide {} heads", a_.kv_heads, a_.heads));
  }
  if (a_.head_dim < 1) in.fail("head_dim", "must be at least 1");
}

void GroupedModel::check_sharding(const std::string& model, int tp, const SourceLocation& location) const {
  const double kv = a_.kv_heads;
  refuse(!divides(tp, kv) && std::fmod(tp, kv) != 0.0, location,
         fmt::format("tp {} neither divides nor is a multiple of the {} key-value heads of {}", tp, kv, model));
  check_heads(model, a_.heads, tp, location);
}

/// qkv: hidden -> heads d_k [twice when gated] + kv_heads (d_k + d_v); o: heads d_v -> hidden.
void GroupedModel::add_weights(LayerWeights& out, double hidden, const Sharding& s) const {
  const double heads = heads_of(a_.heads, s);
  const double queries = heads * a_.head_dim * (a_.output_gate ? 2.0 : 1.0);
  const double columns = queries + (a_.owns_cache ? cached_columns(s) : 0.0);
  out.matrices.push_back({.name = "qkv_proj",
                          .k = a_.input_dim > 0 ? a_.input_dim : hidden,
                          .n = columns,
                          .role = WeightRole::kMixer,
                          .input = ProductInput::kNorm,
                          .merges = merged_columns(queries, s)});
  out.matrices.push_back({.name = "o_proj",
                          .k = heads * a_.value_dim,
                          .n = hidden,
                          .role = WeightRole::kMixer,
                          .input = a_.output_gate ? ProductInput::kAnything : ProductInput::kAttention,
                          .stage = Stage::kCore});
  indexer().add_weights(out, hidden, hidden);
  if (a_.qkv_bias) out.vectors += columns - missing_biases(s);
  if (a_.output_bias) out.vectors += hidden;
  if (a_.qk_norm) out.vectors += a_.head_dim * (a_.owns_cache ? 2.0 : 1.0);
  if (a_.sinks) out.vectors += heads;
  if (a_.encoded_dim > 0) add_cross_weights(out, hidden, s);
}

/// Output tokens pass the q and output projections; the encoder's output passes the k and v projections once.
void GroupedModel::add_cross_weights(LayerWeights& out, double hidden, const Sharding& s) const {
  const double queries = heads_of(a_.heads, s) * a_.head_dim;
  const auto add = [&](const char* name, double k, double n, ProductInput input) -> WeightMatrix& {
    out.matrices.push_back(
        {.name = name, .k = k, .n = n, .role = WeightRole::kMixer, .input = input, .stage = Stage::kCore});
    return out.matrices.back();
  };
  add("cross_q_proj", hidden, queries, ProductInput::kNorm);
  add("cross_o_proj", heads_of(a_.heads, s) * a_.value_dim, hidden, ProductInput::kAttention);
  WeightMatrix& cached = add("cross_kv_proj", a_.encoded_dim, cached_columns(s), ProductInput::kAnything);
  cached.projection = false;
  cached.used = 0;
  if (a_.qkv_bias) out.vectors += queries + cached_columns(s) - missing_biases(s);
  if (a_.output_bias) out.vectors += hidden;
}

void GroupedModel::add_encoded(OperatorList& list, double count, double tokens) const {
  if (a_.encoded_dim <= 0) return;
  list.product("cross_kv_proj", count, tokens, a_.encoded_dim, cached_columns(list.context().sharding),
               WeightRole::kMixer);
}

/// Causal chunks of n tokens behind c cached ones see n c + n (n + 1) / 2 tokens: all n n of them if c is (n - 1) / 2,
/// and n c if it is (n + 1) / 2 less. They attend to an encoder's tokens, which count as cached, in a separate kernel.
void GroupedModel::add_prefill(OperatorList& list, double count, const PrefillShape& chunk) const {
  const OperatorContext& c = list.context();
  PrefillShape shape = chunk;
  if (a_.both_ways) shape.context_before += (shape.query_len - 1) / 2;
  if (a_.encoded_dim > 0) {
    PrefillShape cross = chunk;
    cross.context_before = std::max(0.0, chunk.context_before - (chunk.query_len + 1) / 2);
    list.add("cross_attention", count, PrefillWork{cross, heads_on_gpu(c, chunk.context_before)});
    shape.context_before = 0;
  }
  list.add("attention", count, PrefillWork{shape, heads_on_gpu(c, shape.context_before + shape.query_len)});
  if (!a_.both_ways) add_cache_copy(list, count, shape.batch, shape.query_len, shape.context_before + shape.query_len);
  indexer().add_prefill(list, count, shape, 1.0);
  const double before = a_.window > 0 ? std::min(a_.window, shape.context_before) : shape.context_before;
  add_context_gather(list, count, shape.batch * before * token_bytes(c.precision, c.sharding));
}

/// torch.cat of cached and new tokens, for keys and for values: both are read and written completely
/// (transformers/cache_utils.py, DynamicLayer and DynamicSlidingWindowLayer; the latter keeps the window). Several new
/// tokens are transposed in memory, so their values are copied one by one.
void GroupedModel::add_cache_copy(OperatorList& list, double count, double rows, double tokens, double context) const {
  const OperatorContext& c = list.context();
  if (!c.copied_cache || !a_.owns_cache) return;
  const double kept = a_.window > 0 ? std::min(a_.window + tokens, context) : context;
  const double values = kv_heads_of(a_.kv_heads, c.sharding) * (a_.head_dim + a_.value_dim);
  list.add("cache_copy", count,
           ElementwiseWork{.bytes = Bytes(2.0 * rows * kept * token_bytes(c.precision, c.sharding)),
                           .indexing = tokens > 1 ? indexed_copy(rows * kept * values) : Flops(0),
                           .launches = 2.0});
}

LayerCache GroupedModel::cache(const Precision& p, const Sharding& s) const {
  if (!a_.owns_cache || a_.both_ways) return {};
  const double bytes = token_bytes(p, s) / s.dcp;
  if (a_.window > 0) return {.windowed = bytes, .window = a_.window};
  return {.all_tokens = bytes + indexer().cache_bytes() / s.dcp};
}

/// Ranks that share a cache attend with all of their heads to their own part of the tokens (or of the window).
void GroupedModel::add_decode(OperatorList& list, double count, const DecodeShape& whole) const {
  const Sharding& s = list.context().sharding;
  const DecodeShape shape = part_of_context(whole, s);
  AttentionHeads heads = heads_on_gpu(list.context(), whole.mean_context);
  add_context_exchange(list, count, shape.batch * shape.query_len, heads.heads, a_.head_dim, a_.value_dim);
  heads.heads *= s.dcp;
  heads.window /= s.dcp;
  if (!a_.both_ways) add_cache_copy(list, count, shape.batch, shape.query_len, shape.mean_context);
  if (a_.encoded_dim > 0) return add_two_decodes(list, count, shape, heads);
  list.add("attention", count, DecodeWork{shape, heads});
  indexer().add_decode(list, count, shape, 1.0);
}

/// Separate kernels attend to the decoder's own tokens and to the encoder's. Together they read all cached tokens. A
/// step only knows the sum, and kernel time is nearly proportional to the bytes read, so each is priced over half.
void GroupedModel::add_two_decodes(OperatorList& list, double count, DecodeShape shape, const AttentionHeads& heads) {
  // The decoder starts with a token that no prompt holds (decoder_start_token_id).
  const double start = list.context().model->encoder != nullptr ? 1 : 0;
  shape.mean_context = std::max(shape.query_len, (shape.mean_context + start) / 2);
  shape.max_context = std::max(shape.query_len, (shape.max_context + start) / 2);
  list.add("attention", 2 * count, DecodeWork{shape, heads});
}

double GroupedModel::activation_values(const Sharding& s) const {
  const double heads = heads_of(a_.heads, s);
  const double kv = kv_heads_of(a_.kv_heads, s);
  return heads * a_.head_dim * (a_.output_gate ? 2.0 : 1.0) + kv * (a_.head_dim + a_.value_dim) + heads * a_.value_dim;
}

/// Norm and rotary embedding of queries and keys, in place. The times of the attention kernels include the cache write,
/// and the rotation where the engine fuses it.
void GroupedModel::add_token_operators(OperatorList& list, double count, double tokens) const {
  const Sharding& s = list.context().sharding;
  const double heads = heads_of(a_.heads, s);
  const double kv_heads = a_.owns_cache ? kv_heads_of(a_.kv_heads, s) : 0.0;
  const double rotated = tokens * (heads + kv_heads) * a_.head_dim * 2.0 * kHalfBytes;
  // Norms over all heads: the sums of squares of q and k are reduced together (vLLM from 0.14,
  // github.com/vllm-project/vllm/pull/31493; SGLang's pull request 14416), then both are normalized. torch.compile does
  // not fuse these kernels, because their rows differ in width.
  const bool apart = a_.qk_norm_over_heads && s.tp > 1;
  if (a_.qk_norm)
    list.add_module(Module::kQueryKeyNorms, "qk_norm", count, rotated * (apart ? 1.5 : 1.0), apart ? 4.0 : 1.0);
  if (a_.qk_norm && apart) list.exchange(Collective::kAllReduce, "qk_norm_all_reduce", count, tokens * 8.0, s.tp);
  if (a_.rotary && !list.context().rotary_in_attention) list.add_module(Module::kRotary, "rotary", count, rotated);
  if (a_.encoded_dim > 0)
    list.exchange(Collective::kAllReduce, "all_reduce", count, tokens * list.context().model->hidden * kHalfBytes,
                  s.tp);
  indexer().add_token_operators(list, count, tokens);
  if (a_.output_gate) list.stream("output_gate", count, tokens * heads * a_.value_dim * 3.0 * kHalfBytes);
}

/// A chunk aligned to multiples of its size is half full on average once the context exceeds the first one.
double GroupedModel::visible_window(double context) const {
  const double window = a_.chunked && context > a_.window ? a_.window / 2.0 : a_.window;
  if (a_.sparse_tokens <= 0) return window;
  return window > 0 ? std::min(window, a_.sparse_tokens) : a_.sparse_tokens;
}

AttentionHeads GroupedModel::heads_on_gpu(const OperatorContext& c, double context) const {
  return {.heads = heads_of(a_.heads, c.sharding),
          .kv_heads = kv_heads_of(a_.kv_heads, c.sharding),
          .head_dim = a_.head_dim,
          .value_dim = a_.value_dim,
          .window = visible_window(context),
          .kv = c.precision.kv_cache,
          // Attention to chosen tokens runs a sparse kernel, which always splits.
          .kernel = a_.sparse_tokens > 0 && c.attention_kernel == AttentionKernel::kFlash ? AttentionKernel::kSplit
                                                                                          : c.attention_kernel,
          .shared_reads = c.shared_query_heads == 0 || a_.heads == c.shared_query_heads * a_.kv_heads};
}

}  // namespace

std::unique_ptr<const MixerModel> make_model(const GroupedAttention& attention) {
  return std::make_unique<GroupedModel>(attention);
}

}  // namespace roofcast
