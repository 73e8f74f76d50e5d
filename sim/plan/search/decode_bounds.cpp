// Bounds for one decode worker.
#include <algorithm>
#include <limits>

#include "sim/plan/search/load_bounds.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// A step of b decodes: step time, and time per token.
struct StepPoint {
  double step = 0, token = 0;
};

/// Every batch up to 16, then multiples of 8 (to which CUDA graphs pad), and from 512 on increments of 5 %.
std::vector<int> batches_up_to(int most) {
  std::vector<int> out;
  for (int b = 1; b < most; b += b < 16 ? 1 : b < 512 ? 8 : std::max(8, b / 160 * 8)) out.push_back(b);
  out.push_back(most);
  return out;
}

std::vector<StepPoint> step_points(const Scenario& s, int prompt, StepPricer& pricer) {
  const Deployment& d = *s.deployment;
  const int query = s.serving.speculation.query_len();
  const double tokens = AcceptanceLaw(s.serving.speculation).mean_tokens();
  const double room = d.memory.max_batch(prompt + 1.0, d.engine.block_size) * d.sharding.attention_dp;
  const int max_sequences = std::min(d.max_sequences(), 1 << 16);
  std::vector<StepPoint> points;
  for (int b : batches_up_to(std::max(1, static_cast<int>(std::min<double>(max_sequences, room))))) {
    const double context = static_cast<double>(prompt) * b;
    const Seconds step =
        pricer.cost({.decodes = b, .decode_context = context, .query_len = query, .prefills = {}}).time;
    points.push_back({step.base() / tokens, step.base() / (tokens * b)});
  }
  return points;
}

/// The lowest mean cost per token if the mean step takes at most `limit`; a mixture of at most two points. Infinite if
/// even the shortest step is longer.
double least_cost(const std::vector<StepPoint>& points, double limit) {
  double best = std::numeric_limits<double>::infinity();
  for (const StepPoint& a : points) {
    if (a.step > limit) continue;
    best = std::min(best, a.token);
    for (const StepPoint& b : points) {
      if (b.step <= limit || b.token >= a.token) continue;
      const double share = (limit - a.step) / (b.step - a.step);
      best = std::min(best, a.token + share * (b.token - a.token));
    }
  }
  return best;
}

}  // namespace

LoadBounds decode_bounds(const Scenario& s, StepPricer& pricer) {
  LoadBounds bounds{.requests_per_s = std::numeric_limits<double>::infinity()};
  const Deployment& d = *s.deployment;
  const WorkloadSpec& w = *s.workload;
  if (w.turns > 1 || w.arrivals.process == ArrivalSpec::Process::kTrace || !d.engine.kv_cache) return bounds;
  const int prompt = std::max(1, w.prompt_tokens.shortest());  // no context of a decode is shorter
  const std::vector<StepPoint> points = step_points(s, prompt, pricer);
  bounds.tpot = least_tpot(s.serving.speculation, prompt, pricer) * kDecodeSlack;
  const double cheapest = least_cost(points, std::numeric_limits<double>::infinity());
  double cost = cheapest;
  for (const Objective& o : s.objectives) {
    if (o.metric != LatencyMetric::kTpot || !w.output_tokens.constant()) continue;
    if (s.serving.speculation.active() && o.percentile >= 0) continue;
    const double share = o.percentile < 0 ? 1.0 : o.percentile / 100.0;
    const double held = least_cost(points, o.limit.base() / kDecodeSlack);
    if (held < std::numeric_limits<double>::infinity()) cost = std::max(cost, share * held + (1 - share) * cheapest);
  }
  const double seconds = (w.output_tokens.mean() - 1.0) * cost;
  if (seconds > 0) bounds.requests_per_s = 1.0 / (seconds * kDecodeSlack);
  return bounds;
}

}  // namespace roofcast
