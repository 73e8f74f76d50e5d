#include "sim/plan/steady_load.h"

#include <algorithm>
#include <cstdint>

#include "sim/plan/front_end_load.h"
#include "sim/plan/steady_rate.h"
#include "sim/serve/simulation.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr std::int64_t kRounds = 20, kLeastRounds = 4;  ///< requests of each user
constexpr std::int64_t kManyRequests = 100'000;         ///< in all: many users have fewer rounds
constexpr int kMostOutput = 16384;                      ///< tokens of an answer

WorkloadSpec loop_of(const EstimateRequest& r) {
  WorkloadSpec loop;
  loop.name = "steady load";
  loop.arrivals.process = ArrivalSpec::Process::kClosedLoop;
  loop.arrivals.concurrency = r.batch;
  loop.prompt_tokens.law = LengthSpec::Fixed{r.prompt_tokens};
  loop.output_tokens.law = LengthSpec::Fixed{r.output_tokens};
  loop.encoded = r.media;
  loop.requests = r.batch * std::clamp(kManyRequests / r.batch, kLeastRounds, kRounds);
  return loop;
}

std::string reason_against(const Deployment& d, const EstimateRequest& r) {
  if (r.context) return "--context prices one decode step, a steady load needs whole requests";
  if (d.fidelity == Fidelity::kIdeal) return "the datasheet's roofline has no serving engine";
  if (d.memory.infeasible) return "it does not fit";
  if (r.output_tokens < 2) return "a request of one output token has no TPOT";
  if (r.speculation.active() && !d.engine.kv_cache) return "passes without a KV cache are not simulated";
  if (r.batch > kManyRequests / kLeastRounds)
    return "users are many; 'roofcast simulate' simulates a closed loop of them";
  if (r.output_tokens > kMostOutput) return "answers are long; 'roofcast simulate' simulates a closed loop of them";
  return "";
}

}  // namespace

SteadyLoad steady_load(const std::shared_ptr<const Deployment>& deployment, const EstimateRequest& r) {
  SteadyLoad steady;
  steady.left_out = reason_against(*deployment, r);
  if (!steady.left_out.empty()) return steady;
  const WorkloadSpec loop = loop_of(r);
  ServingOptions options;
  options.speculation = r.speculation;
  const ServingMetrics m = simulate(deployment, loop, options);
  if (m.completed == 0) {
    steady.left_out = "no such request runs to its end";
    return steady;
  }
  steady.tpot = Seconds(m.tpot_ms.mean() * 1e-3);
  steady.output_tokens_per_s = r.replicas * steady_output_rate(loop, m);
  steady.front_end_share = front_end_load(m, *deployment, options).busier();
  return steady;
}

}  // namespace roofcast
