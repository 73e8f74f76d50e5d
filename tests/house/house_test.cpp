// The layout's rules, read off the sources themselves.

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace fs = std::filesystem;

namespace {

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> files_under(const std::vector<std::string>& folders, const std::vector<std::string>& endings) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders) {
    const fs::path root = fs::path(ROOFCAST_SOURCE_DIR) / folder;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const std::string extension = entry.path().extension().string();
      if (entry.is_regular_file() && std::count(endings.begin(), endings.end(), extension))
        found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string shown(const fs::path& path) { return fs::relative(path, ROOFCAST_SOURCE_DIR).generic_string(); }

/// The box a file belongs to, as the position in the order of the layout; calibrate stands apart.
std::string box_of(const std::string& path) {
  static const std::vector<std::string> kBoxes{"base/",
                                               "hw/",
                                               "sim/model/",
                                               "sim/step/",
                                               "sim/serve/",
                                               "sim/plan/search/",
                                               "sim/plan/measured/",
                                               "sim/plan/",
                                               "reports/",
                                               "library/",
                                               "python/",
                                               "explore/",
                                               "cli/"};
  for (const std::string& box : kBoxes) {
    if (path.rfind(box, 0) == 0) return box;
  }
  return path.rfind("calibrate/", 0) == 0 ? "calibrate/" : "";
}

const std::vector<std::string> kSourceFolders{"base",    "hw",     "sim",     "calibrate", "reports",
                                              "library", "python", "explore", "cli"};

}  // namespace

TEST_CASE("an include never points backwards") {
  const std::vector<std::string> plan{"sim/plan/", "sim/plan/search/", "sim/plan/measured/"};
  std::map<std::string, std::vector<std::string>> allowed{
      {"base/", {"base/"}},
      {"hw/", {"base/", "hw/"}},
      {"sim/model/", {"base/", "hw/", "sim/model/"}},
      {"sim/step/", {"base/", "hw/", "sim/model/", "sim/step/"}},
      {"sim/serve/", {"base/", "hw/", "sim/model/", "sim/step/", "sim/serve/"}},
      {"sim/plan/", {"base/", "hw/", "sim/model/", "sim/step/", "sim/serve/", "sim/plan/"}},
      {"sim/plan/search/", {"base/", "hw/", "sim/model/", "sim/step/", "sim/serve/", "sim/plan/", "sim/plan/search/"}},
      {"sim/plan/measured/",
       {"base/", "hw/", "sim/model/", "sim/step/", "sim/serve/", "sim/plan/", "sim/plan/measured/"}},
      {"reports/", {"base/", "hw/", "sim/model/", "sim/step/", "sim/serve/", "reports/"}},
      {"library/", {"base/", "hw/", "sim/model/", "sim/step/", "sim/serve/", "reports/", "library/"}},
      {"python/", {"base/", "hw/", "sim/model/", "sim/step/", "sim/serve/", "reports/", "library/", "python/"}},
      {"explore/", {"base/", "hw/", "sim/model/", "sim/step/", "sim/serve/", "reports/", "explore/"}},
      {"calibrate/", {"base/", "hw/", "sim/model/", "calibrate/"}},
      {"cli/", {"base/", "hw/", "sim/model/", "sim/step/", "sim/serve/", "reports/", "explore/", "calibrate/", "cli/"}},
  };
  for (const char* box : {"reports/", "library/", "python/", "explore/", "cli/"})
    allowed.at(box).insert(allowed.at(box).end(), plan.begin(), plan.end());
  const std::regex include("#include \"([^\"]+)\"");
  int seen = 0;
  for (const fs::path& file : files_under(kSourceFolders, {".h", ".cpp", ".cu", ".cuh"})) {
    const std::string from = shown(file), text = slurp(file);
    for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it) {
      const std::string target = box_of((*it)[1].str());
      INFO(from << " includes " << (*it)[1].str());
      const auto& boxes = allowed.at(box_of(from));
      CHECK((target.empty() || std::count(boxes.begin(), boxes.end(), target) == 1));
      ++seen;
    }
  }
  CHECK(seen > 50);
}

