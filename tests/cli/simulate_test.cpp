// Flags of `simulate` for traces.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;
using roofcast::testing::run_shell;
using roofcast::testing::Stream;

TEST_CASE("a trace given by a flag is known by its first line") {
  const auto result = run_shell(
      "f=$(mktemp) && echo '{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1, 2]}' > "
      "\"$f\"; '" ROOFCAST_PROGRAM
      "' simulate configs/scenarios/chat-70b-4xh100.yaml --trace \"$f\" --format json; status=$?; rm \"$f\"; exit "
      "$status");
  CHECK(result.status == 0);
  CHECK(result.out.find("\"total_input_tokens\": 600") != std::string::npos);
}

TEST_CASE("a format of no trace is a slip") {
  const auto result =
      run_roofcast("simulate configs/scenarios/chat-70b-4xh100.yaml --trace-format mooncake", Stream::kErr);
  CHECK(result.status == 2);
  CHECK(result.out.starts_with("--trace-format:"));
}

TEST_CASE("simulate without a scenario lists the shipped ones") {
  const auto result = run_roofcast("simulate", Stream::kErr);
  CHECK(result.status == 2);
  CHECK(result.out.starts_with("simulate: which scenario? roofcast simulate SCENARIO.yaml, or a shipped one: "));
  CHECK(result.out.find("chat-70b-4xh100") != std::string::npos);
}

TEST_CASE("--set with a key that lacks its map names the whole path") {
  const auto hint = [](const std::string& set) {
    return run_roofcast("estimate --model llama-3.1-8b --gpu h100-sxm --set " + set, Stream::kErr).out;
  };
  CHECK(hint("max_num_seqs=4").find("; did you mean engine.max_num_seqs?\n") != std::string::npos);
  CHECK(hint("tp=2").find("; did you mean parallelism.tp (or --tp)?\n") != std::string::npos);
  CHECK(hint("batch=4").find("; did you mean --batch of estimate?\n") != std::string::npos);
  CHECK(hint("zzz=4").find("did you mean") == std::string::npos);
}

TEST_CASE("a file of another kind is named with the command that takes it") {
  const TemporaryFolder folder;
  const auto error = [](const std::string& words) { return run_roofcast(words, Stream::kErr).out; };
  CHECK(error("simulate az.csv") == "simulate: 'az.csv' is a file of requests; pass it with --trace az.csv\n");
  const std::string plan = folder.write("p.yaml", "model: llama-3.1-8b\nsearch: {gpus: [h100-sxm]}\n");
  CHECK(error("simulate '" + plan + "'") == plan + ":1:1: this is a plan (it has 'search'); use roofcast plan\n");
  CHECK(error("plan configs/sweeps/gpu-cost.yaml").find("this is a sweep (it has 'grid'); use roofcast sweep") !=
        std::string::npos);
  const std::string idle = folder.write("i.yaml", "model: llama-3.1-8b\ngpu: h100-sxm\n");
  const std::string bench = folder.write("b.json",
                                         R"({"completed": 9, "duration": 5, "mean_ttft_ms": 3, "mean_tpot_ms": 2,
                                             "total_input_tokens": 90, "total_output_tokens": 90})");
  CHECK(error("compare '" + idle + "' --bench '" + bench + "'") ==
        idle + ":1:1: missing key 'workload' of a scenario to compare\n");
}

TEST_CASE("names: dots are folders, parts of names are found, and a release needs a name") {
  const auto error = [](const std::string& words) { return run_roofcast(words, Stream::kErr).out; };
  CHECK(error("estimate --model . --gpu h100-sxm") ==
        "--model: '.' is a directory without a config.json, not a model file\n");
  CHECK(error("estimate --model llama-3.1-8b --gpu 4090")
            .starts_with("--gpu: unknown gpu '4090'; nearest is 'rtx-4090'"));
  CHECK(error("estimate --model llama-3.1-8b --gpu h100-sxm --engine vllm@") ==
        "--engine: 'vllm@': a version or a day must follow '@'\n");
  const std::string small = "estimate --model llama-3.1-8b --gpu h100-sxm --set speculation=";
  CHECK(run_roofcast(small + "none").status == 0);
  CHECK(error("estimate --model llama-3.1-8b --gpu h100-sxm --kv-cache-dtype int4 --engine vllm@0.12")
            .starts_with("--engine: cannot run: "));
}

