// `--format csv` and `--format json` are data, `--columns` chooses among it, and docs/schemas describe it.
#include <fstream>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;
using roofcast::testing::Stream;

namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::string kSmall = "estimate --model llama-3.1-8b --gpu h100-sxm ";

}  // namespace

TEST_CASE("schemas: docs/schemas contains what the program writes") {
  for (const std::string kind : {"estimate", "simulation", "sweep", "plan", "ladder", "comparison", "validation",
                                 "calibration", "services_plan", "lecture", "import", "catalog", "catalog_entry"}) {
    CAPTURE(kind);
    const std::string text = run_roofcast("schema " + kind).out;
    CHECK(text.find("\"const\": \"" + kind + "\"") != std::string::npos);
    CHECK(slurp(ROOFCAST_SOURCE_DIR "/docs/schemas/" + kind + ".json") == text);
  }
  CHECK(run_roofcast("schema plans", Stream::kErr).out ==
        "unknown kind of result 'plans'; nearest is 'plan' (valid: estimate, simulation, sweep, plan, ladder, "
        "comparison, validation, calibration, services_plan, lecture, import, catalog and 1 more)\n");
  CHECK(run_roofcast("schema", Stream::kErr).status == 2);
}

TEST_CASE("columns: of the csv in full, of the table for people, of the json not at all") {
  const std::string csv = run_roofcast(kSmall + "--format csv --columns tpot_ms,gpu").out;
  CHECK(first_line(csv) == "tpot_ms,gpu");
  const std::string json = run_roofcast(kSmall + "--format json").out;
  const std::string tpot = csv.substr(csv.find('\n') + 1, csv.rfind(',') - csv.find('\n') - 1);
  CHECK(json.find("\"tpot_ms\": " + tpot) != std::string::npos);
  const std::string table = run_roofcast(kSmall + "--columns tpot_ms,gpu").out;
  CHECK(first_line(table).starts_with("tpot_ms "));
  CHECK(first_line(table).ends_with(" gpu"));
  CHECK(table.find(" h100-sxm\n") != std::string::npos);
  CHECK(run_roofcast(kSmall + "--format json --columns tpot_ms", Stream::kErr).out ==
        "--columns: not with --format json\n");
  const auto unknown = run_roofcast(kSmall + "--columns tpot", Stream::kErr);
  CHECK(unknown.status == 2);
  CHECK(unknown.out.find("--columns: unknown column 'tpot'; nearest is 'tpot_ms'") == 0);
}

TEST_CASE("csv of specs: rows of a dotted key and its value") {
  const std::string gpu = run_roofcast("gpus h100-sxm --format csv").out;
  CHECK(first_line(gpu) == "key,value");
  CHECK(gpu.find("\ndense.bf16_tflop_per_s,989\n") != std::string::npos);
  for (const std::string command :
       {"workloads agentic-coding", "clients aiperf", "import tests/data/hf_configs/Qwen__Qwen3-8B.json"}) {
    CAPTURE(command);
    CHECK(first_line(run_roofcast(command + " --format csv").out) == "key,value");
    CHECK(run_roofcast(command + " --format json").out.front() == '{');
  }
  CHECK(first_line(run_roofcast("engines vllm --format csv").out) == "setting,value,since,source");
}

TEST_CASE("csv of names has a heading, as every other csv") {
  for (const std::string command : {"recipes", "clients", "workloads", "engines"}) {
    CAPTURE(command);
    CHECK(first_line(run_roofcast(command + " --format csv").out) == "name");
  }
  CHECK(first_line(run_roofcast("kernels --format csv").out) == "kernel,computes,description,borrows from");
}

TEST_CASE("an imported document's JSON has the head of a result, and is read again without it") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/Qwen__Qwen3-8B.json";
  REQUIRE(run_roofcast("import tests/data/hf_configs/Qwen__Qwen3-8B.json --format json --out '" + path + "'").status ==
          0);
  CHECK(slurp(path).starts_with("{\n  \"kind\": \"import\",\n  \"schema\": 1,\n  \"of\": \"model\",\n"));
  CHECK(run_roofcast("models '" + path + "' --format json").out ==
        run_roofcast("models tests/data/hf_configs/Qwen__Qwen3-8B.json --format json").out);
  CHECK(run_roofcast("report '" + path + "'", Stream::kErr).out ==
        path + ": the JSON of roofcast import: it has nothing to draw\n");
  CHECK(run_roofcast("lecture cache-waste --format json")
            .out.starts_with("{\n  \"kind\": \"lecture\",\n  \"schema\": 1,"));
}

TEST_CASE("a catalogue's JSON has the head of a result, a list's entries their names") {
  for (const std::string of : {"models", "gpus", "engines", "workloads", "recipes", "clients", "kernels", "lectures"}) {
    CAPTURE(of);
    const std::string command = of == "lectures" ? "lecture" : of;
    CHECK(run_roofcast(command + " --format json")
              .out.starts_with("{\n  \"kind\": \"catalog\",\n  \"schema\": 1,\n  \"of\": \"" + of +
                               "\",\n  \"entries\": [\n    {\n      \"name\": \""));
  }
  for (const std::string command :
       {"models llama-3.1-8b", "gpus h100-sxm", "engines vllm", "engines mlx", "workloads agentic-coding",
        "recipes aiconfigurator", "clients aiperf", "kernels cublaslt"}) {
    CAPTURE(command);
    CHECK(run_roofcast(command + " --format json")
              .out.starts_with("{\n  \"kind\": \"catalog_entry\",\n  \"schema\": 1,\n  \"of\": \"" +
                               command.substr(0, command.find(' ')) + "\",\n"));
  }
}

TEST_CASE("a catalogue's JSON is read again: a spec as the spec, a list by report, which has nothing to draw") {
  const TemporaryFolder folder;
  const std::string spec = folder.path() + "/workload.json", list = folder.path() + "/gpus.json";
  REQUIRE(run_roofcast("workloads agentic-coding --format json --out '" + spec + "'").status == 0);
  CHECK(run_roofcast("workloads '" + spec + "' --format json").out == slurp(spec));
  REQUIRE(run_roofcast("gpus --format json --out '" + list + "'").status == 0);
  CHECK(run_roofcast("report '" + list + "'", Stream::kErr).out ==
        list + ": the JSON of roofcast gpus: it has nothing to draw\n");
}

TEST_CASE("csv of a calibration: one row a constant") {
  const std::string csv = run_roofcast("calibrate show h100-sxm --format csv --columns block,constant,value").out;
  CHECK(first_line(csv) == "block,constant,value");
  CHECK(csv.find("\ncublaslt.bf16,compute_efficiency,0.") != std::string::npos);
  const std::string json = run_roofcast("calibrate show h100-sxm --format json").out;
  CHECK(json.find("\"of\": \"constants\"") != std::string::npos);
}
