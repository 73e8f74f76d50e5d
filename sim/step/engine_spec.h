#pragma once
// A serving engine: its launch settings and its host overheads.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "hw/gpu_spec.h"
#include "hw/kernel_sets.h"
#include "sim/model/operator_settings.h"
#include "sim/model/sharding.h"
#include "sim/step/cache_transfer.h"
#include "sim/step/graph_settings.h"
#include "sim/step/host_costs.h"
#include "sim/step/kv_tier.h"

namespace roofcast {

struct Rooflines;

/// How an engine sizes the memory of the KV cache.
enum class MemoryRule {
  kShareOfTotal,  ///< vLLM: fraction x total - weights - activations - reserve
  kShareOfFree,   ///< TensorRT-LLM: fraction x (total - weights - activations - reserve)
  kStaticShare,   ///< SGLang: fraction x (total - reserve) - weights; the default fraction depends on the GPU
};

/// Which attention-DP rank gets a request: the one with the fewest requests, or each in turn.
enum class RankChoice { kFewest, kInTurn };

/// What overlaps the dispatch and combine of experts (sim/step/expert_overlap.h).
enum class ExpertOverlap {
  kNone,
  kSingleBatch,  ///< shared experts and the down projection of the same batch (SGLang)
  kTwoBatch,     ///< the other half of the batch (SGLang)
  kDualBatch,    ///< the other half of the batch (vLLM)
};

/// With which drafters scheduling stays asynchronous.
enum class AsyncDrafts {
  kNone,
  kLayers,  ///< one extra layer: EAGLE, multi-token prediction
  kAll,
};

/// Which running sequence is preempted if memory runs out.
enum class Victim {
  kNewest,        ///< the last admitted; under `policy: priority` the least urgent, then the last to arrive
  kFewestOutputs  ///< decoding, fewest outputs, then longest prompt; queued last. kNewest with drafts
};

/// Launch defaults that an engine chooses by GPU.
struct GpuDefaults {
  /// The entry applies if one of these holds (memory below, this architecture, a GPU of this name), or if none is
  /// given.
  Bytes below{};
  std::optional<Architecture> architecture;
  std::string gpu;
  int tp_below = 0;  ///< tensor-parallel size as the engine counts it; 0: any
  /// 0: not set here.
  int max_num_seqs = 0, max_num_batched_tokens = 0, graph_batch = 0;
  double launch_speed = 0;
  bool fused_all_reduce = false;

