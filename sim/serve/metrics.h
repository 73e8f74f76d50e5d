#pragma once
// What clients see. Names and definitions are those of `vllm bench serve` (docs/metrics.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "sim/serve/load_watch.h"

namespace roofcast {

/// One finished request. Times count from its arrival at the front end.
struct RequestRecord {
  std::int64_t id = 0;
  Seconds arrival{}, queue{}, ttft{}, e2el{};
  int prompt_tokens = 0, output_tokens = 0, cached_tokens = 0, preemptions = 0, replica = 0, client = 0;
  int streamed_tokens = 0;  ///< tokens of the longest of several sequences; 0: there is one sequence
  int thinking_tokens = 0;  ///< tokens before the answer
  Seconds held{};           ///< delay of a later turn until the previous answer was complete
  /// Time to the first token after the thinking tokens, if tokens are evenly spaced.
  Seconds ttfat() const { return ttft + tpot() * static_cast<double>(thinking_tokens); }
  int in_turn() const { return streamed_tokens > 0 ? streamed_tokens : output_tokens; }
  Seconds tpot() const { return in_turn() > 1 ? (e2el - ttft) / (in_turn() - 1.0) : Seconds(0); }
};

/// Weighted non-negative values. Stores up to kExact values (equal neighbours count once), then a histogram with bins
/// of 0.1 % width. Count, mean, standard deviation and extremes stay exact.
class Distribution {
 public:
  /// Adds `weight` equal values: n equal gaps between tokens are one call.
  void add(double value, double weight = 1.0);
  double count() const { return count_; }
  double mean() const { return count_ > 0.0 ? sum_ / count_ : 0.0; }
  double stddev() const;  ///< of the population (numpy's default)
  double max() const { return max_; }
  double min() const { return min_; }
  double percentile(double p) const;  ///< p in [0, 100], linear between order statistics as in numpy; 0 when empty
  /// Weight of the values <= `value`; exact, or within a bin's 0.1 % once binned.
  double count_at_most(double value) const;
  void merge(const Distribution& other);

 private:
  static constexpr std::size_t kExact = 65536;
  struct Entry {
    double value, weight;
  };
  void store(double value, double weight);
  void spill();
  void add_to_bin(double value, double weight);
  std::pair<double, double> exact_order_statistics(double index) const;
  double binned_order_statistic(double index) const;
  mutable std::vector<Entry> exact_;  ///< sorted on demand, for percentiles
  mutable bool sorted_ = true;
  std::vector<double> bins_;                                      ///< weight per logarithmic bin, once spilled
  double zero_weight_ = 0;                                        ///< weight of values too small for a bin
  double count_ = 0, sum_ = 0, squares_ = 0, min_ = 0, max_ = 0;  ///< squares_: squared distances from the mean
};

/// Objectives of goodput: a request counts if it meets all that are set.
struct Objectives {
  std::optional<Seconds> ttft, tpot, e2el;
};

/// Results of one kind of client.
struct ClientMetrics {
  std::int64_t completed = 0, failed = 0;  ///< as in ServingMetrics
  double input_tokens = 0, output_tokens = 0, good_requests = 0;
  Distribution ttft_ms, tpot_ms, e2el_ms;
  double ended() const { return static_cast<double>(completed + failed); }
};

/// How often adapters were loaded.
struct AdapterMetrics {
  std::int64_t starts = 0;      ///< sequences that name an adapter
  std::int64_t loads = 0;       ///< copies to a GPU's slot
  std::int64_t disk_reads = 0;  ///< loads whose adapter was not in host memory
  double loaded_bytes = 0;      ///< per GPU
};

/// How long a given number of replicas was paid for.
struct PaidFleet {
  int replicas = 0, prefill_replicas = 0;
  double seconds = 0;
};

/// The limit that a request exceeds, so that it can never run.
enum class TooLong : std::uint8_t { kNot, kContext, kCache, kStep };

struct ServingMetrics {
  Seconds duration{};
  LoadVerdict load;                        ///< open loads only
  std::int64_t completed = 0, failed = 0;  ///< failed: rejected, cancelled, lost, or impossible to run
  std::int64_t cancelled = 0;              ///< the client gave up: `timeout`
  std::int64_t rejected = 0;               ///< the queue was full: `max_queue`
  std::array<std::int64_t, 4> too_long{};  ///< by TooLong
  double cancelled_tokens = 0;             ///< output tokens of cancelled requests (wasted)
  double input_tokens = 0, output_tokens = 0, good_requests = 0;
  double replica_seconds = 0;  ///< paid time of a fleet that changes; 0: all replicas, all the time
  int most_replicas = 0;       ///< most replicas paid for at once
  /// The same for prefill-only replicas.
  double prefill_replica_seconds = 0;
  int most_prefill_replicas = 0;
  std::int64_t prefill_replica_starts = 0;  ///< part of replica_starts
  std::vector<PaidFleet> paid_fleets;       ///< for a fleet that changes: how long each size was paid for
  std::int64_t replica_starts = 0, replica_failures = 0;
  std::int64_t requeued = 0;           ///< requests taken over from a failed replica
  std::int64_t lost = 0;               ///< requests lost with a failed replica; part of `failed`
  std::vector<ClientMetrics> clients;  ///< in the order of WorkloadSpec::clients; empty without them
  Distribution ttft_ms, tpot_ms, itl_ms, e2el_ms, queue_ms;
  Distribution ttfat_ms;  ///< of requests that think before they answer
  std::int64_t iterations = 0, preemptions = 0;
  double cached_tokens = 0;
  /// Share of the input tokens whose keys and values were cached.
  double prefix_cache_hit_rate() const { return input_tokens > 0 ? cached_tokens / input_tokens : 0.0; }
  /// KV blocks in host memory (EngineSpec::kv_offload), per GPU of each replica: loaded back, stored.
  double offload_loaded_tokens = 0, offload_loaded_bytes = 0, offload_stored_bytes = 0;
  /// Within `duration`, without the warm-up.
  double gpu_busy_seconds = 0;   ///< summed over replicas
  double flops = 0, bytes = 0;   ///< of all GPUs
  double front_end_seconds = 0;  ///< time in which front ends sent tokens, summed over replicas
  /// The part of these three that belongs to prefill-only replicas.
  double prefill_busy_seconds = 0, prefill_flops = 0, prefill_bytes = 0;
  double kv_peak_usage = 0;  ///< share of the pool
  /// Byte-seconds of private cache of running sequences: reserved, and filled with tokens.
  double kv_held = 0, kv_filled = 0;
  /// Tokens that went through the layers, and those of them that were padding or belonged to ended sequences.
  double computed_tokens = 0, padding_tokens = 0;
  double drafted_tokens = 0, accepted_tokens = 0;
  AdapterMetrics adapters;
  double tier_tokens = 0;  ///< part of offload_loaded_tokens that came from tiers beyond host memory
  double sample_tokens = 0,
         dropped_sample_tokens = 0;  ///< generated for prompts with several sequences, but not returned
};

}  // namespace roofcast
