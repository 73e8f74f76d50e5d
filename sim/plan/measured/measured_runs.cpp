#include "sim/plan/measured/measured_runs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "sim/model/recipes.h"
#include "sim/plan/measured/bench_lengths.h"
#include "sim/plan/measured/run_engine.h"
#include "sim/plan/spec_cache.h"
#include "sim/plan/speculation.h"

namespace roofcast {
namespace {

/// A column by name; absent columns read as blank.
class Columns {
 public:
  explicit Columns(const CsvTable& table) : table_(table) {}
  std::string text(std::size_t row, std::string_view name) const {
    const auto at = table_.find(name);
    return at ? std::string(trim(table_.at(row, *at))) : std::string();
  }
  double number(std::size_t row, std::string_view name, double blank) const {
    const auto at = table_.find(name);
    return at && !trim(table_.at(row, *at)).empty() ? table_.number(row, *at, blank) : blank;
  }
  int count(std::size_t row, std::string_view name, int blank) const {
    const double value = number(row, name, blank);
    if (value < 0 || value > 1e9 || value != std::floor(value)) {
      throw ConfigError(table_.mark(row, table_.column(name)),
                        fmt::format("'{}' must be a whole number, got '{}'", name, text(row, name)));
    }
    return static_cast<int>(value);
  }
  /// Of what a run cannot be simulated without.
  int needed(std::size_t row, std::string_view name) const {
    const int value = count(row, name, 0);
    if (value < 1) throw ConfigError(mark(row), fmt::format("'{}' must be a whole number, 1 or more", name));
    return value;
  }
  Mark mark(std::size_t row) const { return table_.mark(row, 0); }

