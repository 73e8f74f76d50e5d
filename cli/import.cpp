// roofcast import: converts files of other programs to specs.

#include <cstdio>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "base/model_document.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/catalog_entry.h"
#include "reports/result_schema.h"
#include "sim/model/model_spec.h"
#include "sim/plan/measured/run_scenario.h"
#include "sim/plan/scenario.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

void tell_assumptions(const std::vector<std::string>& assumptions) {
  for (const std::string& assumption : assumptions) fmt::print(stderr, "assumed: {}\n", assumption);
}

/// An imported spec; its JSON starts with the head of a result. `of`: model or scenario.
std::string imported(const ConfigTree& tree, const char* of, const std::string& format) {
  return reports::as_written(tree, format, reports::result_head(reports::ResultKind::kImport, of));
}

int import_model(const Options& options, const std::string& path) {
  const ConfigTree tree = parse_model_file(path);
  const ModelSpec model = parse_model(tree);
  tell_assumptions(model.assumptions);
  options.write_report([&](const std::string& format) {
    const std::string title =
        fmt::format("# {}: {:.2f} B parameters\n", model.name, count_parameters(model).total / 1e9);
    return (format == "table" ? title : "") + imported(tree, "model", format);
  });
  return kDone;
}

int import_run(const Options& options, const RunScenario& run) {
  const ConfigTree tree = options.scenario(run.tree);
  if (tree->find("model") == nullptr) throw ConfigError("--model: the file does not say which model ran");
  if (tree->find("gpu") == nullptr) throw ConfigError("--gpu: the file does not say on which GPU it ran");
  (void)read_scenario(tree, Fidelity::kCalibrated);  // checks that the output is readable
  tell_assumptions(run.assumed);
  options.write_report([&](const std::string& format) { return imported(tree, "scenario", format); });
  return kDone;
}

}  // namespace

int run_import(std::span<const std::string> arguments) {
  Options options(
      "roofcast import CONFIG.json [--out FILE.yaml]\n"
      "roofcast import RUN.json --gpu GPU [--run N] [--tp N ...] [--out FILE.yaml]",
      "A Hugging Face config.json as a model file. Or the scenario of a measured run, from the file of a load\n"
      "generator or a saved /metrics page: its model and its load; flags give what the file does not.");
  options.add_deployment_flags();
  options.add_output_flags();
  options.add().add_options()("run", po::value<std::string>(), "N: which run, where the file has several")(
      "window", po::value<std::string>(), "TIME: time that a /metrics page covers, such as '10 min'");
  options.positional("file", 1);
  if (!options.parse(arguments)) return kDone;
  if (!options.has("file")) throw ConfigError("import: which file? a config.json, or what a load generator wrote");
  const std::string& path = options.value<std::vector<std::string>>("file").front();
  const auto which = options.has("run") ? std::optional(options.integer("run", 1, 1'000'000)) : std::nullopt;
  const auto window =
      options.has("window") ? std::optional(parse_time(options.text("window"), "--window")) : std::nullopt;
  const auto run = read_run_scenario(path, which, window);
  return run ? import_run(options, *run) : import_model(options, path);
}

}  // namespace roofcast::cli
