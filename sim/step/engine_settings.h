#pragma once
#include <string>
#include <vector>

#include "sim/step/engine_spec.h"

namespace roofcast {

/// A key of an engine's file, dotted, with its value as text.
struct EngineSetting {
  std::string key, text;
};
/// All settings of an engine, always in the same order.
std::vector<EngineSetting> settings_of(EngineSpec engine);

}  // namespace roofcast
