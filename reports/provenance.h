#pragma once
#include <nlohmann/json.hpp>

#include "sim/plan/prices.h"

namespace roofcast {
struct Deployment;
struct EngineSpec;
}  // namespace roofcast

namespace roofcast::reports {

/// {parameters: measured | carried_over | datasheet, source, carried_over_from, gpu, engine, fidelity, version}
nlohmann::ordered_json provenance_json(const Deployment& deployment);
/// The same as one line for tables.
std::string provenance_line(const Deployment& deployment);

/// {usd_per_gpu_hour, tier, provider, region, date, source, gpus_per_host}
nlohmann::ordered_json price_json(const PriceQuote* quote);

/// "10.76 USD/h; USD per million tokens: ..." from the `cost` of a result, or that the cost is unknown.
std::string cost_line(const nlohmann::ordered_json& cost);

/// "8 GPUs are paid for: instances are rented whole" if that exceeds the GPUs used; else empty.
std::string paid_line(const Bill& bill, double gpus);

/// "vllm 0.12.0"
std::string engine_name(const EngineSpec& engine);

/// {model, gpu, engine, parallelism{}, precision{}} as requested.
nlohmann::ordered_json deployment_json(const Deployment& deployment);
/// "llama-3.1-70b on 4 x h100-sxm (tp 4), vllm, bf16 weights, bf16 KV"; with both formats if experts have another one.
std::string deployment_line(const Deployment& deployment);

}  // namespace roofcast::reports
