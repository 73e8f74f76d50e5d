// Multi-head latent attention: one latent per token is cached for all heads (DeepSeek-V2, 2024).

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/model/hf_config.h"
#include "sim/model/mixer_model.h"
#include "sim/model/mixers/context_parallel.h"
#include "sim/model/mixers/indexer.h"

namespace roofcast {
namespace {

class LatentModel final : public MixerModel {
 public:
  explicit LatentModel(const LatentAttention& a) : a_(a) {}

  std::string name() const override {
    std::string name = a_.owns_cache ? "latent attention" : "latent attention, cache shared";
    if (a_.compression > 1) name += fmt::format(", compressed {}", a_.compression);
    if (a_.indexer_top_k > 0) name += fmt::format(", sparse {}", a_.indexer_top_k);
    return name;
  }
  MixerFacts facts() const override {
    return {.cache = TokenCache::kLatent,
            .present = true,
            .indexer = a_.indexer_heads > 0,
            .chosen_tokens = a_.indexer_top_k,
            .norms_keys = false,
            .captured_prefill = false,
            .fused_nvfp4 = false,
            .borrows_cache = !a_.owns_cache,
            .query_group = 0};
  }
  std::optional<CachedHeads> cached_heads() const override { return std::nullopt; }
  std::optional<AbsorbedProjection> absorbed() const override {
    if (a_.shared_vector) return std::nullopt;
    return AbsorbedProjection{
        .heads = a_.heads, .latent_dim = a_.latent_dim, .nope_dim = a_.nope_dim, .value_dim = a_.value_dim};
  }

  void check(const HfConfig& in) const override {
    if (a_.nope_dim < 1) in.fail("qk_nope_head_dim", "must be at least 1");
    if (a_.value_dim < 1) in.fail("v_head_dim", "must be at least 1");
  }
  void check_sharding(const std::string& model, int tp, const SourceLocation& location) const override {
    check_heads(model, a_.heads, tp, location);
  }
  Mixer without_wide_window(double) const override { return a_; }

  void add_weights(LayerWeights& out, double hidden, const Sharding& s) const override;
  LayerCache cache(const Precision& p, const Sharding& s) const override;
  double activation_values(const Sharding& s) const override {
    const double heads = heads_of(a_.heads, s);
    return a_.query_rank + a_.latent_dim + a_.rope_dim +
           heads * (2.0 * (a_.nope_dim + a_.rope_dim) + 2.0 * a_.value_dim);
  }
  double scoring_heads(const Sharding& s) const override { return heads_of(a_.heads, s); }

  void add_token_operators(OperatorList& list, double count, double tokens) const override;
  void add_prefill(OperatorList& list, double count, const PrefillShape& shape) const override;
  void add_decode(OperatorList& list, double count, const DecodeShape& shape) const override;
  void add_encoded(OperatorList&, double, double) const override {}

 private:
  Indexer indexer() const { return {a_.indexer_heads, a_.indexer_dim}; }
  double latent_bytes(const Precision& p) const;
  void add_output(LayerWeights& out, double heads, double hidden, const Sharding& s) const;
  double visible_latents(double context) const;
  LatentHeads heads_on_gpu(const OperatorContext& c) const;
  void add_absorbed_projections(OperatorList& list, const LatentHeads& heads, double count, double tokens) const;
  bool runs_naive(const OperatorContext& c) const {
    return c.attention_kernel == AttentionKernel::kNaive && !a_.shared_vector && a_.indexer_top_k <= 0;
  }
  AttentionHeads expand(OperatorList& list, double count, double latents) const;
  FlashMla sparse_kernel(const OperatorContext& c, FlashMla kernel) const {
    return c.flash_mla && a_.indexer_top_k > 0 && !a_.shared_vector ? kernel : FlashMla::kNone;
  }

