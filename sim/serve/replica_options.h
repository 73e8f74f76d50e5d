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
  EarlyTransfer early;                               ///< of those caches
  std::vector<std::vector<EncoderWork>> media = {};  ///< of a request, by its client; empty: prompts are text
  SharedTiers tiers = {};
  double prompt_text = 1.0;  ///< of a prompt token, over plain text's: what it takes of the front end
  std::unique_ptr<Scheduler> (*scheduler)() = nullptr;       ///< null: the engine's; tests put one of their own here
  std::int64_t max_steps_per_event = std::int64_t{1} << 40;  ///< 1: every step is an event of its own
};

}  // namespace roofcast
