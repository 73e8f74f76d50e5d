#include "reports/launch_settings.h"

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/release_flags.h"
#include "reports/provenance.h"
#include "sim/step/deployment.h"
#include "sim/step/engine_settings.h"

namespace roofcast::reports {
namespace {

/// Whether the command omits a flag on purpose: it can only be switched in one direction and the release has it
/// already, or it belongs to an unused feature.
bool is_left_out(const SettingChange& change, std::string_view engine, const Deployment& d) {
  const EngineSpec& e = d.engine;
  const std::string_view key = change.key;
  if (engine == "vllm" && key == "cuda_graphs.prefill_tokens") return e.graphs.prefill_tokens != e.graphs.max_batch;
  if (key == "aiter") return traits_of(d.gpu.architecture).matrix_units != MatrixUnits::kMfma;
  if (key == "expert_overlap") return e.expert_exchange != ExpertExchange::kAllToAll;
  if ((engine == "sglang" && key == "prefill_wait_steps") || key == "prefill_batch_steps")
    return !e.attention_dp_balance;
  if (engine == "sglang" && change.value == "false") return key == "fused_all_reduce" || key == "attention_dp_balance";
  if (engine == "sglang" && change.value == "true")
    return key == "prefix_caching" || key == "async_scheduling" || key == "cuda_graphs.enabled";
  return engine == "vllm" && key == "cuda_graphs.enabled" && change.value == "true";
}

}  // namespace

std::vector<SettingChange> changed_settings(const EngineSpec& engine, const EngineSpec& plain) {
  const std::vector<EngineSetting> own = settings_of(engine), other = settings_of(plain);
  std::vector<SettingChange> out;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].text != other[i].text) out.push_back({own[i].key, own[i].key == "host" ? "" : own[i].text});
  }
  return out;
}

bool has_launch_flag(std::string_view engine, const std::string& version, std::string_view key) {
  return has_flag(load_document("engines", std::string(engine), SourceLocation{"engines", 0, 0}), version, key);
}

std::vector<std::string> settings_not_set(const Deployment& d, const EngineSpec& plain, const ServingOptions& serving,
                                          const std::string& engine) {
  // A command for another engine does not state the planned engine's release.
  const std::string version = d.engine.name == engine ? d.engine.version : "";
  std::vector<std::string> out;
  const auto add = [&](const std::string& key, const std::string& value) {
    out.push_back(fmt::format("not set: {}{} (the forecast assumes it; no flag of {} says it)", key,
                              value.empty() ? "" : ": " + value, engine + (version.empty() ? "" : " " + version)));
  };
  for (const SettingChange& change : changed_settings(d.engine, plain)) {
    // A front end has its own costs, and the ideal roofline has none.
    if (change.key == "host" && (d.engine.front_end != plain.front_end || d.fidelity == Fidelity::kIdeal)) continue;
    if (engine == "sglang" && change.key == "scheduler" && change.value == "mixed_chunk") continue;
    if (!has_launch_flag(engine, version, change.key) || is_left_out(change, engine, d))
      add("engine." + change.key, change.value);
  }
  if (serving.max_queue > 0 && !has_launch_flag(engine, version, "max_queue"))
    add("max_queue", std::to_string(serving.max_queue));
  if (serving.policy != "fcfs" && !has_launch_flag(engine, version, "policy: " + serving.policy))
    add("policy", serving.policy);
  return out;
}

}  // namespace roofcast::reports
