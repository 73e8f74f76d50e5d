#include "explore/catalog.h"

#include <algorithm>
#include <cmath>

#include "base/config_library.h"
#include "explore/attention_variant.h"
#include "explore/query.h"
#include "hw/efficiency.h"
#include "sim/model/mixer_model.h"
#include "sim/model/recipes.h"
#include "sim/plan/prices.h"
#include "sim/step/engine_spec.h"

namespace roofcast::explore {
namespace {

using Json = nlohmann::ordered_json;

Json help_of(const auto& table) {
  Json out = Json::array();
  for (const auto& row : table) out.push_back({{"name", row.name}, {"help", row.help}});
  return out;
}

/// The attention of layers that cache tokens; latent attention wins if a model has both.
const char* attention_of(const ModelSpec& model) {
  TokenCache most = TokenCache::kNothing;
  for (const LayerKind& layer : model.layers) most = std::max(most, facts_of(layer.mixer).cache);
  switch (most) {
    case TokenCache::kNothing:
      return "none";
    case TokenCache::kHeads:
      return "grouped";
    case TokenCache::kLatent:
      return "latent";
  }
  return "none";
}

/// Null for encoder-only models, because the pages show generation token by token.
Json model_json(const std::string& name) {
  const ModelSpec model = parse_model(load_named("models", name, SourceLocation{"models", 0, 0}));
  if (model.encoder_only) return nullptr;
  const ParameterCount count = count_parameters(model);
  return {{"name", name},
          {"family", model.family},
          {"parameters", count.total},
          {"active_parameters", count.active},
          {"layers", model.layer_count()},
          {"max_context", model.max_context},
          {"attention", attention_of(model)},
          {"mtp", model.mtp_layers > 0},
          {"encoder", model.encoded_tokens > 0     ? "sound"
                      : model.attends_to_encoder() ? "text"
                                                   : ""},
          {"weights", name_of(model.precision.weights)}};
}

Json gpu_json(const std::string& name) {
  const GpuSpec gpu = load_gpu(load_named("hardware", name, SourceLocation{"gpus", 0, 0})).spec;
  Json dense = Json::object();
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    if (gpu.dense[i] > FlopsPerSecond(0)) dense[std::string(dtype_names()[i])] = gpu.dense[i].in(kTeraflopPerSecond);
  }
  return {{"name", name},
          {"architecture", name_of(gpu.architecture)},
          {"memory_bytes", std::round(gpu.memory_capacity.base())},
          {"memory_bytes_per_s", gpu.memory_bandwidth.base()},
          {"dense_tflop_per_s", std::move(dense)},
          {"nvlink_domain", gpu.node.fabric_domain},
          {"usd_per_hour", list_price(gpu).value}};
}

template <class Make>
Json list_of(std::string_view kind, Make make) {
  Json out = Json::array();
  for (const std::string& name : names_of(kind)) {
    if (Json entry = make(name); !entry.is_null()) out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Json models_json() { return list_of("models", model_json); }
Json gpus_json() { return list_of("hardware", gpu_json); }

Json engines_json() {
  return list_of("engines", [](const std::string& name) -> Json {
    const EngineSpec engine =
        parse_engine_spec(ConfigReader(load_named("engines", name, SourceLocation{"engines", 0, 0})));
    return {{"name", name},
            {"version", engine.version},
            {"scheduler", engine.scheduler},
            {"max_num_seqs", engine.max_num_seqs},
            {"max_num_batched_tokens", engine.max_num_batched_tokens}};
  });
}

Json choices_json() {
  return {{"version", ROOFCAST_VERSION},
          {"formats", dtype_names()},
          {"recipes", help_of(recipes())},
          {"speculation", drafting_methods()},
          {"attention", help_of(attention_variants())},
          {"keys", help_of(setup_keys())},
          {"limits", {{"batch", kMostBatch}, {"tokens", kMostTokens}, {"prefill_steps", kMostPrefillSteps}}}};
}

}  // namespace roofcast::explore
