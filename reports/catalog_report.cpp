#include "reports/catalog_report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/result_schema.h"
#include "reports/table.h"
#include "sim/model/memory.h"
#include "sim/plan/power.h"
#include "sim/plan/prices.h"

namespace roofcast::reports {
namespace {

Json model_json(const ModelSpec& model) {
  const ParameterCount count = count_parameters(model);
  const CacheLayout cache = cache_layout(model, model.precision, {});
  Json layers = Json::array();
  for (const LayerKind& kind : model.layers) layers.push_back({{"kind", kind.name}, {"count", kind.count}});
  return {{"name", model.name},
          {"family", model.family},
          {"parameters", {{"total", count.total}, {"active", count.active}, {"embedding", count.embedding}}},
          {"weight_bytes", weight_bytes(model, model.precision, {}).base()},
          {"kv_cache_bytes_per_token", cache.bytes_per_token().base()},
          {"state_bytes_per_sequence", cache.state_per_sequence.base()},
          {"hidden_size", model.hidden},
          {"vocabulary", model.vocabulary},
          {"max_context", model.max_context},
          {"precision",
           {{"weights", name_of(model.precision.weights)},
            {"activations", name_of(model.precision.activations)},
            {"kv_cache", name_of(model.precision.kv_cache)}}},
          {"layers", layers},
          {"assumptions", model.assumptions}};
}

std::string model_text(const ModelSpec& model) {
  const Json json = model_json(model);
  const ParameterCount count = count_parameters(model);
  Table table({"", model.name});
  table.row({"family", model.family});
  table.row({"parameters", fmt::format("{:.2f} B", count.total / 1e9)});
  table.row({"active per token", fmt::format("{:.2f} B", count.active / 1e9)});
  table.row({"weights", human_bytes(json["weight_bytes"].get<double>())});
  table.row({"KV cache per token", human_bytes(json["kv_cache_bytes_per_token"].get<double>())});
  table.row({"state per sequence", human_bytes(json["state_bytes_per_sequence"].get<double>())});
  table.row({"hidden size", plain_number(model.hidden, 6)});
  table.row({"vocabulary", plain_number(model.vocabulary, 7)});
  for (const LayerKind& kind : model.layers) table.row({"layers", fmt::format("{} x {}", kind.count, kind.name)});
  for (const std::string& assumption : model.assumptions) table.row({"assumed", assumption});
  return table.words(1).text();
}

/// Rounds a datasheet figure in its own unit: 2039 GB/s instead of 2039.0000000000002 after multiplication and
/// division.
template <class Q>
double as_written(Q value, Q unit) {
  return std::stod(fmt::format("{:.12g}", value.in(unit)));
}

Json gpu_json(const GpuSpec& gpu) {
  Json dense;
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    if (gpu.dense[i] > FlopsPerSecond(0))
      dense[std::string(dtype_names()[i]) + "_tflop_per_s"] = as_written(gpu.dense[i], kTeraflopPerSecond);
  }
  return {{"name", gpu.name},
          {"architecture", name_of(gpu.architecture)},
          {"announced", gpu.announced},
          {"sm_count", gpu.sm_count},
          {"memory_bytes", std::round(gpu.memory_capacity.base())},
          {"memory_bandwidth_gb_per_s", as_written(gpu.memory_bandwidth, kGigabytePerSecond)},
          {"dense", dense},
          {"ridge_flop_per_byte", gpu.peak(Dtype::kBf16) / gpu.memory_bandwidth / FlopsPerByte(1)},
          {"l2_bytes", gpu.l2_cache.base()},
          {"board_power_w", power_known(gpu) ? Json(gpu.board_power.value) : Json(nullptr)},
          {"usd_per_hour", list_price(gpu).value},
          {"gpus_per_node", gpu.node.gpus_per_node},
          {"fabric", name_of(gpu.node.fabric)},
          {"switch_reduces", gpu.node.switch_reduces},
          {"nvlink_domain", gpu.node.fabric_domain},
          {"nvlink_gb_per_s", as_written(gpu.node.fabric_bandwidth, kGigabytePerSecond)},
          {"pcie_gb_per_s", as_written(gpu.node.pcie_bandwidth, kGigabytePerSecond)},
          {"nic_gb_per_s", as_written(gpu.node.nic_bandwidth, kGigabytePerSecond)}};
}

/// {a: {b: [1]}} as rows "a.b.0" and 1: four digits in tables, full precision as data.
void flat_rows(const Json& json, const std::string& prefix, bool full, Table& table) {
  const auto row = [&](const std::string& key, const Json& value) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_structured()) return flat_rows(value, name, full, table);
    table.row({name, value.is_string()                 ? value.get<std::string>()
                     : value.is_null()                 ? ""
                     : value.is_number_float() && full ? fmt::format("{}", value.get<double>())
                     : value.is_number() && !full      ? plain_number(value.get<double>(), 5)
                                                       : value.dump()});
  };
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) row(key, value);
  } else {
    for (std::size_t i = 0; i < json.size(); ++i) row(std::to_string(i), json[i]);
  }
}

}  // namespace

