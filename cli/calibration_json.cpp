#include "cli/calibration_json.h"

#include <algorithm>

#include "reports/records_csv.h"

namespace roofcast::cli {
namespace {

reports::Json or_null(const std::optional<double>& value) {
  return value ? reports::Json(*value) : reports::Json(nullptr);
}

}  // namespace

reports::Json calibration_head(const char* of) {
  reports::Json out = reports::result_head(reports::ResultKind::kCalibration);
  out["of"] = of;
  return out;
}

reports::Json ceilings_json(const std::vector<calibrate::Ceiling>& ceilings) {
  reports::Json out = reports::Json::array();
  for (const calibrate::Ceiling& c : ceilings) {
    out.push_back({{"ceiling", c.name},
                   {"value", c.value},
                   {"unit", c.unit},
                   {"datasheet", or_null(c.datasheet)},
                   {"share", c.datasheet ? reports::Json(c.value / *c.datasheet) : reports::Json(nullptr)},
                   {"relative_error", c.relative_error},
                   {"from", c.from}});
  }
  return out;
}

reports::Json constants_json(const std::vector<calibrate::ShownBlock>& blocks) {
  reports::Json out = reports::Json::array();
  for (const calibrate::ShownBlock& block : blocks) {
    for (const calibrate::ShownBlock::Constant& c : block.constants) {
      out.push_back({{"family", block.family},
                     {"block", block.block},
                     {"constant", c.name},
                     {"value", c.value},
                     {"standard_error", or_null(c.standard_error)},
                     {"stated", c.stated},
                     {"rows", block.rows},
                     {"mape", block.mape},
                     {"discrepancy", block.discrepancy},
                     {"standing", block.provenance}});
    }
  }
  return out;
}

reports::Json kernel_errors_json(const std::vector<calibrate::KernelValidation>& found) {
  reports::Json out = reports::Json::array();
  for (const calibrate::KernelValidation& one : found) {
    const ErrorSummary& all = one.groups.back().errors;
    out.push_back(
        {{"op", one.op->name}, {"rows", all.rows}, {"mape", all.mape}, {"median", all.median}, {"bias", all.bias}});
  }
  return out;
}

reports::Json fits_json(const std::vector<calibrate::FittedSet>& all) {
  reports::Json out = reports::Json::array();
  for (const calibrate::FittedSet& of : all) {
    for (const calibrate::FittedConstants& block : of.blocks) {
      const ErrorSummary& e = block.on_rows;
      out.push_back({{"block", block.block},
                     {"family", of.kernels},
                     {"rows", block.record.rows},
                     {"mape", e.mape},
                     {"median", e.median},
                     {"p90", e.p90},
                     {"bias", e.bias},
                     {"time_weighted", e.time_weighted},
                     {"left_out", {{"rows", block.left_out.rows}, {"mape", block.left_out.mape}}},
                     {"discrepancy", block.record.discrepancy}});
      reports::Json& values = out.back()["values"];
      for (const auto& [name, value] : block.values) values[name] = value;
    }
  }
  return out;
}

reports::Json host_fit_json(const HostFit& fit) {
  reports::Json out = calibration_head("host");
  out["loss"] = fit.loss;
  out["host"] = reports::Json::array();
  for (const HostParameter& p : host_parameters()) {
    const double us = (fit.host.*p.member).in(kMicrosecond);
    if (p.optional && us == 0) continue;
    const bool left = std::find(fit.unexercised.begin(), fit.unexercised.end(), p.name) != fit.unexercised.end();
    out["host"].push_back({{"cost", p.name},
                           {"value", us},
                           {"unit", "us"},
                           {"standing", left                      ? "as it was"
                                        : us >= 0.999 * p.high_us ? "at its limit"
                                                                  : "fitted"}});
  }
  out["runs"] = reports::Json::array();
  for (const HostFitGroup& g : fit.groups)
    out["runs"].push_back({{"run", g.group}, {"ttft_error", g.fitted.ttft}, {"tpot_error", g.fitted.tpot}});
  return out;
}

std::string calibration_text(const reports::Json& result, const char* points, const std::string& format) {
  return format == "json" ? reports::result_text(result) : reports::records_csv(result.at(points));
}

}  // namespace roofcast::cli
