#pragma once
// One attention-DP rank of a replica: its own scheduler, running sequences, queue, caches and NIC. A replica without
// attention-DP is one rank.

#include <memory>

#include "sim/serve/adapter_slots.h"
#include "sim/serve/batch.h"
#include "sim/serve/cache_link.h"
#include "sim/serve/kv_account.h"
#include "sim/serve/replica_options.h"
#include "sim/serve/request_queue.h"
#include "sim/serve/token_delivery.h"

namespace roofcast {

struct RankParts {
  RankParts(std::shared_ptr<const Deployment> served, int rank, const ReplicaOptions& replica_options,
            RequestTable& table, Collector& gathered, TokenDelivery& replica_delivery)
      : deployment(std::move(served)),
        engine(deployment->engine),
        index(rank),
        options(replica_options),
        scheduler(options.scheduler != nullptr ? options.scheduler() : make_scheduler(engine.scheduler)),
        requests(table),
        collector(gathered),
        query_len(options.speculation.query_len()),
        max_sequences(std::max(1, deployment->max_sequences() / deployment->sharding.attention_dp)),
        kv(*deployment, requests, options.tiers),
        adapters(*deployment),
        batch(requests, kv.layout(), options.speculation.active()),
        queue(requests, options.policy),
        link(options.transfer_bandwidth, options.transfer_latency),
        delivery(replica_delivery) {}
  RankParts(const RankParts&) = delete;

  std::shared_ptr<const Deployment> deployment;
  const EngineSpec& engine;
  int index;
  ReplicaOptions options;
  std::unique_ptr<Scheduler> scheduler;
  RequestTable& requests;
  Collector& collector;
  int query_len;      ///< tokens per decoding sequence and step
  int max_sequences;  ///< max_num_seqs

  KvAccount kv;
  AdapterSlots adapters;
  Seconds reads{};  ///< time to read from disk and cache tiers before the step being planned
  Batch batch;
  RequestQueue queue;
  CacheLink link;
  TokenDelivery& delivery;  ///< shared by all ranks

  /// A sequence stops running and releases the slot of its adapter.
  void leave(Slot slot) {
    batch.leave(slot);
    adapters.release(requests[slot].adapter);
  }

  int outstanding() const { return static_cast<int>(queue.size()) + batch.running(); }
};

}  // namespace roofcast
