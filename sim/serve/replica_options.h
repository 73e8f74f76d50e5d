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
  BytesPerSecond transfer_bandwidth{};  ///< of one GPU, for caches that come from prefill replicas
  Seconds transfer_latency{};
  EarlyTransfer early;                               ///< how early parts of those caches leave
  std::vector<std::vector<EncoderWork>> media = {};  ///< of a request, by its client; empty: prompts are text
  SharedTiers tiers = {};
  double prompt_text = 1.0;                             ///< front-end time of a prompt token relative to plain text
  std::unique_ptr<Scheduler> (*scheduler)() = nullptr;  ///< null: the engine's; tests can set their own
  std::int64_t max_steps_per_event = std::int64_t{1} << 40;  ///< 1: every step is an event of its own
};

}  // namespace roofcast
