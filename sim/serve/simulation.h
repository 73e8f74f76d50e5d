#pragma once
// Simulates a deployment under load.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sim/serve/cache_link.h"
#include "sim/serve/fleet.h"
#include "sim/serve/metrics.h"
#include "sim/serve/observer.h"
#include "sim/serve/router.h"
#include "sim/serve/scheduler.h"
#include "sim/serve/speculation.h"
#include "sim/serve/waiting_queue.h"
#include "sim/serve/workload.h"

namespace roofcast {

/// Disaggregated serving: separate replicas prefill the prompts and send their KV caches to the decode replicas.
struct Disaggregation {
  std::shared_ptr<const Deployment> prefill;
  int prefill_replicas = 1;
  BytesPerSecond bandwidth{};  ///< per GPU; 0: that of its NIC, or of PCIe without one
  Seconds latency{};           ///< per transfer
};

/// Bytes per second at which one decode GPU receives its share of a cache. All GPUs of both sides use their links in
/// parallel; the side with the larger share per GPU may be the slower one. Transfers cross the spine if one leaf switch
/// does not hold both sides with `replicas` decode replicas.
BytesPerSecond transfer_bandwidth(const Deployment& decode, const Disaggregation& disaggregation, int replicas);
struct ServingOptions;
/// The maximum number of replicas of a role, autoscaling included.
int most_replicas(const ServingOptions& options, bool prefill);
/// The same with the maximum number of replicas on both sides. `options` must be disaggregated.
BytesPerSecond transfer_bandwidth(const Deployment& decode, const ServingOptions& options);
/// Which part of a cache the prefill replicas send before the prefill has ended.
EarlyTransfer early_transfer(const Deployment& prefill);

/// Runs tasks in parallel.
struct Cores {
  int count = 1;
  /// task(0) .. task(n - 1), in any order; returns when all are done.
  std::function<void(std::size_t n, const std::function<void(std::size_t)>& task)> run;
};

struct ServingOptions {
  int replicas = 1;                    ///< with autoscaling: the number at the start, within its bounds
  std::string router = "round_robin";  ///< a name in routers()
  std::string policy = "fcfs";         ///< a name in queue_policies()
  int max_queue = 0;                   ///< waiting prompts per replica before requests are refused; 0: no limit
  std::uint64_t seed = 0;
  Objectives objectives;
  std::vector<Objectives> client_objectives = {};  ///< per kind of client, where they have their own
  SpeculationSpec speculation;
  std::optional<Disaggregation> disaggregation =
      std::nullopt;      ///< if set, `replicas` only decode; their numbers follow those of the prefill replicas
  FleetSpec fleet;       ///< autoscaling and failures
  PricerFactory pricer;  ///< null: a StepModel; tests can set another
  std::int64_t max_steps_per_event = std::int64_t{1} << 40;  ///< 1: every step is its own event
  /// More than one: independent replicas are simulated in parallel, with the same result. `pricer` is then called
  /// before they start.
  Cores cores = {};
};

/// Simulates the workload; deterministic for a seed. A request counts as failed if it can never run (it exceeds the
/// context length or the KV pool), finds the queue full, or its client gives up (WorkloadSpec::patience). Warm-up
/// requests are sent first and not counted; in a closed loop all of them end before the counted ones start. Throws
/// ConfigError for unknown names, and if `start` or `warmup_requests` leave no request to count (except with several
/// kinds of clients).
ServingMetrics simulate(std::shared_ptr<const Deployment> deployment, const WorkloadSpec& workload,
                        const ServingOptions& options, Observer* observer = nullptr);

/// The same with the requests of `source`; only arrivals, duration, warmup_requests and patience of `workload` are
/// used.
ServingMetrics simulate(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                        const WorkloadSpec& workload, const ServingOptions& options, Observer* observer = nullptr);

}  // namespace roofcast
