#pragma once
// Which engine profile a measured run ran under, and how its launch settings change it.

#include <functional>
#include <string>
#include <string_view>

#include "sim/plan/measured/measured_runs.h"

namespace roofcast {

/// "0.10.0" and "v0.10" are 0.010, "0.5.10.post1" is 0.005010; words and blanks are the newest.
double version_number(const std::string& version);
inline constexpr double kPromptMustFit = 0.019;  ///< of vLLM: its pull request 37307

struct RunEngine {
  RunKind kind;
  std::string engine, version, source;
  std::string measured = {};  ///< yyyy-mm-dd
  std::string kv_dtype = {};  ///< its column; blank is 16 bit before TensorRT-LLM 0.12
};
/// The profile of the engine's version family: trtllm before 1.0 is the compiled C++ engine, 1.0 the first PyTorch
/// one (its offline benchmark took that backend from 0.19 on), from 1.3 on decode grows with the batch by its kernels
/// alone. Workers apart ran under NVIDIA Dynamo, whose version that column then names, with TensorRT-LLM 1.1 or later,
/// told apart by the day; SGLang before 0.5.10 hides less of its host work, and before 0.5.9 was measured behind
/// another front end; vLLM before 0.11 launches its graphs in pieces, before 0.8 and in static runs it is the V0
/// engine, and Splitwise's of 2023 had no CUDA graphs. A nightly or blank version is that of its day; without either,
/// vllm, sglang or trtllm (1.1 and later). Throws ConfigError for an unknown engine.
EngineSpec engine_of_run(const RunEngine& run);

bool has_experts(const ModelSpec& model);
/// Latent attention to what an indexer chooses.
bool has_indexed_latents(const ModelSpec& model);

/// DeepSeek's tokenizer is byte-level BPE that declares itself LlamaTokenizerFast (tokenizer_config.json).
bool has_deepseek_tokenizer(const ModelSpec& model);

/// Of what an aggregated run's column tells.
struct PromptGrowth {
  double tokens = 1.0;  ///< that reached the engine
  double text = 1.0;    ///< what the front end takes for them
};
/// What became of the prompts on their way. InferenceX draws random
/// tokens, decodes them and sends the text. Images of SGLang from 0.5.10 on carry transformers 5, whose Llama tokenizer
/// replaces DeepSeek's decoder, at the client alone: 7,140 tokens came back as 35,921
/// (github.com/SemiAnalysisAI/InferenceX/pull/937). The client was mended in May 2026 (pull/1381), after which these
/// runs were repeated (pull/1502). The text is hardly longer: Hugging Face's tokenizers cut it into five times as many
/// tokens, a character or two each, in 1.6 times the time (DeepSeek-V3's tokenizer.json, prompts of 900 and 7,400).
PromptGrowth prompt_growth(const EngineSpec& engine, const std::string& protocol, const std::string& measured,
                           const ModelSpec& model);

/// Replicas that share an aggregated run's concurrency. NVIDIA's runs under TensorRT-LLM 1.3.0rc5 (6 and 7 March 2026)
/// stand beside runs of the same days with prefill and decode apart on 64 GPUs, and their concurrency is that of as
/// many: 416 and 448 requests of 15,000 tokens on two GPUs are 13 and 14 each on 32 such pairs, and take as long as
/// those do.
int sharing_replicas(const std::string& protocol, const std::string& version, int gpus);

/// Does its tokenizer put a begin-of-sequence token before a prompt? A benchmark's lengths do not count it.
bool begins_prompts(const ModelSpec& model);

/// With the costs of another front end: HTTP server, tokenization, streaming.
HostCosts with_front_end(HostCosts host, const HostCosts& front_end);
/// Of an engine that is called in the caller's process, by token ids.
HostCosts without_front_end(HostCosts host);

/// How many requests an offline run of that version of TensorRT-LLM queues, by the tokens of one (its perf-overview
/// pages; 0.10 took 2000 throughout). Enough for a steady state but where the batch is of that size itself.
std::int64_t offline_requests(const std::string& version, int tokens);

/// The part that was measured: Argonne's A100s are the 40 GB ones of Polaris (its batch-1 decode times stand in the
/// ratio of the two parts' bandwidths).
std::string gpu_of_run(const std::string& gpu, const std::string& source);

/// vLLM's V0 engine: its own paged attention, which takes query heads one by one, stood in where FlashAttention's
/// decode had no kernel: on AMD GPUs, for fp8 caches, and for sliding windows (vllm/attention/selector.py, 0.4.1 to
/// 0.6: "Cannot use FlashAttention-2 backend due to sliding window"). Argonne's H100 runs of mistral-7b step up at the
/// 512 heads where that kernel stops cutting contexts; its A100 runs do not, and are taken for another version's. On
/// AMD GPUs dense models' steps were launched kernel by kernel (a token takes 0.25 ms a layer whatever the GPUs it is
/// split over), mixtral's replayed: on eight GPUs a token takes 9 ms, what the kernels themselves need.
void choose_v0_attention(EngineSpec& engine, const ModelSpec& model, const GpuSpec& gpu, const std::string& kv_dtype);

/// "fp8" of a model whose published fp8 checkpoint scales by blocks of 128 x 128 (quantization_config.weight_block_size
/// of DeepSeek-V3, Qwen3-*-FP8, MiniMax-M2, GLM-4.5 and later) is fp8_block.
Dtype stored_format(Dtype column, const ModelSpec& model);

struct RunShape {
  RunKind kind;
  std::string protocol;
  int isl, osl, concurrency, batch;
  bool dense;        ///< no experts
  bool indexed;      ///< has_indexed_latents
  bool deepseek;     ///< has_deepseek_tokenizer
  bool begin_token;  ///< begins_prompts
};
/// Launch settings in their columns; blank keeps the engine's default. `nvidia` runs were launched from configurations
/// that NVIDIA aiconfigurator's generator writes. InferenceX's recipes for SGLang on Blackwell take block fp8 products
/// from DeepGEMM to FlashInfer (SGL_ENABLE_JIT_DEEPGEMM=false, SGLANG_ENABLE_FLASHINFER_GEMM=true) to 0.5.9
/// (benchmarks/single_node/qwen3.5_fp8_b200.sh) and of DeepSeek's models later too (dsr1_fp8_b300.sh), but not of
/// models with an indexer, whose scores are DeepGEMM's (glm5_fp8_b200.sh).
void apply_launch_settings(EngineSpec& engine, const std::function<std::string(std::string_view)>& text,
                           const std::function<double(std::string_view, double)>& number, const RunShape& shape);

/// The cache's format: the column's; where it is blank what the checkpoint asks for (ModelOpt's fp8 and nvfp4
/// checkpoints carry fp8 caches; vLLM and SGLang keep 16 bit with others). vLLM on Hopper keeps 16 bit in any case:
/// the only such group queues as a 16-bit cache does.
std::string cache_format_of_run(const std::string& column, const std::string& weights, const Deployment& deployment);

}  // namespace roofcast
