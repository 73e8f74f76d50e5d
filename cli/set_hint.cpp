#include "cli/set_hint.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_node.h"
#include "base/text.h"
#include "sim/plan/deployment_flags.h"

namespace roofcast::cli {
namespace {

/// Whether a spec has the key, in itself or in one of its lists of cases (an engine's by_gpu).
bool has_key(const ConfigTree& spec, const std::string& key) {
  if (spec->find(key) != nullptr) return true;
  return std::any_of(spec->entries.begin(), spec->entries.end(), [&](const ConfigNode::Entry& entry) {
    return entry.value && std::any_of(entry.value->items.begin(), entry.value->items.end(),
                                      [&](const ConfigTree& item) { return item && item->find(key) != nullptr; });
  });
}

/// Whether any shipped spec of a kind has the key.
bool known_of(const char* kind, const std::string& key) {
  const std::vector<std::string> names = names_of(kind);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return has_key(load_named(kind, name, SourceLocation{kind, 0, 0}), key);
  });
}

std::vector<std::string> places_of(const std::string& key) {
  std::vector<std::string> places;
  for (const DeploymentFlag& flag : deployment_flags()) {
    const std::string path = flag.key;
    if (path.find('.') != std::string::npos && (path.ends_with("." + key) || query_name(flag) == key))
      places.push_back(fmt::format("{} (or --{})", path, flag.name));
  }
  for (const char* flag : {"batch", "prompt-tokens", "output-tokens", "context"}) {
    std::string name = flag;
    std::replace(name.begin(), name.end(), '-', '_');
    if (name == key) places.push_back(fmt::format("--{} of estimate", flag));
  }
  for (const auto& [map, kind] : {std::pair{"engine", "engines"}, {"workload", "workloads"}, {"gpu", "hardware"}}) {
    if (known_of(kind, key)) places.push_back(fmt::format("{}.{}", map, key));
  }
  return places;
}

/// The path of a key of `arrivals` in a workload; empty for other keys.
std::string of_arrivals(const std::string& key) {
  if (key == "concurrency") return "; did you mean workload.arrivals={process: closed_loop, concurrency: N}?";
  if (key == "rate") return "; did you mean workload.arrivals={process: poisson, rate: N /s}?";
  return key == "process" ? "; did you mean workload.arrivals.process?" : "";
}

}  // namespace

std::string set_hint(const ConfigError& error) {
  constexpr std::string_view kStart = "unknown key '", kEnd = "' of a scenario";
  constexpr std::string_view kOfWorkload = "' of a workload";
  const std::string message = error.message();
  if (const std::size_t at = message.find(kOfWorkload); message.starts_with(kStart) && at != std::string::npos)
    return of_arrivals(message.substr(kStart.size(), at - kStart.size()));
  const std::size_t end = message.find(kEnd);
  if (!error.location().path.str().starts_with("--set") || !message.starts_with(kStart) || end == std::string::npos)
    return "";
  const std::vector<std::string> places = places_of(message.substr(kStart.size(), end - kStart.size()));
  return places.empty() ? "" : fmt::format("; did you mean {}?", join(places, ", or "));
}

}  // namespace roofcast::cli
