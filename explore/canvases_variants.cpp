// The same deployment with one thing changed at a time: number formats, kinds of attention, GPUs.

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/config_library.h"
#include "explore/attention_variant.h"
#include "explore/canvases.h"
#include "reports/provenance.h"
#include "sim/step/deployment.h"

namespace roofcast::explore {
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
  const Json provenance = reports::provenance_json(v.setup->deployment());
  return {{"fits", e.memory.fits},
          {"constants", provenance.contains("carried_over_from") ? Json("carried_over") : provenance["parameters"]},
          {"ttft_ms", e.ttft.in(kMillisecond)},
          {"tpot_ms", e.tpot.in(kMillisecond)},
          {"tpot_ms_low", e.tpot_interval.low.in(kMillisecond)},
          {"tpot_ms_high", e.tpot_interval.high.in(kMillisecond)},
          {"output_tokens_per_s", e.output_tokens_per_s},
          {"weight_bytes", e.memory.weights.base()},
          {"kv_cache_bytes_per_token", e.memory.cache_per_token.base()},
          {"kv_cache_bytes", e.memory.cache.base()},
          {"capacity_bytes", e.memory.capacity.base()},
          {"max_batch", e.memory.max_batch},
          {"usd_per_hour", e.cost.usd_per_hour},
          {"usd_per_million_output_tokens", e.cost.usd_per_million_output_tokens},
          {"usd_per_million_total_tokens", e.cost.usd_per_million_total_tokens},
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

const std::vector<QueryKey>& costs_keys() {
  static const std::vector<QueryKey> kKeys{
      {"max_tpot_ms",
       "time per output token that users accept, 1 to 10000 (50); each GPU gets its best batch within it"}};
  return kKeys;
}

/// The largest power of two that fits and meets the limit, which has the cheapest tokens: memory and TPOT grow with the
/// batch, cost falls. Empty if even a batch of one exceeds a limit.
Variation at_best_batch(Query query, const std::string& gpu, double max_tpot_ms) {
  int good = -1, bad = 13;  // exponents; batches up to 4096
  Variation best = vary(query, "gpu", gpu);
  const auto within = [&](const Variation& v) {
    return v.estimate && v.estimate->memory.fits && v.estimate->tpot.in(kMillisecond) <= max_tpot_ms;
  };
  query["gpu"] = gpu;
  while (bad - good > 1) {
    const int middle = (good + bad) / 2;
    Variation v = vary(query, "batch", std::to_string(1 << middle));
    const bool holds = within(v);
    (holds ? good : bad) = middle;
    if (holds) best = std::move(v);
  }
  if (good < 0) {
    best = vary(query, "batch", "1");
    if (best.estimate && !within(best)) {
      best.error =
          best.estimate->memory.fits ? fmt::format("slower than {} ms per token", max_tpot_ms) : "does not fit";
      best.estimate.reset();
    }
  }
  return best;
}

Json costs_json(const Setup& setup, const Query& query) {
  const int max_tpot_ms = integer_of(query, "max_tpot_ms", 50, 1, 10000);
  Query plain = query;
  plain.erase("max_tpot_ms");
  std::vector<std::pair<double, Json>> rows;
  for (const std::string& name : names_of("hardware")) {
    const Variation v = at_best_batch(plain, name, max_tpot_ms);
    Json row{{"gpu", name}};
    if (v.estimate) row["batch"] = v.estimate->request.batch;
    row.update(variation_json(v));
    const double usd = v.estimate ? v.estimate->cost.usd_per_million_total_tokens : 0;
    rows.emplace_back(!v.estimate ? 2e300 : std::isfinite(usd) ? usd : 1e300, std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Json out{{"gpu", setup.deployment().gpu.name}, {"max_tpot_ms", max_tpot_ms}, {"rows", Json::array()}};
  for (auto& [rank, row] : rows) out["rows"].push_back(std::move(row));
  return out;
}

}  // namespace roofcast::explore
