#pragma once
// What a launch command loads, and the words by which an engine is told number formats.

#include <string>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "sim/step/deployment.h"

namespace roofcast {

/// Where weights come from: a Hugging Face repository or a folder; empty: not known.
struct Checkpoints {
  std::string model{};
  std::string drafter{};  ///< of a model that drafts
  std::string note{};     ///< why the model is not the repository that its file has as its source
};
/// Of a scenario. A repository or folder that the scenario names is taken as it is; for a shipped model it is the one
/// that its file serves for chat (`chat`), else its source. That of a model which the scenario changes is not known.
Checkpoints checkpoints_of(const ConfigTree& scenario);

/// Whether a checkpoint is a folder here. A name without a slash is a shipped model's, whatever lies here.
bool is_local_folder(const std::string& name);

/// What a command names as its weights.
struct ServedWeights {
  std::string name;
  bool made_while_loading = false;         ///< fp8, of a 16-bit checkpoint
  std::vector<std::string> comments = {};  ///< how to come by them
  bool local = false;                      ///< a file, folder or variable of the reader's
};
ServedWeights served_weights(const Deployment& deployment, const std::string& engine, const Checkpoints& from);

/// The engine's value for the format of the KV cache; empty: 16 bits, its default. Throws ConfigError where the release
/// has none.
std::string kv_cache_word(const Deployment& deployment, const std::string& engine);

/// Environment by which the engine multiplies fp8 weights with 16-bit activations on a GPU that has fp8 units. Throws
/// ConfigError where the engine has no such kernels.
std::vector<std::pair<std::string, std::string>> weight_only_environment(const Deployment& deployment,
                                                                         const std::string& engine);

/// Whether the deployment is for a release of `engine` before `version`; false where its version is not known.
bool is_before(const Deployment& deployment, std::string_view engine, std::string_view version);

}  // namespace roofcast