 private:
  const CsvTable& table_;
};

RunKind kind_of(const CsvTable& table) {
  const auto has = [&](std::string_view column) { return table.find(column).has_value(); };
  if (has("prefill_num_workers") && has("decode_num_workers") && has("concurrency")) return RunKind::kDisaggregated;
  if (has("concurrency") && has("tp")) return RunKind::kAggregated;
  if (has("batch") && has("metric")) return RunKind::kStatic;
  if (has("request_rate") && has("metric")) return RunKind::kOnline;
  if (has("metric") && has("isl") && has("osl")) return RunKind::kOffline;
  throw ConfigError(
      Mark{table.path(), 1, 1},
      "these columns are none of: closed-loop runs (concurrency, tp), disaggregated runs (prefill_num_workers, "
      "decode_num_workers, concurrency), static batches (batch, metric), offline runs (isl, osl, metric), online runs "
      "(request_rate, metric)");
}

/// Column words that are formats under another name.
Dtype format_of(const std::string& word, const Mark& mark) {
  if (word == "int4_wo") return Dtype::kInt4;
  if (word == "int8_wo") return Dtype::kInt8;
  return parse_dtype(word, mark);
}

Precision precision_of(const Columns& c, std::size_t row, const Deployment& d, const std::string& kv) {
  Precision p = d.model.precision;
  const Mark mark = c.mark(row);
  const std::string weights = c.text(row, "weight_dtype"), experts = c.text(row, "moe_weight_dtype");
  if (!weights.empty()) {
    Dtype format = stored_format(format_of(weights, mark), d.model);
    // One checkpoint, one format: experts by blocks, the rest by blocks.
    if (format == Dtype::kFp8 && experts == "fp8_block") format = Dtype::kFp8Block;
    // A checkpoint that is stored so already keeps its details (formats of experts, group sizes).
    if (format != p.weights || (p.weights == Dtype::kBf16 && experts.empty())) set_weights(p, format);
  }
  if (!experts.empty() && experts != weights) {
    p.expert_weights = stored_format(format_of(experts, mark), d.model);
  } else if (!weights.empty()) {
    p.expert_weights = p.weights;
  }
  // NVIDIA's nvfp4 checkpoints of models with experts leave the mixers' projections in 16 bit, those of dense ones do
  // not (hf_quant_config.json, exclude_modules, of nvidia/MiniMax-M2.5-NVFP4 and GLM-4.7-NVFP4; SGLang's pull request
  // 31220 on Qwen3.5-397B-A17B-NVFP4).
  if (p.weights == Dtype::kNvfp4 && has_experts(d.model)) p.attention_weights = Dtype::kBf16;
  if (!kv.empty()) p.kv_cache = format_of(kv, mark);
  choose_activations(p, d.gpu);
  // Published checkpoints in fp8 per tensor carry the scales of their inputs (NVIDIA ModelOpt).
  if (p.weights == Dtype::kFp8 && p.activations == Dtype::kFp8) p.static_activations = true;
  return p;
}

/// Input and output lengths: InferenceX draws them from [0.8 L, L].
LengthSpec length_of(int tokens, bool spread) {
  if (spread) return {LengthSpec::Uniform{std::max(1, static_cast<int>(std::ceil(0.8 * tokens))), tokens}};
  return {LengthSpec::Fixed{tokens}};
}

/// Shares of the vLLM benchmark's ShareGPT sample: prompts and outputs of widely different lengths, prompts of at most
/// 1024 tokens and 2048 with their outputs. TensorRT-LLM's page gives the means of its 500: 202 and 214. A law with a
/// coefficient of variation of 1 stands for either, as in the dataset's published histograms.
bool sharegpt_sample(int isl, int osl) { return std::abs(isl - 202) <= 20 && std::abs(osl - 214) <= 20; }

LengthSpec widely_spread(int mean) {
  constexpr double kSigma = 0.83255;  // sqrt(ln 2): cv 1
  // The cut at 1024 takes 2 % off the mean of 200.
  return {LengthSpec::Lognormal{std::log(1.02 * mean) - kSigma * kSigma / 2, kSigma, 4, 1024}};
}

constexpr std::int64_t kMostRequests = 1'000'000;  ///< of one run: a slip in a column must not run for hours

Sharding sharding_of(const Columns& c, std::size_t row) {
  Sharding s;
  s.tp = std::max(1, c.count(row, "tp", 1));
  s.pp = std::max(1, c.count(row, "pp", 1));
  s.attention_dp = std::max({1, c.count(row, "attention_dp", 1), c.count(row, "dp", 1)});
  s.ep = std::max({1, c.count(row, "moe_ep", 1), c.count(row, "ep", 1)});
  // TensorRT-LLM's attention-DP tables write tp for the GPUs of the experts.
  if (c.count(row, "dp", 1) > 1 && s.attention_dp > 1) s.tp = std::max(1, s.tp / s.attention_dp);
  return s;
}

PromptGrowth growth_of(RunKind kind, const Columns& c, std::size_t row, const EngineSpec& engine,
                       const ModelSpec& model) {
  if (kind != RunKind::kAggregated) return {};
  return prompt_growth(engine, c.text(row, "protocol"), c.text(row, "measured"), model);
}

/// Of the longest prompt, as the engine saw it.
int prompt_tokens_of(const Columns& c, std::size_t row, const PromptGrowth& growth) {
  return static_cast<int>(std::lround(c.needed(row, "isl") * growth.tokens));
}

/// `isl`: of prompt_tokens_of.
WorkloadSpec workload_of(RunKind kind, const Columns& c, std::size_t row, int isl) {
  WorkloadSpec w;
  const int osl = c.needed(row, "osl");
  const bool spread = c.text(row, "protocol") == "inferencex";
  w.prompt_tokens = length_of(isl, spread);
  w.output_tokens = length_of(osl, spread);
  if (closed_loop(kind)) {
    w.arrivals.process = ArrivalSpec::Process::kClosedLoop;
    // Where it is blank the decode workers' batches are full.
    const int full =
        std::max(1, c.count(row, "decode_num_workers", 1)) * std::max(1, c.count(row, "decode_batch_size", 1));
    const int replicas =
        kind == RunKind::kAggregated
            ? sharing_replicas(c.text(row, "protocol"), c.text(row, "engine_version"), sharding_of(c, row).gpus())
            : 1;
    const int together = c.text(row, "concurrency").empty() ? full : c.needed(row, "concurrency");
    w.arrivals.concurrency = std::max(1, together / replicas);
    w.requests = 10LL * w.arrivals.concurrency;
    if (c.text(row, "warmed_up") != "0" && spread) w.warmup_requests = 2LL * w.arrivals.concurrency;
    if (spread && w.requests <= kMostRequests) {
      const int written = c.needed(row, "isl");
      w.listed = inferencex_lengths(written, osl, w.requests, static_cast<double>(isl) / written);
    }
  } else if (kind == RunKind::kOnline) {
    const std::string rate = c.text(row, "request_rate");
    const bool all_at_once = rate == "inf" || c.number(row, "request_rate", 0) <= 0;
    if (sharegpt_sample(isl, osl)) w.prompt_tokens = widely_spread(isl), w.output_tokens = widely_spread(osl);
    w.requests = 500;  // prompts of the vLLM performance benchmark that TensorRT-LLM's page repeats
    w.arrivals.process = all_at_once ? ArrivalSpec::Process::kAllAtOnce : ArrivalSpec::Process::kPoisson;
    if (!all_at_once) w.arrivals.rate = PerSecond(c.number(row, "request_rate", 1));
  } else {
    w.arrivals.process = ArrivalSpec::Process::kAllAtOnce;
    w.requests = kind == RunKind::kStatic ? std::max(1, c.count(row, "batch", 1))
                                          : offline_requests(c.text(row, "version"), isl + osl);
  }
  if (w.requests > kMostRequests)
    throw ConfigError(c.mark(row),
                      fmt::format("a run of {} requests; at most {} are simulated", w.requests, kMostRequests));
  return w;
}

/// Of one worker of a disaggregated run; `role` is "prefill" or "decode". Dense models write 0 for their experts.
Sharding worker_sharding(const Columns& c, std::size_t row, const std::string& role) {
  Sharding s;
  s.tp = std::max(1, c.count(row, role + "_tp_size", 1));
  s.pp = std::max(1, c.count(row, role + "_pp_size", 1));
  s.attention_dp = std::max(1, c.count(row, role + "_attention_dp_size", 1));
  s.ep = std::max(1, c.count(row, role + "_moe_ep_size", 1));
  // A worker's GPUs are those of its experts where attention-DP is counted within tp.
  const int expert_gpus = std::max(1, c.count(row, role + "_moe_tp_size", 1)) * s.ep;
  if (s.attention_dp > 1 && s.tp * s.attention_dp > expert_gpus && expert_gpus > 1)
    s.tp = std::max(1, expert_gpus / s.attention_dp);
  return s;
}

/// Runs of one disaggregated setup at several concurrencies.
std::string setup_of(const Columns& c, std::size_t row) {
  std::string setup;
  for (std::string_view name : {"model", "gpu", "engine", "speculation", "weight_dtype", "isl", "osl"})
    setup += c.text(row, name) + "|";
  for (std::string_view role : {"prefill", "decode"}) {
    for (std::string_view size : {"_num_workers", "_tp_size", "_pp_size", "_attention_dp_size", "_moe_ep_size"})
      setup += c.text(row, std::string(role) + std::string(size)) + "|";
  }
  return setup;
}

/// Sequences that a rank of a decode worker may hold, by setup. The recipes of InferenceX limit TensorRT-LLM's decode
/// workers to a power of two and end a sweep with more requests than that: what it leaves waiting there, 8 of 11, 16
/// of 21, 32 of 34, 128 of 141 a worker, is the time to the first token that these runs show by Little's law.
using DecodeLimits = std::map<std::string, int>;
DecodeLimits decode_limits(const CsvTable& table, const Columns& c) {
  DecodeLimits limits;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (c.text(row, "protocol") != "inferencex" || c.text(row, "engine") != "trtllm") continue;
    const double ranks = std::max(1.0, c.number(row, "decode_num_workers", 1)) *
                         std::max(1.0, c.number(row, "decode_attention_dp_size", 1));
    const double each = std::clamp(c.number(row, "concurrency", 1) / ranks, 1.0, 1e6);
    int& limit = limits[setup_of(c, row)];
    limit = std::max(limit, static_cast<int>(std::bit_floor(static_cast<unsigned>(each))));
  }
  return limits;
}

/// The profile of the row's engine and version.
EngineSpec profile_of(RunKind kind, const Columns& c, std::size_t row) {
  return engine_of_run({.kind = kind,
                        .engine = c.text(row, "engine"),
                        .version = c.text(row, closed_loop(kind) ? "engine_version" : "version"),
                        .source = c.text(row, "source"),
                        .measured = c.text(row, "measured"),
                        .kv_dtype = c.text(row, "kv_dtype")});
}

/// Launch settings in the row's columns.
void apply_launch_columns(EngineSpec& engine, RunKind kind, const Columns& c, std::size_t row, const ModelSpec& model) {
  apply_launch_settings(
      engine, [&](std::string_view name) { return c.text(row, name); },
      [&](std::string_view name, double blank) { return c.number(row, name, blank); },
      {.kind = kind,
       .protocol = c.text(row, "protocol"),
       .isl = prompt_tokens_of(c, row, growth_of(kind, c, row, engine, model)),
       .osl = c.count(row, "osl", 1),
       .concurrency = c.count(row, "concurrency", 0),
       .batch = c.count(row, "batch", 1),
       .dense = !has_experts(model),
       .indexed = has_indexed_latents(model),
       .deepseek = has_deepseek_tokenizer(model),
       .begin_token = begins_prompts(model)});
}

/// Of the decode workers where prefill is apart.
std::shared_ptr<Deployment> deployment_of(RunKind kind, const Columns& c, std::size_t row, const DecodeLimits& limits,
                                          SpecCache& specs) {
  const Mark mark = c.mark(row);
  const std::string gpu = c.text(row, "gpu");
  auto d = std::make_shared<Deployment>();
  d->model = specs.model(make_scalar(c.text(row, "model"), mark));
  d->engine = profile_of(kind, c, row);
  const CalibratedGpu& calibrated =
      specs.gpu(make_scalar(gpu_of_run(gpu, c.text(row, "source")), mark), d->engine.kernels);
  d->gpu = calibrated.spec;
  d->efficiency = calibrated.efficiency;
  d->sharding = kind == RunKind::kDisaggregated ? worker_sharding(c, row, "decode") : sharding_of(c, row);
  check_sharding(d->model, d->sharding, mark);
  d->engine.settle(d->gpu, d->sharding);
  apply_launch_columns(d->engine, kind, c, row, d->model);
  if (d->engine.name == "vllm-0") choose_v0_attention(d->engine, d->model, d->gpu, c.text(row, "kv_dtype"));
  if (const auto limit = limits.find(setup_of(c, row)); kind == RunKind::kDisaggregated && limit != limits.end())
    d->engine.max_num_seqs = limit->second;
  d->precision =
      precision_of(c, row, *d, cache_format_of_run(c.text(row, "kv_dtype"), c.text(row, "weight_dtype"), *d));
  d->precision.scaled_latents = d->engine.scaled_latents;
  d->memory = plan_memory(*d);
  // The one batch of a static benchmark passes the stages of a pipeline whole: the stages wait for each other.
  if (kind == RunKind::kStatic) d->sharding.pp = 1;
  return d;
}

/// Prefill workers take the prompts that fit the token budget that their engine takes by their own GPUs, at least the
/// batch of their column; decode workers as many sequences as their batch limit.
void disaggregate(MeasuredRun& run, Deployment& decode, const Columns& c, std::size_t row) {
  auto prefill = std::make_shared<Deployment>(decode);
  prefill->sharding = worker_sharding(c, row, "prefill");
  check_sharding(prefill->model, prefill->sharding, c.mark(row));
  const int isl = c.count(row, "isl", 1), batch = std::max(1, c.count(row, "prefill_batch_size", 1));
  EngineSpec own = profile_of(RunKind::kDisaggregated, c, row);
  own.settle(prefill->gpu, prefill->sharding);
  apply_launch_columns(own, RunKind::kDisaggregated, c, row, prefill->model);
  prefill->engine.graphs.max_batch = own.graphs.max_batch;
  prefill->engine.max_num_batched_tokens = std::max(batch * isl, own.max_num_batched_tokens);
  prefill->engine.max_num_seqs = prefill->engine.max_num_batched_tokens / std::max(1, isl);
  prefill->memory = plan_memory(*prefill);
  if (prefill->memory.infeasible) run.note = prefill->memory.infeasible->reason;
  run.replicas = std::max(1, c.count(row, "decode_num_workers", 1));
  run.disaggregation = Disaggregation{.prefill = prefill,
                                      .prefill_replicas = std::max(1, c.count(row, "prefill_num_workers", 1)),
                                      .latency = decode.engine.handover_time};
}

/// A run that was measured was served: with a longer context than the checkpoint names if it took one, as engines can
/// be told to (TensorRT-LLM's max_seq_len, vLLM's max_model_len). A table of positions ends where it ends.
void allow_context(Deployment& d, const WorkloadSpec& workload) {
  const int longest = workload.prompt_tokens.longest() + workload.output_tokens.longest();
  if (d.model.position_embeddings == 0 && d.model.max_context > 0 && longest > d.model.max_context)
    d.engine.max_model_len = std::max(d.engine.max_model_len, longest);
}

/// The drafts of the row's multi-token prediction, and room for them. Which of them were accepted nobody recorded.
void add_drafts(MeasuredRun& run, Deployment& d, const Columns& c, std::size_t row) {
  const Mark mark = c.mark(row);
  ConfigReader drafts(make_map({{"method", mark, make_scalar("mtp", mark)},
                                {"num_speculative_tokens", mark,
                                 make_scalar(std::to_string(c.count(row, "num_speculative_tokens", 1)), mark)}},
                               mark),
                      "speculation");
  run.speculation = parse_speculation(std::move(drafts), d);
  run.speculation.acceptance.clear();
  reserve_draft(d, run.speculation);
}

/// What prices of steps depend on, beside the host's costs.
std::string pricing_key(const Deployment& d, const std::string& model) {
  const EngineSpec& e = d.engine;
  const Precision& p = d.precision;
  std::string key =
      fmt::format("{}|{}|{}|{}.{}.{}.{}|{}.{}.{}.{}.{}|{}|{}.{}.{}.{}|{}.{}.{}.{}.{}.{}", model, d.gpu.name, e.name,
                  d.sharding.tp, d.sharding.pp, d.sharding.attention_dp, d.sharding.ep, name_of(p.weights),
                  name_of(p.attention_weights), name_of(p.expert_weights), name_of(p.activations), name_of(p.kv_cache),
                  e.max_num_batched_tokens, name_of(e.moe_kernel), static_cast<int>(e.block_products),
                  e.graphs.max_batch, e.graphs.enabled, e.max_num_seqs, e.shared_query_heads, e.own_all_reduce,
                  e.fused_all_reduce, d.gpu.node.launch_speed * e.launch_speed, e.sparse_attention);
  return key + fmt::format("|{}.{}.{}.{}.{}|{}.{}.{}.{}.{}.{}", e.expanded_experts, e.rows_quantized_at_once,
                           e.attention_kernel, static_cast<int>(e.expert_exchange), e.scheduler_launches,
                           e.graphs.prefill_tokens, e.graphs.plain_prefill, e.graphs.dependent_launch,
                           p.static_activations, p.scaled_latents, e.fp8_latent_prompts);
}

/// A row that is not predicted yet: whose it is, and whether its error counts.
MeasuredRun describe(const Columns& c, std::size_t row) {
  MeasuredRun run;
  run.row = row;
  run.group = c.text(row, "model") + " " + c.text(row, "gpu") + " " + c.text(row, "engine");
  const std::string speculation = c.text(row, "speculation");
  run.scored = (speculation.empty() || speculation == "none") && c.text(row, "suspect") != "1";
  run.metric = c.text(row, "metric");
  return run;
}

MeasuredRun read_run(RunKind kind, const Columns& c, std::size_t row, const DecodeLimits& limits, SpecCache& specs) {
  MeasuredRun run = describe(c, row);
  std::shared_ptr<Deployment> d = deployment_of(kind, c, row, limits, specs);
  run.dense = !has_experts(d->model);
  const PromptGrowth growth = growth_of(kind, c, row, d->engine, d->model);
  run.workload = workload_of(kind, c, row, prompt_tokens_of(c, row, growth));
  run.serving.prompt_text = growth.text / growth.tokens;
  allow_context(*d, run.workload);
  if (kind == RunKind::kDisaggregated) {
    // The published recipes run nvfp4 experts on trtllm-gen where the attention is tensor-parallel.
    if (d->precision.expert_weights == Dtype::kNvfp4 && d->sharding.attention_dp == 1)
      d->engine.moe_kernel = MoeVariant::kLowLatency;
    disaggregate(run, *d, c, row);
  }
  if (c.text(row, "speculation") == "mtp" && closed_loop(kind)) add_drafts(run, *d, c, row);
  if (d->memory.infeasible) run.note = d->memory.infeasible->reason;
  run.batch = std::max(1, c.count(row, "batch", 1));
  const double room = d->memory.max_batch(run.workload.prompt_tokens.longest() + run.workload.output_tokens.longest(),
                                          d->engine.block_size);
  // Argonne's input to TensorRT-LLM is one prompt, repeated.
  run.one_prompt = c.text(row, "source") == "argonne_llm_inference_bench" && c.text(row, "engine") == "trtllm" &&
                   d->sharding.ep == 1;
  run.queues = kind == RunKind::kStatic && c.text(row, "source") != "trtllm_static_batch" && room < run.batch;
  run.deployment_key = pricing_key(*d, c.text(row, "model"));
  run.deployment = std::move(d);
  return run;
}

}  // namespace

MeasuredRuns read_measured_runs(const CsvTable& table) {
  MeasuredRuns out{.kind = kind_of(table), .runs = {}};
  for (std::string_view name : {"model", "gpu", "engine", "isl", "osl"}) (void)table.column(name);  // or throw
  const Columns columns(table);
  SpecCache specs;
  const DecodeLimits limits = out.kind == RunKind::kDisaggregated ? decode_limits(table, columns) : DecodeLimits{};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    try {
      out.runs.push_back(read_run(out.kind, columns, row, limits, specs));
    } catch (const ConfigError& error) {
      MeasuredRun run = describe(columns, row);
      run.note = error.what();
      out.runs.push_back(std::move(run));
    }
  }
  return out;
}

}  // namespace roofcast
