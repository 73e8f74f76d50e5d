// roofcast models | gpus | engines | workloads [NAME], and roofcast import.

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/config_library.h"
#include "base/model_document.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/catalog_report.h"
#include "sim/plan/scenario.h"

namespace roofcast {
namespace po = boost::program_options;
namespace {

/// `roofcast KIND` lists the names, `roofcast KIND NAME` shows one by `show`.
template <class Show>
int catalog(std::span<const std::string> arguments, const char* command, const char* kind, const char* help,
            const Show& show) {
  Options options(fmt::format("roofcast {} [NAME|FILE] [--format table|json|csv]", command), help);
  options.add_output_flags();
  options.positional("name", 1);
  if (!options.parse(arguments)) return kDone;
  if (options.has("name")) {
    const std::string& name = options.value<std::vector<std::string>>("name").front();
    options.write(show(load_named(kind, name, Mark{command, 0, 0}), options.format()));
    return kDone;
  }
  const std::vector<std::string> names = names_of(kind);
  std::string text;
  if (options.format() == "json") {
    text = nlohmann::json(names).dump(2) + "\n";
  } else {
    for (const std::string& name : names) text += name + "\n";
  }
  options.write(text);
  return kDone;
}

/// The spec itself, for kinds that are their own description.
std::string as_written(const ConfigTree& tree, const std::string& format) {
  if (format != "json") return to_yaml(*tree);
  struct Convert {
    nlohmann::ordered_json operator()(const ConfigNode& node) const {
      switch (node.kind) {
        case ConfigNode::Kind::kNull:
          return nullptr;
        case ConfigNode::Kind::kScalar:
          return node.quoted ? nlohmann::ordered_json(node.scalar) : scalar(node.scalar);
        case ConfigNode::Kind::kList: {
          nlohmann::ordered_json list = nlohmann::ordered_json::array();
          for (const ConfigTree& item : node.items) list.push_back((*this)(*item));
          return list;
        }
        case ConfigNode::Kind::kMap:
          break;
      }
      nlohmann::ordered_json map = nlohmann::ordered_json::object();
      for (const auto& entry : node.entries) map[entry.key] = (*this)(*entry.value);
      return map;
    }
    static nlohmann::ordered_json scalar(const std::string& text) {
      const auto parsed = nlohmann::ordered_json::parse(text, nullptr, false);
      return parsed.is_number() || parsed.is_boolean() ? parsed : nlohmann::ordered_json(text);
    }
  };
  return Convert{}(*tree).dump(2) + "\n";
}

}  // namespace

int run_models(std::span<const std::string> arguments) {
  return catalog(
      arguments, "models", "models", "The models that names stand for: parameters, weight and cache bytes, layers.",
      [](const ConfigTree& tree, const std::string& format) { return model_report(parse_model(tree), format); });
}

int run_gpus(std::span<const std::string> arguments) {
  return catalog(arguments, "gpus", "hardware", "The GPUs: peaks, memory, links, price.",
                 [](const ConfigTree& tree, const std::string& format) {
                   return gpu_report(load_gpu(tree, KernelFamily::kVllm).spec, format);
                 });
}

int run_engines(std::span<const std::string> arguments) {
  return catalog(arguments, "engines", "engines",
                 "The engine profiles, with every launch setting a scenario may override.",
                 [](const ConfigTree& tree, const std::string& format) {
                   (void)parse_engine_spec(ConfigReader(tree, "an engine"));
                   return as_written(tree, format);
                 });
}

int run_workloads(std::span<const std::string> arguments) {
  return catalog(arguments, "workloads", "workloads", "The workloads that ship, with their sources.",
                 [](const ConfigTree& tree, const std::string& format) {
                   (void)parse_workload(ConfigReader(tree, "a workload"));
                   return as_written(tree, format);
                 });
}

int run_import(std::span<const std::string> arguments) {
  Options options("roofcast import CONFIG.json [--out FILE.yaml]",
                  "A Hugging Face config.json as a model file of ours.");
  options.add().add_options()("out", po::value<std::string>(), "FILE instead of stdout");
  options.positional("config", 1);
  if (!options.parse(arguments)) return kDone;
  if (!options.has("config")) throw ConfigError("import: which config.json?");
  const std::string& path = options.value<std::vector<std::string>>("config").front();
  const ConfigTree tree = parse_model_file(path);
  const ModelSpec model = parse_model(tree);
  for (const std::string& assumption : model.assumptions) fmt::print(stderr, "assumed: {}\n", assumption);
  options.write(fmt::format("# {}: {:.2f} B parameters\n", model.name, count_parameters(model).total / 1e9) +
                to_yaml(*tree));
  return kDone;
}

}  // namespace roofcast
