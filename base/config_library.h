#pragma once
// Finds the spec that a name stands for. A name is looked up in configs/<kind>/; a path is read directly.

#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace roofcast {

/// The folder of shipped specs. The first of these that is set or exists: $ROOFCAST_CONFIGS, the folder given to
/// use_config_root(), ../share/roofcast/configs beside the program, the source tree it was built from, the install
/// prefix.
std::string config_root();
void use_config_root(std::string folder);
/// argv[0]. The program finds its own file by it on systems without /proc.
void set_program_name(std::string argv0);

/// Loads a spec. Throws ConfigError `origin: unknown gpu 'x'; nearest ...`.
/// `kind`: "hardware", "models", "engines", "workloads", "scenarios", "sweeps", "plans", "recipes", "clients" or
/// "front-ends".
/// The name may differ in case. "H200" is short for "h200-sxm", a model may be given by its Hugging Face id
/// ("Qwen/Qwen3-32B") or by the folder of its config.json.
/// "NAME@VERSION" names one release of a document, NAME alone its newest (base/config_release.h). The result is then
/// the settings of that release. Parsed documents are cached by path for the life of the process.
ConfigTree load_named(std::string_view kind, const std::string& name_or_path, const SourceLocation& origin);
/// Drops cached documents whose files have changed. Returns true if there were any; whatever was derived from them is
/// then out of date.
bool forget_changed_documents();
/// The document as written, with all its releases. `name_or_path` must not have a version.
ConfigTree load_document(std::string_view kind, const std::string& name_or_path, const SourceLocation& origin);
std::string path_of_named(std::string_view kind, const std::string& name_or_path, const SourceLocation& origin);
/// The name of the shipped spec for any spelling that load_named() takes; empty if there is none.
std::string shipped_name(std::string_view kind, const std::string& name);
/// Sorted, without .yaml. Specs in configs/archive/<kind> can be loaded by name, but are not listed.
std::vector<std::string> names_of(std::string_view kind);

/// "no models in '/usr/share/roofcast/configs', ...": says where specs were looked for and how to name another folder.
std::string no_specs(std::string_view kind);

/// The document and the version that "NAME[@VERSION]" names.
struct NamedRelease {
  ConfigTree document;
  std::string version;
};
NamedRelease find_named(std::string_view kind, const std::string& name, const SourceLocation& origin);

/// Splits "vllm@0.12" into name and version; the version is empty if none is given.
struct NameAndVersion {
  std::string name, version;
};
NameAndVersion split_version(const std::string& name);

/// The document for a scenario's value, which is a name or a map that overrides parts of the document in its `name`.
/// For such a map, returns the named document with the other keys of the map laid over it. `version` beside `name`
/// chooses a release. A map without a name is the document itself; a GPU then gets its name from its `like` key.
ConfigTree resolve_named(std::string_view kind, const ConfigTree& value);

}  // namespace roofcast
