#include "base/release_flags.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/text.h"

namespace roofcast {
namespace {

struct Flag {
  bool listed = false;
  std::string since = {}, command = {}, until = {};
};

Flag flag_of(const ConfigTree& document, std::string_view setting) {
  const ConfigTree* flags = document->find("flags");
  if (flags == nullptr || !*flags) return {};
  const ConfigTree* entry = (*flags)->find(setting);
  if (entry == nullptr || !*entry) {
    const std::vector<std::string> always = ConfigReader(*flags, "flags of an engine").texts("always");
    return {.listed = std::find(always.begin(), always.end(), setting) != always.end()};
  }
  Flag flag{.listed = true};
  if ((*entry)->kind == ConfigNode::Kind::kScalar) {
    flag.since = (*entry)->scalar;
  } else {
    ConfigReader in(*entry, "a flag");
    flag.since = in.text("since", ""), flag.command = in.text("command", ""), flag.until = in.text("until", "");
    in.finish();
  }
  for (const std::string& version : {flag.since, flag.command, flag.until}) {
    if (!version.empty() && version_numbers(version).empty())
      throw ConfigError((*entry)->location, fmt::format("'{}' must be a version", version));
  }
  return flag;
}

/// Calls visit(dotted key, value) for every setting; a list counts as one setting.
void visit_settings(const ConfigTree& changes, const std::string& prefix,
                    const std::function<void(const std::string&, const ConfigNode::Entry&)>& visit) {
  if (!changes || changes->kind != ConfigNode::Kind::kMap) return;
  for (const ConfigNode::Entry& entry : changes->entries) {
    const std::string key = prefix + entry.key;
    if (entry.value && entry.value->kind == ConfigNode::Kind::kMap)
      visit_settings(entry.value, key + ".", visit);
    else
      visit(key, entry);
  }
}

/// Whether the settings already have this value.
bool has_value(const ConfigTree& settings, const std::string& key, const ConfigNode::Entry& entry) {
  ConfigTree at = settings;
  for (const std::string& part : split(key, '.')) {
    const ConfigTree* next = at ? at->find(part) : nullptr;
    if (next == nullptr) return false;
    at = *next;
  }
  return at && entry.value && at->kind == ConfigNode::Kind::kScalar && at->scalar == entry.value->scalar;
}

bool is_off(const ConfigNode::Entry& entry) {
  const std::string value = entry.value ? entry.value->scalar : "";
  return value == "false" || value == "0" || value == "none";
}

const SourceLocation& location_of(const ConfigNode::Entry& entry) {
  return entry.value ? entry.value->location : entry.key_location;
}

std::string name_of(const ConfigTree& document) {
  const ConfigTree* name = document->find("name");
  return name != nullptr && *name ? (*name)->scalar : "this";
}

std::vector<std::string> own_settings(const ConfigTree& document) {
  const ConfigTree* own = document->find("own");
  return own != nullptr && *own ? ConfigReader(document, "an engine").texts("own") : std::vector<std::string>{};
}

}  // namespace

bool has_flag(const ConfigTree& document, const std::string& version, std::string_view setting) {
  const Flag flag = flag_of(document, setting);
  if (!flag.listed || version.empty()) return flag.listed && flag.until.empty();
  return in_force(version, flag.command.empty() ? flag.since : flag.command, flag.until);
}

void check_introduced(const ConfigTree& document, const Release& release, const ConfigTree& changes) {
  const ConfigTree plain = settings_at(document, release);
  visit_settings(changes, "", [&](const std::string& key, const ConfigNode::Entry& entry) {
    const std::string since = flag_of(document, key).since;
    if (since.empty() || is_off(entry) || compare_versions(release.version, since) >= 0) return;
    if (has_value(plain, key, entry)) return;
    throw ConfigError(location_of(entry), fmt::format("{} {} has no '{}': it came with {}", name_of(document),
                                                      release.version, key, since));
  });
}

void check_own(std::string_view kind, const ConfigTree& document, const ConfigTree& changes) {
  const std::vector<std::string> mine = own_settings(document);
  std::vector<std::pair<std::string, std::string>> foreign;  // setting, whose
  for (const std::string& name : names_of(kind)) {
    const ConfigTree other = load_document(kind, name, SourceLocation{std::string(kind), 0, 0});
    for (const std::string& setting : own_settings(other)) {
      if (std::find(mine.begin(), mine.end(), setting) == mine.end()) foreign.emplace_back(setting, name);
    }
  }
  visit_settings(changes, "", [&](const std::string& key, const ConfigNode::Entry& entry) {
    if (is_off(entry)) return;
    const std::string with_value = key + ": " + (entry.value ? entry.value->scalar : "");
    for (const auto& [setting, whose] : foreign) {
      if (setting == key || setting == with_value)
        throw ConfigError(location_of(entry),
                          fmt::format("{} has no '{}': it is a setting of {}", name_of(document), setting, whose));
    }
  });
}

}  // namespace roofcast