TEST_CASE("simulate: a run in which requests fail meets no objective, and says why") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& prompts) {
    return run_roofcast(
        "simulate '" +
        folder.write("f.yaml",
                     "model: llama-3.1-8b\ngpu: h100-sxm\nengine: {name: vllm, max_model_len: 4096}\nworkload: "
                     "{arrivals: {process: constant, rate: 2 /s}, prompt_tokens: " +
                         prompts + ", output_tokens: 10, requests: 60}\nobjectives: {ttft_p90: 10 s}\n") +
        "'");
  };
  const auto none = run("5000");
  CHECK(none.status == 3);
  CHECK(none.out.find("0 completed, 60 failed") != std::string::npos);
  CHECK(none.out.find("60 longer than the context of 4096 tokens (engine.max_model_len)") != std::string::npos);
  CHECK(none.out.find("ttft_p90: MISSED, no request completed") != std::string::npos);
  CHECK(none.out.find("ttft ") == std::string::npos);  // no table of latencies
  CHECK(none.out.find("throughput") == std::string::npos);
  const auto some = run("{distribution: uniform, min: 3000, max: 5000}");
  CHECK(some.status == 0);
  CHECK(some.out.find("; met by those that completed") != std::string::npos);
  const auto all = run("500");
  CHECK(all.out.find(": met\n") != std::string::npos);
  CHECK(all.out.find("FAILED") == std::string::npos);
}

TEST_CASE("a run is written as a load generator's, and compared with itself") {
  const auto result = run_shell("f=$(mktemp) && '" ROOFCAST_PROGRAM
                                "' simulate chat-70b-4xh100 --set workload.requests=100 --bench-out \"$f\" "
                                "--bench-format guidellm >/dev/null 2>&1 && '" ROOFCAST_PROGRAM
                                "' compare chat-70b-4xh100 --set workload.requests=100 --bench \"$f\" "
                                "--format csv --columns ratio; status=$?; rm \"$f\"; exit $status");
  CHECK(result.status == 0);
  CHECK(result.out.starts_with("ratio\n1\n1\n"));  // duration, completed
  CHECK(run_roofcast("simulate chat-70b-4xh100 --bench-format aiperf", Stream::kErr).out ==
        "--bench-format: needs --bench-out FILE\n");
}

TEST_CASE("a front end that is busy receiving prompts is reported as the bottleneck") {
  const auto result = run_roofcast(
      "simulate configs/scenarios/samples-8b.yaml --set workload='{arrivals: {process: all_at_once}, requests: 50, "
      "prompt_tokens: 2000, output_tokens: 1}' --set engine.host.request_time='280 ms' --set "
      "engine.host.prompt_token_time='10 us' --set engine.api_servers=1",
      Stream::kOut);
  CHECK(result.status == 0);
  // 280 ms + 2000 x 10 us = 300 ms each, one after another
  CHECK(result.out.find("% taking in prompts: it binds, not the GPUs. One server takes 300 ms for a prompt") !=
        std::string::npos);
}

TEST_CASE("estimate: images have a usual size, quotes around false a note, and a rack an edge") {
  const std::string of = "estimate --model qwen3-vl-8b --gpu h100-sxm --prompt-tokens 100 --images 2 ";
  CHECK(run_roofcast(of, Stream::kOut).out == run_roofcast(of + "--image-size 1024x768", Stream::kOut).out);
  const auto quoted = run_roofcast(
      "estimate --model llama-3.1-8b --gpu h100-sxm --set engine.prefix_caching='\"false\"'", Stream::kErr);
  CHECK(quoted.status == 0);
  CHECK(quoted.out.find("'prefix_caching': false in quotes is read as false") != std::string::npos);
  const auto leaves = [](const std::string& gpus) {
    return run_roofcast("estimate --model deepseek-v3 --gpu gb200 --batch 73 --attention-dp " + gpus + " --ep " + gpus,
                        Stream::kErr)
               .out.find("the NVLink domain of gb200 has 72") != std::string::npos;
  };
  CHECK_FALSE(leaves("64"));
  CHECK(leaves("128"));
}

