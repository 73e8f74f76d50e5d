#pragma once
// The state of the public classes, and the conversion of internal errors to public ones.

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
  std::string text;  ///< the JSON
};

/// Returns the result of `work`. Converts ConfigError and Unavailable to Error.
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
