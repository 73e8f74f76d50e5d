#include "sim/plan/measured/run_engine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/error.h"

namespace roofcast {
namespace {

/// Their published tokenizer_config.json files ask for one (add_bos_token, or the template of tokenizer.json).
constexpr std::string_view kBeginFamilies[] = {"llama", "mistral", "mixtral", "gemma", "deepseek", "cohere"};

/// SGLang 0.5.8 is of January 2026, 0.5.10 of April; a nightly build is what comes next on its day.
std::string sglang_profile(const std::string& version, const std::string& measured) {
  const double number = version_number(version);
  const auto before = [&](double first, const char* day) {
    return number < 99 ? number < first : !measured.empty() && measured < day;
  };
  return before(0.005009, "2026-02") ? "sglang-0.5.8" : before(0.005010, "2026-04") ? "sglang-0.5.9" : "sglang";
}

/// Workers apart carry NVIDIA Dynamo's version, and count by their day: Dynamo took TensorRT-LLM 1.3 in March 2026.
bool from_trtllm_1_3(const RunEngine& run) {
  const double number = version_number(run.version);
  return run.kind == RunKind::kDisaggregated || number >= 99 ? run.measured >= "2026-03" : number >= 1.003;
}

/// TRTLLM_ENABLE_PDL is on by default from TensorRT-LLM 1.2 on, which Dynamo carries from 0.7 on
/// (docs.nvidia.com/dynamo, support matrix).
bool launches_ahead(const RunEngine& run) {
  const double number = version_number(run.version);
  return run.engine == "trtllm" && number < 99 && number >= (run.kind == RunKind::kDisaggregated ? 0.007 : 1.002);
}

/// By the version, or the day where none is given. vLLM 0.11 is of October 2025, but the recipes of InferenceX took
/// 0.10.2 until November; 0.12 is of December.
bool before_vllm(double limit, const char* day, const RunEngine& run) {
  const double number = version_number(run.version);
  return run.engine == "vllm" && (number < 99 ? number < limit : !run.measured.empty() && run.measured < day);
}

bool is_vllm_v1(const EngineSpec& engine) { return engine.name == "vllm" || engine.name == "vllm-0.10"; }

/// Groups of query heads that TensorRT-LLM's XQA kernels decode together came one after another, as the throughput of
/// models of either group at saturation shows: none before 0.7; groups of eight until 0.10, not over paged 16-bit
/// caches; other groups with 0.11, and groups of eight over paged 16-bit caches with 0.12.
int shared_query_heads(double version, bool wide_pages) {
  if (version < 0.007) return 1;
  if (version < 0.011) return wide_pages ? 1 : 8;
  return version < 0.012 && wide_pages ? 4 : 0;
}

/// TensorRT-LLM's perf-overview page of that version: 0.10 ran gptManagerBenchmark with one engine for all lengths,
/// 0.11 and later fill the cache. The benchmark calls the engine in its own process: there is no front end.
void apply_offline_settings(EngineSpec& engine, double version) {
  if (version < 0.011) {
    engine.max_num_seqs = 2048;
    engine.max_num_batched_tokens = 2048;
    engine.gpu_memory_utilization = 0.9;
  } else {
    engine.gpu_memory_utilization = std::max(engine.gpu_memory_utilization, 0.95);
  }
  if (version >= 0.012) engine.reserved_memory = Bytes(1e9);
  engine.host = without_front_end(engine.host);
}

}  // namespace

double version_number(const std::string& version) {
  const auto digit = version.find_first_of("0123456789");
  if (digit == std::string::npos || digit > 1) return 99;
  double number = 0, unit = 1;
  for (const char* at = version.c_str() + digit; unit > 1e-9; unit /= 1000) {
    char* end = nullptr;
    number += unit * static_cast<double>(std::strtol(at, &end, 10));
    if (*end != '.') break;
    at = end + 1;
  }
  return number;
}

EngineSpec engine_of_run(const RunEngine& run) {
  std::string profile = run.engine;
  const double version = version_number(run.version);
  if (run.engine == "trtllm" && (run.kind == RunKind::kStatic || (!closed_loop(run.kind) && version < 0.019)))
    profile = "trtllm-0";
  else if (run.engine == "trtllm" && version < 1.001 && run.kind != RunKind::kDisaggregated)
    profile = "trtllm-1.0";
  else if (run.engine == "trtllm" && from_trtllm_1_3(run))
    profile = "trtllm-1.3";
  if (run.engine == "sglang") profile = sglang_profile(run.version, run.measured);
  if (before_vllm(0.011, "2025-11", run)) profile = "vllm-0.10";
  if (run.engine == "vllm" && (run.kind == RunKind::kStatic || version < 0.008)) profile = "vllm-0";
  if (run.source == "splitwise_profiles") profile = "vllm-2023";
  EngineSpec engine =
      parse_engine_spec(ConfigReader(load_named("engines", profile, Mark{"engine", 0, 0}), "an engine"));
  if (run.engine == "trtllm") {
    const bool paged = run.source != "trtllm_static_batch";
    // Argonne's runs are of 2024 and name no version: their models of either group show no sharing.
    const double number = run.source == "argonne_llm_inference_bench" ? 0.010 : version;
    engine.shared_query_heads = shared_query_heads(number, paged && run.kv_dtype != "fp8");
    // Until 0.12 an option of trtllm-build, off unless asked for (github.com/NVIDIA/TensorRT-LLM/pull/2008,
    // issues/1601).
    engine.own_all_reduce = profile != "trtllm-0" || number >= 0.012;
  }
  // Until then the all-reduce of experts was hidden in their operator (github.com/vllm-project/vllm/pull/24248).
  if (before_vllm(0.012, "2025-12", run)) {
    for (GpuDefaults& of_gpu : engine.by_gpu) of_gpu.fused_all_reduce = false;
  }
  if (launches_ahead(run)) engine.graphs.dependent_launch = true;
  engine.prefix_caching = false;  // random tokens: nothing is shared
  if (version < kPromptMustFit) engine.prompt_must_fit = false;
  // enable_chunked_prefill is off in TensorRT-LLM unless asked for, and the budgets of these runs hold a prompt.
  if (run.engine == "trtllm" && run.kind == RunKind::kAggregated) engine.chunked_prefill = false;
  if (run.kind == RunKind::kOffline) apply_offline_settings(engine, version);
  // The page does not give the engine's token budget. Gaps of 16 output tokens when every prompt is there at once tell
  // it: a request sees the prefill steps that follow its own, fewer and longer ones the larger the budget is.
  if (run.kind == RunKind::kOnline && run.engine == "trtllm") engine.max_num_batched_tokens = 16384;
  return engine;
}

bool has_experts(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const LayerKind& layer) {
    return std::holds_alternative<ExpertFeedForward>(layer.feed_forward);
  });
}

