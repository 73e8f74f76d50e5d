#include "reports/validation_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/number_text.h"
#include "reports/html_text.h"

namespace roofcast::reports {
namespace {

struct PairSpec {
  const char *id, *name, *unit, *measured, *predicted;
};
constexpr std::array<PairSpec, 4> kPairs{{{"kernels", "kernel time", "us", "latency_us", "predicted_us"},
                                          {"ttft", "TTFT", "ms", "ttft_ms", "predicted_ttft_ms"},
                                          {"tpot", "TPOT", "ms", "tpot_ms", "predicted_tpot_ms"},
                                          {"value", "value", "as in the table", "value", "predicted_value"}}};

/// The best column for grouping in a chart: words, 2 to 9 of them.
std::optional<std::size_t> group_column(const CsvTable& t) {
  for (const char* name : {"engine", "gpu", "dtype", "attn_dtype", "kernel", "metric", "model"}) {
    const auto column = t.find(name);
    if (!column) continue;
    std::set<std::string_view> values;
    for (std::size_t r = 0; r < t.rows() && values.size() < 10; ++r) values.insert(t.at(r, *column));
    if (values.size() >= 2 && values.size() <= 9) return column;
  }
  return std::nullopt;
}

std::string row_label(const CsvTable& t, std::size_t row, std::size_t skip1, std::size_t skip2) {
  std::string out;
  for (std::size_t c = 0; c < t.columns().size() && out.size() < 90; ++c) {
    if (c == skip1 || c == skip2 || t.at(row, c).empty()) continue;
    out += (out.empty() ? "" : ", ") + t.columns()[c] + " " + std::string(t.at(row, c));
  }
  return out;
}

void summarize(ValidationPairs& v) {
  std::vector<double> errors;
  for (ValidationGroup& g : v.groups) {
    double sum = 0;
    for (std::size_t i = 0; i < g.measured.size(); ++i) {
      errors.push_back(100 * std::abs(g.predicted[i] / g.measured[i] - 1));
      sum += errors.back();
    }
    g.mape = g.measured.empty() ? 0 : sum / static_cast<double>(g.measured.size());
  }
  v.rows = errors.size();
  if (errors.empty()) return;
  std::sort(errors.begin(), errors.end());
  const double n = static_cast<double>(errors.size());
  for (const double e : errors) v.mape += e / n;
  v.median = (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
  v.within_ten = 100 * static_cast<double>(std::upper_bound(errors.begin(), errors.end(), 10.0) - errors.begin()) / n;
}

ValidationPairs pairs_of(const CsvTable& t, const PairSpec& spec, std::size_t measured, std::size_t predicted) {
  ValidationPairs v{.id = spec.id, .name = spec.name, .unit = spec.unit};
  const auto by = group_column(t);
  std::map<std::string, std::size_t> index;
  for (std::size_t r = 0; r < t.rows(); ++r) {
    double m = 0, p = 0;
    const bool numbers = parse_number(t.at(r, measured), m) == NumberFault::kNone &&
                         parse_number(t.at(r, predicted), p) == NumberFault::kNone;
    if (!numbers || m <= 0 || p <= 0) {
      ++v.skipped;
      continue;
    }
    const std::string group = by ? clean_utf8(t.at(r, *by)) : "rows";
    const auto [it, fresh] = index.emplace(group, v.groups.size());
    if (fresh) v.groups.push_back({.name = group});
    ValidationGroup& g = v.groups[it->second];
    g.measured.push_back(m), g.predicted.push_back(p);
    g.labels.push_back(row_label(t, r, measured, predicted));
  }
  summarize(v);
  return v;
}

}  // namespace

std::vector<ValidationPairs> validation_pairs(const Result& result) {
  std::vector<ValidationPairs> out;
  const CsvTable& t = *result.table;
  for (const PairSpec& spec : kPairs) {
    const auto measured = t.find(spec.measured), predicted = t.find(spec.predicted);
    if (!measured || !predicted) continue;
    ValidationPairs v = pairs_of(t, spec, *measured, *predicted);
    if (v.rows > 0) out.push_back(std::move(v));
  }
  return out;
}

}  // namespace roofcast::reports
