#include "base/config_release.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "base/text.h"

namespace roofcast {
namespace {

struct Change {
  std::string since, until, source;
  ConfigTree set;
};

std::vector<Change> changes_of(const ConfigTree& document) {
  std::vector<Change> changes;
  const ConfigTree* list = document->find("changes");
  if (list == nullptr || !*list) return changes;
  if ((*list)->kind != ConfigNode::Kind::kList) throw ConfigError((*list)->location, "'changes' must be a list");
  for (const ConfigTree& item : (*list)->items) {
    ConfigReader in(item, "a change");
    for (const char* bound : {"since", "until"}) {
      if (in.has(bound) && version_numbers(in.text(bound)).empty())
        in.fail(bound, fmt::format("'{}' must be a version", bound));
    }
    Change change{.since = in.text("since", ""),
                  .until = in.text("until", ""),
                  .source = in.text("source", ""),
                  .set = in.tree("set")};
    in.finish();
    if (!change.set || change.set->kind != ConfigNode::Kind::kMap)
      throw ConfigError(item->location, "a change needs 'set', a map of settings");
    changes.push_back(std::move(change));
  }
  return changes;
}

/// Throws for keys that a document with releases does not have.
void check_keys(const ConfigTree& document) {
  ConfigReader in(document, "a document with releases");
  for (const char* key :
       {"name", "help", "source", "host_source", "known_until", "releases", "settings", "changes", "flags", "own"})
    in.ignore(key);
  if (in.has("known_until") && !is_date(in.text("known_until")))
    in.fail("known_until", "'known_until' must be a day such as 2025-12-31");
  if (in.has("flags")) (void)in.child("flags");
  if (in.has("settings")) (void)in.child("settings");
  in.finish();
}

std::vector<Release> releases_of(const ConfigTree& document) {
  check_keys(document);
  std::vector<Release> releases;
  for (const ConfigTree& item : (*document->find("releases"))->items) {
    ConfigReader in(item, "a release");
    Release release{.version = in.text("version"), .date = in.text("date", "")};
    in.finish();
    if (version_numbers(release.version).empty())
      throw ConfigError(item->location, fmt::format("'{}' is not a version", release.version));
    if (!release.date.empty() && !is_date(release.date))
      throw ConfigError(item->location, fmt::format("'{}' is not a day such as 2025-12-31", release.date));
    if (!releases.empty() && compare_versions(releases.back().version, release.version) >= 0)
      throw ConfigError(item->location,
                        fmt::format("release {} must come after {}", release.version, releases.back().version));
    releases.push_back(std::move(release));
  }
  if (releases.empty()) throw ConfigError(document->location, "'releases' must list at least one release");
  return releases;
}

std::string name_of_document(const ConfigTree& document) {
  const ConfigTree* name = document->find("name");
  return name != nullptr && *name ? (*name)->scalar : "this";
}

[[noreturn]] void fail_unknown(const ConfigTree& document, const std::vector<Release>& releases,
                               std::string_view version, const SourceLocation& origin) {
  std::vector<std::string> versions;
  for (const Release& release : releases) versions.push_back(release.version);
  // The nearest by value. By spelling, 0.2 and 0.20 would be alike.
  std::string nearest = versions.front();
  for (const std::string& each : versions) {
    if (compare_versions(each, version) <= 0) nearest = each;
  }
  const bool number = !version_numbers(version).empty();
  throw ConfigError(origin, fmt::format("{} has no release '{}'; {} is '{}' (known: {} to {})",
                                        name_of_document(document), version, number ? "nearest" : "the newest",
                                        number ? nearest : versions.back(), versions.front(), versions.back()));
}

Release at_date(const ConfigTree& document, const std::vector<Release>& releases, std::string_view day,
                const SourceLocation& origin) {
  const Release* found = nullptr;
  for (const Release& release : releases) {
    if (!release.date.empty() && release.date <= day) found = &release;
  }
  if (found == nullptr) {
    throw ConfigError(origin, fmt::format("{} had no release by {}; the first is {} of {}", name_of_document(document),
                                          day, releases.front().version, releases.front().date));
  }
  Release release = *found;
  const ConfigTree* until = document->find("known_until");
  release.beyond_known = until != nullptr && *until && (*until)->scalar < day;
  return release;
}

bool begins_with(const std::vector<int>& whole, const std::vector<int>& start) {
  return start.size() <= whole.size() && std::equal(start.begin(), start.end(), whole.begin());
}

/// Calls `visit(key, value)` for every leaf; lists are leaves.
void visit_leaves(const ConfigTree& tree, const std::string& prefix,
                  const std::function<void(const std::string&, const ConfigTree&)>& visit) {
  for (const ConfigNode::Entry& entry : tree->entries) {
    const std::string key = prefix.empty() ? entry.key : prefix + "." + entry.key;
    if (entry.value && entry.value->kind == ConfigNode::Kind::kMap)
      visit_leaves(entry.value, key, visit);
    else
      visit(key, entry.value);
  }
}

std::string one_line(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kScalar) return node.scalar;
  std::string text;
  if (node.kind == ConfigNode::Kind::kList) {
    for (const ConfigTree& item : node.items) text += (text.empty() ? "" : ", ") + one_line(*item);
    return "[" + text + "]";
  }
  for (const ConfigNode::Entry& entry : node.entries)
    text += (text.empty() ? "" : ", ") + entry.key + ": " + (entry.value ? one_line(*entry.value) : "null");
  return "{" + text + "}";
}

}  // namespace

