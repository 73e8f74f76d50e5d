#include "reports/validation_report.h"

namespace roofcast::reports {

using Json = nlohmann::ordered_json;

Json accuracy_json(const std::vector<AccuracyLine>& lines) {
  Json json = Json::array();
  for (const AccuracyLine& line : lines) {
    const ErrorSummary& e = line.errors;
    json.push_back({{"group", line.group},
                    {"metric", line.metric},
                    {"rows", e.rows},
                    {"mape", e.mape},
                    {"median", e.median},
                    {"p90", e.p90},
                    {"bias", e.bias},
                    {"spearman", line.spearman},
                    {"repeats", {{"rows", line.floor.repeated}, {"mape", line.floor.repeats}}},
                    {"neighbours", {{"rows", line.floor.between}, {"mape", line.floor.neighbours}}}});
  }
  return json;
}

Json coverage_json(const std::vector<CoverageLine>& lines) {
  Json json = Json::array();
  for (const CoverageLine& line : lines) {
    json.push_back({{"class", line.name},
                    {"metric", line.metric},
                    {"rows", line.rows},
                    {"coverage", line.inside},
                    {"median_ratio", line.width}});
  }
  return json;
}

Json spreads_json(const std::vector<SpreadLine>& lines) {
  Json json = Json::array();
  for (const SpreadLine& line : lines) {
    json.push_back({{"load", line.regime},
                    {"metric", line.metric},
                    {"rows", line.rows},
                    {"ln_ratio_p5", line.low},
                    {"ln_ratio_p50", line.median},
                    {"ln_ratio_p95", line.high}});
  }
  return json;
}

double error_of(const RequestStatistic& s) { return s.measured_ms > 0 ? s.predicted_ms / s.measured_ms - 1 : 0; }

Json statistics_json(const std::vector<RequestStatistic>& statistics) {
  Json json = Json::array();
  for (const RequestStatistic& s : statistics) {
    json.push_back({{"metric", s.metric},
                    {"statistic", s.statistic},
                    {"measured_ms", s.measured_ms},
                    {"predicted_ms", s.predicted_ms},
                    {"error", error_of(s)}});
  }
  return json;
}

}  // namespace roofcast::reports
