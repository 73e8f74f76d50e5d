// Routed experts, optionally with shared experts or a parallel dense block.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/model/feed_forward/parts.h"
#include "sim/model/feed_forward_model.h"
#include "sim/model/hf_config.h"

namespace roofcast {
namespace {

/// vLLM runs its fused experts on at most this many tokens at a time (VLLM_FUSED_MOE_CHUNK_SIZE, 32 Ki).
constexpr double kExpertChunk = 32768;

bool is_size(double value) { return value >= 1.0 && value == std::floor(value); }

class ExpertModel final : public FeedForwardModel {
 public:
  explicit ExpertModel(const ExpertFeedForward& f) : f_(f) {}

  std::string name() const override { return fmt::format("{} of {} experts", f_.top_k, f_.experts); }
  FeedForwardFacts facts() const override {
    return {.present = true, .dense = false, .experts = f_.experts, .top_k = f_.top_k};
  }
  DenseFeedForward dense_like(double) const override {
    return {.inter = f_.top_k * f_.inter + f_.shared_inter, .gated = f_.gated};
  }

  void check(const HfConfig& in) const override {
    if (is_size(f_.experts) && is_size(f_.top_k)) return;
    in.fail("model_type",
            fmt::format("{} of {} experts: both must be whole numbers of at least 1", f_.top_k, f_.experts));
  }
  void check_sharding(const std::string& model, const Sharding& s, const ShardingLocations& locations) const override;

  void add_weights(LayerWeights& out, double hidden, const Sharding& s) const override;
  FeedForwardBuffers buffers(double hidden, const Sharding& s, double tokens) const override;

  void add_operators(OperatorList& list, double count, const BlockTokens& rows) const override;
  bool add_exchange(OperatorList& list, double count, const BlockTokens& rows) const override;

 private:
  /// Width of the routed experts' inputs and outputs.
  double width(double hidden) const { return f_.latent > 0 ? f_.latent : hidden; }
  DenseFeedForward shared() const { return {.inter = f_.shared_inter, .gated = f_.gated, .bias = f_.bias}; }
  DenseFeedForward dense() const { return {.inter = f_.dense_inter, .gated = f_.gated, .bias = f_.bias}; }
  MoeShape shape(const OperatorContext& context, const BlockTokens& rows) const;
  void add_all_to_all(OperatorList& list, double count, const BlockTokens& rows) const;

