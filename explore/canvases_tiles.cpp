// Attention of one prompt with its score matrix in memory, and in tiles that stay in SRAM.

#include "explore/canvases.h"
#include "hw/kernels/attention_traffic.h"
#include "sim/model/mixer_model.h"
#include "sim/step/deployment.h"

namespace roofcast::explore {
namespace {

std::optional<CachedHeads> heads_of(const ModelSpec& model) {
  for (const LayerKind& layer : model.layers) {
    if (const auto heads = model_of(layer.mixer)->cached_heads()) return heads;
  }
  return std::nullopt;
}

Json kernel_json(const Setup& setup, const char* kernel) {
  auto deployment = std::make_shared<Deployment>(setup.deployment());
  deployment->engine.attention_kernel = kernel;
  StepModel model(deployment);
  const std::vector<PrefillChunk> prompt{PrefillChunk{setup.request.prompt_tokens, 0, true}};
  const StepBreakdown step = model.breakdown({.decodes = 0, .decode_context = 0, .prefills = prompt});
  Cost attention{};
  for (const OperatorTime& op : step.operators) {
    if (op.family != OperatorFamily::kAttentionPrefill) continue;
    attention.time += op.cost.time, attention.bytes += op.cost.bytes, attention.flops += op.cost.flops;
  }
  return {{"kernel", kernel},
          {"attention_ms", attention.time.in(kMillisecond)},
          {"attention_bytes", attention.bytes.base()},
          {"attention_flops", attention.flops.base()},
          {"step_ms", step.time.in(kMillisecond)}};
}

}  // namespace

Json tiles_json(const Setup& setup, const Query&) {
  const Deployment& d = setup.deployment();
  const std::optional<CachedHeads> attention = heads_of(d.model);
  Json out{{"prompt_tokens", setup.request.prompt_tokens}, {"kernels", Json::array()}};
  if (!attention) {
    out["reason"] = d.model.name + " has no attention over keys and values of its own";
    return out;
  }
  const HeadShape head{.tokens = static_cast<double>(setup.request.prompt_tokens), .head_dim = attention->head_dim};
  out["heads"] = attention->heads;
  out["score_matrix_bytes"] = score_matrix(head).base();
  out["sram_bytes"] = d.gpu.shared_memory_per_sm.base();
  out["tile_rows"] = flash_tile_rows(d.gpu.shared_memory_per_sm, head);
  for (const char* kernel : {"naive", "flash"}) out["kernels"].push_back(kernel_json(setup, kernel));
  const double naive = out["kernels"][0]["attention_ms"].get<double>();
  const double flash = out["kernels"][1]["attention_ms"].get<double>();
  out["gain"] = flash > 0 ? Json(naive / flash) : Json(nullptr);
  return out;
}

}  // namespace roofcast::explore