bool has_indexed_latents(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const LayerKind& layer) {
    const auto* latent = std::get_if<LatentAttention>(&layer.mixer);
    return latent != nullptr && latent->indexer_top_k > 0;
  });
}

bool has_deepseek_tokenizer(const ModelSpec& model) {
  return model.model_type == "deepseek_v2" || model.model_type == "deepseek_v3" || model.model_type == "deepseek_v32";
}

PromptGrowth prompt_growth(const EngineSpec& engine, const std::string& protocol, const std::string& measured,
                           const ModelSpec& model) {
  const bool mended = measured.empty() || measured >= "2026-05";
  const bool grows = protocol == "inferencex" && engine.name == "sglang" && has_deepseek_tokenizer(model);
  return grows && !mended ? PromptGrowth{.tokens = 35921.0 / 7140.0, .text = 1.6} : PromptGrowth{};
}

int sharing_replicas(const std::string& protocol, const std::string& version, int gpus) {
  constexpr int kGpus = 64;
  return protocol == "nvidia" && version == "1.3.0rc5" ? std::max(1, kGpus / std::max(1, gpus)) : 1;
}

bool begins_prompts(const ModelSpec& model) {
  return std::any_of(std::begin(kBeginFamilies), std::end(kBeginFamilies),
                     [&](std::string_view family) { return model.family.starts_with(family); });
}

HostCosts with_front_end(HostCosts host, const HostCosts& front_end) {
  host.request_time = front_end.request_time;
  host.request_latency = front_end.request_latency;
  host.token_time = front_end.token_time;
  host.prompt_token_time = front_end.prompt_token_time;
  return host;
}

HostCosts without_front_end(HostCosts host) { return with_front_end(host, {}); }

std::int64_t offline_requests(const std::string& version, int tokens) {
  if (version_number(version) < 0.011) return 2000;
  return tokens <= 256 ? 30000 : tokens <= 2500 ? 3000 : tokens <= 5500 ? 1500 : 1000;
}

