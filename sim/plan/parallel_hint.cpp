#include "sim/plan/parallel_hint.h"

#include <fmt/format.h>

#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Source: SGLang, server_args.py (attention's tp is tp_size / dp_size under enable_dp_attention); TensorRT-LLM,
/// tensorrt_llm/mapping.py (attention's tp is 1 under enable_attention_dp); vLLM, config/parallel.py (world size is
/// tensor_parallel_size x pipeline_parallel_size, once for each data_parallel rank).
std::string in_units_of(const std::string& engine, int tp, int copies) {
  if (engine == "sglang") return fmt::format("--tp {} --dp {} --enable-dp-attention of sglang", tp * copies, copies);
  if (engine == "trtllm")
    return tp == 1 ? fmt::format("tp_size {}, enable_attention_dp of trtllm", copies) : std::string();
  if (engine == "vllm") return fmt::format("--tensor-parallel-size {} --data-parallel-size {} of vllm", tp, copies);
  return "";
}

}  // namespace

std::string parallel_hint(const Deployment& d) {
  const Sharding& s = d.sharding;
  if (s.tp == 1 || s.attention_dp == 1) return "";
  const auto named = [&](int tp, int copies, int gpus) {
    const std::string units = in_units_of(d.engine.name, tp, copies);
    return fmt::format("--tp {} --attention-dp {} are {} GPUs per replica{}", tp, copies, gpus,
                       units.empty() ? "" : " (" + units + ")");
  };
  std::string out = named(s.tp, s.attention_dp, s.gpus());
  if (s.pp == 1) out += "; " + named(1, s.attention_dp, s.attention_dp);
  return out;
}

}  // namespace roofcast
