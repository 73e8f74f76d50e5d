#include "base/config_release.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "base/config_library.h"
#include "tests/base/messages.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;

namespace {

const SourceLocation kOrigin{"s.yaml", 3, 9};

constexpr const char* kServer =
    "name: server\n"
    "help: one that serves\n"
    "source: its pages\n"
    "known_until: 2026-06-30\n"
    "releases:\n"
    "  - {version: \"0.9.0\", date: 2025-01-10}\n"
    "  - {version: \"0.10.0\", date: 2025-03-01}\n"
    "  - {version: \"0.10.2\", date: 2025-04-01}\n"
    "  - {version: \"0.11.0\", date: 2025-06-01}\n"
    "  - {version: \"0.20.0\", date: 2026-01-01}\n"
    "settings:\n"
    "  kernels: own\n"
    "  batch: 128\n"
    "  graphs: {enabled: true, sizes: [1, 2, 4]}\n"
    "changes:\n"
    "  - until: \"0.10.0\"\n"
    "    source: pull 1\n"
    "    set: {graphs: {enabled: false}, old: true}\n"
    "  - since: \"0.10.2\"\n"
    "    source: pull 2\n"
    "    set: {batch: 256}\n"
    "  - since: \"0.10.0\"\n"
    "    until: \"0.20.0\"\n"
    "    source: pull 3\n"
    "    set: {graphs: {sizes: [1, 8]}}\n"
    "  - since: \"0.20.0\"\n"
    "    source: pull 4\n"
    "    set: {batch: 512}\n";

ConfigTree server() { return parse_config_text(kServer, "server.yaml"); }

Release asked(std::string_view version) { return find_release(server(), version, kOrigin); }
std::string refused(std::string_view version) {
  return message_of([&] { asked(version); });
}

/// The setting at a dotted key of a release; "" where it has none.
std::string setting(std::string_view version, std::string_view key) {
  ConfigTree tree = settings_at(server(), asked(version));
  while (!key.empty()) {
    const ConfigTree* value = tree->find(key.substr(0, key.find('.')));
    if (value == nullptr) return "";
    tree = *value;
    key.remove_prefix(std::min(key.size(), key.substr(0, key.find('.')).size() + 1));
  }
  return tree->kind == ConfigNode::Kind::kScalar ? tree->scalar : to_yaml(*tree);
}

/// A folder of specs that stands in for the shipped one.
class Library {
 public:
  Library() {
    folder.write("engines/server.yaml", kServer);
    folder.write("engines/plain.yaml", "name: plain\nbatch: 8\n");
    folder.write("archive/engines/server-0.10.yaml", "same_as: server@0.10.2\n");
    folder.write("archive/engines/old.yaml", "name: old\nbatch: 2\n");
    setenv("ROOFCAST_CONFIGS", folder.path().c_str(), 1);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { unsetenv("ROOFCAST_CONFIGS"); }
  TemporaryFolder folder;
};

std::string batch_of(const std::string& name) { return (*load_named("engines", name, kOrigin)->find("batch"))->scalar; }
std::string batch_resolved(const std::string& yaml) {
  return (*resolve_named("engines", parse_config_text(yaml, "s.yaml"))->find("batch"))->scalar;
}

}  // namespace

TEST_CASE("releases: versions are ordered by their numbers, not by their letters") {
  CHECK(version_numbers("0.10.2") == std::vector<int>{0, 10, 2});
  CHECK(version_numbers("v1.3") == std::vector<int>{1, 3});
  CHECK(version_numbers("1.0.0rc3") == std::vector<int>{1, 0, 0});     // a candidate counts as its release
  CHECK(version_numbers("0.5.9.post1") == std::vector<int>{0, 5, 9});  // as does a post release
  CHECK(version_numbers("nightly").empty());
  CHECK(version_numbers("").empty());
  CHECK(compare_versions("0.9", "0.10") == -1);
  CHECK(compare_versions("0.10", "0.9") == 1);
  CHECK(compare_versions("1.0", "1.0.0") == 0);  // missing numbers are 0
  CHECK(compare_versions("1.0", "1.0.1") == -1);
  CHECK(compare_versions("v1.2.0rc6", "1.2.0") == 0);
  CHECK(compare_versions("99999999999999999999.0", "1.0") == 1);  // no overflow
}

TEST_CASE("releases: a build between two that are listed is like the one before it") {
  const ConfigTree builds = parse_config_text(
      "name: builds\nreleases: [{version: \"4600\"}, {version: \"7000\"}]\n"
      "settings: {slots: 4}\nchanges: [{until: \"7000\", source: a, set: {slots: 1}}]\n",
      "b.yaml");
  const auto found = [&](const char* version) { return find_release(builds, version, kOrigin); };
  const auto slots = [&](const char* version) { return (*settings_at(builds, found(version))->find("slots"))->scalar; };
  CHECK(found("5000").version == "5000");
  CHECK(found("b5000").like == "4600");
  CHECK(found("b7000").version == "7000");
  CHECK(slots("b6999") == "1");
  CHECK(slots("7000") == "4");
  CHECK(found("9000").beyond_known);
  for (const char* unknown : {"1", "99999"})
    CHECK(message_of([&] { found(unknown); }).find("builds has no release") != std::string::npos);
}

TEST_CASE("releases: a day is yyyy-mm-dd") {
  CHECK(is_date("2025-12-03"));
  for (const char* text : {"2025-12-3", "2025-12-033", "2025/12/03", "20251203", "2025-1a-03", "0.12.0", ""})
    CHECK_FALSE(is_date(text));
}

TEST_CASE("releases: a change is in force from its first version to before its last") {
  CHECK(in_force("0.10.0", "0.10.0", ""));
  CHECK_FALSE(in_force("0.9.9", "0.10.0", ""));
  CHECK_FALSE(in_force("0.10.0", "", "0.10.0"));
  CHECK(in_force("0.9.9", "", "0.10.0"));
  CHECK(in_force("0.10.5", "0.10", "0.11"));
  CHECK_FALSE(in_force("0.11.0rc1", "0.10", "0.11"));
  CHECK(in_force("anything", "", ""));
}

TEST_CASE("releases: a document without a list of releases has none") {
  CHECK(has_releases(server()));
  CHECK_FALSE(has_releases(parse_config_text("name: plain\n", "p.yaml")));
  CHECK_FALSE(has_releases(parse_config_text("name: plain\nreleases: 3\n", "p.yaml")));
  CHECK_FALSE(has_releases(nullptr));
}

TEST_CASE("releases: a version, the beginning of one, or none") {
  CHECK(asked("").version == "0.20.0");
  CHECK(asked("").assumed);
  CHECK(setting("", "version_assumed") == "true");
  CHECK_FALSE(asked("0.20").assumed);
  CHECK(setting("0.20", "version_assumed") == "");
  CHECK(asked("0.10.0").version == "0.10.0");
  CHECK(asked("v0.10.0").version == "0.10.0");
  CHECK(asked("0.10").version == "0.10.2");  // the newest that begins so
  CHECK(asked("0.11.0rc2").version == "0.11.0");
  CHECK(asked("0.9").date == "2025-01-10");
  CHECK_FALSE(asked("0.20.0").beyond_known);
  // 0.2 is no beginning of 0.20.0.
  CHECK(refused("0.2") == "s.yaml:3:9: server has no release '0.2'; nearest is '0.9.0' (known: 0.9.0 to 0.20.0)");
}

TEST_CASE("releases: a patch that is not listed is its minor release") {
  // 0.10.1 lies between 0.10.0 and 0.10.2: what changed in 0.10.2 is not in it.
  const Release patch = asked("0.10.1");
  CHECK(patch.version == "0.10.1");
  CHECK(patch.date == "2025-03-01");  // of the listed one before it
  CHECK_FALSE(patch.beyond_known);
  CHECK(patch.like == "0.10.0");
  CHECK(asked("0.10.2").like == "");
  CHECK(setting("0.10.1", "batch") == "128");
  CHECK(asked("0.10.9").version == "0.10.9");
  CHECK(setting("0.10.9", "batch") == "256");
  CHECK(asked("0.11.7.post1").version == "0.11.7.post1");
}

TEST_CASE("releases: newer than the newest is the newest, and says so") {
  CHECK(asked("0.21.0").version == "0.20.0");
  CHECK(asked("0.21.0").beyond_known);
  CHECK(asked("1.0").beyond_known);
  CHECK(asked("0.20.0").version == "0.20.0");
  CHECK_FALSE(asked("0.20.3").beyond_known);  // a patch of the newest
  CHECK(setting("0.21.0", "beyond_known") == "true");
  CHECK(setting("0.20.0", "beyond_known") == "");
  // More than twenty patches or minor versions ahead, or two major ones, is a slip.
  CHECK(asked("0.40.0").beyond_known);
  CHECK(refused("0.20.21").starts_with("s.yaml:3:9: server has no release '0.20.21'; nearest is '0.20.0'"));
  CHECK(refused("0.41.0").starts_with("s.yaml:3:9: server has no release '0.41.0'; nearest is '0.20.0'"));
  CHECK(refused("0").starts_with("s.yaml:3:9: server has no release '0'"));  // 0.9 as well as 0.20
  CHECK(refused("0.09").starts_with("s.yaml:3:9: server has no release '0.09'"));
  CHECK(refused("0.9.01").starts_with("s.yaml:3:9: server has no release '0.9.01'"));
  CHECK(refused("2.0") == "s.yaml:3:9: server has no release '2.0'; nearest is '0.20.0' (known: 0.9.0 to 0.20.0)");
}

TEST_CASE("releases: a day is the newest release of that day") {
  CHECK(asked("2025-03-01").version == "0.10.0");  // on its own day
  CHECK(asked("2025-03-31").version == "0.10.0");
  CHECK(asked("2025-12-31").version == "0.11.0");
  CHECK(asked("2026-06-30").version == "0.20.0");
  CHECK_FALSE(asked("2026-06-30").beyond_known);
  CHECK(asked("2026-07-01").beyond_known);  // after known_until
  CHECK(refused("2024-12-31") == "s.yaml:3:9: server had no release by 2024-12-31; the first is 0.9.0 of 2025-01-10");
}

TEST_CASE("releases: what there is not is answered with the nearest by value") {
  CHECK(refused("0.8.0") == "s.yaml:3:9: server has no release '0.8.0'; nearest is '0.9.0' (known: 0.9.0 to 0.20.0)");
  CHECK(refused("0.12.0") ==
        "s.yaml:3:9: server has no release '0.12.0'; nearest is '0.11.0' (known: 0.9.0 to 0.20.0)");
  CHECK(refused("0.19") == "s.yaml:3:9: server has no release '0.19'; nearest is '0.11.0' (known: 0.9.0 to 0.20.0)");
  CHECK(refused("latest").starts_with("s.yaml:3:9: server has no release 'latest'"));
}

TEST_CASE("releases: settings of all, and over them the changes in force, the later over the earlier") {
  CHECK(setting("0.9.0", "graphs.enabled") == "false");
  CHECK(setting("0.9.0", "old") == "true");
  CHECK(setting("0.10.0", "graphs.enabled") == "true");  // until 0.10.0, and not in it
  CHECK(setting("0.10.0", "old") == "");
  CHECK(setting("0.10.0", "batch") == "128");
  CHECK(setting("0.10.2", "batch") == "256");
  CHECK(setting("0.11.0", "batch") == "256");
  CHECK(setting("0.20.0", "batch") == "512");  // both changes hold; the later one counts
  CHECK(setting("0.9.0", "graphs.sizes") == "- 1\n- 2\n- 4\n");
  CHECK(setting("0.11.0", "graphs.sizes") == "- 1\n- 8\n");  // lists are replaced, maps merged
  CHECK(setting("0.11.0", "graphs.enabled") == "true");
  CHECK(setting("0.20.0", "graphs.sizes") == "- 1\n- 2\n- 4\n");
  CHECK(setting("0.11.0", "name") == "server");
  CHECK(setting("0.11.0", "help") == "one that serves");
  CHECK(setting("0.11.0", "version") == "0.11.0");
  CHECK(setting("0.11.0", "released") == "2025-06-01");
  CHECK(setting("0.11.0", "releases") == "");
  CHECK(setting("0.11.0", "changes") == "");
}

TEST_CASE("releases: every setting has the change that made it so") {
  const auto find = [](std::string_view version, std::string_view key) {
    for (const SourcedSetting& each : sourced_settings(server(), asked(version))) {
      if (each.key == key) return each.value + " | " + each.since + " | " + each.source;
    }
    return std::string();
  };
  CHECK(find("0.20.0", "kernels") == "own |  | its pages");  // never changed: the document's source
  CHECK(find("0.20.0", "batch") == "512 | 0.20.0 | pull 4");
  CHECK(find("0.10.2", "batch") == "256 | 0.10.2 | pull 2");
  CHECK(find("0.10.2", "graphs.sizes") == "[1, 8] | 0.10.0 | pull 3");
  CHECK(find("0.10.2", "graphs.enabled") == "true |  | its pages");
  CHECK(find("0.9.0", "graphs.enabled") == "false | before 0.10.0 | pull 1");
  CHECK(find("0.20.0", "old") == "");
  // In the order of the document: settings first, then what only a change has.
  const auto all = sourced_settings(server(), asked("0.9.0"));
  REQUIRE(all.size() == 5);
  CHECK(all[0].key == "kernels");
  CHECK(all[3].key == "graphs.sizes");
  CHECK(all[4].key == "old");
}

TEST_CASE("releases: a document that is not right is answered where it is wrong") {
  const auto answer = [](const char* text) {
    const ConfigTree document = parse_config_text(text, "d.yaml");
    return message_of([&] { settings_at(document, find_release(document, "", kOrigin)); });
  };
  CHECK(answer("releases: [{version: \"0.2\"}, {version: \"0.10\"}, {version: \"0.9\"}]\n") ==
        "d.yaml:1:49: release 0.9 must come after 0.10");
  CHECK(answer("releases: [{version: new}]\n") == "d.yaml:1:12: 'new' is not a version");
  CHECK(answer("releases: []\n") == "d.yaml:1:1: 'releases' must list at least one release");
  CHECK(answer("releases: [{version: \"1.0\", day: x}]\n").find("unknown key 'day'") != std::string::npos);
  CHECK(answer("releases: [{version: \"1.0\"}]\nchanges: [{since: \"1.0\"}]\n") ==
        "d.yaml:2:11: a change needs 'set', a map of settings");
  CHECK(answer("releases: [{version: \"1.0\"}]\nchanges: [{since: \"1.0\", set: 3}]\n") ==
        "d.yaml:2:11: a change needs 'set', a map of settings");
  CHECK(
      answer("releases: [{version: \"1.0\"}]\nchanges: [{form: \"1.0\", set: {a: 1}}]\n").find("unknown key 'form'") !=
      std::string::npos);
}

TEST_CASE("releases: a name with @ and a version") {
  const Library library;
  CHECK(split_version("server@0.10").name == "server");
  CHECK(split_version("server@0.10").version == "0.10");
  CHECK(split_version("server").version == "");
  CHECK(split_version("runs@home/server.yaml").name == "runs@home/server.yaml");  // a path has no version
  CHECK(batch_of("server") == "512");
  CHECK(batch_of("server@0.10") == "256");
  CHECK(batch_of("server@0.9.0") == "128");
  CHECK(batch_of("server@2025-03-15") == "128");
  CHECK(batch_of("plain") == "8");
  CHECK(message_of([] { batch_of("plain@1.0"); }) ==
        "s.yaml:3:9: releases of engine 'plain' are unknown: leave '@1.0' out");
  CHECK(message_of([] { batch_of("server@0.3"); }) ==
        "s.yaml:3:9: server has no release '0.3'; nearest is '0.9.0' (known: 0.9.0 to 0.20.0)");
  CHECK(load_named("engines", "server@0.10", kOrigin) == load_named("engines", "server@0.10", kOrigin));  // remembered
  CHECK(has_releases(load_document("engines", "server", kOrigin)));
  CHECK_FALSE(has_releases(load_named("engines", "server", kOrigin)));
  CHECK(batch_of(library.folder.path() + "/engines/server.yaml") == "512");  // a file may hold releases, too
}

TEST_CASE("releases: a version beside the name of a map") {
  const Library library;
  CHECK(batch_resolved("{name: server, version: \"0.10\"}") == "256");
  CHECK(batch_resolved("{name: server@0.10, version: \"0.10\"}") == "256");  // twice the same
  CHECK(batch_resolved("{name: server, version: \"0.10\", batch: 3}") == "3");
  CHECK(message_of([] { batch_resolved("{name: server@0.10, version: \"0.9\"}"); }) ==
        "s.yaml:1:30: 'server@0.10' and version '0.9' are two releases; give one");
  CHECK(message_of([] {
          batch_resolved("{name: server, version: \"0.3\"}");
        }).starts_with("s.yaml:1:25: server has no release '0.3'"));
  CHECK(message_of([] { resolve_named("engines", parse_config_text("{name: plain, version: \"7\"}", "s.yaml")); }) ==
        "s.yaml:1:24: releases of engine 'plain' are unknown: leave 'version' out");
}

TEST_CASE("releases: a document may be another name of a release") {
  const Library library;
  CHECK(load_named("engines", "server-0.10", kOrigin) == load_named("engines", "server@0.10.2", kOrigin));
  CHECK(batch_resolved("{name: server-0.10, batch: 5}") == "5");
  CHECK((*load_named("engines", "server-0.10", kOrigin)->find("name"))->scalar == "server");
  CHECK(message_of([] { batch_of("server-0.10@0.9"); }) ==
        "s.yaml:3:9: 'server-0.10' is another name of server@0.10.2: leave the version out");
}

TEST_CASE("releases: what is in the archive is found by its name, and not listed") {
  const Library library;
  CHECK(batch_of("old") == "2");
  CHECK(path_of_named("engines", "old", kOrigin) == library.folder.path() + "/archive/engines/old.yaml");
  CHECK(names_of("engines") == std::vector<std::string>{"plain", "server"});
  CHECK(message_of([] { batch_of("older"); }) == "s.yaml:3:9: unknown engine 'older' (valid: plain, server)");
}

TEST_CASE("releases: what is no version is none, and no neighbour is made of it") {
  for (const char* text : {"0,12", "0-12", "0.x", "0.", "0..12", "0.12.banana", "latest", "", " ", "0.12@0.13"})
    CHECK_MESSAGE(version_numbers(text).empty(), text);
  for (const char* text :
       {"0.12", "v0.12.0", "1.0.0rc3", "1.1.0rc2.post2", "0.10.2.post1", "0.19.1.dev3+g1a2b", "1.1.0-dev.2"})
    CHECK_MESSAGE(!version_numbers(text).empty(), text);
  CHECK_FALSE(is_date("2025-13-45"));
  CHECK(is_date("2025-12-31"));
  CHECK_FALSE(is_date("2026-02-30"));  // February has 28 days, 29 in 2024
  CHECK_FALSE(is_date("2026-02-29"));
  CHECK(is_date("2024-02-29"));
  CHECK_FALSE(is_date("2026-04-31"));
}
