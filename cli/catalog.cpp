// roofcast models | gpus | engines | workloads | recipes | clients [NAME].

#include <cstdio>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "hw/efficiency.h"
#include "reports/catalog_entry.h"
#include "reports/catalog_report.h"
#include "reports/result_schema.h"
#include "sim/plan/client.h"
#include "sim/plan/launch_recipe.h"
#include "sim/plan/scenario.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

/// Names that contain `filter`; all without one. Throws if there are no specs at all.
std::vector<std::string> listed_names(const Options& options, const char* kind) {
  std::vector<std::string> names = names_of(kind);
  if (names.empty()) throw ConfigError(no_specs(kind));
  const std::string filter = lower(options.text("filter"));
  std::vector<std::string> held = names;
  std::erase_if(held, [&](const std::string& name) { return name.find(filter) == std::string::npos; });
  if (held.empty())
    throw ConfigError(fmt::format("--filter: no name contains '{}'{}", filter, nearest_and_valid(filter, names)));
  return held;
}

int list_names(const Options& options, const char* kind) {
  const std::vector<std::string> names = listed_names(options, kind);
  options.write_report([&](const std::string& format) {
    if (format == "json") {
      reports::Json entries = reports::Json::array();
      for (const std::string& name : names) entries.emplace_back()["name"] = name;
      return reports::catalog_text(kind, entries);
    }
    return (format == "csv" ? "name\n" : "") + join(names, "\n") + "\n";
  });
  return kDone;
}

/// A spec that is its own description.
std::string spec_text(const char* of, const ConfigTree& tree, const std::string& format) {
  return reports::as_written(tree, format, reports::result_head(reports::ResultKind::kCatalogEntry, of));
}

/// `roofcast KIND` lists the names with `list`; `roofcast KIND NAME` shows one with `show`.
template <class Show, class List>
int catalog(std::span<const std::string> arguments, const char* command, const char* kind, const char* help,
            const Show& show, const List& list) {
  Options options(fmt::format("roofcast {} [NAME|FILE] [--filter TEXT] [--format table|json|csv]", command), help);
  options.add().add_options()("filter", po::value<std::string>(), "TEXT: only names that contain it");
  options.add_output_flags();
  options.positional("name", 1);
  if (!options.parse(arguments)) return kDone;
  if (options.has("name")) {
    if (options.has("filter")) throw ConfigError("--filter: not with a name");
    const std::string& name = options.value<std::vector<std::string>>("name").front();
    const ConfigTree tree = load_named(kind, name, SourceLocation{command, 0, 0});
    options.write_report([&](const std::string& format) { return show(tree, format); });
    return kDone;
  }
  return list(options, kind);
}

}  // namespace

int run_models(std::span<const std::string> arguments) {
  return catalog(
      arguments, "models", "models", "The shipped models: parameters, weight and cache bytes, layers.",
      [](const ConfigTree& tree, const std::string& format) {
        return reports::model_report(parse_model(tree), format);
      },
      [](const Options& options, const char* kind) {
        std::vector<ModelSpec> models;
        for (const std::string& name : listed_names(options, kind))
          models.push_back(parse_model(load_named(kind, name, SourceLocation{"models", 0, 0})));
        options.write_report([&](const std::string& format) { return reports::models_report(models, format); });
        return kDone;
      });
}

int run_gpus(std::span<const std::string> arguments) {
  if (!arguments.empty() && arguments[0] == "new") return run_gpus_new(arguments.subspan(1));
  return catalog(
      arguments, "gpus", "hardware",
      "The GPUs: peaks, memory, links, price. `roofcast gpus new --help`: a file from a datasheet.",
      [](const ConfigTree& tree, const std::string& format) {
        return reports::gpu_report(load_gpu(tree).spec, format);
      },
      [](const Options& options, const char* kind) {
        std::vector<GpuSpec> gpus;
        for (const std::string& name : listed_names(options, kind))
          gpus.push_back(parse_gpu_spec(ConfigReader(load_named(kind, name, SourceLocation{"gpus", 0, 0}), "a GPU")));
        options.write_report([&](const std::string& format) { return reports::gpus_report(gpus, format); });
        return kDone;
      });
}

int run_engines(std::span<const std::string> arguments) {
  Options options(
      "roofcast engines [NAME[@VERSION]|FILE] [--format table|json|csv]",
      "The engines, or the defaults of one release (the newest, a version, or that of a day), each with its\n"
      "source. A scenario may override every setting.");
  options.add_output_flags();
  options.positional("name", 1);
  if (!options.parse(arguments)) return kDone;
  if (options.has("name")) {
    const std::string& name = options.value<std::vector<std::string>>("name").front();
    options.write_report([&](const std::string& format) { return reports::engine_report(name, format); });
    return kDone;
  }
  return list_names(options, "engines");
}

int run_recipes(std::span<const std::string> arguments) {
  return catalog(
      arguments, "recipes", "recipes",
      "Launch recipes: settings with which engines are launched, rule by rule with sources.",
      [](const ConfigTree& tree, const std::string& format) {
        (void)parse_launch_recipe(tree);
        return spec_text("recipes", tree, format);
      },
      list_names);
}

int run_clients(std::span<const std::string> arguments) {
  return catalog(
      arguments, "clients", "clients", "Benchmark clients: how each sends its load, with sources.",
      [](const ConfigTree& tree, const std::string& format) {
        check_client(tree);
        return spec_text("clients", tree, format);
      },
      list_names);
}

int run_workloads(std::span<const std::string> arguments) {
  return catalog(
      arguments, "workloads", "workloads", "The workloads that ship, with their sources.",
      [](const ConfigTree& tree, const std::string& format) {
        (void)parse_workload(ConfigReader(tree, "a workload"));
        return spec_text("workloads", tree, format);
      },
      list_names);
}

}  // namespace roofcast::cli