namespace {

/// Removes "rc6", ".post2" or "-dev.2" from the front; false if there is none.
bool take_suffix(std::string_view& text) {
  if (text.front() == '.' || text.front() == '-') text.remove_prefix(1);
  for (std::string_view word : {"rc", "post", "dev", "pre", "a", "b"}) {
    if (!text.starts_with(word)) continue;
    text.remove_prefix(word.size());
    if (text.size() > 1 && text.front() == '.' && std::isdigit(static_cast<unsigned char>(text[1])) != 0)
      text.remove_prefix(1);
    while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
    return true;
  }
  return false;
}

}  // namespace

std::vector<int> version_numbers(std::string_view version) {
  std::vector<int> numbers;
  if (!version.empty() && (version.front() == 'v' || version.front() == 'b')) version.remove_prefix(1);
  while (true) {
    int number = 0;
    std::size_t digits = 0;
    while (digits < version.size() && std::isdigit(static_cast<unsigned char>(version[digits])) != 0) {
      if (number < 100'000'000) number = 10 * number + (version[digits] - '0');
      ++digits;
    }
    if (digits == 0 || numbers.size() > 5) return {};
    numbers.push_back(number);
    version.remove_prefix(digits);
    const bool more =
        version.size() > 1 && version.front() == '.' && std::isdigit(static_cast<unsigned char>(version[1])) != 0;
    if (!more) break;
    version.remove_prefix(1);
  }
  while (!version.empty() && version.front() != '+') {
    if (!take_suffix(version)) return {};
  }
  return numbers;
}

int compare_versions(std::string_view left, std::string_view right) {
  std::vector<int> a = version_numbers(left), b = version_numbers(right);
  a.resize(std::max(a.size(), b.size()), 0);
  b.resize(a.size(), 0);
  return a < b ? -1 : a > b ? 1 : 0;
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (const std::size_t i : {0u, 1u, 2u, 3u, 5u, 6u, 8u, 9u}) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) return false;
  }
  const auto number = [&](std::size_t begin, std::size_t digits) {
    unsigned value = 0;
    for (std::size_t i = begin; i < begin + digits; ++i) value = 10 * value + static_cast<unsigned>(text[i] - '0');
    return value;
  };
  return std::chrono::year_month_day(std::chrono::year(static_cast<int>(number(0, 4))),
                                     std::chrono::month(number(5, 2)), std::chrono::day(number(8, 2)))
      .ok();
}

bool in_force(std::string_view version, std::string_view since, std::string_view until) {
  return (since.empty() || compare_versions(version, since) >= 0) &&
         (until.empty() || compare_versions(version, until) < 0);
}

bool has_releases(const ConfigTree& document) {
  const ConfigTree* releases = document ? document->find("releases") : nullptr;
  return releases != nullptr && *releases && (*releases)->kind == ConfigNode::Kind::kList;
}

namespace {

/// 0.05 is neither 0.5 nor 0.0.5.
bool has_leading_zero(std::string_view version) {
  const auto digit = [&](std::size_t i) {
    return i < version.size() && std::isdigit(static_cast<unsigned char>(version[i])) != 0;
  };
  for (std::size_t i = 0; i < version.size() && version[i] != '+' && version[i] != '-'; ++i) {
    if (version[i] == '0' && digit(i + 1) && (i == 0 || !digit(i - 1))) return true;
  }
  return false;
}

/// Releases by one number, as the builds of llama.cpp, of which there are many between those that are listed.
bool of_builds(const std::vector<int>& version) { return version.size() == 1; }

/// Whether `asked` is so far beyond the newest release that it is a slip: 0.145 after 0.28, or 0.5.99 after 0.5.21;
/// 0.33 may be out.
bool is_far(const std::vector<int>& asked, const std::vector<int>& last) {
  constexpr int kFar = 20;
  if (of_builds(last)) return asked.size() > 1 || asked.front() > 2 * last.front();
  std::size_t i = 0;
  while (i < asked.size() && i < last.size() && asked[i] == last[i]) ++i;
  if (i == asked.size() || i == last.size()) return false;
  return asked[i] > last[i] + (i == 0 ? 1 : kFar);
}

}  // namespace

