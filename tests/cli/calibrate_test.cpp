// `calibrate` as a user runs it, on the CPU backend.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/base/temporary_folder.h"
#include "tests/cli/made_up_products.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;
using roofcast::testing::Stream;

namespace {

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string quoted(const std::string& path) { return "'" + path + "'"; }

}  // namespace

TEST_CASE("calibrate measure on the CPU writes one JSON line per point, and resumes after a partial line") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/m.jsonl";
  const std::string command =
      "calibrate measure --backend cpu --only gemm,attention_decode --budget 20s --out " + quoted(path);
  REQUIRE(run_roofcast(command).status == 0);
  const std::string whole = slurp(path);
  std::size_t lines = 0;
  std::istringstream in(whole);
  for (std::string line; std::getline(in, line); ++lines) {
    const auto json = nlohmann::json::parse(line);
    // half of the samples of a load, which are few where the machine is busy
    CHECK(json["samples_us"].size() >= (json["shape"].contains("load_ms") ? 2 : 10));
    CHECK(json["median_us"].get<double>() > 0);
    CHECK(json["device"]["name"] == "CPU, one core");
  }
  // of 16, 3 x 2 x 2 products and 2 x 2 attentions: a busy machine does not end them within the budget
  CHECK(lines >= 8);
  // cut amid the last line, as by an end of power
  std::filesystem::resize_file(path, whole.size() - 40);
  const auto resumed = run_roofcast(command + " --resume", Stream::kErr);
  CHECK(resumed.status == 0);
  CHECK(resumed.out.find(std::to_string(lines - 1) + " were there before") != std::string::npos);
  const std::string kept = slurp(path);
  CHECK(kept.substr(0, whole.rfind('\n', whole.size() - 2)) == whole.substr(0, whole.rfind('\n', whole.size() - 2)));

  const auto shown = run_roofcast("calibrate show " + quoted(path));
  CHECK(shown.status == 0);
  CHECK(shown.out.find("product bf16") != std::string::npos);
  const auto other = run_roofcast("calibrate fit " + quoted(path) + " --gpu h200-sxm", Stream::kErr);
  CHECK(other.status == 2);
  CHECK(other.out.find(path + ":1: measured on 'CPU, one core'") == 0);
}

TEST_CASE("calibrate measure refuses a file to which another run writes") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/m.jsonl";
  const std::string half = R"({"op":"stream")";  // the line that the other run is writing
  std::ofstream(path) << half;
  const int other = open(path.c_str(), O_RDONLY);
  REQUIRE(flock(other, LOCK_EX) == 0);
  const std::string command = "calibrate measure --backend cpu --only stream --budget 2s --out " + quoted(path);
  const auto refused = run_roofcast(command, Stream::kErr);
  CHECK(refused.status == 2);
  CHECK(refused.out.find("another calibrate measure is writing") != std::string::npos);
  CHECK(slurp(path) == half);
  close(other);
  CHECK(run_roofcast(command).status == 0);
}

TEST_CASE("calibrate measure keeps its results when interrupted") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/m.jsonl";
  const std::string command = "timeout -s INT 0.6 '" ROOFCAST_PROGRAM
                              "' calibrate measure --backend cpu --budget 60s --out " +
                              quoted(path) + " 2>/dev/null";
  const int status = std::system(command.c_str());
  CHECK(WEXITSTATUS(status) == 124);  // timeout's own, when the program was still at work
  std::istringstream in(slurp(path));
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line); ++lines) CHECK(nlohmann::json::accept(line));
  CHECK(lines < 27);
}

TEST_CASE("calibrate show takes every kind of GPU file: measured, carried over, with another's kernels") {
  for (const char* gpu : {"h100-sxm", "b300-sxm", "l40s"}) {
    INFO(gpu);
    CHECK(run_roofcast(std::string("calibrate show ") + gpu).status == 0);
  }
}

