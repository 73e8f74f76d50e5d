#include "sim/model/adapters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "base/text.h"
#include "sim/model/feed_forward_model.h"
#include "sim/model/weights.h"

namespace roofcast {
namespace {

constexpr double kBytes = 2.0;  ///< per weight: adapters are trained and stored in 16 bit

/// Parts of a merged product that each have their own A (vllm/lora/layers/column_parallel_linear.py, the merged
/// layers).
double slices_of(const LayerKind& kind, const std::string& name) {
  if (name == "qkv_proj") return 3.0;
  const auto* experts = std::get_if<ExpertFeedForward>(&kind.feed_forward);
  if (name == "experts_gate_up") return experts != nullptr && experts->gated ? 2.0 : 1.0;
  return name.ends_with("gate_up_proj") || name == "qkv_a_proj" ? 2.0 : 1.0;
}

bool of_experts(const WeightMatrix& m) { return m.role == WeightRole::kExpert; }

/// Adapters exist for the dense products that every token passes, and as one A and B per routed expert
/// (vllm/lora/layers/fused_moe.py).
bool adaptable(const WeightMatrix& m) {
  return of_experts(m) || (m.projection && (m.role == WeightRole::kMixer || m.role == WeightRole::kFeedForward));
}

template <class F>
void for_each_target(const ModelSpec& model, const LayerKind& kind, const AdapterSpec& a, const Sharding& s, F visit) {
  for (const WeightMatrix& m : layer_weights(model, kind, s).matrices) {
    if (adaptable(m) && std::find(a.targets.begin(), a.targets.end(), m.name) != a.targets.end()) visit(m);
  }
}

std::vector<std::string> adaptable_products(const ModelSpec& model, std::set<std::string>& experts) {
  std::vector<std::string> names;
  for (const LayerKind& kind : model.layers) {
    for (const WeightMatrix& m : layer_weights(model, kind, Sharding{}).matrices) {
      if (adaptable(m) && std::find(names.begin(), names.end(), m.name) == names.end()) names.push_back(m.name);
      if (of_experts(m)) experts.insert(m.name);
    }
  }
  return names;
}

void read_targets(ConfigReader& in, const ModelSpec& model, AdapterSpec& a) {
  std::set<std::string> experts;
  const std::vector<std::string> valid = adaptable_products(model, experts);
  a.targets = in.texts("targets");
  for (const std::string& name : a.targets) {
    a.experts = a.experts || experts.contains(name);
    if (std::find(valid.begin(), valid.end(), name) == valid.end())
      in.fail("targets", unknown_name("targets", name, valid));
  }
  if (a.targets.empty()) {
    std::copy_if(valid.begin(), valid.end(), std::back_inserter(a.targets),
                 [&](const std::string& name) { return !experts.contains(name); });
  }
}

void read_popularity(ConfigReader in, AdapterSpec& a) {
  static constexpr std::array<std::string_view, 2> kLaws{"zipf", "uniform"};
  const bool uniform = in.choice("distribution", kLaws, 0) == 1;
  a.skew = uniform ? 0.0 : in.number("exponent", a.skew, {0.0, 8.0});
  in.finish();
}

}  // namespace

AdapterSpec parse_adapters(ConfigReader in, const ModelSpec& model) {
  constexpr double kMost = 65000, kLargestRank = 4096;
  if (model.attends_to_encoder())
    throw ConfigError(in.location(),
                      fmt::format("adapters of an encoder-decoder, as {} is, are not priced", model.name));
  AdapterSpec a;
  a.count = static_cast<int>(in.integer("count", Range{1, kMost}));
  a.rank = static_cast<int>(in.integer("rank", Range{1, kLargestRank}));
  a.slots = static_cast<int>(in.integer("slots", Range{1, kMost}));
  a.slot_rank = static_cast<int>(in.integer("slot_rank", a.rank, {1, kLargestRank}));
  if (a.slot_rank < a.rank)
    in.fail("slot_rank", fmt::format("a slot of rank {} has no room for an adapter of rank {}", a.slot_rank, a.rank));
  a.in_host = static_cast<int>(in.integer("host", a.count, {1, kMost}));
  if (a.in_host < std::min(a.slots, a.count))
    in.fail("host", fmt::format("engines keep the adapters of all {} slots in host memory as well; 'host' is {}",
                                std::min(a.slots, a.count), a.in_host));
  a.disk = in.bandwidth("disk_bandwidth", a.disk);
  if (auto popularity = in.optional_child("popularity")) read_popularity(std::move(*popularity), a);
  read_targets(in, model, a);
  in.finish();
  return a;
}

Bytes adapter_bytes(const ModelSpec& model, const AdapterSpec& a, const Sharding& s, int rank) {
  const std::vector<int> bounds = stage_bounds(model.layer_count(), s.pp);
  double most = 0;
  for (std::size_t stage = 0; stage + 1 < bounds.size(); ++stage) {
    double values = 0;
    for (int layer = bounds[stage]; layer < bounds[stage + 1]; ++layer) {
      const auto kind = static_cast<std::size_t>(model.order[static_cast<std::size_t>(layer)]);
      for_each_target(model, model.layers[kind], a, s, [&](const WeightMatrix& m) {
        values += m.copies * (slices_of(model.layers[kind], m.name) * m.k + m.n);
      });
    }
    most = std::max(most, values);
  }
  return Bytes(kBytes * rank * most);
}

std::vector<double> adapter_shares(const AdapterSpec& a) {
  std::vector<double> shares;
  double sum = 0;
  for (int i = 1; i <= a.count; ++i) sum += shares.emplace_back(std::pow(i, -a.skew));
  for (double& share : shares) share /= sum;
  return shares;
}

/// Sum over adapters of 1 - (1 - p)^n.
double AdapterHits::named(double sequences) const {
  double hits = 0;
  for (const double p : shares_) hits += p < 1.0 ? -std::expm1(sequences * std::log1p(-p)) : 1.0;
  return hits;
}

namespace {

/// T tokens of D adapters choose k of E experts each. A GPU with C experts gets T k / ep rows, and the tokens of one
/// adapter use C (1 - (1 - k / E)^(T / D)) of its experts.
AdapterShape expert_rows(const OperatorContext& context, const LayerKind& kind, const WeightMatrix& m, double tokens,
                         double adapters) {
  const FeedForwardFacts facts = facts_of(kind.feed_forward);
  const double all = tokens * context.sharding.attention_dp;
  const double missed = std::pow(1.0 - std::min(1.0, facts.top_k / facts.experts), all / adapters);
  return {.tokens = all * facts.top_k / context.sharding.ep, .adapters = adapters * m.copies * (1.0 - missed)};
}

}  // namespace

std::vector<Operator> adapter_operators(const OperatorContext& context, const AdapterSpec& a, double tokens,
                                        double adapters) {
  std::vector<Operator> out;
  if (tokens <= 0 || adapters <= 0) return out;
  for (const LayerKind& kind : context.model->layers) {
    for_each_target(*context.model, kind, a, context.sharding, [&](const WeightMatrix& m) {
      AdapterShape shape{.tokens = tokens, .adapters = adapters};
      if (of_experts(m)) shape = expert_rows(context, kind, m, tokens, adapters);
      shape.rank = static_cast<double>(a.slot_rank);
      shape.k = m.k, shape.n = m.n, shape.slices = slices_of(kind, m.name);
      out.push_back({"adapters", static_cast<double>(kind.count), shape});
    });
  }
  return out;
}

}  // namespace roofcast
