#include "base/config_library.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "base/checkpoint_name.h"
#include "base/config_release.h"
#include "base/model_document.h"
#include "base/program_path.h"
#include "base/read_file.h"
#include "base/release_flags.h"
#include "base/text.h"

namespace roofcast {
namespace {

namespace fs = std::filesystem;

/// What error messages call one spec of this folder.
std::string_view word_for(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kWords{{{"hardware", "gpu"},
                                                                                  {"models", "model"},
                                                                                  {"engines", "engine"},
                                                                                  {"workloads", "workload"},
                                                                                  {"scenarios", "scenario"},
                                                                                  {"sweeps", "sweep"},
                                                                                  {"plans", "plan"},
                                                                                  {"recipes", "recipe"},
                                                                                  {"clients", "client"},
                                                                                  {"front-ends", "front end"},
                                                                                  {"prices", "price list"},
                                                                                  {"support", "support table"},
                                                                                  {"uncertainty", "uncertainty"},
                                                                                  {"rooflines", "set of rooflines"}}};
  for (const auto& [folder, word] : kWords) {
    if (folder == kind) return word;
  }
  return kind;
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") || name.ends_with(".yml") ||
         name.ends_with(".json") || name == "." || name == "..";
}

bool is_readable_file(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_directory(status);  // a pipe will do, too
}

std::string folder_of(std::string_view kind) { return fmt::format("{}/{}", config_root(), kind); }

std::string& chosen_root() {
  static std::string folder;
  return folder;
}

std::string& program_name() {
  static std::string argv0;
  return argv0;
}

/// The configs beside the installed program, else those of the source tree it was built from. Else those of the install
/// prefix, for programs that link the installed library.
std::string shipped_root() {
  std::error_code error;
  if (const fs::path program = program_path(program_name()); !program.empty()) {
    const fs::path installed = (program.parent_path() / "../share/roofcast/configs").lexically_normal();
    if (fs::is_directory(installed, error)) return installed.string();
  }
  return fs::is_directory(ROOFCAST_SOURCE_CONFIGS, error) ? ROOFCAST_SOURCE_CONFIGS : ROOFCAST_INSTALLED_CONFIGS;
}

/// Modification time and size: a changed stamp means changed contents. Uses one system call, because Python checks
/// before every estimate.
using FileStamp = std::array<std::int64_t, 3>;
FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
#ifdef __APPLE__
  const timespec& written = status.st_mtimespec;
#else
  const timespec& written = status.st_mtim;
#endif
  return {written.tv_sec, written.tv_nsec, status.st_size};
}

/// Documents read so far. Trees are immutable, so callers on other threads share them.
struct Documents {
  struct Read {
    ConfigTree tree;
    std::string path;
    FileStamp stamp;
  };
  std::mutex mutex;
  std::map<std::string, Read> read;          ///< keyed by kind and path
  std::map<std::string, ConfigTree> folded;  ///< merged settings of releases, keyed by kind, path and version
};
Documents& documents() {
  static Documents& all = *new Documents;  // never destroyed: other threads may use it at exit
  return all;
}

ConfigTree remembered(std::string_view kind, const std::string& path) {
  const std::lock_guard lock(documents().mutex);
  Documents::Read& document = documents().read[fmt::format("{} {}", kind, path)];
  if (!document.tree) {
    const FileStamp stamp = stamp_of(path);
    document = {
        .tree = kind == "models" ? parse_model_file(path) : parse_config_file(path), .path = path, .stamp = stamp};
  }
  return document.tree;
}

/// The Hugging Face repositories that a model's file names, in lower case: its `source`, and those under
/// `hugging_face`, which share its architecture and format.
std::vector<std::string> repositories_of(const std::string& path) {
  std::vector<std::string> ids;
  static constexpr std::string_view kHub = "huggingface.co/", kBetween = " \t\r,[]\"'";
  for (const std::string& line : split(lower(read_file(path, std::size_t{1} << 26)), '\n')) {
    const bool source = line.starts_with("source:");
    if (!source && !line.starts_with("hugging_face:")) continue;
    for (std::size_t at = line.find(':') + 1; at < line.size();) {
      const std::size_t begin = std::min(line.find_first_not_of(kBetween, at), line.size());
      at = std::min(line.find_first_of(kBetween, begin), line.size());
      std::string id = line.substr(begin, at - begin);
      if (const std::size_t hub = id.find(kHub); hub != std::string::npos)
        id.erase(0, hub + kHub.size());
      else if (source)
        continue;
      ids.push_back(std::move(id));
    }
  }
  return ids;
}

/// `wanted`: a repository in lower case, with or without its owner.
bool is_of_repository(const std::string& path, const std::string& wanted) {
  const std::vector<std::string> ids = repositories_of(path);
  return std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
    return id == wanted || (wanted.find('/') == std::string::npos && id.ends_with("/" + wanted));
  });
}

