#pragma once
// What a replica is made of, for the parts that need several others.

#include <memory>

#include "sim/serve/batch.h"
#include "sim/serve/cache_link.h"
#include "sim/serve/kv_account.h"
#include "sim/serve/rank_balance.h"
#include "sim/serve/replica_options.h"
#include "sim/serve/request_queue.h"
#include "sim/serve/token_delivery.h"

namespace roofcast {

struct ReplicaParts {
  ReplicaParts(std::shared_ptr<const Deployment> served, const ReplicaOptions& replica_options, StepPricer& pricer,
               RequestTable& table, Collector& gathered)
      : deployment(std::move(served)),
        engine(deployment->engine),
        options(replica_options),
        scheduler(options.scheduler != nullptr ? options.scheduler() : make_scheduler(engine.scheduler)),
        requests(table),
        collector(gathered),
        query_len(options.speculation.query_len()),
        places(std::max(1, deployment->seats())),
        kv(*deployment, requests),
        batch(requests, kv.layout(), options.speculation.active()),
        queue(requests, options.policy),
        ranks(*deployment, scheduler->continuous(), query_len, requests, queue, batch),
        link(options.transfer_bandwidth, options.transfer_latency),
        delivery(engine, options.prompt_text, query_len, pricer, collector) {}
  ReplicaParts(const ReplicaParts&) = delete;

  std::shared_ptr<const Deployment> deployment;
  const EngineSpec& engine;
  ReplicaOptions options;
  std::unique_ptr<Scheduler> scheduler;
  RequestTable& requests;
  Collector& collector;
  int query_len;  ///< tokens that a decoding sequence brings to a step
  int places;     ///< for running sequences

  KvAccount kv;
  Batch batch;
  RequestQueue queue;
  RankBalance ranks;
  CacheLink link;
  TokenDelivery delivery;
};

}  // namespace roofcast
