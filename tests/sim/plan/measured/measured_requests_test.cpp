#include "sim/plan/measured/measured_requests.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "sim/plan/measured/request_settings.h"
#include "sim/step/deployment.h"

using namespace roofcast;

namespace {

/// A folder of its own with a run in it; gone at the end.
struct Run {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("roofcast-requests-" + std::to_string(getpid()));
  std::string path = (folder / "a_requests.jsonl").string();
  explicit Run(const std::string& lines) {
    std::filesystem::create_directories(folder);
    std::ofstream(path) << lines;
    std::ofstream(folder / "a_meta.json") << R"({"engine_kwargs": {"model": "meta-llama/Llama-3.1-8B-Instruct",
      "tensor_parallel_size": 2, "max_num_seqs": 7, "max_model_len": null,
      "dtype": "bfloat16", "kv_cache_dtype": "auto"}})";
  }
  ~Run() { std::filesystem::remove_all(folder); }
};

std::string failure(const std::string& lines) {
  const Run run(lines);
  try {
    read_request_run(run.path, "h100-sxm");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a run of requests: latencies across two clocks, in order of arrival") {
  const Run run(
      "{\"input_toks\": 100, \"output_toks\": 11, \"arrival_time\": 1002, \"queued_ts\": 5.25, \"first_token_ts\": "
      "5.5, "
      "\"last_token_ts\": 7.5}\n\n"
      "{\"request_id\": \"early\", \"input_toks\": 64, \"output_toks\": 1, \"arrival_time\": 1000, \"queued_ts\": 3, "
      "\"first_token_ts\": 4, \"last_token_ts\": 4}");
  RequestRun read = read_request_run(run.path, "h100-sxm");
  REQUIRE(read.requests.size() == 2);
  CHECK(read.deployment->model.name == "llama-3.1-8b");
  CHECK(read.deployment->sharding.tp == 2);
  CHECK(read.deployment->engine.max_num_seqs == 7);
  // The second line waited least for the queue: the engine's clock is 997 s behind the wall's.
  CHECK(read.requests[0].id == "early");
  CHECK(read.requests[0].ttft_ms == doctest::Approx(1000));
  CHECK(read.requests[1].arrival_s == doctest::Approx(2));
  CHECK(read.requests[1].ttft_ms == doctest::Approx(500));
  CHECK(read.requests[1].tpot_ms() == doctest::Approx(200));
  predict_requests(read);
  CHECK(read.requests[1].predicted_ttft_ms > 1);
  CHECK(read.requests[1].predicted_ttft_ms < 500);
  const auto statistics = request_statistics(read);
  REQUIRE(statistics.size() == 12);
  CHECK(statistics[0].measured_ms == doctest::Approx(750));  // the median of 500 and 1000
}

TEST_CASE("what is not recorded: times of a request, the queue's time, the GPU") {
  const std::string timed =
      "{\"input_toks\": 9, \"output_toks\": 2, \"arrival_time\": 1, \"scheduled_ts\": 3, \"first_token_ts\": 4, "
      "\"last_token_ts\": 5}\n";
  const Run run(timed +
                "{\"input_toks\": 9, \"output_toks\": 0, \"arrival_time\": null, \"queued_ts\": null, "
                "\"first_token_ts\": null, \"last_token_ts\": null}\n");
  const RequestRun read = read_request_run(run.path, "h100-sxm");
  CHECK(read.requests.size() == 1);
  CHECK(read.left_out == 1);
  CHECK(read.requests[0].ttft_ms == doctest::Approx(1000));
  CHECK_THROWS_WITH_AS(read_request_run(run.path), doctest::Contains("--gpu: missing"), ConfigError);
}

TEST_CASE("settings of a recorded run") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("roofcast-settings-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "RTX4090_x_meta.json").string();
  const auto read = [&](const std::string& more, const std::string& rest = "") {
    std::ofstream(path) << R"({"engine_kwargs": {"model": "Qwen/Qwen3-30B-A3B-Instruct-2507")" + more + "}" + rest +
                               "}";
    return read_request_settings(path, rest.empty() ? "h100-sxm" : "", "");
  };
  const RequestSettings two = read(R"(, "data_parallel_size": 2, "enable_expert_parallel": true)");
  CHECK(two.deployment->model.name == "qwen3-30b-a3b");
  CHECK(two.deployment->sharding.attention_dp == 2);
  CHECK(two.deployment->sharding.ep == 2);
  CHECK(two.replicas == 1);
  CHECK(two.deployment->engine.max_num_batched_tokens == 2048);  // of an engine that no server starts
  CHECK(two.deployment->engine.host.prompt_token_time == Seconds(0));
  const RequestSettings dense = read(R"(, "model": "Qwen/Qwen3-14B", "data_parallel_size": 2, "enforce_eager": true)");
  CHECK(dense.replicas == 2);
  CHECK_FALSE(dense.deployment->engine.graphs.enabled);
  const RequestSettings told = read(R"(, "model": "Qwen/Qwen3-14B", "max_num_seqs": 7)", R"(, "vllm_version": "0.11.0",
    "hardware": {"device_name": "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"},
    "kv_cache": {"num_gpu_blocks": 1000, "block_size": 16},
    "resolved_config": {"scheduler_config": {"max_num_seqs": 9}})");
  CHECK(told.deployment->gpu.name == "rtx-pro-6000");
  CHECK(told.deployment->engine.max_num_seqs == 9);
  CHECK_FALSE(told.deployment->engine.async_scheduling);
  CHECK(told.deployment->memory.cache == told.deployment->memory.layout.bytes_per_token() * 16000.0);
  // gpt-oss-20b: twelve layers of either kind share the blocks. 12 x 8 heads x 64 x 2 x 2 B a token.
  const RequestSettings windowed = read(R"(, "model": "openai/gpt-oss-20b")", R"(, "vllm_version": "0.19.0",
    "hardware": {"device_name": "NVIDIA L40S"}, "kv_cache": {"num_gpu_blocks": 1000, "block_size": 16})");
  CHECK(windowed.deployment->memory.cache == Bytes(16000.0 * 12 * 8 * 64 * 2 * 2));
  CHECK(read(R"(, "model": "Qwen/Qwen3-8B-FP8")").deployment->precision.weights == Dtype::kFp8Block);
  CHECK(read(R"(, "model": "RedHatAI/Llama-3.1-8B-Instruct-FP8-dynamic")").deployment->precision.weights ==
        Dtype::kFp8);
  CHECK(read(R"(, "model": "Qwen/Qwen2.5-32B-Instruct-AWQ")").deployment->precision.weights == Dtype::kInt4);
  // What vLLM resolved goes before what it was told, and that before the version's default.
  CHECK(told.deployment->engine.prefix_caching);
  CHECK(told.deployment->engine.own_all_reduce);
  CHECK_FALSE(told.deployment->engine.prompt_must_fit);  // 0.11
  const EngineSpec later = read(R"(, "disable_custom_all_reduce": true, "async_scheduling": true)",
                                R"(, "vllm_version": "0.19.0", "resolved_config": {
    "cache_config": {"enable_prefix_caching": false}, "scheduler_config": {"async_scheduling": false}},
    "hardware": {"device_name": "NVIDIA L40S"})")
                               .deployment->engine;
  CHECK_FALSE(later.prefix_caching);
  CHECK_FALSE(later.own_all_reduce);
  CHECK_FALSE(later.async_scheduling);
  CHECK(later.prompt_must_fit);
  // Passes of its compiler, which nothing goes through that runs eagerly: one since 0.10, one on Hopper and Blackwell
  // since 0.16.
  const auto passes = [&](const std::string& gpu, const std::string& version, const char* eager = "false") {
    const EngineSpec e = read(std::string(R"(, "enforce_eager": )") + eager,
                              R"(, "vllm_version": ")" + version + R"(", "hardware": {"device_name": ")" + gpu + "\"}")
                             .deployment->engine;
    return std::pair(e.compiled_quantization, e.fused_all_reduce);
  };
  CHECK(passes("NVIDIA B200", "0.9.2") == std::pair(false, false));
  CHECK(passes("NVIDIA B200", "0.10.0") == std::pair(true, false));
  CHECK(passes("NVIDIA B200", "0.15.1") == std::pair(true, false));
  CHECK(passes("NVIDIA B200", "0.16.0") == std::pair(true, true));
  CHECK(passes("NVIDIA L40S", "0.16.0") == std::pair(true, false));
  CHECK(passes("NVIDIA B200", "0.16.0", "true") == std::pair(false, false));
  // Before 0.8 a budget without chunks holds the longest prompt: Llama 2's 4096 tokens, or what it was told.
  const std::string v0 = R"(, "vllm_version": "0.6.6", "hardware": {"device_name": "NVIDIA H100 80GB HBM3"})";
  const EngineSpec whole = read(R"(, "model": "meta-llama/Llama-2-7b-hf")", v0).deployment->engine;
  // The release of its version; no server stands before the engine.
  CHECK(whole.name == "vllm");
  CHECK(whole.version == "0.6.6");
  CHECK(told.deployment->engine.version == "0.11.0");
  const EngineSpec earlier = read("", R"(, "vllm_version": "0.10.2")").deployment->engine;
  CHECK(earlier.version == "0.10.2");
  CHECK(earlier.front_end == "none");
  CHECK(earlier.host.request_latency == Seconds(0));
  CHECK(whole.max_num_batched_tokens == 4096);
  CHECK_FALSE(whole.chunked_prefill);
  CHECK(whole.max_num_seqs == 256);
  CHECK(read(R"(, "model": "meta-llama/Llama-2-7b-hf", "max_model_len": 1024)", v0)
            .deployment->engine.max_num_batched_tokens == 2048);
  // A context beyond 32768 tokens is cut, decodes first.
  const EngineSpec cut = read(R"(, "model": "meta-llama/Llama-3.1-8B")", v0).deployment->engine;
  CHECK(cut.chunked_prefill);
  CHECK(cut.max_num_batched_tokens == 2048);
  CHECK(cut.scheduler == "decode_first");
  // --model says which model it was; the checkpoint's format is still the recorded one's.
  CHECK_THROWS_WITH_AS(read(R"(, "model": "somebody/private-FP8")"), doctest::Contains("private"), ConfigError);
  CHECK(read_request_settings(path, "h100-sxm", "llama-3.1-8b").deployment->precision.weights == Dtype::kFp8);
  // Nothing recorded: the file's name.
  CHECK(read(R"(, "model": "Qwen/Qwen3-8B")", R"(, "hardware": {})").deployment->gpu.name == "rtx-4090");
  CHECK_THROWS_WITH_AS(read(R"(, "max_num_seqs": 0)"), doctest::Contains("'engine_kwargs/max_num_seqs' must be"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(read(R"(, "tensor_parallel_size": 1.5)"), doctest::Contains("whole number"), ConfigError);
  CHECK_THROWS_WITH_AS(read(R"(, "data_parallel_size": 1000000)"), doctest::Contains("from 1 to 65536"), ConfigError);
  CHECK_THROWS_WITH_AS(read("", R"(, "kv_cache": {"num_gpu_blocks": 1e30, "block_size": 16})"),
                       doctest::Contains("'kv_cache/num_gpu_blocks' must be a number"), ConfigError);
  CHECK(read(R"(, "kv_cache_dtype": "fp8_e4m3")").deployment->precision.kv_cache == Dtype::kFp8);
  CHECK(read(R"(, "kv_cache_dtype": "bfloat16")").deployment->precision.kv_cache == Dtype::kBf16);
  CHECK_THROWS_WITH_AS(read(R"(, "kv_cache_dtype": "int4")"), doctest::Contains("int4 is not known"), ConfigError);
  std::filesystem::remove_all(folder);
}

TEST_CASE("formats in names of checkpoints") {
  const auto taken = [](std::string name) {
    const std::string format = take_format(name);
    return name + " " + format;
  };
  CHECK(taken("Qwen/Qwen3-32B-FP8") == "Qwen/Qwen3-32B fp8_block");
  CHECK(taken("meta-llama/Llama-3.1-405B-Instruct-FP8") == "meta-llama/Llama-3.1-405B-Instruct fp8");
  CHECK(taken("zai-org/GLM-4.5-FP8") == "zai-org/GLM-4.5 fp8");
  CHECK(taken("RedHatAI/Qwen3-8B-FP8-dynamic") == "RedHatAI/Qwen3-8B fp8");
  CHECK(taken("nvidia/Llama-3.3-70B-Instruct-FP4") == "nvidia/Llama-3.3-70B-Instruct nvfp4");
  CHECK(taken("Qwen/Qwen3-32B") == "Qwen/Qwen3-32B ");
}

TEST_CASE("names of models and GPUs as others write them") {
  CHECK(library_model_name("deepseek-ai/DeepSeek-R1-0528") == "deepseek-r1");
  CHECK(library_model_name("meta-llama/Llama-2-7b-chat-hf") == "llama-2-7b");
  CHECK(library_model_name("Qwen/Qwen3-Next-80B-A3B-Instruct") == "qwen3-next-80b-a3b");
  CHECK(library_model_name("meta-llama/Meta-Llama-3-8B") == "llama-3-8b");
  CHECK(library_model_name("mistralai/Mistral-7B-Instruct-v0.3") == "mistral-7b-v0.3");
  CHECK(library_model_name("mistralai/Mixtral-8x7B-Instruct-v0.1") == "mixtral-8x7b");
  CHECK(library_model_name("microsoft/Phi-3-vision-128k-instruct") == "phi-3-vision-128k");  // not a release of phi-3
  CHECK(library_gpu_name("NVIDIA H100 80GB HBM3") == "h100-sxm");
  CHECK(library_gpu_name("NVIDIA H100 PCIe") == "h100-pcie");
  CHECK(library_gpu_name("NVIDIA L40S") == "l40s");
  CHECK(library_gpu_name("NVIDIA L40") == "");
  CHECK(library_gpu_name("NVIDIA A100-SXM4-80GB") == "a100-sxm");
  CHECK(library_gpu_name("NVIDIA A100-SXM4-40GB") == "a100-sxm-40gb");
  CHECK(library_gpu_name("NVIDIA A100 80GB PCIe") == "a100-pcie");
  CHECK(library_gpu_name("NVIDIA GB200") == "gb200");
  CHECK(library_gpu_name("RTXPRO6000") == "rtx-pro-6000");
  CHECK(library_gpu_name("NVIDIA GeForce GTX 1080") == "");
}

TEST_CASE("a run of requests under another name takes the only settings beside it") {
  const Run run(
      "{\"input_toks\": 64, \"output_toks\": 2, \"arrival_time\": 1, \"queued_ts\": 1, \"first_token_ts\": 2, "
      "\"last_token_ts\": 3}");
  const std::string renamed = (run.folder / "b.jsonl").string();
  std::filesystem::rename(run.path, renamed);
  CHECK(read_request_run(renamed, "h100-sxm").deployment->sharding.tp == 2);
  std::filesystem::copy_file(run.folder / "a_meta.json", run.folder / "c_meta.json");
  CHECK_THROWS_WITH_AS(read_request_run(renamed, "h100-sxm"), doctest::Contains("but there are 2"), ConfigError);
}

TEST_CASE("a run of requests that cannot be read says where") {
  CHECK(failure("{\"input_toks\": 1").ends_with("a_requests.jsonl:1: not a JSON object"));
  CHECK(failure("\n{\"input_toks\": 1, \"output_toks\": 1, \"arrival_time\": null, \"first_token_ts\": 2}")
            .find(":2: 'arrival_time' must be a number") != std::string::npos);
  CHECK(failure("{\"arrival_time\": 1, \"input_toks\": 0}").find("'input_toks' must be a whole number") !=
        std::string::npos);
  CHECK(failure("{\"arrival_time\": 1, \"input_toks\": 1, \"output_toks\": 1, \"queued_ts\": 2, \"first_token_ts\": 1, "
                "\"last_token_ts\": 3}")
            .find("times must not go back") != std::string::npos);
  CHECK(failure("").find("no requests") != std::string::npos);
}
