// A table of measured runs, and its rows as scenarios that a user could have written.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;
using roofcast::testing::Stream;

namespace {

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

}  // namespace

TEST_CASE("validate serving: simulate gives the same result for a row's emitted scenario") {
  const TemporaryFolder folder;
  const std::string table =
      folder.write("runs.csv",
                   "id,model,gpu,engine,engine_version,protocol,weight_dtype,isl,osl,concurrency,tp,ttft_ms,tpot_ms\n"
                   "a,llama-3.1-8b,h100-sxm,vllm,0.19.0,inferencex,fp8,256,64,4,1,30,8\n"
                   "b/c,qwen3-8b,h100-sxm,sglang,,nvidia,bf16,512,32,9,2,40,6\n"
                   "d,no-such-model,h100-sxm,vllm,,,,512,32,9,2,40,6\n");
  const std::string out = folder.path() + "/out.csv", scenarios = folder.path() + "/scenarios";
  REQUIRE(
      run_roofcast("validate serving --data '" + table + "' --out '" + out + "' --emit-scenarios '" + scenarios + "'")
          .status == 0);
  std::ifstream in(out);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> columns = cells(line);
  const auto column = [&](const std::string& name) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] == name) return i;
    }
    FAIL("no column " << name);
    return columns.size();
  };
  for (const char* name : {"a", "b-c"}) {  // an id with a slash is a file all the same
    INFO(name);
    std::getline(in, line);
    const std::vector<std::string> row = cells(line);
    const auto simulated = run_roofcast("simulate '" + scenarios + "/" + name + ".yaml' --format json");
    REQUIRE(simulated.status == 0);
    const auto metrics = nlohmann::json::parse(simulated.out);
    // The table has six digits.
    CHECK(std::stod(row.at(column("predicted_ttft_ms"))) ==
          doctest::Approx(metrics.at("mean_ttft_ms").get<double>()).epsilon(1e-5));
    CHECK(std::stod(row.at(column("predicted_tpot_ms"))) ==
          doctest::Approx(metrics.at("mean_tpot_ms").get<double>()).epsilon(1e-5));
  }
  std::getline(in, line);
  CHECK(line.find("unknown model 'no-such-model'") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scenarios + "/d.yaml"));
}

TEST_CASE("validate serving: a run that cannot be so is named with the reason") {
  const TemporaryFolder folder;
  const std::string table = folder.write("runs.csv",
                                         "model,gpu,engine,engine_version,isl,osl,concurrency,tp,ttft_ms,tpot_ms\n"
                                         "llama-3.1-8b,h100-sxm,vllm,0.19.0,256,64,4,1,30,1\n"
                                         "llama-3.1-8b,h100-sxm,vllm,0.19.0,256,64,4,1,30,8\n");
  const auto told = run_roofcast("validate serving --data '" + table + "'", Stream::kErr);
  CHECK(told.status == 0);
  CHECK(told.out.find("not scored: row-1: TPOT of 1.00 ms is below the") != std::string::npos);
  CHECK(told.out.find("row-2") == std::string::npos);
  CHECK(told.out.find("1 of 1 scored rows predicted") != std::string::npos);
}