TEST_CASE("calibrate fit of measurements writes a GPU file that show and estimate take") {
  // One product as every measurement of a made-up H100: time = 4 us + the larger of work and traffic.
  const TemporaryFolder folder;
  const std::string lines = roofcast::testing::made_up_products("cublaslt-13.1.0");
  const std::string path = folder.write("m.jsonl", lines), out = folder.path() + "/h100.yaml";
  const auto fitted =
      run_roofcast("calibrate fit " + quoted(path) + " --gpu h100-sxm --starts 1 --folds 0 --out " + quoted(out));
  REQUIRE(fitted.status == 0);
  CHECK(fitted.out.find("cublaslt.bf16") != std::string::npos);
  CHECK(fitted.out.find("memory_bandwidth") != std::string::npos);
  const auto shown = run_roofcast("calibrate show " + quoted(out));
  CHECK(shown.status == 0);
  CHECK(shown.out.find("vllm cublaslt.bf16: memory") != std::string::npos);
  CHECK(slurp(out).find("calibrate measure on NVIDIA H100 80GB HBM3") != std::string::npos);
  CHECK(run_roofcast("estimate --model llama-3.1-8b --gpu " + quoted(out)).status == 0);
  const auto checked = run_roofcast("calibrate show " + quoted(path) + " --gpu " + quoted(out));
  CHECK(checked.status == 0);
  CHECK(checked.out.find("constants in force") != std::string::npos);

  const auto validated = run_roofcast("validate kernels --data " + quoted(path) + " --gpu " + quoted(out));
  CHECK(validated.status == 0);
  CHECK(validated.out.find("cublaslt-13.1.0 bf16 made up") != std::string::npos);

  // The same under another name, with a NaN, and with too few points: one line each.
  const auto fault = [&](const std::string& text, const std::string& flags) {
    return run_roofcast("calibrate fit " + quoted(folder.write("bad.jsonl", text)) + " " + flags, Stream::kErr);
  };
  const auto few = fault(lines.substr(0, lines.find('\n') + 1), "--gpu h100-sxm");
  CHECK(few.status == 2);
  CHECK(few.out.find("1 rows are too few to fit") != std::string::npos);
  CHECK(fault(lines, "--gpu h200-sxm").status == 2);
  CHECK(fault(lines, "--gpu h100-sxm --op moe").out.find("holds no measurement of moe") != std::string::npos);
  CHECK(fault("", "--gpu h100-sxm").status == 2);
  // a kernel of our own sets no engine's constants, and an unknown GPU has to be named
  const auto ours = fault(roofcast::testing::made_up_products("roofcast-0.1.0"), "");
  CHECK(ours.status == 0);
  CHECK(ours.out.find("no row of gemm times a kernel that vllm runs") != std::string::npos);
  std::string other = lines;
  for (std::size_t at = 0; (at = other.find("\"sm_count\":132", at)) != std::string::npos;)
    other.replace(at, 14, "\"sm_count\":131");
  CHECK(fault(other, "").out.find("--gpu: missing, and no shipped GPU has the 131 SMs and 85.0 GB") == 0);
}

TEST_CASE("calibrate fit refuses tables without times, without rows and with sizes of no GPU") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& table) {
    const std::string path = folder.path() + "/t.csv";
    std::ofstream(path) << table;
    const auto result = run_roofcast("calibrate fit " + quoted(path) + " --gpu h100-sxm", Stream::kErr);
    CHECK(result.status == 2);
    return result.out;
  };
  CHECK(said("engine,dtype,m,n,k\ntrtllm,bf16,1,64,64\n").find("missing column 'latency_us'") != std::string::npos);
  CHECK(said("engine,dtype,m,n,k,latency_us\n").find("holds no rows") != std::string::npos);
  CHECK(said("engine,dtype,m,n,k,latency_us\ntrtllm,bf16,1,64,64,\n").find(":2:6: 'latency_us' is blank") !=
        std::string::npos);
  CHECK(said("engine,dtype,m,n,k,latency_us\ntrtllm,bf16,1,1e30,64,5\n").find(":2:4: 'n' must be at most 1") !=
        std::string::npos);
}

TEST_CASE("calibrate fit of a server's run fits host costs, as calibrate host does") {
  const TemporaryFolder folder;
  const std::string run = folder.path() + "/run.json", scenario = folder.path() + "/s.yaml";
  std::ofstream(run) << R"({"num_prompts": 20, "request_rate": "inf", "max_concurrency": 4, "duration": 2.0,
      "completed": 20, "total_input_tokens": 2000, "total_output_tokens": 400, "mean_ttft_ms": 40, "mean_tpot_ms": 8})";
  const std::string second = folder.path() + "/one-user.json";
  std::ofstream(second) << R"({"num_prompts": 20, "request_rate": "inf", "max_concurrency": 1, "duration": 4.0,
      "completed": 20, "total_input_tokens": 2000, "total_output_tokens": 400, "mean_ttft_ms": 20, "mean_tpot_ms": 7})";
  std::ofstream(scenario) << "{model: llama-3.1-8b, gpu: h100-sxm, workload: {arrivals: {process: closed_loop, "
                             "concurrency: 4}, prompt_tokens: 100, output_tokens: 20, requests: 20}}";
  const std::string host = "calibrate host --scenario " + quoted(scenario) + " --bench " + quoted(run);
  const auto fit =
      run_roofcast("calibrate fit " + quoted(run) + " " + quoted(second) + " --scenario " + quoted(scenario));
  CHECK(fit.status == 0);
  CHECK(fit.out.starts_with("host:\n"));
  CHECK(fit.out.find("loss") == std::string::npos);  // YAML alone
  CHECK(fit.out == run_roofcast(host + " --bench " + quoted(second)).out);
  const auto one = run_roofcast(host, Stream::kErr);
  CHECK(one.status == 2);
  CHECK(one.out.starts_with("--bench: one run's TTFT and TPOT cannot tell nine host costs apart"));
  const auto bare = run_roofcast("calibrate fit " + quoted(run) + " --gpu h100-sxm", Stream::kErr);
  CHECK(bare.status == 2);
  CHECK(bare.out == run + ": a run of a server: with --scenario SCENARIO.yaml it fits host costs\n");
}

TEST_CASE("calibrate measure without a GPU ends with 3 and one line") {
  const auto result = run_roofcast("calibrate measure --device 1023 --out unused.jsonl", Stream::kErr);
  CHECK(result.status == 3);
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 1);
  CHECK(result.out.starts_with("calibrate measure: "));
  for (const char* bad : {"--only gem", "--budget 3", "--budget 0s", "--backend gpu", "--backend cuda --device x"}) {
    const auto refused = run_roofcast(std::string("calibrate measure --out unused.jsonl ") + bad, Stream::kErr);
    INFO(bad);
    INFO(refused.out);
    CHECK(refused.status == 2);
  }
}