Release find_release(const ConfigTree& document, std::string_view version, const SourceLocation& origin) {
  const std::vector<Release> releases = releases_of(document);
  if (version.empty()) {
    Release newest = releases.back();
    newest.assumed = true;
    return newest;
  }
  if (is_date(version)) return at_date(document, releases, version, origin);
  const std::vector<int> asked = version_numbers(version);
  const bool every = asked.size() == 1 && asked.front() == 0;  // "0" matches 0.1 as well as 0.28
  if (asked.empty() || every || has_leading_zero(version)) fail_unknown(document, releases, version, origin);
  const Release& newest = releases.back();
  const std::vector<int> last = version_numbers(newest.version);
  for (auto release = releases.rbegin(); release != releases.rend(); ++release) {
    if (begins_with(version_numbers(release->version), asked) || compare_versions(release->version, version) == 0)
      return *release;
  }
  if (compare_versions(version, newest.version) > 0) {
    if (is_far(asked, last)) fail_unknown(document, releases, version, origin);
    std::vector<int> stem = last;
    while (!stem.empty() && stem.back() == 0) stem.pop_back();  // 0.24.1 is a patch of 0.24.0
    Release release = newest;
    release.beyond_known = !begins_with(asked, stem);
    return release;
  }
  // A patch or a build that is not listed: the newest listed one of its minor release, or of all builds, before it.
  const Release* found = nullptr;
  for (const Release& release : releases) {
    const std::vector<int> numbers = version_numbers(release.version);
    const bool minor = asked.size() > 2 && numbers.size() > 1 && numbers[0] == asked[0] && numbers[1] == asked[1];
    if ((minor || of_builds(last)) && compare_versions(release.version, version) < 0) found = &release;
  }
  if (found == nullptr) fail_unknown(document, releases, version, origin);
  return {.version = std::string(version), .date = found->date, .like = found->version};
}

ConfigTree settings_at(const ConfigTree& document, const Release& release) {
  std::vector<ConfigNode::Entry> entries;
  for (const char* key : {"name", "help"}) {
    if (const ConfigTree* value = document->find(key)) entries.push_back({key, (*value)->location, *value});
  }
  const SourceLocation location = document->location;
  entries.push_back({"version", location, make_scalar(release.version, location)});
  if (!release.date.empty()) entries.push_back({"released", location, make_scalar(release.date, location)});
  if (release.beyond_known) entries.push_back({"beyond_known", location, make_scalar("true", location)});
  if (release.assumed) entries.push_back({"version_assumed", location, make_scalar("true", location)});
  ConfigTree tree = make_map(std::move(entries), location);
  if (const ConfigTree* settings = document->find("settings"); settings != nullptr && *settings)
    tree = overlay(tree, *settings);
  for (const Change& change : changes_of(document)) {
    if (in_force(release.version, change.since, change.until)) tree = overlay(tree, change.set);
  }
  return tree;
}

std::vector<SourcedSetting> sourced_settings(const ConfigTree& document, const Release& release) {
  std::vector<SourcedSetting> settings;
  const auto put = [&](const std::string& key, const ConfigTree& value, const std::string& since,
                       const std::string& source) {
    const SourcedSetting setting{key, value ? one_line(*value) : "", since, source};
    const auto same = std::find_if(settings.begin(), settings.end(), [&](const auto& s) { return s.key == key; });
    if (same != settings.end())
      *same = setting;
    else
      settings.push_back(setting);
  };
  const auto cited = [&](const char* key) {
    const ConfigTree* cites = document->find(key);
    return cites != nullptr && *cites ? (*cites)->scalar : std::string();
  };
  const std::string general = cited("source"), host = cited("host_source");
  if (const ConfigTree* all = document->find("settings"); all != nullptr && *all) {
    visit_leaves(*all, "", [&](const std::string& key, const ConfigTree& value) {
      put(key, value, "", key.starts_with("host.") && !host.empty() ? host : general);
    });
  }
  for (const Change& change : changes_of(document)) {
    if (!in_force(release.version, change.since, change.until)) continue;
    visit_leaves(change.set, "", [&](const std::string& key, const ConfigTree& value) {
      put(key, value, change.since.empty() ? "before " + change.until : change.since, change.source);
    });
  }
  return settings;
}

}  // namespace roofcast
