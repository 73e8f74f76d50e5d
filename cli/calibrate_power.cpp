// roofcast calibrate power: fits the power curve to measured servers.

#include <fmt/format.h>

#include "cli/calibration_json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/table.h"
#include "sim/plan/measured/power_fit.h"

namespace roofcast::cli {
namespace po = boost::program_options;

int run_calibrate_power(std::span<const std::string> arguments) {
  Options options("roofcast calibrate power --data FILE.csv",
                  "Fits the share of its range that a GPU draws, static + compute sqrt(MFU) + memory MBU, to servers\n"
                  "whose power was measured (columns power_w, median_itl_ms). Utilization is taken at the measured\n"
                  "speed. Errors are of curves fitted without the run's model, or without its GPU.");
  options.add().add_options()("data", po::value<std::string>(), "FILE.csv: servers at a steady batch");
  options.add_format_flags();
  if (!options.parse(arguments)) return kDone;
  if (!options.has("data")) throw ConfigError("--data: missing; which table of measured runs?");
  const CsvTable table = CsvTable::read_file(options.text("data"));
  const MeasuredRuns runs = read_measured_runs(table);
  const std::vector<PowerSample> samples = power_samples(runs, table, predict_all(runs));
  const PowerCurve curve = fit_power(samples);
  reports::Json result = calibration_head("power");
  result["power"] = {{"static_share", curve.static_share},
                     {"compute_share", curve.compute_share},
                     {"memory_share", curve.memory_share},
                     {"runs", samples.size()}};
  reports::Json& errors = result["errors"] = reports::Json::array();
  reports::Table lines({"left out", "GPU", "runs", "median", "p90", "bias", "5 %", "95 %"});
  const auto percent = [](double fraction) { return fmt::format("{:.1f} %", 100 * fraction); };
  for (const auto& [left_out, name] :
       {std::pair{LeftOut::kNothing, "nothing"}, {LeftOut::kModel, "model"}, {LeftOut::kGpu, "gpu"}}) {
    for (const PowerErrors& e : power_errors(samples, left_out)) {
      lines.row({name, e.name, std::to_string(e.errors.rows), percent(e.errors.median), percent(e.errors.p90),
                 fmt::format("{:+.1f} %", 100 * e.errors.bias), fmt::format("{:+.2f}", e.spread.low),
                 fmt::format("{:+.2f}", e.spread.high)});
      errors.push_back({{"left_out", name},
                        {"gpu", e.name},
                        {"runs", e.errors.rows},
                        {"median", e.errors.median},
                        {"p90", e.errors.p90},
                        {"bias", e.errors.bias},
                        {"ln_ratio_p5", e.spread.low},
                        {"ln_ratio_p95", e.spread.high}});
    }
  }
  fmt::print("{}", options.formatted([&](const std::string& format) {
    if (format != "table") return calibration_text(result, "errors", format);
    return fmt::format("static {:.3f}  compute {:.3f}  memory {:.3f}  ({} runs)\n\n{}", curve.static_share,
                       curve.compute_share, curve.memory_share, samples.size(), lines.text());
  }));
  return kDone;
}

}  // namespace roofcast::cli
