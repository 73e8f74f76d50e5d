// The folder that `./dev gpu-bundle` makes, run as on a bare machine: with no environment and nothing built beside it.

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "tests/base/temporary_folder.h"
#include "tests/cli/made_up_products.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_shell;
using roofcast::testing::Stream;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kTooLarge = true;  // a program with sanitizers exceeds the limit of a bundle
#else
constexpr bool kTooLarge = false;
#endif

class Bundle {
 public:
  Bundle() {
    const auto made =
        run_shell("calibrate/bundle/make.sh '" ROOFCAST_PROGRAM "' configs '" + path() + "'", Stream::kErr);
    INFO(made.out);
    REQUIRE(made.status == 0);
  }
  std::string path() const { return folder_.path() + "/bundle"; }
  /// With PATH alone in the environment; `before` stands in front of the command, as timeout does.
  roofcast::testing::RunResult run(const std::string& flags, const std::string& before = "") const {
    return run_shell("cd '" + path() + "' && env -i PATH=/usr/bin:/bin " + before + " ./run.sh " + flags, Stream::kErr);
  }
  bool has(const std::string& file) const {
    const std::string name = path() + "/results/" + file;
    return std::filesystem::exists(name) && std::filesystem::file_size(name) > 0;
  }
  std::size_t points() const {
    std::ifstream in(path() + "/results/measurements.jsonl");
    std::size_t lines = 0;
    for (std::string line; std::getline(in, line); ++lines) CHECK(nlohmann::json::accept(line));
    return lines;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("bundle: runs without anything installed, and keeps its results when interrupted" *
          doctest::skip(kTooLarge)) {
  const Bundle bundle;
  const auto cut = bundle.run("--backend cpu --budget 60s", "timeout -s INT 1.5");
  CHECK(cut.status != 0);
  const std::size_t points = bundle.points();
  CHECK(points > 0);
  CHECK(points < 28);
  CHECK(bundle.has("log.txt"));
  const auto resumed = bundle.run("--backend cpu --budget 6s --only stream,attention_decode");
  CHECK(bundle.points() >= points);
  CHECK(bundle.has("show.txt"));
  // no shipped GPU is this CPU: said, and nothing lost by it
  CHECK(resumed.out.find("failed with status 2") != std::string::npos);
  CHECK(resumed.status == 1);
}

TEST_CASE("bundle: measurements become a GPU file, a validation and an estimate, with a device or without" *
          doctest::skip(kTooLarge)) {
  const Bundle bundle;
  std::filesystem::create_directories(bundle.path() + "/results");
  std::ofstream(bundle.path() + "/results/measurements.jsonl")
      << roofcast::testing::made_up_products("cublaslt-13.1.0");
  const auto done = bundle.run("--only stream --device 1023 --budget 1s");
  INFO(done.out);
  CHECK(done.status == 1);  // there is no such device
  for (const char* file :
       {"gpu.yaml", "fit.txt", "show.txt", "validate.txt", "constants.txt", "estimate.txt", "log.txt"})
    CHECK(bundle.has(file));
  CHECK(!std::filesystem::is_empty(bundle.path() + "/results/plots"));
}

TEST_CASE("bundle: a flag that is not there and one without a value are refused in one line" *
          doctest::skip(kTooLarge)) {
  const Bundle bundle;
  const auto unknown = bundle.run("--budgets 3min");
  CHECK(unknown.status == 2);
  CHECK(unknown.out.find("run.sh: unknown flag '--budgets'") != std::string::npos);
  CHECK(bundle.run("--budget").out == "run.sh: --budget: needs a value\n");
}
