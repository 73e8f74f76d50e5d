#include "sim/plan/measured/request_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/checkpoint_name.h"
#include "base/config_library.h"
#include "base/config_release.h"
#include "base/error.h"
#include "base/json_file.h"
#include "base/text.h"
#include "sim/plan/rules.h"
#include "sim/plan/scenario.h"
#include "sim/plan/spec_cache.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

using Json = nlohmann::ordered_json;
using Entries = std::vector<ConfigNode::Entry>;

/// Settings of an engine used as a library, without a server: vllm/config/scheduler.py. Before 0.8 (vllm/config.py,
/// SchedulerConfig; vllm/engine/arg_utils.py) prompts were cut by default only if the context is longer than 32768
/// tokens, and the budget without chunks held the longest prompt.
struct LaunchDefaults {
  int max_num_seqs, max_num_batched_tokens;
  bool chunked_prefill;
};
LaunchDefaults launch_defaults(bool first_engine, int context, std::optional<bool> chunks) {
  constexpr int kBudget = 2048, kCutFrom = 32768;
  if (!first_engine) return {128, kBudget, chunks.value_or(true)};
  const bool chunked = chunks.value_or(context > kCutFrom);
  return {256, chunked ? kBudget : std::max(context, kBudget), chunked};
}
constexpr double kMost = 1e15;       // blocks and bytes of a cache: exact as doubles and as 64-bit integers
constexpr int kMostRanks = 1 << 16;  // per kind of parallelism, as in a scenario

/// Whether `text` contains `word`, and not as part of a longer number ("l4" in "l40").
bool names(const std::string& text, const std::string& word) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if (end == text.size() || !digit(word.back()) || !digit(text[end])) return true;
  }
  return false;
}