Dtype stored_format(Dtype column, const ModelSpec& model) {
  if (column != Dtype::kFp8) return column;
  const bool by_blocks = model.precision.weights == Dtype::kFp8Block || model.family.rfind("qwen3", 0) == 0;
  return by_blocks ? Dtype::kFp8Block : column;
}

void choose_v0_attention(EngineSpec& engine, const ModelSpec& model, const GpuSpec& gpu, const std::string& kv_dtype) {
  const bool amd = gpu.architecture.starts_with("cdna");
  const bool windowed = std::any_of(model.layers.begin(), model.layers.end(), [](const LayerKind& layer) {
    const auto* attention = std::get_if<GroupedAttention>(&layer.mixer);
    return attention != nullptr && attention->window > 0;
  });
  if (amd || kv_dtype == "fp8" || (windowed && gpu.architecture == "hopper")) engine.shared_query_heads = 1;
  if (amd && !has_experts(model)) engine.graphs.enabled = false;
}

std::string gpu_of_run(const std::string& gpu, const std::string& source) {
  if (source != "argonne_llm_inference_bench") return gpu;
  return gpu == "a100-sxm" ? "a100-sxm-40gb" : gpu == "mi300x" ? "mi300x-2024" : gpu;
}

namespace {

/// What NVIDIA aiconfigurator's generator writes for TensorRT-LLM (generator/rule_plugin/trtllm.rule): one deployment
/// for all concurrencies, the token budget a prompt, the batch limit and 1500 more, no chunked prefill; the templates
/// for 1.0 (extra_engine_args.1.0.0rc3.yaml.j2) also leave the overlap scheduler off.
void apply_generated_settings(EngineSpec& e, const RunShape& shape) {
  const bool first_release = e.name == "trtllm-1.0";
  e.max_num_seqs = std::max(512, shape.concurrency);
  e.max_num_batched_tokens = e.max_num_seqs + shape.isl + 1500;
  e.chunked_prefill = false;
  if (first_release) e.async_scheduling = false;
  // The sweeps of dense models under 1.0 show the budget of aiconfigurator's own mixed step: one prompt and a token of
  // every other request. A token that the tokenizer puts before the prompt does not fit beside all of them.
  if (first_release && shape.dense)
    e.max_num_batched_tokens = shape.isl + shape.concurrency - 1 - (shape.begin_token ? 1 : 0);
}

/// Behind Dynamo SGLang holds less cache than by its own default: 16 prompts of 1,024 tokens wait on one GPU beside
/// weights that leave 0.8 of it 1.6 GB of blocks, and a burst is prefilled in steps of twice the default's tokens.
void apply_dynamo_settings(EngineSpec& e) {
  e.gpu_memory_utilization = 0.8;
  e.max_num_batched_tokens = 16384;
}

/// A static benchmark prefills its whole batch in one pass, but vLLM goes by its budget there too.
void apply_static_settings(EngineSpec& e, const RunShape& shape) {
  const int budget =
      e.kernels == KernelFamily::kVllm ? e.max_num_batched_tokens : std::min(shape.batch * shape.isl, 1 << 17);
  e.max_num_batched_tokens = std::max(shape.isl, budget);
  if (e.compiled) e.max_num_seqs = std::max(1, shape.batch);  // built for the batch
}

/// Which kernels the columns name, and those that the recipes in force asked for without a column.
void apply_backends(EngineSpec& e, const std::string& attention, const std::string& experts, const RunShape& shape) {
  if (attention.find("prefill trtllm") != std::string::npos) e.sparse_attention = "trtllm";
  if (experts == "CUTLASS") e.moe_kernel = MoeVariant::kCutlass;
  if (experts == "TRTLLM") e.moe_kernel = MoeVariant::kLowLatency;  // trtllm-gen
  if (experts.starts_with("MARLIN")) e.moe_kernel = MoeVariant::kMarlin;
  const bool by_flashinfer = e.name.starts_with("sglang-") || (e.name == "sglang" && shape.deepseek);
  if (shape.protocol == "inferencex" && by_flashinfer && !shape.indexed) e.block_products = GemmKernel::kFlashInfer;
}

/// Whether InferenceX's recipe sets TRTLLM_ENABLE_PDL: those for gpt-oss (benchmarks/gptoss_fp4_h200_trt_slurm.sh), and
/// Dynamo's for workers apart where decode goes without attention-DP (ai-dynamo/dynamo,
/// components/backends/trtllm/performance_sweeps/benchmark_disagg.slurm).
bool recipe_launches_ahead(const std::string& model, const RunShape& shape, int decode_attention_dp) {
  if (shape.protocol != "inferencex") return false;
  return model.starts_with("gpt-oss") || (shape.kind == RunKind::kDisaggregated && decode_attention_dp <= 1);
}

}  // namespace

