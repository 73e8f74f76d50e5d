// The first lines of every file in tests/bad_configs state the expected error:
//   # expect: PART OF THE MESSAGE          (after path:line:column:)
//   # run: simulate @                      (@ is the file; `simulate @` when absent)
//   # status: 2                            (2 when absent)

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "tests/cli/run_program.h"

namespace fs = std::filesystem;
using roofcast::testing::run_roofcast;
using roofcast::testing::Stream;

namespace {

std::map<std::string, std::string> directives(const fs::path& path) {
  std::map<std::string, std::string> found{{"run", "simulate @"}, {"status", "2"}};
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto hash = line.find("# ");
    const auto colon = line.find(": ");
    if (hash == std::string::npos || colon == std::string::npos || hash > 2) break;
    found[line.substr(hash + 2, colon - hash - 2)] = line.substr(colon + 2);
  }
  return found;
}

}  // namespace

TEST_CASE("bad input gets a one-line error with the problem, its location and the nearest name") {
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(ROOFCAST_SOURCE_DIR) / "tests/bad_configs")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".yaml" && entry.path().extension() != ".json") continue;
    auto want = directives(entry.path());
    if (want.count("expect") == 0) continue;  // a file that another one refers to
    std::string command = want["run"];
    const auto at = command.find('@');
    if (at != std::string::npos) command.replace(at, 1, "tests/bad_configs/" + name);
    const auto result = run_roofcast(command, Stream::kErr);
    INFO(name << ": roofcast " << command);
    INFO(result.out);
    CHECK(result.status == std::stoi(want["status"]));
    CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 1);
    CHECK(result.out.find(want["expect"]) != std::string::npos);
    ++seen;
  }
  CHECK(seen >= 20);
}