/// Whether `text` contains every part of "a100-sxm-40gb", whatever is between them.
bool names_all(const std::string& text, const std::string& key) {
  for (std::size_t begin = 0; begin < key.size();) {
    const std::size_t end = std::min(key.find('-', begin), key.size());
    if (!names(text, key.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

/// The recorded settings; values resolved by vLLM override its arguments.
class Settings {
 public:
  explicit Settings(std::string where) : where_(std::move(where)), meta_(read_json(where_, "a run's settings")) {
    if (!meta_.is_object() || !meta_.contains("engine_kwargs") || !meta_["engine_kwargs"].is_object())
      fail("'engine_kwargs' must be an object");
  }

  const Json* find(const char* pointer) const {
    const Json::json_pointer at(pointer);
    return meta_.contains(at) && !meta_.at(at).is_null() ? &meta_.at(at) : nullptr;
  }
  std::string text(const char* pointer) const {
    const Json* value = find(pointer);
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }
  std::optional<bool> flag(const char* pointer) const {
    const Json* value = find(pointer);
    return value != nullptr && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
  }
  bool flag(const char* pointer, bool default_value) const { return flag(pointer).value_or(default_value); }
  bool resolved_flag(const char* resolved_pointer, const char* told, bool default_value) const {
    return flag(resolved_pointer, flag(told, default_value));
  }
  std::optional<double> number(const char* pointer) const {
    const Json* value = find(pointer);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !(value->get<double>() > 0) || value->get<double>() > kMost)
      fail(fmt::format("'{}' must be a number above 0, at most {:.0e}", std::string(pointer).substr(1), kMost));
    return value->get<double>();
  }
  int count(const char* pointer, int default_value, int most = 1 << 24) const {
    const double value = number(pointer).value_or(default_value);
    if (value > most || value != std::floor(value))
      fail(fmt::format("'{}' must be a whole number from 1 to {}", std::string(pointer).substr(1), most));
    return static_cast<int>(value);
  }
  int resolved(const char* resolved_pointer, const char* told, int default_value) const {
    return count(resolved_pointer, count(told, default_value));
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError(fmt::format("{}: {}", where_, message));
  }
  SourceLocation location() const { return {where_, 0, 0}; }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  Json meta_;
};

std::string gpu_of(const Settings& s, const std::string& asked) {
  if (!asked.empty()) return asked;
  const std::string told = library_gpu_name(s.text("/hardware/device_name"));
  if (!told.empty()) return told;
  const std::string file = std::filesystem::path(s.where()).filename().string();
  const std::string named = library_gpu_name(file.substr(0, file.find('_')));
  if (named.empty())
    throw ConfigError("--gpu: missing; neither the run's settings nor its name says which GPU it ran on");
  return named;
}

/// `context`: the context of the model.
Entries engine_entries(const Settings& s, int context) {
  const SourceLocation location = s.location();
  const std::string version = s.text("/vllm_version");
  const bool known = !version_numbers(version).empty();
  const bool first_engine = known && compare_versions(version, "0.8") < 0;  // V0
  const auto whole = [&](const char* key, int value) {
    return ConfigNode::Entry{key, location, make_scalar(std::to_string(value), location)};
  };
  const auto word = [&](const char* key, const char* value) {
    return ConfigNode::Entry{key, location, make_scalar(value, location)};
  };
  const LaunchDefaults defaults = launch_defaults(first_engine, s.count("/engine_kwargs/max_model_len", context),
                                                  s.flag("/engine_kwargs/enable_chunked_prefill"));
  Entries e{word("name", "vllm"),
            whole("max_num_seqs", s.resolved("/resolved_config/scheduler_config/max_num_seqs",
                                             "/engine_kwargs/max_num_seqs", defaults.max_num_seqs)),
            whole("max_num_batched_tokens",
                  s.resolved("/resolved_config/scheduler_config/max_num_batched_tokens",
                             "/engine_kwargs/max_num_batched_tokens", defaults.max_num_batched_tokens)),
            word("chunked_prefill", defaults.chunked_prefill ? "true" : "false")};
  if (known) e.push_back(word("version", version.c_str()));
  e.push_back(word("front_end", "none"));
  if (first_engine && defaults.chunked_prefill) e.push_back(word("scheduler", "decode_first"));
  // Recorded prompts differ, but preempted requests reuse their own blocks. On by default from 0.8.
  const auto flag = [&](const char* key, bool value) { e.push_back(word(key, value ? "true" : "false")); };
  flag("prefix_caching", s.resolved_flag("/resolved_config/cache_config/enable_prefix_caching",
                                         "/engine_kwargs/enable_prefix_caching", !first_engine));
  if (const auto whole_prompt = s.flag("/resolved_config/scheduler_config/scheduler_reserve_full_isl"))
    flag("prompt_must_fit", *whole_prompt);
  flag("own_all_reduce", !s.resolved_flag("/resolved_config/parallel_config/disable_custom_all_reduce",
                                          "/engine_kwargs/disable_custom_all_reduce", false));
  for (const char* where : {"/engine_kwargs/async_scheduling", "/resolved_config/scheduler_config/async_scheduling"}) {
    const auto told = s.flag(where);
    if (!told || first_engine) continue;
    std::erase_if(e, [](const ConfigNode::Entry& entry) { return entry.key == "async_scheduling"; });
    flag("async_scheduling", *told);
  }
  if (s.find("/engine_kwargs/max_model_len") != nullptr)
    e.push_back(whole("max_model_len", s.count("/engine_kwargs/max_model_len", 0)));
  if (const auto share = s.number("/engine_kwargs/gpu_memory_utilization"))
    e.push_back({"gpu_memory_utilization", location, make_scalar(fmt::format("{}", *share), location)});
  const bool eager = s.flag("/engine_kwargs/enforce_eager", false);
  if (eager)
    e.push_back({"cuda_graphs", location, make_map({{"enabled", location, make_scalar("false", location)}}, location)});
  if (eager) {  // passes of its compiler
    flag("fused_all_reduce", false);
    flag("compiled_quantization", false);
  }
  for (const char* key : {"quantization", "speculative_config"}) {
    if (s.find(fmt::format("/engine_kwargs/{}", key).c_str()) != nullptr)
      s.fail(fmt::format("'{}' is not taken from a run's settings yet", key));
  }
  return e;
}

std::string cache_format(const Settings& s) {
  const std::string told = s.text("/engine_kwargs/kv_cache_dtype");
  if (told.empty() || told == "auto" || told.ends_with("16")) return "bf16";  // 16 bit are 16 bit
  if (!told.starts_with("fp8")) s.fail(fmt::format("'kv_cache_dtype' {} is not known: auto, bfloat16 or fp8", told));
  return "fp8";
}

std::shared_ptr<const Deployment> deployment_of(const Settings& s, const std::string& gpu, const std::string& model,
                                                Sharding sharding) {
  const SourceLocation location = s.location();
  std::string recorded = s.text("/engine_kwargs/model");
  if (recorded.empty()) recorded = s.text("/model");
  const std::string weights = take_format(recorded);
  const std::string name = model.empty() ? library_model_name(recorded) : model;
  const auto whole = [&](const char* key, int value) {
    return ConfigNode::Entry{key, location, make_scalar(std::to_string(value), location)};
  };
  Entries precision{{"kv_cache", location, make_scalar(cache_format(s), location)}};
  if (!weights.empty()) precision.push_back({"weights", location, make_scalar(weights, location)});
  const SourceLocation model_location = model.empty() ? location : SourceLocation{"--model", 0, 0};
  const ConfigTree model_tree = make_scalar(name, model_location);
  SpecCache specs;
  const int context = static_cast<int>(std::min(specs.model(model_tree).max_context, 1e7));
  Entries scenario{{"model", location, model_tree},
                   {"gpu", location, make_scalar(gpu, SourceLocation{"--gpu", 0, 0})},
                   {"engine", location, make_map(engine_entries(s, context), location)},
                   {"parallelism", location,
                    make_map({whole("tp", sharding.tp), whole("pp", sharding.pp),
                              whole("attention_dp", sharding.attention_dp), whole("ep", sharding.ep)},
                             location)},
                   {"precision", location, make_map(std::move(precision), location)}};
  ConfigReader reader(make_map(std::move(scenario), location), "a measured run");
  return read_deployment(reader, Fidelity::kCalibrated);
}

/// Bytes per token in a block of vLLM's cache. Layers of different kinds share the pool's blocks, in groups as large as
/// the smallest kind, or as the largest if it is less than a quarter larger (v1/core/kv_cache_utils.py,
/// _get_kv_cache_groups_uniform_page_size).
Bytes bytes_in_block(const CacheLayout& layout) {
  const auto [least, most] = std::minmax_element(
      layout.groups.begin(), layout.groups.end(),
      [](const CacheGroup& a, const CacheGroup& b) { return a.bytes_per_token < b.bytes_per_token; });
  if (least == layout.groups.end()) return layout.bytes_per_token();
  return most->bytes_per_token < least->bytes_per_token * 1.25 ? most->bytes_per_token : least->bytes_per_token;
}

/// The size of the cache that the engine found room for, if recorded.
void set_cache(const Settings& s, MemoryPlan& memory) {
  const auto blocks = s.number("/kv_cache/num_gpu_blocks"), size = s.number("/kv_cache/block_size");
  if (blocks && size) {
    memory.cache = bytes_in_block(memory.layout) * (*blocks * *size);
  } else if (const auto bytes = s.number("/engine_kwargs/kv_cache_memory_bytes")) {
    memory.cache = Bytes(*bytes);
  } else {
    return;
  }
  memory.infeasible.reset();
}

}  // namespace

std::string take_format(std::string& name) {
  const auto checkpoint = parse_checkpoint_name(name, {});
  if (!checkpoint || checkpoint->weights.empty()) return "";
  name.resize(name.size() - checkpoint->format.size());
  return checkpoint->weights;
}

std::string library_model_name(std::string name) {
  name = bare_model_name(name);
  static constexpr std::array<std::string_view, 7> kTuned{"hf", "instruct", "thinking", "chat", "base", "it", "exp"};
  const auto dropped = [](const std::string& word) {
    const bool date = word.size() == 4 && word.find_first_not_of("0123456789") == std::string::npos;  // 2507, 0528
    return date || std::find(kTuned.begin(), kTuned.end(), word) != kTuned.end();
  };
  std::string kept;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('-', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    if (kept.empty() || !dropped(word)) kept += (kept.empty() ? "" : "-") + word;
    begin = end + 1;
  }
  const std::vector<std::string> library = names_of("models");
  const auto known = [&](const std::string& model) {
    return std::find(library.begin(), library.end(), model) != library.end();
  };
  const std::size_t v = kept.rfind("-v");  // "-v0.1", if the library has only one
  const bool numbered = v != std::string::npos && v + 2 < kept.size() && kept[v + 2] >= '0' && kept[v + 2] <= '9';
  const std::string release = numbered ? kept.substr(0, v) : kept;
  return !known(kept) && known(release) ? release : kept;
}

std::string library_gpu_name(const std::string& text) {
  const std::string whole = lower(text);
  std::string best;
  std::size_t longest = 0;
  for (const std::string& name : names_of("hardware")) {
    // A data sheet's plain name is the SXM part.
    for (const std::string& key : {name, name.ends_with("-sxm") ? name.substr(0, name.size() - 4) : name}) {
      if (key.size() > longest && names_all(whole, key)) best = name, longest = key.size();
    }
  }
  return best;
}

RequestSettings read_request_settings(const std::string& path, const std::string& gpu, const std::string& model) {
  const Settings s(path);
  const std::string on = gpu_of(s, gpu);
  Sharding sharding;
  sharding.tp = s.count("/engine_kwargs/tensor_parallel_size", 1, kMostRanks);
  sharding.pp = s.count("/engine_kwargs/pipeline_parallel_size", 1, kMostRanks);
  const int ranks = s.count("/engine_kwargs/data_parallel_size", 1, kMostRanks);
  RequestSettings out{.deployment = deployment_of(s, on, model, sharding)};
  const bool experts = has_experts(out.deployment->model);
  const bool apart = experts && s.flag("/engine_kwargs/enable_expert_parallel", false);
  if (experts && (ranks > 1 || apart)) {
    sharding.attention_dp = ranks;
    if (apart) sharding.ep = sharding.tp * ranks;
    out.deployment = deployment_of(s, on, model, sharding);
  } else {
    out.replicas = ranks;
  }
  auto d = std::make_shared<Deployment>(*out.deployment);
  set_cache(s, d->memory);
  out.deployment = std::move(d);
  return out;
}

}  // namespace roofcast
