#pragma once
// Finds the specs that a name stands for. A name is looked up in configs/<kind>/, a path is read as it is.

#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace roofcast {

/// The folder of shipped specs: $ROOFCAST_CONFIGS, else what use_config_root() says, else beside the installed program
/// (../share/roofcast/configs), else the source tree it was built from, else the prefix it was installed to.
std::string config_root();
void use_config_root(std::string folder);
/// argv[0], by which a program finds itself where the system does not tell (no /proc).
void set_program_name(std::string argv0);

/// A name may also be written in another case, and stand for a GPU without its "-sxm" ("H200") or for a model by its
/// Hugging Face id ("Qwen/Qwen3-32B"); a model may be the folder of its config.json. kind is "hardware", "models",
/// "engines", "workloads", "scenarios", "sweeps", "plans", "recipes", "clients" or "front-ends". Throws ConfigError
/// `origin: unknown gpu 'x'; nearest ...`. Parsed documents are remembered by path for the process. "NAME@VERSION"
/// names a release of a document that has releases, NAME alone its newest (see base/config_release.h); what is returned
/// is then that release's settings.
ConfigTree load_named(std::string_view kind, const std::string& name_or_path, const Mark& origin);
/// Drops the remembered documents whose files have changed since. True when there were any: what was made of them is
/// old, too.
bool forget_changed_documents();
/// The document as it is written, with all its releases. `name_or_path` has no version.
ConfigTree load_document(std::string_view kind, const std::string& name_or_path, const Mark& origin);
std::string path_of_named(std::string_view kind, const std::string& name_or_path, const Mark& origin);
/// The name of the shipped spec that `name` stands for, in any way that load_named() takes; empty: none.
std::string shipped_name(std::string_view kind, const std::string& name);
/// Sorted, without .yaml. What lies in configs/archive/<kind> is found by its name, but not listed.
std::vector<std::string> names_of(std::string_view kind);

/// "no models in '/usr/share/roofcast/configs', ...": where specs were looked for, and how to name another folder.
std::string no_specs(std::string_view kind);

/// The document that "NAME[@VERSION]" stands for, and the version that is asked of it.
struct NamedRelease {
  ConfigTree document;
  std::string version;
};
NamedRelease find_named(std::string_view kind, const std::string& name, const Mark& origin);

/// "vllm@0.12" as name and version; the version is empty where none is given.
struct NameAndVersion {
  std::string name, version;
};
NameAndVersion split_version(const std::string& name);

/// A scenario's key may hold a name, or a map that overrides parts of what its `name` names:
/// returns the named document with the map (less `name`) laid over it. `version` beside the name chooses a release of a
/// document that has releases. A map without a name stands for itself; a GPU is then named after the one that it is
/// `like`.
ConfigTree resolve_named(std::string_view kind, const ConfigTree& value);

}  // namespace roofcast
