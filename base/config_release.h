#pragma once
// Specs that change with each release: one document holds the dated releases and the changes of each.

#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace roofcast {

/// "0.10.2" as {0, 10, 2}. A leading "v", or "b" of a build, is ignored. A release candidate or post release
/// ("1.0.0rc3", "1.2.0rc6.post2", "0.19.1.dev3+g1a2b") counts as its release. Empty if the text is not a version.
std::vector<int> version_numbers(std::string_view version);
/// Returns -1, 0 or 1. Missing numbers count as 0.
int compare_versions(std::string_view left, std::string_view right);
/// Whether the text is a calendar day ("2025-12-03"), which may stand in place of a version.
bool is_date(std::string_view text);

/// One release of a document.
struct Release {
  std::string version;
  std::string date;           ///< of publication, yyyy-mm-dd
  bool beyond_known = false;  ///< a release newer than the newest known one was requested; this is the newest known
  bool assumed = false;       ///< none was requested: this is the newest known one
  std::string like = {};      ///< the listed release whose settings this has, if it is not listed itself
};

/// One setting of a release, and the change that set it.
struct SourcedSetting {
  std::string key;    ///< dotted
  std::string value;  ///< as YAML
  std::string since;  ///< first version with the change; empty: all releases
  std::string source;
};

/// Whether the document has releases. Its format is then
///   releases: [{version, date}]                    in ascending order of versions
///   settings: {...}                                of every release
///   changes: [{since, until, source, set: {...}}]  from `since` on, before `until`; either may be absent
bool has_releases(const ConfigTree& document);

/// The release that `version` names. "0.12" is the newest 0.12.x; an unlisted patch is the newest listed patch before
/// it; a day is the newest release by that day; empty is the newest. Throws ConfigError at `origin`, with the nearest
/// version, if there is none.
Release find_release(const ConfigTree& document, std::string_view version, const SourceLocation& origin);

/// The document's settings at a release as one map, with `name`, `version`, `released` and `help`. Adds `beyond_known:
/// true` if a newer release than the newest known one was requested, and `version_assumed: true` if none was.
ConfigTree settings_at(const ConfigTree& document, const Release& release);

/// Every setting of a release with its source, in the order of the document. Host costs have the document's
/// `host_source`, the others its `source` unless a change has its own.
std::vector<SourcedSetting> sourced_settings(const ConfigTree& document, const Release& release);

/// Whether a change with these bounds applies to `version`. An empty bound does not limit.
bool in_force(std::string_view version, std::string_view since, std::string_view until);

}  // namespace roofcast
