// roofcast ladder: serving techniques one after another.

#include "sim/plan/ladder.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/ladder_report.h"
#include "reports/question.h"

namespace roofcast::cli {
namespace po = boost::program_options;

int run_ladder(std::span<const std::string> arguments) {
  Options options(
      "roofcast ladder SCENARIO.yaml [options]",
      "Switches the techniques of serving on one after another, from naive fp32 to what the scenario asks for,\n"
      "and shows what each gains on its model, GPU and workload.");
  options.add_deployment_flags();
  options.add_output_flags();
  options.add().add_options()("concurrency", po::value<std::string>()->default_value("64"),
                              "users of the batched rungs, each with one request at a time")(
      "requests", po::value<std::string>()->default_value("0"), "requests of a simulated rung (0: four per user)");
  options.positional("scenario", 1);
  if (!options.parse(arguments)) return kDone;
  const LadderOptions ladder{.concurrency = static_cast<int>(options.integer("concurrency", 1, 100000)),
                             .requests = static_cast<int>(options.integer("requests", 0, 1000000))};
  const ConfigTree tree = options.scenario(options.document("scenario", "scenarios"));
  const Ladder found = climb(tree, options.fidelity(), ladder);
  options.write_report([&](const std::string& format) {
    return reports::ladder_report(found, format, reports::question_json(tree, options.fidelity()));
  });
  return kDone;
}

}  // namespace roofcast::cli