std::string flat_table(const nlohmann::ordered_json& json, const std::string& format) {
  Table table({"key", "value"});
  flat_rows(json, "", format == "csv", table);
  return format == "csv" ? table.csv() : table.text();
}

std::string catalog_text(std::string_view of, const Json& entries) {
  Json out = result_head(ResultKind::kCatalog, of);
  out["entries"] = entries;
  return result_text(out);
}

std::string entry_text(std::string_view of, const Json& entry) {
  Json out = result_head(ResultKind::kCatalogEntry, of);
  out.update(entry);
  return result_text(out);
}

std::string model_report(const ModelSpec& model, const std::string& format) {
  if (format == "table") return model_text(model);
  const Json json = model_json(model);
  return format == "json" ? entry_text("models", json) : flat_table(json, format);
}

std::string gpu_report(const GpuSpec& gpu, const std::string& format) {
  const Json json = gpu_json(gpu);
  return format == "json" ? entry_text("gpus", json) : flat_table(json, format);
}

std::string models_report(std::span<const ModelSpec> models, const std::string& format) {
  const bool csv = format == "csv";
  Json entries = Json::array();
  Table table(csv ? std::vector<std::string>{"name", "family", "parameters", "active_parameters", "weight_bytes",
                                             "kv_cache_bytes_per_token", "max_context"}
                  : std::vector<std::string>{"model", "params", "active", "weights", "KV/token", "context", "family"});
  if (!csv) table.words(1);
  for (const ModelSpec& model : models) {
    const ParameterCount count = count_parameters(model);
    const double weights = weight_bytes(model, model.precision, {}).base();
    const double cache = cache_layout(model, model.precision, {}).bytes_per_token().base();
    if (format == "json") {
      entries.push_back({{"name", model.name},
                         {"family", model.family},
                         {"parameters", count.total},
                         {"active_parameters", count.active},
                         {"weight_bytes", weights},
                         {"kv_cache_bytes_per_token", cache},
                         {"max_context", model.max_context}});
    } else if (csv) {
      table.row({model.name, model.family, fmt::format("{:.0f}", count.total), fmt::format("{:.0f}", count.active),
                 fmt::format("{:.0f}", weights), fmt::format("{:.0f}", cache), fmt::format("{}", model.max_context)});
    } else {
      const auto billions = [](double n) { return significant(n / 1e9, 3) + " B"; };
      table.row({model.name, billions(count.total), billions(count.active), human_bytes(weights),
                 cache > 0 ? human_bytes(cache) : "none",
                 model.max_context > 0 ? fmt::format("{}", model.max_context) : "", model.family});
    }
  }
  if (format == "json") return catalog_text("models", entries);
  return csv ? table.csv() : table.text();
}

std::string gpus_report(std::span<const GpuSpec> gpus, const std::string& format) {
  const bool csv = format == "csv";
  Json entries = Json::array();
  Table table(csv ? std::vector<std::string>{"name", "architecture", "memory_bytes", "memory_bandwidth_gb_per_s",
                                             "bf16_tflop_per_s", "usd_per_hour"}
                  : std::vector<std::string>{"GPU", "memory", "bandwidth", "bf16", "USD/h", "architecture"});
  if (!csv) table.words(1);
  for (const GpuSpec& gpu : gpus) {
    const double bf16 = gpu.peak(Dtype::kBf16).base(), price = list_price(gpu).value;
    const std::string architecture(name_of(gpu.architecture));
    if (format == "json") {
      entries.push_back({{"name", gpu.name},
                         {"architecture", architecture},
                         {"memory_bytes", std::round(gpu.memory_capacity.base())},
                         {"memory_bandwidth_gb_per_s", as_written(gpu.memory_bandwidth, kGigabytePerSecond)},
                         {"bf16_tflop_per_s", bf16 / 1e12},
                         {"usd_per_hour", price}});
    } else if (csv) {
      table.row({gpu.name, architecture, fmt::format("{:.0f}", gpu.memory_capacity.base()),
                 fmt::format("{}", as_written(gpu.memory_bandwidth, kGigabytePerSecond)),
                 fmt::format("{}", bf16 / 1e12), fmt::format("{}", price)});
    } else {
      table.row({gpu.name + (gpu.announced ? " (announced)" : ""), human_bytes(gpu.memory_capacity.base()),
                 human_bytes(gpu.memory_bandwidth.base()) + "/s", human_count(bf16) + "FLOP/s",
                 price > 0 ? fmt::format("{:.2f}", price) : "", architecture});
    }
  }
  if (format == "json") return catalog_text("gpus", entries);
  return csv ? table.csv() : table.text();
}

}  // namespace roofcast::reports
