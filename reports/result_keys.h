#pragma once
// The keys of every kind of result. Writers are checked against them, and readers can only name these keys
// (reports/result_schema.h). A group is at a place of the JSON: "memory.weight_bytes" at the top, "time_us" in every
// entry of the list "operators[]." A result may have undeclared keys, but charts, the JSON Schema
// (reports/json_schema.h) and the Python classes do not know them.

#include "reports/key_group.h"

namespace roofcast::reports::result_keys {

// Keys that several kinds share.
inline constexpr auto kDeployment = keys("model", "gpu", "engine", "engine_version", "recipe", "parallelism.tp",
                                         "parallelism.pp", "parallelism.attention_dp", "parallelism.ep",
                                         "precision.weights", "precision.activations", "precision.kv_cache");
inline constexpr auto kContextParallel = keys("parallelism.dcp");
inline constexpr auto kProvenance = keys("parameters", "source", "fidelity", "kernels", "roofcast_version");
inline constexpr auto kReleases =
    keys("kernels_release", "kernels_of_another_release", "engine_beyond_known", "engine_version_assumed");
inline constexpr auto kLatencies =
    keys("mean_ttft_ms", "median_ttft_ms", "p90_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "median_tpot_ms",
         "p90_tpot_ms", "p99_tpot_ms", "mean_itl_ms", "median_itl_ms", "p90_itl_ms", "p99_itl_ms", "mean_e2el_ms",
         "median_e2el_ms", "p90_e2el_ms", "p99_e2el_ms");
inline constexpr auto kObjective = keys("objective", "limit_ms", "value_ms", "met");
inline constexpr auto kLoad = keys("duration", "completed", "failed", "request_throughput", "request_goodput",
                                   "output_throughput", "total_token_throughput", "p99_queue_ms", "gpu_utilization",
                                   "mfu", "mbu", "kv_cache_peak_usage", "preemptions");

/// The question: fidelity, document, and for an estimate its batch and lengths.
inline constexpr auto kQuestion = keys("question");
inline constexpr auto kPrice =
    keys("usd_per_gpu_hour", "tier", "provider", "region", "date", "source", "checked", "gpus_per_host");
inline constexpr auto kBill = keys("usd_per_million_input_tokens", "usd_per_million_cached_input_tokens",
                                   "usd_per_million_total_tokens", "paid_gpus");

// estimate
inline constexpr auto kEstimate =
    keys("batch", "prompt_tokens", "output_tokens", "memory.weight_bytes", "memory.kv_cache_bytes_per_token",
         "memory.state_bytes_per_sequence", "memory.kv_cache_bytes", "memory.activation_bytes", "memory.capacity_bytes",
         "memory.fits", "memory.max_batch", "memory.max_context", "prefill.time_ms", "prefill.flops", "prefill.bytes",
         "prefill.bound", "decode.step_ms", "decode.flops", "decode.bytes", "decode.bound", "ttft_ms", "ttft_ms_low",
         "ttft_ms_high", "tpot_ms", "tpot_ms_low", "tpot_ms_high", "request_latency_ms", "output_tokens_per_s",
         "request_output_tokens_per_s", "cost.usd_per_hour", "cost.usd_per_million_output_tokens",
         "cost.joules_per_output_token", "machine.gpus", "machine.compute_dtype", "machine.dense_flop_per_s",
         "machine.memory_bytes_per_s");
inline constexpr auto kOperator =
    keys("phase", "name", "count", "flops", "bytes", "arithmetic_intensity", "time_us", "bound", "share");
inline constexpr auto kSteps = keys("front_end_ms", "prefill.host_ms", "prefill.steps", "decode.host_ms", "waiting");
inline constexpr auto kContext = keys("context_tokens", "kv_cache_bytes");
inline constexpr auto kCalibratedMachine = keys("calibrated_flop_per_s", "calibrated_memory_bytes_per_s");
inline constexpr auto kSpeculation =
    keys("method", "num_speculative_tokens", "tokens_per_step", "speedup", "speedup_low", "speedup_high");
inline constexpr auto kSpeculationCosts = keys("acceptance", "tokens_per_step_bound", "plain_step_ms", "draft_ms",
                                               "verify_ms", "best_num_speculative_tokens", "best_speedup");
inline constexpr auto kSteady = keys("steady.tpot_ms", "steady.output_tokens_per_s", "steady.front_end_utilization");
inline constexpr auto kExpertBalance = keys(
    "expert_balance.fullest_over_mean", "expert_balance.without_redundant_experts", "expert_balance.redundant_experts");
inline constexpr auto kFeatures = keys("memory.adapter_bytes", "adapters_hit", "media_tokens", "prefill_encoder_ms");
inline constexpr std::array kEstimateGroups{KeyGroup{"", kDeployment},
                                            KeyGroup{"", kContextParallel, Presence::kSometimes},
                                            KeyGroup{"", kEstimate},
                                            KeyGroup{"operators[].", kOperator},
                                            KeyGroup{"memory_by_context[].", kContext},
                                            KeyGroup{"provenance.", kProvenance},
                                            KeyGroup{"provenance.", kReleases, Presence::kSometimes},
                                            KeyGroup{"machine.", kCalibratedMachine, Presence::kTogether},
                                            KeyGroup{"speculation.", kSpeculation, Presence::kTogether},
                                            KeyGroup{"speculation.", kSpeculationCosts, Presence::kSometimes},
                                            KeyGroup{"", kQuestion, Presence::kSometimes},
                                            KeyGroup{"", kSteps, Presence::kSometimes},
                                            KeyGroup{"", kSteady, Presence::kSometimes},
                                            KeyGroup{"", kExpertBalance, Presence::kSometimes},
                                            KeyGroup{"", kFeatures, Presence::kSometimes},
                                            KeyGroup{"cost.", kBill, Presence::kSometimes},
                                            KeyGroup{"price.", kPrice, Presence::kSometimes}};

// simulation
inline constexpr auto kSimulation = keys(
    "replicas", "gpus", "workload", "seed", "total_input_tokens", "total_output_tokens", "mean_queue_ms",
    "prefix_cache_hit_rate", "energy_joules", "cost.usd_per_hour", "cost.usd", "cost.usd_per_million_output_tokens",
    "cost.usd_per_million_total_tokens", "cost.joules_per_output_token", "iterations");
inline constexpr auto kSaturated = keys("saturated");
inline constexpr auto kInterval = keys("start_s", "end_s", "waiting", "running", "kv_cache_usage", "busy",
                                       "prompt_tokens_per_s", "output_tokens_per_s", "completed");
inline constexpr auto kIntervalFleet = keys("replicas", "replicas_starting", "replicas_down");
inline constexpr auto kSpreads = keys("std_ttft_ms", "std_tpot_ms", "std_itl_ms", "std_e2el_ms");
inline constexpr auto kClient = keys("name", "completed", "total_input_tokens", "total_output_tokens", "mean_ttft_ms",
                                     "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "mean_e2el_ms", "p99_e2el_ms");
inline constexpr auto kUse = keys("mean_power_watts", "mean_power_watts_low", "mean_power_watts_high", "front_end_ms",
                                  "front_end_utilization", "kv_cache_waste", "padding_share");
inline constexpr auto kAdapters = keys("hit_rate", "loads", "disk_reads", "loaded_bytes");
inline constexpr auto kThinking = keys("mean_ttfat_ms", "p99_ttfat_ms");
inline constexpr auto kClientGood = keys("good_share"), kTiers = keys("hit_rate");
inline constexpr auto kSamples = keys("generated_tokens", "dropped_tokens");
inline constexpr auto kOffload = keys("hit_rate", "loaded_bytes", "stored_bytes");
inline constexpr std::array kSimulationGroups{KeyGroup{"", kDeployment},
                                              KeyGroup{"", kContextParallel, Presence::kSometimes},
                                              KeyGroup{"", kSimulation},
                                              KeyGroup{"", kLoad},
                                              KeyGroup{"", kSaturated, Presence::kTogether},
                                              KeyGroup{"", kLatencies},
                                              KeyGroup{"provenance.", kProvenance},
                                              KeyGroup{"provenance.", kReleases, Presence::kSometimes},
                                              KeyGroup{"objectives[].", kObjective, Presence::kTogether},
                                              KeyGroup{"intervals[].", kInterval, Presence::kTogether},
                                              KeyGroup{"intervals[].", kIntervalFleet, Presence::kTogether},
                                              KeyGroup{"", kQuestion, Presence::kSometimes},
                                              KeyGroup{"", kSpreads, Presence::kSometimes},
                                              KeyGroup{"", kUse, Presence::kSometimes},
                                              KeyGroup{"adapters.", kAdapters, Presence::kTogether},
                                              KeyGroup{"kv_offload.", kOffload, Presence::kTogether},
                                              KeyGroup{"", kThinking, Presence::kTogether},
                                              KeyGroup{"clients[].", kClientGood, Presence::kTogether},
                                              KeyGroup{"kv_tiers.", kTiers, Presence::kTogether},
                                              KeyGroup{"samples.", kSamples, Presence::kTogether},
                                              KeyGroup{"cost.", kBill, Presence::kSometimes},
                                              KeyGroup{"price.", kPrice, Presence::kSometimes},
                                              KeyGroup{"clients[].", kClient, Presence::kTogether}};

// sweep: a point has the metrics of an estimate or a simulation, flattened; only "fits" if it does not fit
inline constexpr auto kSweep = keys("name", "run", "roofcast_version", "keys");
inline constexpr auto kPointRun =
    keys("engine_version", "total_input_tokens", "total_output_tokens", "prefix_cache_hit_rate");
inline constexpr auto kSweptName = keys("model", "gpu");  // of every point
inline constexpr auto kPointCost = keys("gpus", "output_tokens_per_s_per_gpu", "usd_per_hour",
                                        "usd_per_million_output_tokens", "joules_per_output_token");
inline constexpr auto kPointEstimate =
    keys("ttft_ms", "tpot_ms", "ttft_ms_low", "ttft_ms_high", "tpot_ms_low", "tpot_ms_high", "request_latency_ms",
         "output_tokens_per_s", "output_tokens_per_s_per_user", "request_output_tokens_per_s", "prefill_bound",
         "decode_bound", "decode_step_ms", "decode_arithmetic_intensity", "weight_bytes", "kv_cache_bytes_per_token",
         "kv_cache_bytes", "max_batch", "max_context");
inline constexpr auto kPointSimulation = keys("cancelled", "rejected");
inline constexpr auto kPoint = keys("keys"), kPointFits = keys("fits"), kPointError = keys("error"),
                      kPointReason = keys("reason"), kPointWaiting = keys("waiting"),
                      kPointObjectives = keys("objectives_met");
inline constexpr std::array kSweepGroups{KeyGroup{"", kSweep},
                                         KeyGroup{"", kSweptName, Presence::kSometimes},
                                         KeyGroup{"points[].", kPoint},
                                         KeyGroup{"points[].result.", kPointFits, Presence::kTogether},
                                         KeyGroup{"points[].result.", kPointCost, Presence::kTogether},
                                         KeyGroup{"points[].result.", kPointEstimate, Presence::kTogether},
                                         KeyGroup{"points[].result.", kPointSimulation, Presence::kTogether},
                                         KeyGroup{"points[].result.", kLoad, Presence::kTogether},
                                         KeyGroup{"points[].result.", kSaturated, Presence::kTogether},
                                         KeyGroup{"points[].result.", kLatencies, Presence::kTogether},
                                         KeyGroup{"points[].result.", kPointReason, Presence::kTogether},
                                         KeyGroup{"points[].result.", kPointWaiting, Presence::kTogether},
                                         KeyGroup{"points[].result.", kPointObjectives, Presence::kTogether},
                                         KeyGroup{"points[].result.", kBill, Presence::kSometimes},
                                         KeyGroup{"points[].result.", kPointRun, Presence::kSometimes},
                                         KeyGroup{"points[].", kPointError, Presence::kTogether}};

// plan
inline constexpr auto kPlan = keys("roofcast_version", "goal", "load_unit", "max_gpus", "search.considered",
                                   "search.simulated", "deployments", "pareto", "pareto_cost");
inline constexpr auto kPlanned =
    keys("mode", "gpus", "replicas", "spare_replicas", "max_num_seqs", "max_num_batched_tokens", "load",
         "median_ttft_ms", "p99_ttft_ms", "median_tpot_ms", "p99_tpot_ms", "median_itl_ms", "p99_itl_ms",
         "median_e2el_ms", "p99_e2el_ms", "requests_simulated", "confirmed", "output_throughput",
         "output_tokens_per_s_per_gpu", "output_tokens_per_s_per_user", "mean_power_watts", "kv_cache_peak_usage",
         "usd_per_hour", "usd_per_million_input_tokens", "usd_per_million_output_tokens",
         "usd_per_million_total_tokens", "joules_per_output_token");
inline constexpr auto kObjectiveInterval = keys("interval_low_ms", "interval_high_ms", "missed_in_draws");
inline constexpr auto kFrontierPoint =
    keys("gpu", "layout", "output_tokens_per_s_per_user", "output_tokens_per_s_per_gpu",
         "usd_per_million_output_tokens", "objectives_met");
inline constexpr auto kFrontierMore = keys("mode", "precision", "gpus", "load_per_replica", "p99_ttft_ms");
inline constexpr auto kSensitivity =
    keys("ten_percent_more", "throughput_change", "throughput_change_error", "cost_change");
inline constexpr auto kFleetCost = keys("static.usd", "scheduled.usd", "autoscaled.usd");
inline constexpr auto kFleetHour =
    keys("start_s", "end_s", "request_rate", "replicas_needed", "replicas", "replicas_most", "p99_ttft_ms");
inline constexpr auto kPlannedRisk =
    keys("probability", "usd_per_million_cached_input_tokens", "input_share_of_cost", "mean_power_watts_high");
inline constexpr auto kVerdict = keys("value_ms_high", "margin", "remark");
inline constexpr auto kSearch =
    keys("mistaken", "unsplittable", "beyond_gpus", "too_dear", "too_large", "unsupported", "unpriced", "unpowered",
         "below_availability", "disaggregated_pairs", "ruled_out_by_bounds", "simulations");
inline constexpr auto kJudged = keys("confidence", "draws", "notes", "bound", "launch_command");
inline constexpr auto kSafer = keys("confidence", "gpus", "load", "usd_per_hour");
inline constexpr auto kOwned =
    keys("gpu", "layout", "precision", "replicas", "gpus", "load", "offered_load", "probability", "usd_per_hour");
inline constexpr auto kGrowthPath = keys("gpu", "layout", "precision", "usd", "outgrown_in_month", "stages");
inline constexpr auto kGrowthStage =
    keys("month", "load", "replicas", "prefill_replicas", "spare_replicas", "gpus", "usd_per_hour", "probability");
inline constexpr auto kAdvice = keys("binds", "carries", "carries_on", "beyond", "relax");
inline constexpr std::array kPlanGroups{
    KeyGroup{"", kPlan},
    KeyGroup{"deployments[].", kDeployment},
    KeyGroup{"deployments[].", kContextParallel, Presence::kSometimes},
    KeyGroup{"deployments[].", kPlanned},
    KeyGroup{"deployments[].objectives[].", kObjective},
    KeyGroup{"deployments[].objectives[].", kObjectiveInterval, Presence::kTogether},
    KeyGroup{"deployments[].provenance.", kProvenance},
    KeyGroup{"deployments[].provenance.", kReleases, Presence::kSometimes},
    KeyGroup{"deployments[].", kPlannedRisk, Presence::kSometimes},
    KeyGroup{"deployments[].objectives[].", kVerdict, Presence::kSometimes},
    KeyGroup{"deployments[].price.", kPrice, Presence::kSometimes},
    KeyGroup{"search.", kSearch, Presence::kSometimes},
    KeyGroup{"", kQuestion, Presence::kSometimes},
    KeyGroup{"", kJudged, Presence::kSometimes},
    KeyGroup{"safer[].", kSafer, Presence::kSometimes},
    KeyGroup{"pareto[].", kFrontierPoint, Presence::kTogether},
    KeyGroup{"pareto[].", kFrontierMore, Presence::kSometimes},
    KeyGroup{"pareto_cost[].", kFrontierPoint, Presence::kSometimes},
    KeyGroup{"pareto_cost[].", kFrontierMore, Presence::kSometimes},
    KeyGroup{"pareto_by_gpu[].", kFrontierPoint, Presence::kSometimes},
    KeyGroup{"pareto_by_gpu[].", kFrontierMore, Presence::kSometimes},
    KeyGroup{"pareto_cost_by_gpu[].", kFrontierPoint, Presence::kSometimes},
    KeyGroup{"pareto_cost_by_gpu[].", kFrontierMore, Presence::kSometimes},
    KeyGroup{"sensitivities[].", kSensitivity, Presence::kTogether},
    KeyGroup{"fleet.", kFleetCost, Presence::kTogether},
    KeyGroup{"fleet.hours[].", kFleetHour, Presence::kTogether},
    KeyGroup{"owned.", kOwned, Presence::kTogether},
    KeyGroup{"growth[].", kGrowthPath, Presence::kTogether},
    KeyGroup{"growth[].stages[].", kGrowthStage, Presence::kTogether},
    KeyGroup{"advice.", kAdvice, Presence::kSometimes}};

// ladder
inline constexpr auto kLadder =
    keys("model", "gpu", "mean_prompt_tokens", "mean_output_tokens", "concurrency", "rungs");
inline constexpr auto kRung = keys("name", "help", "fits", "simulated", "gpus", "memory_bytes", "note");
inline constexpr auto kRungNumbers =
    keys("mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms", "output_tokens_per_s", "usd_per_million_output_tokens",
         "usd_per_million_total_tokens", "bound", "throughput_gain", "latency_gain", "cost_gain", "total_gain");
inline constexpr std::array kLadderGroups{KeyGroup{"", kLadder}, KeyGroup{"", kQuestion, Presence::kSometimes},
                                          KeyGroup{"rungs[].", kRung},
                                          KeyGroup{"rungs[].", kRungNumbers, Presence::kTogether}};

// comparison
inline constexpr auto kComparison = keys("bench.file", "bench.tool", "bench.model", "metrics", "mismatches",
                                         "difference_as_written", "difference", "assumptions", "not_tried", "findings");
inline constexpr auto kTimeShares = keys("tpot", "ttft");
inline constexpr auto kComparedMetric = keys("metric", "measured", "predicted", "predicted_as_written", "ratio");
inline constexpr auto kComparedInterval = keys("low", "high");
inline constexpr auto kOutside = keys("outside_interval");
inline constexpr auto kAssumption = keys("change", "predicted", "difference", "explains", "check");
inline constexpr std::array kComparisonGroups{KeyGroup{"", kDeployment},
                                              KeyGroup{"", kContextParallel, Presence::kSometimes},
                                              KeyGroup{"", kComparison},
                                              KeyGroup{"", kQuestion, Presence::kSometimes},
                                              KeyGroup{"where_the_time_goes.", kTimeShares, Presence::kTogether},
                                              KeyGroup{"", kOutside, Presence::kSometimes},
                                              KeyGroup{"metrics[].", kComparedMetric},
                                              KeyGroup{"metrics[].", kComparedInterval, Presence::kSometimes},
                                              KeyGroup{"assumptions[].", kAssumption},
                                              KeyGroup{"provenance.", kProvenance},
                                              KeyGroup{"provenance.", kReleases, Presence::kSometimes}};

// validation: "of" is kernels, serving or requests
inline constexpr auto kValidation = keys("of");
inline constexpr auto kErrors = keys("group", "rows", "mape", "median", "p90", "bias");
inline constexpr auto kKernelErrors = keys("op", "time_weighted", "coverage");
inline constexpr auto kServingErrors =
    keys("metric", "spearman", "repeats.rows", "repeats.mape", "neighbours.rows", "neighbours.mape");
inline constexpr auto kCoverage = keys("class", "metric", "rows", "coverage", "median_ratio");
inline constexpr auto kSpread = keys("load", "metric", "rows", "ln_ratio_p5", "ln_ratio_p50", "ln_ratio_p95");
inline constexpr auto kStatistic = keys("metric", "statistic", "measured_ms", "predicted_ms", "error");
inline constexpr std::array kValidationGroups{KeyGroup{"", kValidation},
                                              KeyGroup{"groups[].", kErrors, Presence::kTogether},
                                              KeyGroup{"groups[].", kKernelErrors, Presence::kTogether},
                                              KeyGroup{"groups[].", kServingErrors, Presence::kTogether},
                                              KeyGroup{"coverage[].", kCoverage, Presence::kTogether},
                                              KeyGroup{"spreads[].", kSpread, Presence::kTogether},
                                              KeyGroup{"statistics[].", kStatistic, Presence::kTogether}};

// calibration: acceptance of drafts
inline constexpr auto kAcceptance =
    keys("group", "num_speculative_tokens", "runs", "p25", "median", "p75", "tokens_per_step", "outside");
inline constexpr auto kCalibration = keys("of");  // acceptance | constants | measurements | fit | host | power
inline constexpr auto kCeiling = keys("ceiling", "value", "unit", "datasheet", "share", "relative_error", "from");
inline constexpr auto kConstant =
    keys("family", "block", "constant", "value", "standard_error", "rows", "mape", "discrepancy", "standing");
inline constexpr auto kMeasuredOp = keys("op", "rows", "mape", "median", "bias");
inline constexpr auto kMeasuredStep = keys("batch", "context", "measured_ms", "estimated_ms", "error");
inline constexpr auto kFit = keys("block", "family", "rows", "mape", "median", "p90", "bias", "time_weighted",
                                  "left_out.rows", "left_out.mape", "discrepancy");
inline constexpr auto kHostCost = keys("cost", "value", "unit", "standing");
inline constexpr auto kHostRun = keys("run", "ttft_error", "tpot_error");
inline constexpr auto kPowerCurve =
    keys("power.static_share", "power.compute_share", "power.memory_share", "power.runs");
inline constexpr auto kPowerErrors =
    keys("left_out", "gpu", "runs", "median", "p90", "bias", "ln_ratio_p5", "ln_ratio_p95");
inline constexpr std::array kCalibrationGroups{
    KeyGroup{"", kCalibration, Presence::kSometimes},         KeyGroup{"groups[].", kAcceptance, Presence::kTogether},
    KeyGroup{"ceilings[].", kCeiling, Presence::kTogether},   KeyGroup{"constants[].", kConstant, Presence::kTogether},
    KeyGroup{"kernels[].", kMeasuredOp, Presence::kTogether}, KeyGroup{"steps[].", kMeasuredStep, Presence::kTogether},
    KeyGroup{"fits[].", kFit, Presence::kTogether},           KeyGroup{"host[].", kHostCost, Presence::kTogether},
    KeyGroup{"runs[].", kHostRun, Presence::kTogether},       KeyGroup{"", kPowerCurve, Presence::kSometimes},
    KeyGroup{"errors[].", kPowerErrors, Presence::kTogether}};

// lecture
inline constexpr auto kLecture = keys("lecture", "sources");
inline constexpr auto kLectureTable = keys("title", "columns", "rows");
inline constexpr std::array kLectureGroups{KeyGroup{"", kLecture}, KeyGroup{"tables[].", kLectureTable}};

// import: the document's own keys are next to these
inline constexpr auto kImport = keys("of");  // model | scenario
inline constexpr std::array kImportGroups{KeyGroup{"", kImport}};

// The columns of `simulate --requests-out`.
inline constexpr auto kRequestColumns =
    keys("request_id", "arrival_s", "prompt_tokens", "output_tokens", "ttft_ms", "tpot_ms", "e2el_ms", "queue_ms",
         "cached_tokens", "preemptions", "replica");

}  // namespace roofcast::reports::result_keys
