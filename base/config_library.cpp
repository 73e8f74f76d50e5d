#include "base/config_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "base/config_release.h"
#include "base/model_document.h"
#include "base/text.h"

namespace roofcast {
namespace {

namespace fs = std::filesystem;

/// What one spec of a folder is called in errors.
std::string_view word_for(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kWords{{{"hardware", "gpu"},
                                                                                  {"models", "model"},
                                                                                  {"engines", "engine"},
                                                                                  {"workloads", "workload"},
                                                                                  {"scenarios", "scenario"},
                                                                                  {"sweeps", "sweep"},
                                                                                  {"plans", "plan"},
                                                                                  {"recipes", "recipe"},
                                                                                  {"clients", "client"},
                                                                                  {"front-ends", "front end"},
                                                                                  {"uncertainty", "uncertainty"}}};
  for (const auto& [folder, word] : kWords) {
    if (folder == kind) return word;
  }
  return kind;
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") || name.ends_with(".yml") ||
         name.ends_with(".json");
}

bool is_readable_file(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_directory(status);  // a pipe is as good as a file
}

std::string folder_of(std::string_view kind) { return fmt::format("{}/{}", config_root(), kind); }

/// Beside the running program when it is installed, else in the source tree it was built from, else (a program that
/// links the installed library) where the library was installed.
std::string shipped_root() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = (program.parent_path() / "../share/roofcast/configs").lexically_normal();
    if (fs::is_directory(installed, error)) return installed.string();
  }
  return fs::is_directory(ROOFCAST_SOURCE_CONFIGS, error) ? ROOFCAST_SOURCE_CONFIGS : ROOFCAST_INSTALLED_CONFIGS;
}

/// Documents read so far. Trees are immutable, so callers on other threads share them.
ConfigTree remembered(std::string_view kind, const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, ConfigTree> documents;
  const std::lock_guard lock(mutex);
  ConfigTree& tree = documents[fmt::format("{} {}", kind, path)];
  if (!tree) tree = kind == "models" ? parse_model_file(path) : parse_config_file(path);
  return tree;
}

}  // namespace

std::string config_root() {
  const char* chosen = std::getenv("ROOFCAST_CONFIGS");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  static const std::string shipped = shipped_root();
  return shipped;
}

std::string path_of_named(std::string_view kind, const std::string& name_or_path, const Mark& origin) {
  if (is_path(name_or_path)) {
    if (std::filesystem::is_directory(name_or_path)) {
      throw ConfigError(origin, fmt::format("'{}' is a directory, not a {} file", name_or_path, word_for(kind)));
    }
    if (!is_readable_file(name_or_path)) {
      throw ConfigError(origin, fmt::format("no such {} file '{}'", word_for(kind), name_or_path));
    }
    return name_or_path;
  }
  for (const std::string& folder : {folder_of(kind), fmt::format("{}/archive/{}", config_root(), kind)}) {
    std::string path = fmt::format("{}/{}.yaml", folder, name_or_path);
    if (!name_or_path.empty() && is_readable_file(path)) return path;
  }
  const std::vector<std::string> names = names_of(kind);
  std::string message = unknown_name(word_for(kind), name_or_path, names);
  if (names.empty()) message += fmt::format(" in '{}'; ROOFCAST_CONFIGS names the folder of specs", config_root());
  throw ConfigError(origin, message);
}

NameAndVersion split_version(const std::string& name) {
  const std::size_t at = name.find('@');
  if (at == std::string::npos || is_path(name)) return {name, ""};
  return {name.substr(0, at), name.substr(at + 1)};
}

ConfigTree load_document(std::string_view kind, const std::string& name_or_path, const Mark& origin) {
  return remembered(kind, path_of_named(kind, name_or_path, origin));
}

namespace {

/// A document that only says `same_as: NAME@VERSION` is another name of that.
NameAndVersion followed(std::string_view kind, NameAndVersion asked, const Mark& origin) {
  const ConfigTree document = load_document(kind, asked.name, origin);
  const ConfigTree* other = document->find("same_as");
  if (other == nullptr || !*other) return asked;
  if (!asked.version.empty())
    throw ConfigError(origin, fmt::format("'{}' is {}: it takes no version", asked.name, (*other)->scalar));
  return split_version((*other)->scalar);
}

ConfigTree load_release(std::string_view kind, const NameAndVersion& asked, const Mark& origin) {
  const NameAndVersion found = followed(kind, asked, origin);
  const ConfigTree document = load_document(kind, found.name, origin);
  if (!has_releases(document)) {
    if (!found.version.empty())
      throw ConfigError(origin, fmt::format("releases of {} '{}' are not known: leave '@{}' out", word_for(kind),
                                            found.name, found.version));
    return document;
  }
  static std::mutex mutex;
  static std::map<std::string, ConfigTree> folded;
  const std::string key = fmt::format("{} {} {}", kind, document->mark.path, found.version);
  const std::lock_guard lock(mutex);
  ConfigTree& tree = folded[key];
  if (!tree) tree = settings_at(document, find_release(document, found.version, origin));
  return tree;
}

}  // namespace

NamedRelease find_named(std::string_view kind, const std::string& name, const Mark& origin) {
  const NameAndVersion found = followed(kind, split_version(name), origin);
  return {load_document(kind, found.name, origin), found.version};
}

ConfigTree load_named(std::string_view kind, const std::string& name_or_path, const Mark& origin) {
  return load_release(kind, split_version(name_or_path), origin);
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

ConfigTree resolve_named(std::string_view kind, const ConfigTree& value) {
  const std::string_view word = word_for(kind);
  if (!value) throw ConfigError(fmt::format("missing {}", word));
  if (value->kind == ConfigNode::Kind::kScalar) return load_named(kind, value->scalar, value->mark);
  if (value->kind != ConfigNode::Kind::kMap) {
    throw ConfigError(value->mark,
                      fmt::format("a {} must be a name, or a map with a 'name' and what it changes", word));
  }
  const ConfigTree* name = value->find("name");
  if (name == nullptr) return value;
  if ((*name)->kind != ConfigNode::Kind::kScalar) {
    throw ConfigError((*name)->mark, fmt::format("'name' must be the name of a {}", word));
  }
  NameAndVersion asked = split_version((*name)->scalar);
  Mark origin = (*name)->mark;
  auto changes = std::make_shared<ConfigNode>(*value);
  const ConfigTree* version = value->find("version");
  const bool released =
      version != nullptr && *version && has_releases(load_document(kind, followed(kind, asked, origin).name, origin));
  if (released) {
    if ((*version)->kind != ConfigNode::Kind::kScalar)
      throw ConfigError((*version)->mark, "'version' must be a version or a day");
    if (!asked.version.empty() && asked.version != (*version)->scalar)
      throw ConfigError((*version)->mark, fmt::format("'{}' and version '{}' are two releases; give one",
                                                      (*name)->scalar, (*version)->scalar));
    asked.version = (*version)->scalar;
    origin = (*version)->mark;
  }
  std::erase_if(changes->entries, [&](const ConfigNode::Entry& entry) {
    return entry.key == "name" || (released && entry.key == "version");
  });
  const NameAndVersion found = followed(kind, asked, origin);
  if (const ConfigTree document = load_document(kind, found.name, origin); has_releases(document))
    check_introduced(document, find_release(document, found.version, origin), changes);
  return overlay(load_release(kind, asked, origin), changes);
}

}  // namespace roofcast
