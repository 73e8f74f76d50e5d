// roofcast calibrate acceptance: acceptance of drafts inferred from runs with multi-token prediction.

#include <fmt/format.h>

#include "cli/calibration_json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "sim/plan/measured/acceptance_fit.h"

namespace roofcast::cli {
namespace po = boost::program_options;

int run_calibrate_acceptance(std::span<const std::string> arguments) {
  Options options(
      "roofcast calibrate acceptance --data FILE.csv [--out FILE.csv]",
      "Runs with multi-token prediction state their drafts and not how many were accepted. Prints by group the\n"
      "acceptance of a draft at which the simulated TPOT is the measured one. It holds what the model of the\n"
      "step leaves unexplained, too: compare the group's error without drafts in `validate serving`.");
  options.add().add_options()("data", po::value<std::string>(),
                              "FILE.csv: measured runs with speculation (method mtp)")(
      "out", po::value<std::string>(), "FILE.csv: the acceptance of every run");
  options.add_format_flags();
  if (!options.parse(arguments)) return kDone;
  if (!options.has("data")) throw ConfigError("--data: missing; which table of measured runs?");
  const CsvTable table = CsvTable::read_file(options.text("data"));
  const std::vector<RunAcceptance> runs = fit_acceptance(read_measured_runs(table), table);
  if (options.has("out")) {
    std::string csv = "row,group,num_speculative_tokens,acceptance,outside\n";
    for (const RunAcceptance& r : runs)
      csv += fmt::format("{},{},{},{:.3f},{}\n", r.row + 1, csv_field(r.group), r.drafts, r.acceptance,
                         r.below   ? "slower than acceptance 0"
                         : r.above ? "faster than acceptance 1"
                                   : "");
    options.write(csv);
  }
  reports::Table lines({"group", "drafts", "runs", "p25", "median", "p75", "tokens per step", "outside [0, 1]"});
  reports::Json result = calibration_head("acceptance");
  reports::Json& groups = result["groups"] = reports::Json::array();
  for (const GroupAcceptance& g : acceptance_by_group(runs)) {
    lines.row({g.group, std::to_string(g.drafts), std::to_string(g.runs), fmt::format("{:.2f}", g.p25),
               fmt::format("{:.2f}", g.median), fmt::format("{:.2f}", g.p75), fmt::format("{:.2f}", g.tokens_per_step),
               std::to_string(g.below + g.above)});
    groups.push_back({{"group", g.group},
                      {"num_speculative_tokens", g.drafts},
                      {"runs", g.runs},
                      {"p25", g.p25},
                      {"median", g.median},
                      {"p75", g.p75},
                      {"tokens_per_step", g.tokens_per_step},
                      {"outside", g.below + g.above}});
  }
  fmt::print("{}", options.formatted([&](const std::string& format) {
    return format == "json"  ? reports::result_text(result)
           : format == "csv" ? reports::records_csv(groups)
                             : lines.text();
  }));
  return kDone;
}

}  // namespace roofcast::cli