  ExpertFeedForward f_;
};

void ExpertModel::check_sharding(const std::string& model, const Sharding& s,
                                 const ShardingLocations& locations) const {
  const double held = f_.experts + s.expert_copies(), more = (std::floor(held / s.ep) + 1) * s.ep - f_.experts;
  const std::string redundant =
      s.expert_copies() > 0 ? fmt::format(" and {} redundant experts", s.expert_copies()) : "";
  refuse(
      !divides(s.ep, held), locations.ep,
      fmt::format("ep {} does not divide the {} experts{} of {}; with routing.redundant_experts {} each GPU holds {}",
                  s.ep, f_.experts, redundant, model, more, (f_.experts + more) / s.ep));
  const SourceLocation& splits = s.ep > 1 ? locations.ep : s.attention_dp > 1 ? locations.attention_dp : locations.tp;
  refuse(!divides(s.expert_tp(), f_.inter), splits,
         fmt::format("the experts' tensor parallelism tp x attention_dp / ep = {} does not divide their width {} in {}",
                     s.expert_tp(), f_.inter, model));
}

void ExpertModel::add_weights(LayerWeights& out, double hidden, const Sharding& s) const {
  const double inter = std::ceil(f_.inter / s.expert_tp());
  const double columns = inter * (f_.gated ? 2.0 : 1.0);
  const double resident = std::ceil((f_.experts + s.expert_copies()) / s.ep);
  if (f_.experts > 1) {
    out.matrices.push_back({.name = "router",
                            .k = hidden,
                            .n = f_.experts,
                            .role = f_.float32_router ? WeightRole::kFloat32 : WeightRole::kOther,
                            .stage = Stage::kCore});
  }
  if (f_.latent > 0) {
    out.matrices.push_back({.name = "latent_down_proj", .k = hidden, .n = f_.latent, .stage = Stage::kCore});
    out.matrices.push_back({.name = "latent_up_proj", .k = f_.latent, .n = hidden});
  }
  const auto add_routed = [&](const char* name, double k, double n) {
    out.matrices.push_back({.name = name,
                            .k = k,
                            .n = n,
                            .role = WeightRole::kExpert,
                            .copies = resident,
                            .used = f_.top_k,
                            .projection = false});
  };
  add_routed("experts_gate_up", width(hidden), columns);
  add_routed("experts_down", inter, width(hidden));
  if (f_.shared_inter > 0) add_block_weights(out, "shared_", shared(), hidden, s);
  if (f_.dense_inter > 0) add_block_weights(out, "", dense(), hidden, s);
  if (f_.shared_gate) {
    out.matrices.push_back(
        {.name = "shared_gate", .k = hidden, .n = 1, .role = WeightRole::kOther, .stage = Stage::kShared});
  }
  if (f_.router_bias && f_.experts > 1) out.vectors += f_.experts;
  if (f_.bias) out.expert_vectors = columns + width(hidden);
}

/// Per chosen expert of a token: gate and up, their product, and the output.
FeedForwardBuffers ExpertModel::buffers(double hidden, const Sharding& s, double tokens) const {
  const double gathered = std::min(tokens * s.attention_dp, kExpertChunk);
  const double inner = (f_.gated ? 3.0 : 2.0) * f_.inter / s.expert_tp() + width(hidden);
  const double routed = gathered * f_.top_k * inner * kHalfBytes;
  const double rest = tokens * 3.0 * f_.shared_inter / s.tp * kHalfBytes;
  return {.routed = routed,
          .routed_operands = gathered * f_.top_k * (width(hidden) + f_.inter / s.expert_tp()),
          .rest = rest,
          .compiled = routed + rest};
}

/// DeepEP has a mode for prefill with the tokens of each expert contiguous, and one for decode with a slot for each
/// possible token. TensorRT-LLM's own all-to-all sends whole tokens.
ExpertLayout layout_of(const OperatorContext& context, const BlockTokens& rows) {
  if (context.expert_exchange != ExpertExchange::kAllToAll || context.sharding.attention_dp <= 1)
    return ExpertLayout::kWhole;
  if (!context.exchange_by_mode) return ExpertLayout::kReceived;
  return rows.prompts ? ExpertLayout::kContiguous : ExpertLayout::kMasked;
}

ExchangeKernel exchange_of(ExpertLayout layout) {
  if (layout == ExpertLayout::kReceived) return ExchangeKernel::kOneSided;
  return layout == ExpertLayout::kContiguous ? ExchangeKernel::kNormal : ExchangeKernel::kLowLatency;
}

MoeShape ExpertModel::shape(const OperatorContext& context, const BlockTokens& rows) const {
  const Precision& p = context.precision;
  const Sharding& sharding = context.sharding;
  MoeShape shape;
  shape.tokens = rows.group_tokens;
  shape.layout = layout_of(context, rows);
  shape.asked = context.moe_kernel;
  shape.hidden = width(context.model->hidden);
  shape.inter = f_.inter;
  shape.top_k = f_.top_k;
  shape.experts = f_.experts;
  shape.tp = sharding.expert_tp();
  shape.ep = sharding.ep;
  shape.gated = f_.gated;
  shape.weights = p.expert_weights;
  shape.activations = activations_for(WeightRole::kExpert, p);
  if (element_bits(p.expert_weights) < 16.0) shape.weight_scales = p.weight_scales;
  shape.routing = context.routing;
  shape.routing.redundant = sharding.expert_copies();
  shape.expanded = context.expanded_experts && context.moe_kernel == RequestedExperts::kDefault;
  return shape;
}

/// Routing, sorting, quantization and summation are part of the experts' time.
void ExpertModel::add_operators(OperatorList& list, double count, const BlockTokens& rows) const {
  const double hidden = list.context().model->hidden;
  list.enter(Stage::kExperts);
  list.add("experts", count, shape(list.context(), rows));
  list.enter(Stage::kShared);
  if (f_.shared_inter > 0) {
    add_activation(list, "shared_activation", shared(), count, rows.tokens);
    list.stream("shared_add", count, rows.tokens * hidden * 3.0 * kHalfBytes, f_.shared_gate ? 2.0 : 1.0);
  }
  if (f_.dense_inter > 0) add_activation(list, "activation", dense(), count, rows.tokens);
}

/// Bytes per value that ranks dispatch to the experts: quantized by the sender if that needs no scale of the receiver
/// (nvfp4, fp8 per tensor), else 16 bit.
double sent_bytes(const Precision& p) {
  const bool narrow = p.expert_weights == Dtype::kNvfp4 || p.expert_weights == Dtype::kFp8;
  return narrow ? element_bits(activations_for(WeightRole::kExpert, p)) / 8.0 : kHalfBytes;
}

/// Bytes per value of a quantized token including scales: fp32 per 128 values, e4m3 per 16.
double quantized_bytes(Dtype dtype) {
  if (dtype == Dtype::kFp8Block) return 1.0 + 4.0 / 128.0;
  return bytes_per_element(dtype);
}

/// The TP ranks of an attention-DP rank each dispatch their part of its tokens, and all-gather the results. All wait
/// for the most loaded rank, which receives more tokens than a rank sends.
void ExpertModel::add_all_to_all(OperatorList& list, double count, const BlockTokens& rows) const {
  const OperatorContext& context = list.context();
  const Sharding& sharding = context.sharding;
  Routing routing = context.routing;
  routing.redundant = sharding.expert_copies();
  const double fullest = max_rank_load(rows.group_tokens, f_.top_k, f_.experts, sharding.ep, routing);
  ExchangeShape way{.kernel = exchange_of(layout_of(context, rows)),
                    .tokens = rows.tokens * fullest / sharding.tp,
                    .hidden = width(context.model->hidden),
                    .value_bytes = quantized_bytes(activations_for(WeightRole::kExpert, context.precision)),
                    .top_k = f_.top_k,
                    .experts = f_.experts,
                    .groups = f_.groups,
                    .groups_kept = f_.groups_kept,
                    .ranks = sharding.attention_dp * sharding.tp};
  list.enter(Stage::kDispatch);
  list.add("expert_dispatch", count, way);
  list.enter(Stage::kCombine);
  way.combine = true, way.value_bytes = kHalfBytes;
  list.add("expert_combine", count, way);
  if (sharding.tp > 1) {
    const double message = rows.tokens * context.model->hidden * kHalfBytes;
    list.exchange(Collective::kAllGather, "expert_gather", count, message / sharding.tp, sharding.tp);
  }
}

/// Attention-DP ranks first exchange their tokens. All-gather and reduce-scatter move every token to every rank,
/// without padding uneven ranks. All-to-all sends a token only to the ranks of its experts, and leaves nothing to
/// reduce.
bool ExpertModel::add_exchange(OperatorList& list, double count, const BlockTokens& rows) const {
  const OperatorContext& context = list.context();
  const Sharding& sharding = context.sharding;
  const int ranks = sharding.attention_dp;
  if (ranks <= 1) return true;
  const double wide = width(context.model->hidden);
  if (context.expert_exchange == ExpertExchange::kAllToAll) {
    add_all_to_all(list, count, rows);
    return false;
  }
  const double values = rows.group_tokens * wide;
  list.exchange(Collective::kAllGather, "expert_gather", count, values / ranks * sent_bytes(context.precision), ranks);
  list.exchange(Collective::kReduceScatter, "expert_scatter", count, values * kHalfBytes, ranks);
  return true;
}

}  // namespace

std::unique_ptr<const FeedForwardModel> make_model(const ExpertFeedForward& block) {
  return std::make_unique<ExpertModel>(block);
}

}  // namespace roofcast
