#include "reports/launch_command.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "reports/html_text.h"

namespace roofcast {
namespace {

struct Launch {
  const Deployment& d;
  std::string model;
  int longest = 0;  ///< tokens of the longest request; 0: the model's own limit
};

bool eight_bit_cache(const Deployment& d) { return d.precision.kv_cache == Dtype::kFp8; }
/// Weights that an engine quantizes while loading a 16-bit checkpoint.
bool fp8_while_loading(const Deployment& d) {
  return d.precision.weights == Dtype::kFp8 && d.model.precision.weights != Dtype::kFp8;
}

std::string vllm(const Launch& l) {
  const Deployment& d = l.d;
  std::string out = fmt::format("vllm serve {} --tensor-parallel-size {}", l.model, d.sharding.tp);
  if (d.sharding.pp > 1) out += fmt::format(" --pipeline-parallel-size {}", d.sharding.pp);
  if (d.sharding.attention_dp > 1) out += fmt::format(" --data-parallel-size {}", d.sharding.attention_dp);
  if (d.sharding.ep > 1) out += " --enable-expert-parallel";
  out += fmt::format(" --max-num-seqs {} --max-num-batched-tokens {} --gpu-memory-utilization {:g}",
                     d.engine.max_num_seqs, d.engine.max_num_batched_tokens, d.engine.gpu_memory_utilization);
  if (l.longest > 0) out += fmt::format(" --max-model-len {}", l.longest);
  if (fp8_while_loading(d)) out += " --quantization fp8";
  if (eight_bit_cache(d)) out += " --kv-cache-dtype fp8";
  return out;
}

std::string sglang(const Launch& l) {
  const Deployment& d = l.d;
  // SGLang counts the copies of the attention into --tp-size.
  std::string out = fmt::format("python3 -m sglang.launch_server --model-path {} --tp-size {}", l.model,
                                d.sharding.tp * d.sharding.attention_dp);
  if (d.sharding.pp > 1) out += fmt::format(" --pp-size {}", d.sharding.pp);
  if (d.sharding.attention_dp > 1) out += fmt::format(" --dp-size {} --enable-dp-attention", d.sharding.attention_dp);
  if (d.sharding.ep > 1) out += fmt::format(" --ep-size {}", d.sharding.ep);
  out += fmt::format(" --max-running-requests {} --chunked-prefill-size {}", d.engine.max_num_seqs,
                     d.engine.max_num_batched_tokens);
  if (d.engine.gpu_memory_utilization > 0)
    out += fmt::format(" --mem-fraction-static {:g}", d.engine.gpu_memory_utilization);
  if (l.longest > 0) out += fmt::format(" --context-length {}", l.longest);
  if (fp8_while_loading(d)) out += " --quantization fp8";
  if (eight_bit_cache(d)) out += " --kv-cache-dtype fp8_e4m3";
  return out;
}

std::string trtllm(const Launch& l) {
  const Deployment& d = l.d;
  std::string out =
      fmt::format("trtllm-serve {} --backend pytorch --tp_size {}", l.model, d.sharding.tp * d.sharding.attention_dp);
  if (d.sharding.pp > 1) out += fmt::format(" --pp_size {}", d.sharding.pp);
  if (d.sharding.ep > 1) out += fmt::format(" --ep_size {}", d.sharding.ep);
  out +=
      fmt::format(" --max_batch_size {} --max_num_tokens {}", d.engine.max_num_seqs, d.engine.max_num_batched_tokens);
  if (l.longest > 0) out += fmt::format(" --max_seq_len {}", l.longest);
  if (d.engine.memory_rule == MemoryRule::kShareOfFree)
    out += fmt::format(" --kv_cache_free_gpu_memory_fraction {:g}", d.engine.gpu_memory_utilization);
  std::string extra;
  if (d.sharding.attention_dp > 1) extra += "enable_attention_dp: true\n";
  if (eight_bit_cache(d)) extra += "kv_cache_config: {dtype: fp8}\n";
  if (extra.empty()) return out;
  return fmt::format("cat > extra.yaml <<'EOF'\n{}EOF\n{} --extra_llm_api_options extra.yaml", extra, out);
}

std::string comments(const PlannedDeployment& p) {
  const Deployment& d = *p.candidate.scenario.deployment;
  std::string out = fmt::format("# {} replica{} on {} {} each, behind a load balancer\n", p.replicas + p.spare,
                                p.replicas + p.spare == 1 ? "" : "s", p.candidate.gpus(), d.gpu.name);
  if (d.precision.weights != d.model.precision.weights && !fp8_while_loading(d)) {
    out += fmt::format("# take a checkpoint of this model with {} weights\n",
                       d.precision.recipe.empty() ? std::string(name_of(d.precision.weights)) : d.precision.recipe);
  }
  return out;
}

}  // namespace

void check_launch_engine(const std::string& engine) {
  if (engine == "vllm" || engine == "sglang" || engine == "trtllm") return;
  throw ConfigError(fmt::format("--emit: must be vllm, sglang or trtllm, got '{}'", engine));
}

std::string launch_command(const PlannedDeployment& p, const std::string& engine, const std::string& model) {
  check_launch_engine(engine);
  const Scenario& s = p.candidate.scenario;
  const Launch launch{.d = *s.deployment, .model = shell_word(model), .longest = s.deployment->engine.max_model_len};
  if (engine == "vllm") return comments(p) + vllm(launch) + "\n";
  if (engine == "sglang") return comments(p) + sglang(launch) + "\n";
  return comments(p) + trtllm(launch) + "\n";
}

}  // namespace roofcast
