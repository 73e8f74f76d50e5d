#include "sim/plan/measured/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/config_library.h"
#include "base/config_reader.h"

namespace roofcast {
namespace {

using Entries = std::vector<ConfigNode::Entry>;

std::string word(const ConfigNode& map, const std::string& key) {
  const ConfigTree* value = map.find(key);
  return value != nullptr && *value ? (*value)->scalar : std::string();
}

const std::vector<ConfigTree>& items(const ConfigTree& map, const std::string& key) {
  static const std::vector<ConfigTree> kNone;
  const ConfigTree* list = map ? map->find(key) : nullptr;
  return list != nullptr && *list ? (*list)->items : kNone;
}

/// The first entry whose `name` matches.
ConfigTree first_named(const ConfigTree& map, const std::string& key, const std::string& name) {
  for (const ConfigTree& item : items(map, key)) {
    if (matches(word(*item, "name"), name)) return item;
  }
  return nullptr;
}

/// Data-parallel copies that fill `gpus`.
int replicas_of(const ConfigTree& parallelism, int gpus, const SourceLocation& location) {
  ConfigReader in(parallelism, "a layout");
  int each = 1;
  for (const char* key : {"tp", "pp", "attention_dp"}) each *= static_cast<int>(in.integer(key, 1, {1, 1024}));
  in.ignore_rest();
  if (gpus % each != 0) throw ConfigError(location, fmt::format("{} GPUs are not copies of {}", gpus, each));
  return gpus / each;
}

/// The minimum number of samples: the submitter's, else the benchmark's (min_query_count), and for the single query of
/// an Offline run as many as its expected rate yields in 1.1 times ten minutes (mlcommons/inference,
/// loadgen/test_settings_internal.cc; mlperf.conf, min_duration).
double samples(const ConfigTree& launch, const ConfigTree& requests, double expected_rate) {
  const bool told = launch->find("requests") != nullptr;
  const ConfigTree& from = told ? launch : requests;
  const double own = from->find("requests") != nullptr ? std::stod(word(*from, "requests")) : 0;
  return std::max(own, 1.1 * 600 * expected_rate);
}

/// All matching launches, merged.
ConfigTree launch_of(const ConfigTree& submissions, const std::string& model, const std::string& gpu,
                     const std::string& scenario) {
  ConfigTree launch;
  for (const ConfigTree& item : items(submissions, "launches")) {
    const auto fits = [&](const char* key, const std::string& name) {
      const ConfigTree* pattern = item->find(key);
      return pattern == nullptr || matches((*pattern)->scalar, name);
    };
    if (!fits("model", model) || !fits("gpu", gpu) || !fits("scenario", scenario)) continue;
    launch = launch ? overlay(launch, item) : item;
  }
  return launch;
}

}  // namespace

ConfigTree submission_scenario(const std::optional<LaunchRecipe>& recipe, const RunColumns& columns, std::size_t row) {
  const SourceLocation location = columns.location(row);
  const std::string system = columns.text(row, "system"), load = columns.text(row, "scenario");
  if (!recipe || !recipe->submissions) throw ConfigError(location, "no recipe says how it was launched");
  const ConfigTree part = first_named(recipe->submissions, "systems", system);
  if (!part)
    throw ConfigError(location, fmt::format("recipe '{}' does not know the system '{}'", recipe->name, system));
  const ConfigTree named = first_named(recipe->submissions, "models", columns.text(row, "model"));
  if (!named) throw ConfigError(location, fmt::format("recipe '{}' does not know this model", recipe->name));
  const std::string gpu = word(*part, "gpu"), model = word(*named, "model");
  const ConfigTree launch = launch_of(recipe->submissions, model, gpu, load);
  if (!launch || launch->find("engine") == nullptr)
    throw ConfigError(location, fmt::format("how {} was launched on {} is not public", model, gpu));
  const bool offline = load == "Offline", interactive = load == "Interactive";
  const std::string law = word(*named, interactive ? "interactive" : "server");
  if (law.empty()) throw ConfigError(location, fmt::format("recipe '{}' has no workload of this load", recipe->name));
  const ConfigTree requests = load_named("workloads", law, location);

  const ConfigTree* layout = launch->find("parallelism");
  const ConfigTree parallelism = layout != nullptr ? *layout : make_map();
  const int gpus = static_cast<int>(ConfigReader(part, "a system").integer("gpus", 1, {1, 100000}));
  const ConfigTree replicas = make_scalar(std::to_string(replicas_of(parallelism, gpus, location)), location);

  Entries workload{{"client", location, make_scalar(offline ? "mlperf-offline" : "mlperf-server", location)}};
  const double rate = columns.number(row, "target_qps", 0);
  if (offline) {
    const long all = std::lround(samples(launch, requests, rate));
    workload.push_back({"requests", location, make_scalar(std::to_string(all), location)});
  } else {
    workload.push_back({"rate", location, make_scalar(columns.text(row, "target_qps") + " /s", location)});
    if (launch->find("requests") != nullptr && rate > 0) {
      const double all = std::max(600.0, samples(launch, requests, 0) / rate);
      workload.push_back({"duration", location, make_scalar(fmt::format("{:.0f} s", all), location)});
    }
  }
  for (const char* key : {"prompt_tokens", "output_tokens"}) {
    if (const ConfigTree* lengths = requests->find(key)) workload.push_back({key, location, *lengths});
  }
  const ConfigTree* limits = requests->find("objectives");
  if (!offline && limits != nullptr) workload.push_back({"objectives", location, *limits});

  Entries scenario{{"model", location, make_scalar(model, location)}, {"gpu", location, make_scalar(gpu, location)}};
  for (const char* key : {"engine", "precision"}) {
    if (const ConfigTree* settings = launch->find(key)) scenario.push_back({key, location, *settings});
  }
  scenario.push_back({"recipe", location, make_scalar(recipe->name, location)});
  scenario.push_back({"parallelism", location, overlay(parallelism, make_map({{"replicas", location, replicas}}))});
  scenario.push_back({"workload", location, make_map(std::move(workload), location)});
  return make_map(std::move(scenario), location);
}

}  // namespace roofcast