  bool fits(const GpuSpec& found, int tp) const;
};

struct EngineSpec : OperatorSettings {
  std::string name;
  std::string version, released;               ///< the release with these defaults, and its day, yyyy-mm-dd
  bool beyond_known = false;                   ///< the requested release is newer than all known ones
  bool version_assumed = false;                ///< none was requested: it is the newest known one
  std::uint64_t settings_id = 0;               ///< equal for equal settings; 0: unknown
  std::string kernels = kDefaultKernels;       ///< a name of configs/kernels
  std::shared_ptr<const Rooflines> rooflines;  ///< for its own kernels; collectives follow `kernels`
  std::string scheduler = "decode_first";      ///< a name in the scheduler table of sim/serve
  int max_num_seqs = 256;
  int max_num_batched_tokens = 8192;  ///< token budget per step
  double launch_speed = 1.0;          ///< launch speed of kernels; divides the same times as that of the node
  std::vector<GpuDefaults> by_gpu;    ///< defaults of these and of graphs.max_batch; see settle()
  bool chunked_prefill = true;
  Seconds batch_wait{};   ///< maximum wait of a static batch after its first request, if not full
  int block_size = 16;    ///< tokens per KV block; 0: contiguous, max_model_len tokens
  int max_model_len = 0;  ///< 0 = the model's own
  MemoryRule memory_rule = MemoryRule::kShareOfTotal;
  double gpu_memory_utilization = 0.9;  ///< the fraction in MemoryRule; 0 with kStaticShare: the default
  double state_memory_ratio = 0.0;      ///< bytes of recurrent states per byte of KV blocks; 0: they share the cache
  Bytes reserved_memory{};              ///< workspaces, CUDA graphs and everything else except activations
  bool compiled = false;                ///< a TensorRT engine: activations are planned as one graph
  bool keeps_expert_buffers = false;    ///< activations of routed experts are never freed
  Bytes collective_memory{};            ///< additional with several GPUs: buffers of collectives
  double watermark = 0.0;               ///< fraction of blocks kept free at admission
  bool prompt_must_fit = false;         ///< a prompt is admitted only if all of it fits, not just its first chunk
  bool prefix_caching = false;
  std::string preemption = "recompute";    ///< recompute | swap
  Victim victim = Victim::kNewest;         ///< which sequence is preempted
  std::string state_checkpoints = "none";  ///< states saved for later prompts: none | blocks (vLLM) | ends (SGLang)
  Bytes kv_offload{};  ///< host memory per GPU for evicted prefix blocks (vLLM's --kv-offloading-size); 0: none
  std::vector<KvTier> kv_tiers;   ///< beyond host memory
  int stream_interval = 1;        ///< tokens per streamed chunk
  bool async_scheduling = false;  ///< host work of the next step overlaps the GPU; arrivals are seen one step late
  AsyncDrafts async_drafts = AsyncDrafts::kAll;  ///< with which drafters it stays asynchronous
  bool serial_drafts = false;                    ///< this deployment's drafts stop asynchronous scheduling
  bool async_pipelines = true;                   ///< whether it stays asynchronous with pipeline stages
  bool scheduler_launches = false;    ///< ... or as late as the launch of the step ends: one thread does both
  double prefill_wait_ratio = 0.0;    ///< prefill is held until this fraction of the token budget waits
  int prefill_wait_steps = 0;         ///< ... or this many steps have passed
  bool attention_dp_balance = false;  ///< prefill is also held until every attention-DP rank has a prompt
  int prefill_batch_steps = 0;        ///< ... and then for this many more steps
  int receive_interval = 1;           ///< new requests are received every N steps
  double reserve_output_ratio = 1.0;  ///< fraction of the output that admission reserves (no_evict schedulers)
  int postprocess_workers = 0;        ///< processes that share token_time; 0: one
  RankChoice rank_choice = RankChoice::kFewest;
  int api_servers = 1;  ///< front ends per replica; 0: one per attention-DP rank
  GraphSettings graphs;
  bool samples_top_p = false;    ///< requests use top-p or top-k sampling; false: greedy
  bool sorts_for_top_p = false;  ///< the engine samples top-p by sorting all logits
  HostCosts host;
  std::string front_end;   ///< name in configs/front-ends of the costs in `host`; empty: the engine's own
  Seconds start_time{60};  ///< from loaded weights to serving: compilation, warm-up, graph capture
  CacheTransfer cache_transfer = CacheTransfer::kAfterPrefill;
  Seconds handover_time{};  ///< from prefill to decode worker, without the cache transfer
  int mtp_drafts = 0;       ///< default number of multi-token-prediction drafts; 0: the checkpoint's layers
  bool kv_cache = true;     ///< false: every token recomputes the whole sequence
  /// flash | flash_split | naive | flash_unsplit: no FlashDecoding | flash1 | flash2 | flash3: as published
  std::string attention_kernel = "flash";
  /// Latents from which an indexer selects are cached in fp8 with an fp32 scale per 128 values, and their rotary part
  /// in 16 bit: 656 bytes per token for 512 + 64 values.
  bool scaled_latents = false;
  std::string sparse_attention =
      "flashmla";                 ///< flashmla | trtllm: kernel of sparse attention after an indexer (vLLM, SGLang)
  bool aiter = true;              ///< AMD GPUs use AMD's AITER kernels; false: Triton
  bool fused_all_reduce = false;  ///< the engine's all-reduce kernel also adds the residual and norms
  ExpertOverlap expert_overlap = ExpertOverlap::kNone;

  /// Whether the host prepares a step while the GPU runs the previous one.
  bool plans_ahead() const { return async_scheduling && !serial_drafts; }
  /// Front-end servers of one replica.
  int front_ends(const Sharding& sharding) const { return api_servers > 0 ? api_servers : sharding.attention_dp; }
  /// Sets the defaults that depend on the GPU, each from the first entry of by_gpu that applies and sets it; until then
  /// they are those of the largest GPU. Call it once. SGLang includes attention_dp in its tp, and divides its default
  /// token budget by it (server_args.py, _handle_data_parallelism).
  void settle(const GpuSpec& gpu, const Sharding& sharding);
};

EngineSpec parse_engine_spec(ConfigReader in);

}  // namespace roofcast