/// The path of the shipped spec that another spelling means: other case, a GPU without "-sxm", a Hugging Face id. Empty
/// if there is none.
std::string path_by_other_name(std::string_view kind, const std::string& name) {
  std::string wanted = lower(name);
  const std::vector<std::string> names = names_of(kind);
  if (kind == "hardware") std::replace(wanted.begin(), wanted.end(), ' ', '-');  // RTX 4090
  for (const std::string& other : {wanted, kind == "hardware" ? wanted + "-sxm" : wanted}) {
    if (!other.empty() && std::count(names.begin(), names.end(), other) > 0)
      return fmt::format("{}/{}.yaml", folder_of(kind), other);
  }
  if (kind != "models" || wanted.empty()) return "";
  for (const std::string& model : names) {
    std::string path = fmt::format("{}/{}.yaml", folder_of(kind), model);
    if (is_of_repository(path, wanted)) return path;
  }
  return "";
}

/// The path of the shipped model that a quantized checkpoint was made from. Empty if there is none.
std::string path_of_quantized(const CheckpointName& name) {
  for (const std::string& model : name.models) {
    if (std::string path = path_by_other_name("models", model); !path.empty()) return path;
  }
  return "";
}

/// Advice for a Hugging Face repository that is not shipped.
std::string instead_of_repository(const std::string& id) {
  if (const auto quantized = parse_checkpoint_name(id, {}); quantized && !quantized->quantization) {
    if (const std::string path = path_of_quantized(*quantized); !path.empty())
      return fmt::format("; {} holds several formats: write 'model: {}' and 'precision: {}', or another format", id,
                         fs::path(path).stem().string(), quantized->advice);
  }
  std::vector<std::string> ids;
  for (const std::string& model : names_of("models")) {
    for (std::string& other : repositories_of(fmt::format("{}/{}.yaml", folder_of("models"), model)))
      ids.push_back(std::move(other));
  }
  const std::string nearest = nearest_name(lower(id), ids);
  return fmt::format(
      "; for a Hugging Face repository that is not shipped, download its config.json and name that file{}",
      nearest.empty() ? "" : fmt::format(" (nearest of those shipped: {})", nearest));
}

/// Advice where a count is written before the name of a GPU, such as 4xH100: "; for 4 GPUs ...".
std::string instead_of_several(std::string_view kind, const std::string& name) {
  const std::size_t x = std::min(name.find_first_not_of("0123456789"), name.size());
  if (kind != "hardware" || x == 0 || x == name.size() || (name[x] != 'x' && name[x] != 'X')) return "";
  const std::string gpu = shipped_name(kind, name.substr(x + 1));
  return gpu.empty() ? ""
                     : fmt::format("; for {} GPUs write {} and --tp {}", name.substr(0, x), gpu, name.substr(0, x));
}

/// The path itself; for the folder of a model, its config.json.
std::string path_as_written(std::string_view kind, const std::string& path, const SourceLocation& origin) {
  std::error_code unknown;  // a folder without search permission is reported as a missing file
  if (fs::is_directory(path, unknown)) {
    std::string config = (fs::path(path) / "config.json").string();
    if (kind == "models" && is_readable_file(config)) return config;
    throw ConfigError(origin, fmt::format("'{}' is a directory{}, not a {} file", path,
                                          kind == "models" ? " without a config.json" : "", word_for(kind)));
  }
  if (is_readable_file(path)) return path;
  if (std::string found = path_by_other_name(kind, path); !found.empty()) return found;
  const bool repository = kind == "models" && std::count(path.begin(), path.end(), '/') == 1 &&
                          !path.starts_with('.') && !path.starts_with('/') && !path.ends_with(".yaml") &&
                          !path.ends_with(".json");
  throw ConfigError(origin, fmt::format("no such {} file '{}'{}", word_for(kind), path,
                                        repository ? instead_of_repository(path) : ""));
}

}  // namespace

std::string config_root() {
  const char* chosen = std::getenv("ROOFCAST_CONFIGS");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  if (!chosen_root().empty()) return chosen_root();
  static const std::string shipped = shipped_root();
  return shipped;
}

void use_config_root(std::string folder) { chosen_root() = std::move(folder); }
void set_program_name(std::string argv0) { program_name() = std::move(argv0); }