TEST_CASE("what is built on the core has a namespace of its own") {
  for (const std::string folder : {"reports", "calibrate", "explore", "cli"}) {
    for (const fs::path& path : files_under({folder}, {".h", ".cpp", ".cuh", ".cu"})) {
      INFO(shown(path));
      const std::string text = slurp(path), own = "namespace roofcast::" + folder;
      // The core's namespace is opened for declarations of its types alone.
      static const std::regex kDeclarations(
          "namespace roofcast \\{\\n((class|struct|enum class) \\w+;\\n)+"
          "\\}  // namespace roofcast\\n");
      CHECK(std::regex_replace(text, kDeclarations, "").find("namespace roofcast {") == std::string::npos);
      CHECK((path.extension() != ".h" || text.find(own) != std::string::npos));
    }
  }
}

TEST_CASE("a public header includes the standard library and other public headers alone") {
  const std::regex include("#include ([\"<][^\">]+)");
  int seen = 0;
  for (const fs::path& file : files_under({"include"}, {".h"})) {
    const std::string text = slurp(file);
    for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it) {
      const std::string target = (*it)[1].str();
      INFO(shown(file) << " includes " << target);
      CHECK((target.starts_with("\"roofcast/") || target.find_first_of("/.") == std::string::npos));
      ++seen;
    }
  }
  CHECK(seen > 10);
}

TEST_CASE("only the command line uses Boost.Program_options") {
  for (const fs::path& file : files_under({"base", "hw", "sim", "calibrate", "reports", "explore"}, {".h", ".cpp"})) {
    INFO(shown(file));
    CHECK(slurp(file).find("boost/program_options") == std::string::npos);
  }
}

TEST_CASE("only main.cpp, the API, Python's worker and a CUDA graph being recorded catch every exception, none exits") {
  const std::vector<std::string> catching{"cli/main.cpp", "explore/api.cpp", "python/watched.h",
                                          "calibrate/kernels/cuda_runtime.h"};
  const std::regex every("catch \\((\\.\\.\\.|const std::exception)"),
      leaves("[^A-Za-z0-9_](_?exit|abort|terminate|quick_exit)\\(");
  for (const fs::path& file : files_under(kSourceFolders, {".h", ".cpp", ".cu", ".cuh"})) {
    const std::string text = slurp(file), name = shown(file);
    INFO(name);
    CHECK(std::regex_search(text, every) == (std::count(catching.begin(), catching.end(), name) == 1));
    CHECK_FALSE(std::regex_search(text, leaves));
  }
}

TEST_CASE("no file names a path of somebody's machine") {
  const std::regex machine_path("(^|[^A-Za-z0-9_.<])/(work|root|home|tmp)/[A-Za-z]");
  for (const fs::path& file : files_under({"base", "hw", "sim", "calibrate", "reports", "explore", "cli", "include",
                                           "library", "python", "examples", "configs", "docs", "bench"},
                                          {".h", ".cpp", ".cu", ".yaml", ".md", ".json", ".py", ".ipynb"})) {
    INFO(shown(file));
    CHECK_FALSE(std::regex_search(slurp(file), machine_path));
  }
}

TEST_CASE("headers stay under 150 lines, but for those that are named here") {
  const std::map<std::string, int> kLonger{
      {"calibrate/fit.h", 203}, {"reports/result_keys.h", 305}, {"sim/step/engine_spec.h", 163}};
  for (const fs::path& file : files_under(kSourceFolders, {".h"})) {
    const std::string text = slurp(file), name = shown(file);
    const auto longer = kLonger.find(name);
    INFO(name);
    CHECK(std::count(text.begin(), text.end(), '\n') <= (longer == kLonger.end() ? 150 : longer->second));
  }
}
