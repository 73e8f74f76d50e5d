#include "sim/plan/engine_release.h"

#include <algorithm>
#include <vector>

#include "base/config_library.h"
#include "base/config_release.h"
#include "sim/plan/launch_recipe.h"
#include "sim/step/engine_spec.h"

namespace roofcast {

std::string image_of_day(const ConfigTree& scenario, const ConfigTree& engine, bool disaggregated) {
  const ConfigTree *recipe = scenario->find("recipe"), *workload = scenario->find("workload");
  if (recipe == nullptr || workload == nullptr || !*recipe || !*workload) return "";
  const bool maps = (*workload)->kind == ConfigNode::Kind::kMap, scalar = engine->kind == ConfigNode::Kind::kScalar;
  const ConfigTree *day = maps ? (*workload)->find("client_date") : nullptr,
                   *name = scalar ? &engine : engine->find("name");
  const bool told = !scalar && engine->find("version") != nullptr;
  if (day == nullptr || !*day || told || name == nullptr || !*name) return "";
  const std::string& engine_name = (*name)->scalar;
  if (engine_name.find('@') != std::string::npos) return "";
  const LaunchRecipe launched = find_launch_recipe((*recipe)->scalar, (*recipe)->location);
  const std::string apart = disaggregated ? image_on(launched, engine_name + "-workers", (*day)->scalar) : "";
  return apart.empty() ? image_on(launched, engine_name, (*day)->scalar) : apart;
}

std::string release_taken_for(const EngineSpec& engine) {
  const std::vector<std::string> names = names_of("engines");
  if (engine.version.empty() || std::find(names.begin(), names.end(), engine.name) == names.end()) return "";
  const ConfigTree document = load_document("engines", engine.name, SourceLocation{"engines", 0, 0});
  if (!has_releases(document)) return "";
  std::string before;
  for (const ConfigTree& release : (*document->find("releases"))->items) {
    const std::string& version = (*release->find("version"))->scalar;
    const int order = compare_versions(version, engine.version);
    if (order == 0) return "";
    if (order < 0) before = version;
  }
  return before;
}

}  // namespace roofcast
