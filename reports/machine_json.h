#pragma once
#include <nlohmann/json.hpp>

namespace roofcast {
struct Deployment;
}  // namespace roofcast

namespace roofcast::reports {

/// Roofline ceilings of one GPU: {compute_dtype, dense_flop_per_s, memory_bytes_per_s, calibrated_..., gpus}. The
/// calibrated ones are what large GEMMs reach: datasheet x compute_efficiency x sustained_clock, and datasheet x
/// bandwidth_efficiency.
nlohmann::ordered_json machine_json(const Deployment& deployment);

/// [{context_tokens, kv_cache_bytes}] of `batch` sequences up to the longest context worth showing.
nlohmann::ordered_json memory_by_context_json(const Deployment& deployment, double batch, double context);

}  // namespace roofcast::reports
