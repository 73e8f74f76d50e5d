#include "sim/plan/front_end_load.h"

#include "sim/step/deployment.h"
#include "sim/step/streaming.h"

namespace roofcast {

FrontEndLoad front_end_load(const ServingMetrics& m, const Deployment& deployment, const ServingOptions& options,
                            double prompt_text) {
  const auto& disaggregation = options.disaggregation;
  const Deployment& taker = disaggregation ? *disaggregation->prefill : deployment;
  const double prompt = m.completed > 0 ? m.input_tokens / static_cast<double>(m.completed) : 0.0;
  FrontEndLoad load{.prompt = intake_time(taker.engine, prompt * prompt_text)};
  load.idle = taker.engine.host.request_latency + load.prompt;
  const double time = m.duration.base();
  if (time <= 0) return load;
  const double senders = m.replica_seconds > 0 ? m.replica_seconds : time * options.replicas;
  const double takers = !disaggregation                 ? senders
                        : m.prefill_replica_seconds > 0 ? m.prefill_replica_seconds
                                                        : time * disaggregation->prefill_replicas;
  const double taken_in =
      static_cast<double>(m.completed + m.cancelled) * load.prompt.base() / taker.engine.front_ends(taker.sharding);
  load.sending = std::min(1.0, m.front_end_seconds / senders);
  load.intake = std::min(1.0, taken_in / takers);
  return load;
}

}  // namespace roofcast
