#pragma once
#include "sim/serve/cache_link.h"
#include "sim/serve/kv_tiers.h"
#include "sim/serve/scheduler.h"
#include "sim/serve/speculation.h"
#include "sim/serve/waiting_queue.h"
#include "sim/serve/workload.h"

namespace roofcast {

struct ReplicaOptions {
  int index = 0;
  QueuePolicy policy = QueuePolicy::kFcfs;
  SpeculationSpec speculation;
  std::uint64_t seed = 0;
  bool prefill_only = false;            ///< hands sequences over after their first token
  BytesPerSecond transfer_bandwidth{};  ///< per GPU, for caches fetched from prefill replicas
  Seconds transfer_latency{};
  EarlyTransfer early;                               ///< which parts of those caches are sent early
  std::vector<std::vector<EncoderWork>> media = {};  ///< media per request, by kind of client; empty: text only
  SharedTiers tiers = {};
  double prompt_text = 1.0;                                  ///< front-end time per prompt token relative to plain text
  std::unique_ptr<Scheduler> (*scheduler)() = nullptr;       ///< null: the engine's scheduler; tests can set another
  std::int64_t max_steps_per_event = std::int64_t{1} << 40;  ///< 1: every step is its own event
};

}  // namespace roofcast
