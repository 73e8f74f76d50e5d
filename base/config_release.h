#pragma once
// Specs that change from release to release: one document holds the dated releases and what each changed.

#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace roofcast {

/// "0.10.2" as {0, 10, 2}. A release candidate ("1.0.0rc3") or post release counts as its release; a leading "v", or "b"
/// of a build, is passed over. Empty when the text is no version: numbers with dots, then at most candidates, posts or
/// builds of them ("1.2.0rc6.post2", "0.19.1.dev3+g1a2b").
std::vector<int> version_numbers(std::string_view version);
/// -1, 0 or 1. Missing numbers count as 0.
int compare_versions(std::string_view left, std::string_view right);
/// "2025-12-03": a day of the calendar in place of a version.
bool is_date(std::string_view text);

/// One release of a document.
struct Release {
  std::string version;
  std::string date;           ///< of publication, yyyy-mm-dd
  bool beyond_known = false;  ///< asked for a release newer than the newest that is known: this is the newest
  bool assumed = false;       ///< none was asked for: this is the newest that is known
  std::string like = {};      ///< the listed release whose settings this has, if it is not listed itself
};

/// One setting of a release, and the change that made it so.
struct SourcedSetting {
  std::string key;    ///< dotted
  std::string value;  ///< as YAML
  std::string since;  ///< first version of the change; empty: in every release
  std::string source;
};

/// Whether the document holds releases. It then reads
///   releases: [{version, date}]                    in the order of their versions
///   settings: {...}                                of every release
///   changes: [{since, until, source, set: {...}}]  `since` included, `until` not; either may be absent
bool has_releases(const ConfigTree& document);

/// The release that `version` names: a version ("0.12" is the newest 0.12.x; a patch that is not listed is its minor
/// release), a day (the newest release of that day), or empty (the newest). Throws ConfigError at `origin` with the
/// nearest version when there is none such.
Release find_release(const ConfigTree& document, std::string_view version, const Mark& origin);

/// The document's settings at a release as one map, with `name`, `version`, `released`, `help` and, where they hold,
/// `beyond_known: true` and `version_assumed: true`.
ConfigTree settings_at(const ConfigTree& document, const Release& release);

/// Every setting of a release with its source, in the order of the document. `host_source` of the document is that of
/// its host costs, `source` that of the rest.
std::vector<SourcedSetting> sourced_settings(const ConfigTree& document, const Release& release);

/// Whether a change with these bounds is in force at `version`; an empty bound is none.
bool in_force(std::string_view version, std::string_view since, std::string_view until);

}  // namespace roofcast