bool forget_changed_documents() {
  Documents& all = documents();
  const std::lock_guard lock(all.mutex);
  const std::size_t forgotten = std::erase_if(all.read, [](const auto& entry) {
    return entry.second.tree && stamp_of(entry.second.path) != entry.second.stamp;
  });
  if (forgotten > 0) all.folded.clear();
  return forgotten > 0;
}

std::string path_of_named(std::string_view kind, const std::string& name_or_path, const SourceLocation& origin) {
  if (is_path(name_or_path)) return path_as_written(kind, name_or_path, origin);
  for (const std::string& folder : {folder_of(kind), fmt::format("{}/archive/{}", config_root(), kind)}) {
    std::string path = fmt::format("{}/{}.yaml", folder, name_or_path);
    if (!name_or_path.empty() && is_readable_file(path)) return path;
  }
  if (std::string path = path_by_other_name(kind, name_or_path); !path.empty()) return path;
  const std::vector<std::string> names = names_of(kind);
  std::string message = unknown_name(word_for(kind), name_or_path, names) + instead_of_several(kind, name_or_path);
  if (names.empty()) message = fmt::format("unknown {} '{}': {}", word_for(kind), name_or_path, no_specs(kind));
  if (kind == "models" && is_readable_file(name_or_path + "/config.json"))
    message += fmt::format("; for the folder of that name write './{}'", name_or_path);
  throw ConfigError(origin, message);
}

std::string no_specs(std::string_view kind) {
  const char* chosen = std::getenv("ROOFCAST_CONFIGS");
  const bool by_user = (chosen != nullptr && *chosen != '\0') || !chosen_root().empty();
  return fmt::format("no {} in '{}'{}; ROOFCAST_CONFIGS=DIR names the folder of specs", kind, config_root(),
                     by_user ? "" : ", nor in ../share/roofcast/configs beside the program");
}

std::string shipped_name(std::string_view kind, const std::string& name) {
  return fs::path(path_by_other_name(kind, name)).stem().string();
}

NameAndVersion split_version(const std::string& name) {
  const std::size_t at = name.find('@');
  if (at == std::string::npos || is_path(name)) return {name, ""};
  return {name.substr(0, at), name.substr(at + 1)};
}

namespace {

/// A shipped model with the format of one of its quantized checkpoints, such as Qwen/Qwen3-32B-FP8. Null if the name is
/// not that of such a checkpoint.
ConfigTree quantized_model(const std::string& name, const SourceLocation& origin) {
  std::error_code unknown;
  if (fs::exists(name, unknown) || fs::exists(fmt::format("{}/{}.yaml", folder_of("models"), name), unknown))
    return nullptr;
  const auto quantized = parse_checkpoint_name(name, origin);
  if (!quantized || !quantized->quantization) return nullptr;
  if (!path_by_other_name("models", name).empty()) return nullptr;
  const std::string path = path_of_quantized(*quantized);
  if (path.empty()) return nullptr;
  const ConfigTree model = remembered("models", path);
  return with_value(model, "quantization_config", quantized->quantization, model->location);
}

}  // namespace

ConfigTree load_document(std::string_view kind, const std::string& name_or_path, const SourceLocation& origin) {
  if (kind == "models") {
    if (ConfigTree model = quantized_model(name_or_path, origin)) return model;
  }
  return remembered(kind, path_of_named(kind, name_or_path, origin));
}

namespace {

/// Throws if nothing follows the '@' that introduces a release.
NameAndVersion asked_for(const std::string& name, const SourceLocation& origin) {
  if (!is_path(name) && name.ends_with('@'))
    throw ConfigError(origin, fmt::format("'{}': a version or a day must follow '@'", name));
  return split_version(name);
}

/// Follows `same_as: NAME@VERSION`, which makes a document another name of that release.
NameAndVersion followed(std::string_view kind, NameAndVersion asked, const SourceLocation& origin) {
  const ConfigTree document = load_document(kind, asked.name, origin);
  const ConfigTree* other = document->find("same_as");
  if (other == nullptr || !*other) return asked;
  if (!asked.version.empty())
    throw ConfigError(origin,
                      fmt::format("'{}' is another name of {}: leave the version out", asked.name, (*other)->scalar));
  return split_version((*other)->scalar);
}

ConfigTree load_release(std::string_view kind, const NameAndVersion& asked, const SourceLocation& origin) {
  const NameAndVersion found = followed(kind, asked, origin);
  const ConfigTree document = load_document(kind, found.name, origin);
  if (!has_releases(document)) {
    if (!found.version.empty())
      throw ConfigError(origin, fmt::format("releases of {} '{}' are unknown: leave '@{}' out", word_for(kind),
                                            found.name, found.version));
    return document;
  }
  const std::string key = fmt::format("{} {} {}", kind, document->location.path.str(), found.version);
  const std::lock_guard lock(documents().mutex);
  ConfigTree& tree = documents().folded[key];
  if (!tree) tree = settings_at(document, find_release(document, found.version, origin));
  return tree;
}

}  // namespace

