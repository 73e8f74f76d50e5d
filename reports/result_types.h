#pragma once
// The types of result keys that are not numbers. A path is "place" and "key" of reports/result_keys.h; the longest
// entry that it ends in counts, comparing whole parts: "rungs[].simulated" before "simulated".

#include <array>
#include <string_view>

namespace roofcast::reports::result_types {

enum class Type { kNumber, kInteger, kText, kFlag, kTexts, kNumberOrNull, kObject, kAny };

struct Entry {
  std::string_view path;
  Type type;
};

template <Type type, class... Paths>
consteval auto all(Paths... paths) {
  return std::array<Entry, sizeof...(paths)>{Entry{paths, type}...};
}

inline constexpr auto kTexts = all<Type::kText>(
    "model", "gpu", "engine", "engine_version", "recipe", "precision.weights", "precision.activations",
    "precision.kv_cache", "parameters", "source", "fidelity", "kernels", "kernels_release", "roofcast_version",
    "objective", "tier", "provider", "region", "date", "bound", "prefill_bound", "decode_bound", "compute_dtype",
    "phase", "name", "method", "workload", "run", "reason", "error", "goal", "load_unit", "mode", "binds", "carries_on",
    "ten_percent_more", "pareto[].layout", "pareto[].precision", "pareto_cost[].layout", "pareto_cost[].precision",
    "pareto_by_gpu[].layout", "pareto_by_gpu[].precision", "pareto_cost_by_gpu[].layout",
    "pareto_cost_by_gpu[].precision", "help", "note", "file", "tool", "metric", "change", "check", "of", "group", "op",
    "class", "spreads[].load", "statistic", "ceiling", "unit", "from", "lecture", "title", "family", "block",
    "constant", "standing", "host[].cost", "run", "launch_command", "left_out", "remark", "services[].layout",
    "services[].formats", "binding_limits[].limit");
inline constexpr auto kFlags =
    all<Type::kFlag>("fits", "met", "saturated", "confirmed", "objectives_met", "rungs[].simulated",
                     "constants[].stated", "kernels_of_another_release", "engine_beyond_known",
                     "engine_version_assumed", "complete", "checked", "fleet_found", "proven_cheapest");
inline constexpr auto kIntegers = all<Type::kInteger>(
    "batch", "prompt_tokens", "output_tokens", "tp", "pp", "dcp", "attention_dp", "ep", "gpus_per_host",
    "num_speculative_tokens", "best_num_speculative_tokens", "seed", "iterations", "max_gpus", "considered",
    "search.simulated", "mistaken", "unsplittable", "beyond_gpus", "too_large", "unsupported", "unpriced", "unpowered",
    "below_availability", "disaggregated_pairs", "ruled_out_by_bounds", "simulations", "draws", "spare_replicas",
    "max_num_seqs", "max_num_batched_tokens", "requests_simulated", "concurrency", "rows", "redundant_experts");
inline constexpr auto kLists =
    all<Type::kTexts>("keys", "notes", "advice.beyond", "growth[].beyond", "relax", "not_tried", "findings",
                      "outside_interval", "sources", "tables[].columns");
inline constexpr auto kNullable = all<Type::kNumberOrNull>(
    "probability", "spearman", "ratio", "predicted_as_written", "ceilings[].datasheet", "ceilings[].share",
    "standard_error", "limits.max_cost_usd_per_hour", "limits.max_power_watts", "bought[].available",
    "services[].usd_per_hour", "services[].usd_per_hour_alone", "bought[].usd_per_gpu_hour", "total.usd_per_hour",
    "total.usd_per_hour_apart", "growth[].usd_per_hour", "binding_limits[].usd_per_hour", "metrics[].low",
    "metrics[].high", "missed_in_draws", "interval_low_ms", "interval_high_ms", "energy_joules",
    "joules_per_output_token", "mean_power_watts", "mean_power_watts_low", "mean_power_watts_high",
    "grams_co2_per_million_output_tokens", "mean_ttft_ms", "median_ttft_ms", "std_ttft_ms", "p90_ttft_ms",
    "p99_ttft_ms", "mean_tpot_ms", "median_tpot_ms", "std_tpot_ms", "p90_tpot_ms", "p99_tpot_ms", "mean_itl_ms",
    "median_itl_ms", "std_itl_ms", "p90_itl_ms", "p99_itl_ms", "mean_e2el_ms", "median_e2el_ms", "std_e2el_ms",
    "p90_e2el_ms", "p99_e2el_ms", "mean_queue_ms", "p99_queue_ms", "objectives[].value_ms", "usd_per_hour", "usd",
    "usd_per_gpu_hour", "usd_per_million_input_tokens", "usd_per_million_cached_input_tokens",
    "usd_per_million_output_tokens", "usd_per_million_total_tokens");
inline constexpr auto kObjects =
    all<Type::kObject>("points[].keys", "question", "where_the_time_goes.tpot", "where_the_time_goes.ttft",
                       "assumptions[].predicted", "services[].plan");
inline constexpr auto kLoose = all<Type::kAny>("mismatches", "shared_instances[].services", "tables[].rows");

}  // namespace roofcast::reports::result_types
