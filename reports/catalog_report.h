#pragma once
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "hw/gpu_spec.h"
#include "sim/model/model_spec.h"
#include "sim/step/engine_spec.h"

namespace roofcast::reports {

/// The JSON of a list, {kind, schema, of, entries}, and of one entry, {kind, schema, of} and its own keys.
std::string catalog_text(std::string_view of, const nlohmann::ordered_json& entries);
std::string entry_text(std::string_view of, const nlohmann::ordered_json& entry);

/// One row per model: family, parameters, weights, cache per token, context.
std::string models_report(std::span<const ModelSpec> models, const std::string& format);
/// One row per GPU: memory, bandwidth, bf16 peak, price.
std::string gpus_report(std::span<const GpuSpec> gpus, const std::string& format);
/// Rows of a dotted key and its value; full precision as csv, rounded as table.
std::string flat_table(const nlohmann::ordered_json& json, const std::string& format);
std::string model_report(const ModelSpec& model, const std::string& format);
std::string gpu_report(const GpuSpec& gpu, const std::string& format);

}  // namespace roofcast::reports