TEST_CASE("estimate: a workload without lengths is one of its requests, and numbers have no leading zeros") {
  const std::string asked = "estimate --model llama-3.1-8b --gpu h100-sxm --engine vllm ";
  const std::string plain = run_roofcast(asked).out;
  CHECK(run_roofcast(asked + "--set workload.guided=1").out == plain);  // hidden behind the GPU's work
  CHECK(run_roofcast(asked + "--set workload.guided=1", Stream::kErr).out.find("workload.guided: the host fills") == 0);
  const auto waits = run_roofcast(asked + "--set engine.async_scheduling=false --set workload.guided=1");
  CHECK(waits.status == 0);
  CHECK(waits.out != run_roofcast(asked + "--set engine.async_scheduling=false").out);
  CHECK(run_roofcast(asked + "--set workload.turns=2 --prompt-tokens 64", Stream::kErr)
            .out.find("workload changes nothing in this estimate\n") != std::string::npos);
  const auto octal = run_roofcast(asked + "--batch 010", Stream::kErr);
  CHECK(octal.status != 0);
  CHECK(octal.out.find("--batch: must be an integer from 1 to 1000000, got '010'") != std::string::npos);
}

TEST_CASE("estimate: warns where decode steps exceed the CUDA graphs, which makes a GB200 slower than a B200") {
  const auto step = [](const std::string& gpu, const std::string& rest) {
    return run_roofcast(
        "estimate --model deepseek-r1 --engine trtllm-1.3 --ep 8 --attention-dp 8 --weights nvfp4 "
        "--activations nvfp4 --kv-cache-dtype fp8 --batch 4096 --prompt-tokens 800 --output-tokens 20 "
        "--gpu " +
        gpu + rest);
  };
  const auto ms = [&](const std::string& gpu, const std::string& rest) {
    const std::string out = step(gpu, rest + " --format csv --columns tpot_ms").out;
    return std::stod(out.substr(out.find('\n') + 1));
  };
  const char* says = "no CUDA graph holds a decode step of 512 sequences per rank";
  const std::string graphs = " --set engine.cuda_graphs.max_batch=512";
  CHECK(step("gb200", "").out.find(says) != std::string::npos);
  CHECK(step("gb200", graphs).out.find(says) == std::string::npos);
  CHECK(ms("gb200", graphs) <= ms("b200-sxm", graphs));
}

TEST_CASE("simulate: the front end's time is a part of each queue and TTFT") {
  const std::string run =
      "simulate --model llama-3.1-8b --gpu h100-sxm --set workload.prompt_tokens=1000 --set workload.output_tokens=2 "
      "--set workload.requests=3 --set 'workload.arrivals={process: constant, rate: 0.1 /s}'";
  const auto json = nlohmann::json::parse(run_roofcast(run + " --format json").out);
  // No request waits for another: what is in the queue is the front end's time, and the poll of an idle engine at most.
  const double front_end = json["front_end_ms"];
  CHECK(front_end > 1);
  CHECK(json["mean_queue_ms"].get<double>() == doctest::Approx(front_end).epsilon(0.01));
  CHECK(json["mean_ttft_ms"].get<double>() > front_end);
  CHECK(run_roofcast(run).out.find("front end               ") != std::string::npos);
}

TEST_CASE("simulate: without completed requests there is no latency and no token price") {
  const char* set =
      " --set 'engine={name: vllm, max_model_len: 50}' --set workload.prompt_tokens=100 --set "
      "workload.output_tokens=10 "
      "--set workload.requests=10 --set 'workload.arrivals={process: poisson, rate: 1 /s}'";
  const std::string run = "simulate --model llama-3.1-8b --gpu h100-sxm" + std::string(set);
  const std::string json = run_roofcast(run + " --format json").out;
  for (const char* key : {"mean_ttft_ms", "p99_ttft_ms", "std_tpot_ms", "p90_itl_ms", "median_e2el_ms", "p99_queue_ms",
                          "usd_per_million_output_tokens"})
    CHECK(json.find("\"" + std::string(key) + "\": null") != std::string::npos);
  CHECK(json.find("\"completed\": 0") != std::string::npos);
  const std::string columns = " --format csv --columns failed,p99_ttft_ms,mean_tpot_ms,completed";
  CHECK(run_roofcast(run + columns).out.ends_with("\n10,,,0\n"));
}
