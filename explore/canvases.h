#pragma once
// The data of the explorer's pictures, one function each. All numbers come from the layers below; keys end in their
// units, as in `roofcast estimate --format json`.

#include <nlohmann/json.hpp>

#include "explore/query.h"

namespace roofcast::explore {

using Json = nlohmann::ordered_json;

/// {front_end_ms, prefill_ms, ttft_ms, request_latency_ms, tokens: [{token, at_ms}]}: a single request (whatever the
/// batch) from its arrival to its last token, with at most `points` of its tokens.
Json timeline_json(const Setup& setup, const Query& query);

/// {machine, ridge_flop_per_byte, ceilings: [{name, points: [[FLOP/B, FLOP/s]]}], steps: [...], operators: [...]}, the
/// last two with arithmetic_intensity and achieved_flop_per_s.
Json roofline_json(const Setup& setup, const Query& query);

/// {phases: [{phase, time_ms, bound, parts: [{name, share, time_ms}]}]}: the parts of prefill and of a decode step,
/// largest first; the host's part is what the GPU does not hide.
Json breakdown_json(const Setup& setup, const Query& query);

/// Attention of one prompt, all layers of one GPU: {score_matrix_bytes, sram_bytes, tile_rows, gain, kernels: [{kernel,
/// attention_ms, attention_bytes, attention_flops, step_ms}]}, naive and flash; a `reason` and no kernels for a model
/// without grouped attention. The matrix is that of one head and layer, the SRAM that of one SM.
Json tiles_json(const Setup& setup, const Query& query);

/// Memory of the GPU that holds most against the context of every sequence: {weight_bytes, activation_bytes,
/// capacity_bytes, usable_bytes, context_tokens, full_at_tokens, points: [{context_tokens, kv_cache_bytes}]}.
/// full_at_tokens is where the cache fills its memory; `reason` says why the setup does not fit, and what would.
Json memory_json(const Setup& setup, const Query& query);

/// Latency and throughput by batch: {points: [...], knee_batch, left_out}. The knee is the batch with the highest power
/// B / t^2 up to constants: below it a larger batch gains more throughput than it costs latency, above it less
/// (Kleinrock, 1979, "Power and deterministic rules of thumb for probabilistic problems in computer communications").
Json throughput_json(const Setup& setup, const Query& query);

/// Speed-up of decoding by k and acceptance, for the requested method (eagle by default):
/// {method, assumed, plain_step_ms, points: [{num_speculative_tokens, draft_ms, verify_ms, speedup: {acceptance: x}}]}.
Json speculation_json(const Setup& setup, const Query& query);

/// Rounds of speculation drawn with `seed`: {rounds: [{drafts: [accepted | rejected | discarded], tokens, start_ms,
/// draft_ms, verify_ms, end_ms}], plain_ms}; plain_ms is the same number of tokens without speculation.
Json rounds_json(const Setup& setup, const Query& query);

/// The KV cache token by token: work of a step with it and without it:
/// {points: [{step, cached_tokens, kv_cache_bytes, tokens_with, tokens_without, flops_with, ..., saved_share}]}.
Json cache_steps_json(const Setup& setup, const Query& query);

/// The same deployment in every number format: bits per number, and the effect on memory, speed and cost.
Json formats_json(const Setup& setup, const Query& query);

/// The same deployment with every kind of attention: bytes per token, capacity, speed.
Json attention_json(const Setup& setup, const Query& query);

/// The same deployment on every shipped GPU, each at its best batch within `max_tpot_ms`, cheapest tokens first; those
/// that do not fit or are slower come last.
Json costs_json(const Setup& setup, const Query& query);

/// `requests` requests with uneven outputs, `slots` sequences at a time, simulated with static and continuous batching:
/// {runs: [{scheduler, duration_ms, output_tokens_per_s, slot_use, requests: [...]}]}; no runs and a `reason` if the
/// model does not fit.
Json batching_json(const Setup& setup, const Query& query);

// canvases_lessons.cpp

/// Batch against context: {max_tpot_ms, batches, contexts, cells: [{batch, context_tokens, fits, tpot_ms, verdict}]};
/// a verdict is meets, misses or "does not fit". A decode step of that many sequences with that many tokens each.
Json limits_json(const Setup& setup, const Query& query);

/// Sequences with different output lengths, in memory reserved for the longest output and in blocks: {block_tokens,
/// reserved_tokens, capacity_tokens, sequences: [{tokens, blocks}], reserving and paging: {sequences, used_share},
/// gain}; no numbers and a `reason` if nothing fits or no cache grows.
Json paging_json(const Setup& setup, const Query& query);

/// The prefill of a prompt with a cached prefix: {prefill_ms, points: [{cached_tokens, prefill_ms, speedup,
/// saved_share}]}.
Json prefix_json(const Setup& setup, const Query& query);

/// The output of `roofcast ladder --format json` for this setup, with at most 64 users.
Json stack_json(const Setup& setup, const Query& query);

/// A worked example: weights as 8-bit integers with one scale per tensor and with one per channel: {tensor_scale, rows:
/// [{weights, by_tensor, by_channel}]}, each of the two {scale, integers, error}.
Json integers_json(const Setup& setup, const Query& query);

/// Keys of a canvas in addition to those of a setup.
inline const std::vector<QueryKey> kNoKeys{};
const std::vector<QueryKey>& timeline_keys();
const std::vector<QueryKey>& rounds_keys();
const std::vector<QueryKey>& cache_steps_keys();
const std::vector<QueryKey>& batching_keys();
const std::vector<QueryKey>& costs_keys();
const std::vector<QueryKey>& speculation_keys();
const std::vector<QueryKey>& limits_keys();
const std::vector<QueryKey>& paging_keys();
const std::vector<QueryKey>& integers_keys();

/// The setup with `key` set to `value`, and its estimate; or the text of an error.
struct Variation {
  std::optional<Setup> setup;
  std::optional<Estimate> estimate;
  std::string error;
};
Variation vary(Query query, const std::string& key, const std::string& value);
/// One row of a table of variations: {fits, ttft_ms, tpot_ms, output_tokens_per_s, weight_bytes, ...}, or {error}.
/// {error}.
Json variation_json(const Variation& variation);

}  // namespace roofcast::explore
