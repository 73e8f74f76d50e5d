// The same deployment over and over with one thing changed: number formats, kinds of attention, GPUs.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/config_library.h"
#include "explore/attention_variant.h"
#include "explore/canvases.h"

namespace roofcast {
namespace {

/// How a format spends its bits: sign, exponent, mantissa; integers have no exponent.
struct Format {
  Dtype dtype;
  int sign, exponent, mantissa;
};
constexpr std::array kFormats{
    Format{Dtype::kFp32, 1, 8, 23}, Format{Dtype::kBf16, 1, 8, 7},   Format{Dtype::kFp16, 1, 5, 10},
    Format{Dtype::kFp8, 1, 4, 3},   Format{Dtype::kInt8, 1, 0, 7},   Format{Dtype::kNvfp4, 1, 2, 1},
    Format{Dtype::kMxfp4, 1, 2, 1}, Format{Dtype::kInt4, 1, 0, 3},   Format{Dtype::kInt3, 1, 0, 2},
    Format{Dtype::kInt2, 1, 0, 1},  Format{Dtype::kTernary, 1, 0, 1}};

}  // namespace

Variation vary(Query query, const std::string& key, const std::string& value) {
  Variation v;
  query[key] = value;
  try {
    v.setup = read_setup(query);
    v.estimate = estimate(v.setup->scenario.deployment, v.setup->request);
  } catch (const ConfigError& error) {
    v.error = error.what();
  }
  return v;
}

Json variation_json(const Variation& v) {
  if (!v.estimate) return {{"error", v.error}};
  const Estimate& e = *v.estimate;
  return {{"fits", e.memory.fits},
          {"ttft_ms", e.ttft.in(kMillisecond)},
          {"tpot_ms", e.tpot.in(kMillisecond)},
          {"output_tokens_per_s", e.output_tokens_per_s},
          {"weight_bytes", e.memory.weights.base()},
          {"kv_cache_bytes_per_token", e.memory.cache_per_token.base()},
          {"kv_cache_bytes", e.memory.cache.base()},
          {"capacity_bytes", e.memory.capacity.base()},
          {"max_batch", e.memory.max_batch},
          {"usd_per_hour", e.cost.usd_per_hour},
          {"usd_per_million_output_tokens", e.cost.usd_per_million_output_tokens},
          {"joules_per_output_token", e.cost.joules_per_output_token}};
}

Json formats_json(const Setup& setup, const Query& query) {
  Query plain = query;
  plain.erase("activations");  // what engines compute with beside these weights
  Json rows = Json::array();
  for (const Format& format : kFormats) {
    const std::string name(name_of(format.dtype));
    Json row{{"format", name},
             {"bits", element_bits(format.dtype)},
             {"bits_with_scales", 8 * bytes_per_element(format.dtype)},
             {"sign_bits", format.sign},
             {"exponent_bits", format.exponent},
             {"mantissa_bits", format.mantissa}};
    const Variation v = vary(plain, "weights", name);
    if (v.setup) row["activations"] = name_of(v.setup->deployment().precision.activations);
    row.update(variation_json(v));
    rows.push_back(std::move(row));
  }
  return {{"format", name_of(setup.deployment().precision.weights)}, {"rows", std::move(rows)}};
}

Json attention_json(const Setup&, const Query& query) {
  const auto it = query.find("attention");
  Query own = query;
  own.erase("attention");
  Json rows = Json::array();
  const auto add = [&](const std::string& name, std::string_view help, const Variation& v) {
    Json row{{"attention", name}, {"help", help}};
    row.update(variation_json(v));
    rows.push_back(std::move(row));
  };
  add("own", "as the model has it", vary(own, "model", own.at("model")));
  for (const AttentionVariant& variant : attention_variants())
    add(std::string(variant.name), variant.help, vary(own, "attention", std::string(variant.name)));
  return {{"attention", it == query.end() ? "own" : it->second}, {"rows", std::move(rows)}};
}

Json costs_json(const Setup& setup, const Query& query) {
  std::vector<std::pair<double, Json>> rows;
  for (const std::string& name : names_of("hardware")) {
    const Variation v = vary(query, "gpu", name);
    const bool usable = v.estimate && v.estimate->memory.fits;
    Json row{{"gpu", name}};
    row.update(variation_json(v));
    const double usd = v.estimate ? v.estimate->cost.usd_per_million_output_tokens : 0;
    const double rank = !v.estimate ? 2e300 : usable && std::isfinite(usd) ? usd : 1e300;
    rows.emplace_back(rank, std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Json out{{"gpu", setup.deployment().gpu.name}, {"rows", Json::array()}};
  for (auto& [rank, row] : rows) out["rows"].push_back(std::move(row));
  return out;
}

}  // namespace roofcast