  LatentAttention a_;
};

/// Output projection: heads d_v -> hidden, or two factors: each of g groups of heads to r values, then g r -> hidden
/// (DeepSeek-V4).
void LatentModel::add_output(LayerWeights& out, double heads, double hidden, const Sharding& s) const {
  double width = heads * a_.value_dim;
  if (a_.output_groups > 0) {
    const double groups = std::ceil(a_.output_groups / s.tp);
    out.matrices.push_back({.name = "o_a_proj",
                            .k = width / groups,
                            .n = groups * a_.output_rank,
                            .role = WeightRole::kMixer,
                            .stage = Stage::kCore});
    width = groups * a_.output_rank;
  }
  out.matrices.push_back(
      {.name = "o_proj", .k = width, .n = hidden, .role = WeightRole::kMixer, .stage = Stage::kCore});
}

/// DeepSeek-V2 (2024), eq. 9-19: hidden -> query_rank -> heads (nope + rope); hidden -> latent + rope, the cached part;
/// latent -> heads (nope + value), which decode absorbs into its queries and outputs.
void LatentModel::add_weights(LayerWeights& out, double hidden, const Sharding& s) const {
  const double heads = heads_of(a_.heads, s);
  const double query = heads * (a_.nope_dim + a_.rope_dim);
  const double cached = a_.owns_cache ? a_.latent_dim + a_.rope_dim : 0.0;
  const auto add = [&](const char* name, double k, double n, ProductInput input = ProductInput::kAnything) {
    out.matrices.push_back({.name = name, .k = k, .n = n, .role = WeightRole::kMixer, .input = input});
  };
  if (a_.query_rank > 0) {
    add("qkv_a_proj", hidden, a_.query_rank + cached);
    add("q_b_proj", a_.query_rank, query);
    out.vectors += a_.query_rank;
  } else {
    add("q_proj", hidden, query);
    if (a_.owns_cache) add("kv_a_proj", hidden, cached, ProductInput::kEarlier);
  }
  if (a_.owns_cache) out.vectors += a_.latent_dim;
  if (!a_.shared_vector) {
    add("kv_b_proj", a_.latent_dim, heads * (a_.nope_dim + a_.value_dim));
    out.matrices.back().projection = false;
  }
  if (a_.compression > 1) add("compressor_proj", hidden, 2.0 * cached);
  if (a_.output_gate) add("gate_proj", hidden, heads * a_.value_dim, ProductInput::kEarlier);
  add_output(out, heads, hidden, s);
  indexer().add_weights(out, a_.query_rank > 0 ? a_.query_rank : hidden, hidden);
}

/// Bytes per token of the latent in the cache of one layer. With scaled_latents (fp8_ds_mla in vLLM and SGLang, the
/// only fp8 format of FlashMLA's sparse kernel): latent in fp8, an fp32 scale per 128 values, the rotary part in 16
/// bit: 512 + 16 + 128 = 656 B.
double LatentModel::latent_bytes(const Precision& p) const {
  if (p.scaled_latents && a_.indexer_top_k > 0 && !a_.shared_vector && p.kv_cache == Dtype::kFp8) {
    return a_.latent_dim + 4.0 * std::ceil(a_.latent_dim / 128.0) + 2.0 * a_.rope_dim;
  }
  return cached_bytes(p.kv_cache, a_.latent_dim + a_.rope_dim);
}

LayerCache LatentModel::cache(const Precision& p, const Sharding& s) const {
  if (!a_.owns_cache) return {};
  const double bytes = latent_bytes(p) / s.dcp;
  LayerCache cache{.windowed = a_.window > 0 ? bytes : 0.0, .window = a_.window};
  if (a_.window <= 0 || a_.compression > 1)
    cache.all_tokens = (bytes + indexer().cache_bytes() / s.dcp) / a_.compression;
  return cache;
}

/// Norms of the two latents in one kernel, rotation of the rotary parts.
void LatentModel::add_token_operators(OperatorList& list, double count, double tokens) const {
  const double heads = heads_of(a_.heads, list.context().sharding);
  list.stream("latent_norm", count,
              tokens * (a_.query_rank + (a_.owns_cache ? a_.latent_dim : 0.0)) * 2.0 * kHalfBytes);
  if (a_.rope_dim > 0 && !list.context().rotary_in_attention) {
    list.add_module(Module::kRotary, "rotary", count,
                    tokens * (heads + (a_.owns_cache ? 1 : 0)) * a_.rope_dim * 2.0 * kHalfBytes);
  }
  indexer().add_token_operators(list, count, tokens);
  if (a_.output_gate) list.stream("output_gate", count, tokens * heads * a_.value_dim * 3.0 * kHalfBytes);
}

LatentHeads LatentModel::heads_on_gpu(const OperatorContext& c) const {
  const double bytes = latent_bytes(c.precision);
  const bool scaled = bytes != cached_bytes(c.precision.kv_cache, a_.latent_dim + a_.rope_dim);
  return {.heads = heads_of(a_.heads, c.sharding),
          .latent_dim = a_.latent_dim,
          .rope_dim = a_.rope_dim,
          .qk_dim = a_.nope_dim + a_.rope_dim,
          .value_dim = a_.value_dim,
          .kv = c.precision.kv_cache,
          .cache_bytes_per_token = scaled ? bytes : 0.0,
          .fp8_prompts = c.fp8_latent_prompts};
}

/// Decode absorbs kv_b: q_nope (nope) -> latent before attention, latent -> value after it, per head:
///   work = 2 T heads latent nope, 2 T heads latent value
/// Modelled as one product with the weights of all heads; the input of the second part, a latent per head, is counted
/// with its output. Engines keep both in 16 bit.
void LatentModel::add_absorbed_projections(OperatorList& list, const LatentHeads& heads, double count,
                                           double tokens) const {
  const double up = heads.heads * heads.latent_dim;
  const double down = heads.heads * heads.value_dim;
  list.add("absorb_q", count, GemmShape{.m = tokens, .n = up, .k = a_.nope_dim});
  const double unshared_input = (heads.heads - 1.0) * heads.latent_dim * 2.0;
  list.add("absorb_v", count,
           GemmShape{.m = tokens, .n = down, .k = heads.latent_dim, .output_bytes = 2.0 + unshared_input / down});
}

/// Without absorbed kernels every head has its own keys and values, expanded from `latents` latents in each step (the
/// modeling code of DeepSeek-V2 and V3 at Hugging Face).
AttentionHeads LatentModel::expand(OperatorList& list, double count, double latents) const {
  const double heads = heads_of(a_.heads, list.context().sharding);
  list.product("kv_b_proj", count, latents, a_.latent_dim, heads * (a_.nope_dim + a_.value_dim), WeightRole::kMixer);
  return {.heads = heads,
          .kv_heads = heads,
          .head_dim = a_.nope_dim + a_.rope_dim,
          .value_dim = a_.value_dim,
          .kernel = AttentionKernel::kNaive};
}

/// Cached entries that a query after `context` tokens attends to: all of them, or the window plus the compressed
/// entries, of which an indexer selects top_k.
double LatentModel::visible_latents(double context) const {
  double compressed = context / a_.compression;
  if (a_.indexer_top_k > 0) compressed = std::min(compressed, a_.indexer_top_k);
  if (a_.window <= 0) return compressed;
  return std::min(context, a_.window) + (a_.compression > 1 ? compressed : 0.0);
}

/// Dense prefill expands every visible latent to full heads, unless it runs as decode. Sparse prefill beyond top_k
/// attends absorbed to the selected latents, as does a model whose cached vector needs no expansion.
void LatentModel::add_prefill(OperatorList& list, double count, const PrefillShape& shape) const {
  const OperatorContext& context = list.context();
  const LatentHeads heads = heads_on_gpu(context);
  const double end = shape.context_before + shape.query_len;
  const double middle = shape.context_before + (shape.query_len + 1.0) / 2.0;
  const double new_tokens = shape.batch * shape.query_len;
  indexer().add_prefill(list, count, shape, a_.compression);
  add_context_gather(list, count,
                     shape.batch * shape.context_before / a_.compression * latent_bytes(context.precision));
  if (runs_naive(context)) {
    list.add("attention", count, PrefillWork{shape, expand(list, count, shape.batch * end)});
    return;
  }
  if (!a_.shared_vector && (a_.indexer_top_k <= 0 || end <= a_.indexer_top_k)) {
    if (shape.query_len <= context.decoded_tokens) {
      add_absorbed_projections(list, heads, count, new_tokens);
    } else {
      const double expanded = heads.heads * (a_.nope_dim + a_.value_dim);
      list.product("kv_b_proj", count, shape.batch * end, a_.latent_dim, expanded, WeightRole::kMixer);
    }
    list.add("attention", count, LatentPrefillWork{shape, heads});
    return;
  }
  const double visible = a_.shared_vector ? visible_latents(middle)
                                          : mean_visible(shape.context_before, shape.query_len, a_.indexer_top_k);
  if (!a_.shared_vector) add_absorbed_projections(list, heads, count, new_tokens);
  list.add("attention", count,
           LatentDecodeWork{{new_tokens, visible, visible, 1.0}, heads, sparse_kernel(context, FlashMla::kPrefill)});
}

void LatentModel::add_decode(OperatorList& list, double count, const DecodeShape& whole) const {
  const Sharding& s = list.context().sharding;
  LatentHeads heads = heads_on_gpu(list.context());
  const DecodeShape shape = part_of_context(whole, s);
  const double rows = shape.batch * shape.query_len;
  indexer().add_decode(list, count, shape, a_.compression);
  if (runs_naive(list.context())) {
    list.add("attention", count, DecodeWork{shape, expand(list, count, shape.batch * shape.mean_context)});
    return;
  }
  DecodeShape visible = whole;
  visible.mean_context = visible_latents(whole.mean_context);
  visible.max_context = visible_latents(whole.max_context);
  visible = part_of_context(visible, s);
  if (!a_.shared_vector) add_absorbed_projections(list, heads, count, rows);
  add_context_exchange(list, count, rows, heads.heads, heads.latent_dim + heads.rope_dim, heads.latent_dim);
  heads.heads *= s.dcp;
  const bool scaled = heads.cache_bytes_per_token > 0;
  list.add(
      "attention", count,
      LatentDecodeWork{visible, heads, scaled ? sparse_kernel(list.context(), FlashMla::kDecode) : FlashMla::kNone});
}

}  // namespace

std::unique_ptr<const MixerModel> make_model(const LatentAttention& attention) {
  return std::make_unique<LatentModel>(attention);
}

}  // namespace roofcast