NamedRelease find_named(std::string_view kind, const std::string& name, const SourceLocation& origin) {
  const NameAndVersion found = followed(kind, asked_for(name, origin), origin);
  return {load_document(kind, found.name, origin), found.version};
}

ConfigTree load_named(std::string_view kind, const std::string& name_or_path, const SourceLocation& origin) {
  return load_release(kind, asked_for(name_or_path, origin), origin);
}

std::vector<std::string> names_of(std::string_view kind) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder_of(kind), error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() == ".yaml") names.push_back(path.stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

/// Whether the map defines a whole document: its name is new, and it has keys that only a file has.
bool is_whole_document(std::string_view kind, const ConfigNode& map, const std::string& name) {
  if (kind != "hardware" || (map.find("architecture") == nullptr && map.find("like") == nullptr)) return false;
  const std::vector<std::string> known = names_of(kind);
  const bool file = name.find('/') != std::string::npos || name.ends_with(".yaml");
  return !file && std::find(known.begin(), known.end(), name) == known.end();
}

/// Gives a name to a GPU that is written out without one.
ConfigTree with_name(std::string_view kind, const ConfigTree& value) {
  if (kind != "hardware" || value->find("base") != nullptr) return value;
  const ConfigTree* like = value->find("like");
  const bool sibling = like != nullptr && *like && (*like)->kind == ConfigNode::Kind::kScalar;
  const std::string name = sibling ? "like-" + fs::path((*like)->scalar).stem().string() : "unnamed";
  return with_value(value, "name", make_scalar(name, value->location), value->location);
}

}  // namespace

ConfigTree resolve_named(std::string_view kind, const ConfigTree& value) {
  const std::string_view word = word_for(kind);
  if (!value) throw ConfigError(fmt::format("missing {}", word));
  if (value->kind == ConfigNode::Kind::kScalar) return load_named(kind, value->scalar, value->location);
  if (value->kind != ConfigNode::Kind::kMap) {
    throw ConfigError(value->location,
                      fmt::format("a {} must be a name, or a map with a 'name' and what it changes", word));
  }
  const ConfigTree* name = value->find("name");
  if (name == nullptr) return with_name(kind, value);
  if (value->find("base") != nullptr) return value;  // a complete document
  if ((*name)->kind != ConfigNode::Kind::kScalar) {
    throw ConfigError((*name)->location, fmt::format("'name' must be the name of a {}", word));
  }
  if (is_whole_document(kind, *value, (*name)->scalar)) return value;
  NameAndVersion asked = asked_for((*name)->scalar, (*name)->location);
  SourceLocation origin = (*name)->location;
  auto changes = std::make_shared<ConfigNode>(*value);
  const ConfigTree* version = value->find("version");
  const bool released =
      version != nullptr && *version && has_releases(load_document(kind, followed(kind, asked, origin).name, origin));
  if (released) {
    if ((*version)->kind != ConfigNode::Kind::kScalar)
      throw ConfigError((*version)->location, "'version' must be a version or a day");
    if (!asked.version.empty() && asked.version != (*version)->scalar)
      throw ConfigError((*version)->location, fmt::format("'{}' and version '{}' are two releases; give one",
                                                          (*name)->scalar, (*version)->scalar));
    asked.version = (*version)->scalar;
    origin = (*version)->location;
  }
  std::erase_if(changes->entries, [&](const ConfigNode::Entry& entry) {
    return entry.key == "name" || (released && entry.key == "version");
  });
  const NameAndVersion found = followed(kind, asked, origin);
  const ConfigTree document = load_document(kind, found.name, origin);
  if (has_releases(document)) {
    check_introduced(document, find_release(document, found.version, origin), changes);
  } else if (kind == "engines" && version != nullptr && *version && !is_path(found.name)) {
    throw ConfigError((*version)->location,
                      fmt::format("releases of engine '{}' are unknown: leave 'version' out", found.name));
  }
  if (kind == "engines") check_own(kind, document, changes);
  return overlay(load_release(kind, asked, origin), changes);
}

}  // namespace roofcast