void apply_launch_settings(EngineSpec& e, const std::function<std::string(std::string_view)>& text,
                           const std::function<double(std::string_view, double)>& number, const RunShape& shape) {
  const auto whole = [&](std::string_view name, int blank) {
    const double value = number(name, blank);
    if (!(value >= 0 && value <= 1 << 24))
      throw ConfigError(fmt::format("'{}' must be from 0 to {}, got {}", name, 1 << 24, value));
    return static_cast<int>(value);
  };
  const auto flag = [&](std::string_view name, bool blank) { return text(name).empty() ? blank : text(name) != "0"; };
  if (shape.protocol == "nvidia" && e.kernels == KernelFamily::kTrtllm && shape.concurrency > 0)
    apply_generated_settings(e, shape);
  if (shape.protocol == "nvidia" && e.name == "sglang-0.5.8") apply_dynamo_settings(e);
  if (shape.protocol == "nvidia") e.launch_speed = 1.0;  // its B200s launch for TensorRT-LLM as fast as its H200s
  if (shape.kind == RunKind::kStatic) apply_static_settings(e, shape);
  e.gpu_memory_utilization = number("memory_fraction", e.gpu_memory_utilization);
  if (!(e.gpu_memory_utilization >= 0 && e.gpu_memory_utilization <= 1))
    throw ConfigError(fmt::format("'memory_fraction' must be from 0 to 1, got {}", e.gpu_memory_utilization));
  e.max_num_seqs = std::max(1, whole("max_num_seqs", e.max_num_seqs));
  e.max_num_batched_tokens = std::max(1, whole("max_num_tokens", e.max_num_batched_tokens));
  e.stream_interval = std::max(1, whole("stream_interval", e.stream_interval));
  e.chunked_prefill = flag("chunked_prefill", e.chunked_prefill);
  e.async_scheduling = flag("async_scheduling", e.async_scheduling);
  e.graphs.max_batch = whole("cuda_graph_max_batch", e.graphs.max_batch);
  // vLLM V1's largest captured size counts tokens of steps of either kind; the others' limits are of decode alone.
  if (is_vllm_v1(e)) e.graphs.prefill_tokens = e.graphs.max_batch;
  e.prefill_wait_ratio = number("prefill_wait_ratio", e.prefill_wait_ratio);
  e.prefill_wait_steps = whole("prefill_wait_steps", e.prefill_wait_steps);
  // The recipes' attention_dp_config: enable_balance, timeout_iters 60.
  if (shape.protocol == "inferencex" && e.kernels == KernelFamily::kTrtllm && whole("attention_dp", 1) > 1) {
    e.attention_dp_balance = true;
    e.prefill_wait_steps = std::max(e.prefill_wait_steps, 60);
  }
  e.receive_interval = std::max(1, whole("recv_interval", e.receive_interval));
  e.postprocess_workers = whole("postprocess_workers", e.postprocess_workers);
  apply_backends(e, text("attention_backend"), text("moe_backend"), shape);
  if (e.kernels == KernelFamily::kTrtllm &&
      recipe_launches_ahead(text("model"), shape, whole("decode_attention_dp_size", 1)))
    e.graphs.dependent_launch = true;
  // A prompt that chunking does not cut must fit the budget.
  if (!e.chunked_prefill) e.max_num_batched_tokens = std::max(e.max_num_batched_tokens, shape.isl);
}

std::string cache_format_of_run(const std::string& column, const std::string& weights, const Deployment& d) {
  const bool vllm_family = d.engine.name.rfind("trtllm", 0) != 0;
  if (is_vllm_v1(d.engine) && d.gpu.architecture == "hopper" && (column == "fp8" || column.empty())) return "bf16";
  if (!column.empty()) return column;
  if (weights == "nvfp4") return "fp8";
  if (!vllm_family && weights.rfind("fp8", 0) == 0) return "fp8";
  return "bf16";
}

}  // namespace roofcast
