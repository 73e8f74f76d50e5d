#pragma once
// A deployment under load.

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

/// Prompts are prefilled by separate replicas, which send their caches to the decoding ones.
struct Disaggregation {
  std::shared_ptr<const Deployment> prefill;
  int prefill_replicas = 1;
  BytesPerSecond bandwidth{};  ///< of one GPU; 0: its NIC, or PCIe without one
  Seconds latency{};           ///< of one transfer
};

/// Bytes of one decoding GPU's share of a cache that arrive a second: every GPU of both sides uses its own link at the
/// same time, and the side whose GPUs hold the larger shares may be the slower one. Caches pass the spine where one
/// leaf does not hold both sides, of `replicas` that decode.
BytesPerSecond transfer_bandwidth(const Deployment& decode, const Disaggregation& disaggregation, int replicas);
struct ServingOptions;
/// The replicas of a role, with autoscaling at their most.
int most_replicas(const ServingOptions& options, bool prefill);
/// The same with as many replicas of both sides as there may be. `options` must have disaggregated roles.
BytesPerSecond transfer_bandwidth(const Deployment& decode, const ServingOptions& options);
/// The part of a cache that such workers send before a prompt is done.
EarlyTransfer early_transfer(const Deployment& prefill);

/// Runs tasks in parallel.
struct Cores {
  int count = 1;
  /// task(0) .. task(n - 1), in any order; returns when all are done.
  std::function<void(std::size_t n, const std::function<void(std::size_t)>& task)> run;
};

struct ServingOptions {
  int replicas = 1;                    ///< with autoscaling: at the beginning, within its bounds
  std::string router = "round_robin";  ///< a name in routers()
  std::string policy = "fcfs";         ///< a name in queue_policies()
  int max_queue = 0;                   ///< prompts that may wait on a replica; more are refused. 0: any number
  std::uint64_t seed = 0;
  Objectives objectives;
  std::vector<Objectives> client_objectives = {};  ///< of single kinds of clients, where they have their own
  SpeculationSpec speculation;
  std::optional<Disaggregation> disaggregation =
      std::nullopt;      ///< if set, `replicas` only decode; their numbers follow those of the prefill replicas
  FleetSpec fleet;       ///< replicas that come and go
  PricerFactory pricer;  ///< null: a StepModel; tests can set their own
  std::int64_t max_steps_per_event = std::int64_t{1} << 40;  ///< 1: no runs, every step is an event
  /// More than one: replicas that do not meet are simulated side by side, with the same result. `pricer` is then called
  /// before they start.
  Cores cores = {};
};

/// Plays the workload through. Deterministic from the seed. A request that can never run (longer than the model or
/// the cache allows) is counted as failed, as is one
/// that finds the queue full or whose client gives up (WorkloadSpec::patience). Warm-up requests are sent first and not
/// counted; in a closed loop they have all ended before the counted ones start. Throws ConfigError for unknown names,
/// and where `start` or `warmup_requests` leave no request to count (not of clients).
ServingMetrics simulate(std::shared_ptr<const Deployment> deployment, const WorkloadSpec& workload,
                        const ServingOptions& options, Observer* observer = nullptr);

/// The same with the given requests; of `workload` only arrivals, duration, warmup_requests and patience
/// count.
ServingMetrics simulate(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                        const WorkloadSpec& workload, const ServingOptions& options, Observer* observer = nullptr);

}  // namespace roofcast
