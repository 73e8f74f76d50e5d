// Attention and state mixers: what depends on contexts.

#include <algorithm>

#include "sim/model/operator_list.h"

namespace roofcast {
namespace {

/// Tokens that queries at positions P+1 .. P+q see on average when they see min(position, most):
///   mean of min(P + i, most) over i = 1..q.
double mean_visible(double before, double query, double most) {
  if (most <= 0) return before + (query + 1.0) / 2.0;
  const double rising = std::clamp(most - before, 0.0, query);  // queries that still see everything
  return (rising * (before + (rising + 1.0) / 2.0) + (query - rising) * most) / query;
}

/// A chunk that starts at its multiples is half full on average once the context has passed the first one.
double window_of(const GroupedAttention& a, double context) {
  double window = a.chunked && context > a.window ? a.window / 2.0 : a.window;
  if (a.sparse_tokens > 0) window = window > 0 ? std::min(window, a.sparse_tokens) : a.sparse_tokens;
  return window;
}

AttentionHeads heads_on_gpu(const OperatorContext& c, const GroupedAttention& a, double context) {
  return {.heads = heads_of(a.heads, c.sharding),
          .kv_heads = kv_heads_of(a.kv_heads, c.sharding),
          .head_dim = a.head_dim,
          .value_dim = a.value_dim,
          .window = window_of(a, context),
          .kv = c.precision.kv_cache,
          .kernel = c.attention_kernel,
          .shared_reads = c.shared_query_heads == 0 || a.heads == c.shared_query_heads * a.kv_heads};
}

/// 0 where the latents are stored plainly.
double scaled_row(const OperatorContext& c, const LatentAttention& a) {
  const double bytes = latent_bytes(a, c.precision);
  return bytes != cached_bytes(c.precision.kv_cache, a.latent_dim + a.rope_dim) ? bytes : 0.0;
}

LatentHeads latent_on_gpu(const OperatorContext& c, const LatentAttention& a) {
  return {.heads = heads_of(a.heads, c.sharding),
          .latent_dim = a.latent_dim,
          .rope_dim = a.rope_dim,
          .qk_dim = a.nope_dim + a.rope_dim,
          .value_dim = a.value_dim,
          .kv = c.precision.kv_cache,
          .cache_bytes_per_token = scaled_row(c, a),
          .fp8_prompts = c.fp8_prompts};
}

/// Heads of an indexer: all on every GPU, over one key of `dim` fp8 values a token and no values.
AttentionHeads index_heads(double heads, double dim) {
  return {.heads = heads, .kv_heads = 1, .head_dim = dim, .value_dim = 0, .compute = Dtype::kFp8, .kv = Dtype::kFp8};
}

/// Scores of an indexer (DeepSeek-V3.2, 2025, eq. 1): sum over its heads of w relu(q k), in fp8, for every visible
/// cached token (group of `compression` tokens); then the best ones are chosen. Indexer heads are not split over GPUs.
///   work = 2 q heads dim visible: the first half of multi-query attention, and priced as that; the scores of all heads
///   are added up in registers, one fp32 a pair comes out and is read again by the choice.
void index_prefill(OperatorList& list, double count, double heads, double dim, const PrefillShape& shape,
                   double compression) {
  if (heads <= 0 || count <= 0) return;
  list.add("indexer_scores", count, PrefillWork{shape, index_heads(heads / compression, dim)});
  const double visible = mean_visible(shape.context_before, shape.query_len, 0) / compression;
  list.stream("indexer_top_k", count, shape.batch * shape.query_len * visible * 2.0 * 4.0);
}

/// In decode a product of few rows over many keys; a GPU without fp8 units unpacks them.
void index_decode(OperatorList& list, double count, double heads, double dim, const DecodeShape& shape,
                  double compression, Dtype format) {
  if (heads <= 0 || count <= 0) return;
  const double visible = shape.mean_context / compression;
  list.add("indexer_scores", count,
           GemmShape{.m = shape.query_len * heads,
                     .n = std::max(1.0, shape.batch * visible),
                     .k = dim,
                     .weights = Dtype::kFp8,
                     .activations = format,
                     .output_bytes = 4.0 / heads});
  list.stream("indexer_top_k", count, shape.batch * shape.query_len * visible * 2.0 * 4.0);
}

/// Decode absorbs kv_b: q_nope (nope) -> latent before the attention, latent -> value after it, a head at a time:
///   work = 2 T heads latent nope, 2 T heads latent value. Written as one product whose weights are all heads'
///   together;
/// the second one's own input, a latent a head, is booked with its output. Engines keep the two in 16 bit.
void absorbed_projections(OperatorList& list, const LatentHeads& heads, double nope, double count, double tokens) {
  const double up = heads.heads * heads.latent_dim;
  const double down = heads.heads * heads.value_dim;
  list.add("absorb_q", count, GemmShape{.m = tokens, .n = up, .k = nope});
  const double unshared_input = (heads.heads - 1.0) * heads.latent_dim * 2.0;
  list.add("absorb_v", count,
           GemmShape{.m = tokens, .n = down, .k = heads.latent_dim, .output_bytes = 2.0 + unshared_input / down});
}

class Mixing {
 public:
  explicit Mixing(const OperatorContext& context) : context_(context), list_(context) {}

  void prefill(const LayerKind& kind, const PrefillShape& shape);
  void decode(const LayerKind& kind, const DecodeShape& shape);
  std::vector<Operator> take() { return list_.take(); }

