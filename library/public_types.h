#pragma once
// What the public classes hold, and errors on their way out.

#include <nlohmann/json.hpp>

#include "base/config_node.h"
#include "library/answers.h"
#include "roofcast/error.h"
#include "roofcast/result.h"
#include "roofcast/scenario.h"

namespace roofcast {
inline namespace v0 {

struct ScenarioTree {
  ConfigTree tree;
};

struct Result::State {
  std::string kind;
  library::Answer answer;
  std::string text;  ///< of its JSON
};

/// What `work` returns; errors of the user's input leave as Error, and what the machine lacks too.
template <class Work>
auto with_public_errors(Work work) {
  try {
    return work();
  } catch (const ConfigError& error) {
    throw Error(error.what());
  } catch (const Unavailable& error) {
    throw Error(error.what());
  }
}

}  // namespace v0
}  // namespace roofcast
