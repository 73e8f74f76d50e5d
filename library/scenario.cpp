#include "roofcast/scenario.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/config_library.h"
#include "library/public_types.h"
#include "roofcast/version.h"

namespace roofcast {
inline namespace v0 {
namespace {

std::shared_ptr<const ScenarioTree> shared(ConfigTree tree) {
  return std::make_shared<const ScenarioTree>(ScenarioTree{std::move(tree)});
}

}  // namespace

const char* version() { return ROOFCAST_VERSION; }

Scenario::Scenario() : tree_(shared(make_map())) {}
Scenario::Scenario(std::shared_ptr<const ScenarioTree> tree) : tree_(std::move(tree)) {}

Scenario Scenario::from_file(const std::string& path_or_name) {
  return with_public_errors([&] {
    return Scenario(shared(load_named("scenarios", path_or_name, SourceLocation{"from_file", 0, 0})));
  });
}

Scenario Scenario::from_plan(const std::string& path_or_name) {
  return with_public_errors([&] {
    return Scenario(shared(load_named("plans", path_or_name, SourceLocation{"from_plan", 0, 0})));
  });
}

Scenario Scenario::from_text(std::string_view yaml, const std::string& name) {
  return with_public_errors([&] { return Scenario(shared(parse_config_text(yaml, name))); });
}

Scenario& Scenario::set(std::string_view key, std::string_view value) {
  return with_public_errors([&]() -> std::reference_wrapper<Scenario> {
    tree_ = shared(with_assignment(tree_->tree, fmt::format("{}={}", key, value), std::string(key)));
    return *this;
  });
}

Scenario& Scenario::set(std::string_view key, double value) { return set(key, fmt::format("{}", value)); }

std::string Scenario::yaml() const { return to_yaml(*tree_->tree); }

}  // namespace v0
}  // namespace roofcast
