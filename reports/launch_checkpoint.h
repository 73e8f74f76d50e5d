#pragma once
// The weights that a launch command loads, and the engines' names of number formats.

#include <string>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "hw/dtype.h"

namespace roofcast {
struct Deployment;
}  // namespace roofcast

namespace roofcast::reports {

/// Source of the weights: a Hugging Face repository or a folder; empty: unknown.
struct Checkpoints {
  std::string model{};
  std::string drafter{};  ///< of a model that drafts
  std::string note{};     ///< why the model is not the repository in its file
};
/// For a scenario. A repository or folder that the scenario names is used as it is, Qwen/Qwen3-32B-FP8 with its format.
/// For a shipped model it is the chat repository in its file (`chat`), else the source. Unknown for a model that the
/// scenario changes, and for a checkpoint's name without its owner.
Checkpoints checkpoints_of(const ConfigTree& scenario);

/// Whether a checkpoint is a local folder. A name without a slash is always a shipped model's.
bool is_local_folder(const std::string& name);

/// The weights that a command names.
struct ServedWeights {
  std::string name;
  bool made_while_loading = false;         ///< fp8, from a 16-bit checkpoint
  std::vector<std::string> comments = {};  ///< how to get them
  bool local = false;                      ///< a file, folder or variable of the user's
};
ServedWeights served_weights(const Deployment& deployment, const std::string& engine, const Checkpoints& from);

/// The engine's value for the format of the KV cache; empty: 16 bit, its default. Throws ConfigError if the release has
/// none.
std::string kv_cache_word(const Deployment& deployment, const std::string& engine);

/// Environment that makes the engine multiply fp8 weights with 16-bit activations on a GPU with fp8 units. Throws
/// ConfigError if the engine has no such kernels.
std::vector<std::pair<std::string, std::string>> weight_only_environment(const Deployment& deployment,
                                                                         const std::string& engine);

/// Whether the deployment is for a release of `engine` before `version`; false if its version is unknown.
bool is_before(const Deployment& deployment, std::string_view engine, std::string_view version);

}  // namespace roofcast::reports
