#include "sim/plan/expert_counts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/normal.h"
#include "sim/model/feed_forward_model.h"

namespace roofcast {
namespace {

/// Squared coefficient of variation.
double spread(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double v : values) sum += v, squares += v * v;
  const auto n = static_cast<double>(values.size());
  return squares * n / (sum * sum) - 1.0;
}

/// The same for the popularities of the law, exp(skew z) at the normal quantiles z.
double spread_of_law(double skew, std::size_t experts) {
  std::vector<double> weights(experts);
  for (std::size_t e = 0; e < experts; ++e)
    weights[e] = std::exp(skew * normal_quantile((static_cast<double>(e) + 0.5) / static_cast<double>(experts)));
  return spread(weights);
}

/// With this many tokens per expert, chance contributes 0.1 to the skew. With fewer, chance may dominate the counts.
constexpr double kFewTokens = 100.0;

/// An expert that is among the k of a token with probability q has the popularity -ln(1 - q), up to a factor
/// (hw/kernels/expert_load.cpp). It gets q T of T tokens, so q = k tokens / (sum of all). Counts with mean m have
/// variance m by chance (Poisson), so 1 / m of the spread is chance. `fail` receives what is wrong with the counts.
template <class Fail>
double skew_of_layer(const std::vector<double>& tokens, double top_k, const Fail& fail) {
  double sum = 0;
  for (const double t : tokens) sum += t;
  std::vector<double> weights(tokens.size());
  for (std::size_t e = 0; e < tokens.size(); ++e)
    weights[e] = -std::log1p(-std::min(1.0 - 1e-6, top_k * tokens[e] / sum));
  const double counted = spread(weights), mean = sum / static_cast<double>(tokens.size()),
               measured = counted - 1 / mean;
  if (mean < kFewTokens && measured < 0.5 * counted) {
    fail(fmt::format("{:.3g} tokens per expert do not tell a skew from chance: count at least {:g} per expert", mean,
                     kFewTokens));
  }
  if (measured >= spread_of_law(kMostSkew, tokens.size()))
    fail(fmt::format("experts differ by more than a skew of {:g}, the most there is: are all experts counted?",
                     kMostSkew));
  double low = 0, high = kMostSkew;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (spread_of_law(middle, tokens.size()) < measured ? low : high) = middle;
  }
  return low;
}

}  // namespace

double skew_of_counts(const CsvTable& counts, const ModelSpec& model) {
  FeedForwardFacts routed{};
  for (const LayerKind& kind : model.layers) {
    if (const FeedForwardFacts facts = facts_of(kind.feed_forward); facts.experts > 0) routed = facts;
  }
  if (routed.experts <= 0)
    throw ConfigError(SourceLocation{counts.path(), 1, 1},
                      fmt::format("{} has no routed experts to count", model.name));
  const std::size_t expert_column = counts.column("expert"), token_column = counts.column("tokens");
  const std::optional<std::size_t> layer_column = counts.find("layer");
  const auto experts = static_cast<std::size_t>(routed.experts);
  std::map<double, std::vector<double>> layers;
  for (std::size_t row = 0; row < counts.rows(); ++row) {
    std::vector<double>& tokens = layers[layer_column ? counts.number(row, *layer_column) : 0.0];
    tokens.resize(experts, -1.0);
    const double expert = counts.number(row, expert_column), got = counts.number(row, token_column);
    if (expert < 0 || expert >= routed.experts || expert != std::floor(expert)) {
      throw ConfigError(counts.location(row, expert_column),
                        fmt::format("{} has the experts 0 to {}, got {:g}", model.name, experts - 1, expert));
    }
    double& place = tokens[static_cast<std::size_t>(expert)];
    if (place >= 0)
      throw ConfigError(counts.location(row, expert_column), fmt::format("expert {:g} is counted twice", expert));
    if (got < 0) throw ConfigError(counts.location(row, token_column), "must be at least 0");
    place = got;
  }
  if (layers.empty()) throw ConfigError(SourceLocation{counts.path(), 1, 1}, "counts no expert");
  double skew = 0;
  for (auto& [layer, tokens] : layers) {
    for (double& t : tokens) t = std::max(0.0, t);
    if (std::all_of(tokens.begin(), tokens.end(), [](double t) { return t <= 0; }))
      throw ConfigError(SourceLocation{counts.path(), 1, 1}, fmt::format("layer {:g} has no tokens", layer));
    const auto fail = [&, layer = layer](const std::string& what) {
      throw ConfigError(SourceLocation{counts.path(), 1, 1},
                        layer_column ? fmt::format("layer {:g}: {}", layer, what) : what);
    };
    skew += skew_of_layer(tokens, routed.top_k, fail) / static_cast<double>(layers.size());
  }
  return skew;
}

}  // namespace roofcast