 private:
  void latent_prefill_of(const LatentAttention& a, double count, const PrefillShape& shape);
  void latent_decode_of(const LatentAttention& a, double count, const DecodeShape& shape);
  FlashMla sparse_kernel(const LatentAttention& a, FlashMla kernel) const {
    return context_.flash_mla && a.indexer_top_k > 0 && !a.shared_vector ? kernel : FlashMla::kNone;
  }

  const OperatorContext& context_;
  OperatorList list_;
};

void Mixing::prefill(const LayerKind& kind, const PrefillShape& shape) {
  const double count = kind.count;
  const double end = shape.context_before + shape.query_len;
  if (const auto* a = std::get_if<GroupedAttention>(&kind.mixer)) {
    list_.add("attention", count, PrefillWork{shape, heads_on_gpu(context_, *a, end)});
    index_prefill(list_, count, a->index_heads, a->index_dim, shape, 1.0);
  } else if (const auto* l = std::get_if<LatentAttention>(&kind.mixer)) {
    latent_prefill_of(*l, count, shape);
  } else if (const auto* state = std::get_if<StateLayer>(&kind.mixer)) {
    list_.add("state_mixer", count,
              StatePrefillWork{shape.batch, shape.query_len, mixer_of(state->mixer, context_.sharding)});
  }
}

/// Cached entries that a query after `context` tokens attends to: all of them, or the window and the compressed ones,
/// of which an indexer may leave top_k.
double visible_latents(const LatentAttention& a, double context) {
  double compressed = context / a.compression;
  if (a.indexer_top_k > 0) compressed = std::min(compressed, a.indexer_top_k);
  if (a.window <= 0) return compressed;
  return std::min(context, a.window) + (a.compression > 1 ? compressed : 0.0);
}

/// Dense prefill expands every visible latent to full heads, unless it runs as decode. A sparse one past its top_k
/// attends absorbed, token by token, to the chosen latents, as does a model whose cached vector needs no expansion.
void Mixing::latent_prefill_of(const LatentAttention& a, double count, const PrefillShape& shape) {
  const LatentHeads heads = latent_on_gpu(context_, a);
  const double end = shape.context_before + shape.query_len;
  const double middle = shape.context_before + (shape.query_len + 1.0) / 2.0;
  const double new_tokens = shape.batch * shape.query_len;
  index_prefill(list_, count, a.indexer_heads, a.indexer_dim, shape, a.compression);
  if (!a.shared_vector && (a.indexer_top_k <= 0 || end <= a.indexer_top_k)) {
    if (shape.query_len <= context_.decoded_tokens) {
      absorbed_projections(list_, heads, a.nope_dim, count, new_tokens);
      list_.add("attention", count, LatentPrefillWork{shape, heads});
      return;
    }
    const double expanded = heads.heads * (a.nope_dim + a.value_dim);
    list_.product("kv_b_proj", count, shape.batch * end, a.latent_dim, expanded, WeightRole::kMixer);
    list_.add("attention", count, LatentPrefillWork{shape, heads});
    return;
  }
  const double visible = a.shared_vector ? visible_latents(a, middle)
                                         : mean_visible(shape.context_before, shape.query_len, a.indexer_top_k);
  if (!a.shared_vector) absorbed_projections(list_, heads, a.nope_dim, count, new_tokens);
  list_.add("attention", count,
            LatentDecodeWork{{new_tokens, visible, visible, 1.0}, heads, sparse_kernel(a, FlashMla::kPrefill)});
}

void Mixing::decode(const LayerKind& kind, const DecodeShape& shape) {
  const double count = kind.count;
  if (const auto* a = std::get_if<GroupedAttention>(&kind.mixer)) {
    list_.add("attention", count, DecodeWork{shape, heads_on_gpu(context_, *a, shape.mean_context)});
    index_decode(list_, count, a->index_heads, a->index_dim, shape, 1.0, context_.indexer_format);
  } else if (const auto* l = std::get_if<LatentAttention>(&kind.mixer)) {
    latent_decode_of(*l, count, shape);
  } else if (const auto* state = std::get_if<StateLayer>(&kind.mixer)) {
    list_.add("state_mixer", count,
              StateDecodeWork{shape.batch * shape.query_len, mixer_of(state->mixer, context_.sharding)});
  }
}

void Mixing::latent_decode_of(const LatentAttention& a, double count, const DecodeShape& shape) {
  const LatentHeads heads = latent_on_gpu(context_, a);
  index_decode(list_, count, a.indexer_heads, a.indexer_dim, shape, a.compression, context_.indexer_format);
  DecodeShape visible = shape;
  visible.mean_context = visible_latents(a, shape.mean_context);
  visible.max_context = visible_latents(a, shape.max_context);
  if (!a.shared_vector) absorbed_projections(list_, heads, a.nope_dim, count, shape.batch * shape.query_len);
  const bool scaled = heads.cache_bytes_per_token > 0;
  list_.add("attention", count,
            LatentDecodeWork{visible, heads, scaled ? sparse_kernel(a, FlashMla::kDecode) : FlashMla::kNone});
}

}  // namespace

std::vector<Operator> prefill_mixing(const OperatorContext& context, const PrefillShape& shape) {
  if (shape.batch <= 0 || shape.query_len <= 0) return {};
  Mixing mixing(context);
  for (const LayerKind& kind : context.model->layers) mixing.prefill(kind, shape);
  return mixing.take();
}

std::vector<Operator> decode_mixing(const OperatorContext& context, const DecodeShape& shape) {
  if (shape.batch <= 0) return {};
  Mixing mixing(context);
  for (const LayerKind& kind : context.model->layers) mixing.decode(kind, shape);
  return mixing.take();
}

}  // namespace roofcast
