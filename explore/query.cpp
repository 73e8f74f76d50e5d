#include "explore/query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/config_library.h"
#include "base/from_chars.h"
#include "base/text.h"
#include "explore/attention_variant.h"
#include "reports/html_text.h"
#include "sim/plan/deployment_flags.h"
#include "sim/plan/spec_cache.h"
#include "sim/serve/media.h"
#include "sim/serve/speculation.h"
#include "sim/step/deployment.h"

namespace roofcast::explore {
namespace {

constexpr std::size_t kLongestValue = 64;
constexpr std::ptrdiff_t kMostCommas = 1000;

std::string text_of(const Query& query, std::string_view key) {
  const auto it = query.find(key);
  return it == query.end() ? "" : it->second;
}

std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

/// A shipped name. Paths are rejected, because the library would open them.
std::string shipped_name(const Query& query, std::string_view key, std::string_view kind, std::string_view word) {
  const std::string name = text_of(query, key);
  const std::vector<std::string> names = names_of(kind);
  if (std::find(names.begin(), names.end(), split_version(name).name) == names.end())
    throw ConfigError(fmt::format("{}: {}", key, unknown_name(word, reports::clean_utf8(name), names)));
  return name;
}

void check_names(const Query& query) {
  for (const auto& [key, word] : {std::pair{"model", "model"}, {"gpu", "GPU"}}) {
    if (!query.contains(key)) throw ConfigError(fmt::format("{}: missing; which {}?", key, word));
  }
  (void)shipped_name(query, "model", "models", "model");
  (void)shipped_name(query, "gpu", "hardware", "gpu");
  if (query.contains("engine")) (void)shipped_name(query, "engine", "engines", "engine");
}

bool boolean_of(const Query& query, std::string_view key, bool default_value) {
  const std::string text = text_of(query, key);
  if (text.empty()) return default_value;
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  throw ConfigError(fmt::format("{}: must be true or false, got '{}'", key, reports::clean_utf8(text)));
}

/// Shared cache of parsed specs. Only shipped names are stored, so it stays small.
SpecCache& library() {
  static SpecCache cache;
  return cache;
}

/// An assignment of the scenario, and its part of the command line.
void assign(Setup& setup, const std::string& assignment, std::string_view origin) {
  setup.tree = with_assignment(setup.tree, assignment, std::string(origin));
  setup.command += " --set " + reports::shell_word(assignment);
}

bool has_shape(const Query& query) {
  const auto asks = [&](const char* key) { return query.contains(key); };
  return asks("layers") || asks("heads") || asks("head_dim") || asks("width");
}

ModelShape shape_of(const Query& query) {
  return {.layers = integer_of(query, "layers", 0, 1, 1024),
          .heads = integer_of(query, "heads", 0, 1, 1024),
          .head_dim = integer_of(query, "head_dim", 0, 1, 4096),
          .width = integer_of(query, "width", 0, 64, 1 << 17)};
}

void set_flags(const Query& query, Setup& setup) {
  const bool another_model = query.contains("attention") || has_shape(query),
             another_gpu = query.contains("gpu_memory_gb");
  for (const DeploymentFlag& flag : deployment_flags()) {
    const std::string origin = query_name(flag);
    const auto it = query.find(origin);
    if (it == query.end() || (origin == "model" && another_model) || (origin == "gpu" && another_gpu)) continue;
    setup.tree = with_value(setup.tree, flag.key, make_scalar(it->second, SourceLocation{origin, 0, 0}), origin);
    setup.command += fmt::format(" --{} {}", flag.name, reports::shell_word(it->second));
  }
  if (another_gpu)
    assign(setup,
           fmt::format("gpu={{name: {}, memory_capacity: {} GB}}", query.at("gpu"),
                       integer_of(query, "gpu_memory_gb", 80, 1, 4096)),
           "gpu_memory_gb");
  if (!another_model) return;
  const std::string& name = query.at("model");
  const ConfigTree model = load_named("models", name, SourceLocation{"model", 0, 0});
  std::string changes = with_shape(model, shape_of(query));
  if (query.contains("attention")) {
    const ConfigTree shaped = changes.empty() ? model : overlay(model, parse_config_text("{" + changes + "}", "model"));
    const AttentionSizes usual;
    const std::string kind =
        with_attention(shaped, query.at("attention"),
                       {.kv_heads = integer_of(query, "kv_heads", usual.kv_heads, 1, 1024),
                        .window = integer_of(query, "window", usual.window, 1, kMostTokens),
                        .share_factor = integer_of(query, "cla_share_factor", usual.share_factor, 1, 1024)});
    changes += (changes.empty() ? "" : ", ") + kind;
  }
  assign(setup, fmt::format("model={{name: {}, {}}}", name, changes), "model");
}

void set_speculation(const Query& query, Setup& setup) {
  const std::string method = text_of(query, "speculation");
  if (method.empty() || method == "none") return;
  const std::vector<std::string> names = drafting_methods();
  if (std::find(names.begin(), names.end(), method) == names.end())
    throw ConfigError("speculation: " + unknown_name("method", reports::clean_utf8(method), names));
  const int drafts = integer_of(query, "num_speculative_tokens", 4, 1, 16);
  // Lookahead verifies n-grams whose first token is already known.
  const bool lookahead = method == name_of(SpeculationSpec::Method::kLookahead);
  std::string map = fmt::format("{{method: {}, {}: {}", method, lookahead ? "ngram" : "num_speculative_tokens",
                                lookahead ? drafts + 1 : drafts);
  if (const auto acceptance = fraction_of(query, "acceptance")) map += fmt::format(", acceptance: {}", *acceptance);
  if (method == "draft_model") {
    if (!query.contains("draft_model")) throw ConfigError("draft_model: missing; which model drafts?");
    map += ", model: " + shipped_name(query, "draft_model", "models", "model");
  }
  assign(setup, "speculation=" + map + "}", "speculation");
}

void set_request(const Query& query, Setup& setup) {
  EstimateRequest& r = setup.request;
  const ModelSpec& model = setup.deployment().model;
  if (model.encoder_only)
    throw ConfigError(
        fmt::format("model: {} is an encoder, and answers here come token by token; 'roofcast simulate' "
                    "simulates requests of one output token each",
                    model.name));
  r.batch = integer_of(query, "batch", r.batch, 1, kMostBatch);
  r.prompt_tokens = integer_of(query, "prompt_tokens", r.prompt_tokens, 1, kMostTokens);
  r.output_tokens = integer_of(query, "output_tokens", r.output_tokens, 1, kMostTokens);
  if (query.contains("context")) r.context = integer_of(query, "context", 1, 1, kMostTokens);
  r.replicas = setup.scenario.serving.replicas;
  r.speculation = setup.scenario.serving.speculation;
  r.media = usual_media(model);
  r.prompt_tokens += media_tokens(r.media);
  for (const char* key : {"batch", "prompt_tokens", "output_tokens", "context"}) {
    if (query.contains(key)) setup.command += fmt::format(" {} {}", flag_of(key), text_of(query, key));
  }
}

}  // namespace

std::vector<std::string> drafting_methods() {
  using Method = SpeculationSpec::Method;
  std::vector<std::string> names;
  for (const Method method : kSpeculationMethods)
    if (method != Method::kNone && method != Method::kDiffusion) names.emplace_back(name_of(method));
  return names;
}

const std::vector<QueryKey>& setup_keys() {
  static const std::vector<QueryKey> kKeys = [] {
    std::vector<QueryKey> keys;
    for (const DeploymentFlag& flag : deployment_flags()) {
      const std::string name = query_name(flag);
      const bool listed = name == "model" || name == "gpu" || name == "engine";  // the server opens no file of a user
      keys.push_back({name, listed ? fmt::format("one of /api/v1/{}s", name) : flag.help});
    }
    for (const QueryKey& key :
         {QueryKey{"fidelity", "calibrated | ideal (calibrated)"}, QueryKey{"batch", "sequences per replica (1)"},
          QueryKey{"prompt_tokens", "tokens of each prompt (1024)"},
          QueryKey{"output_tokens", "tokens of each output (128)"},
          QueryKey{"context", "tokens in the cache at the decode step (prompt + half of the output)"},
          QueryKey{"kv_cache", "false: every token recomputes the whole sequence (true)"},
          QueryKey{"attention", "mha | gqa | mqa | mla | cla | window, in place of the model's own"},
          QueryKey{"layers", "layers, in place of the model's"}, QueryKey{"heads", "heads of its attention"},
          QueryKey{"head_dim", "values of a head"},
          QueryKey{"width", "hidden size; the feed-forward part grows with it"},
          QueryKey{"gpu_memory_gb", "memory of a GPU, GB, in place of its own"},
          QueryKey{"kv_heads", "key-value heads of gqa (8)"}, QueryKey{"window", "tokens that window sees (4096)"},
          QueryKey{"cla_share_factor", "layers that share a cache under cla (2)"},
          QueryKey{"speculation", fmt::format("none | {} (none)", fmt::join(drafting_methods(), " | "))},
          QueryKey{"num_speculative_tokens", "drafts a step (4)"},
          QueryKey{"acceptance", "of one draft, 0 to 1 (usual for the method)"},
          QueryKey{"draft_model", "the model that drafts, one of /api/v1/models"}}) {
      keys.push_back(key);
    }
    return keys;
  }();
  return kKeys;
}

Query query_of_json(std::string_view body) {
  if (std::count(body.begin(), body.end(), ',') >
      kMostCommas)  // the time of the parser's callback grows as their square
    throw ConfigError("the body holds too many values");
  Query query;
  bool twice = false;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1) {
      twice |= !query.emplace(parsed.get<std::string>(), "").second;
    }
    return depth <= 2;  // deeper nesting is refused below without being built
  };
  const nlohmann::json json = nlohmann::json::parse(body, watch, false);
  if (!json.is_object()) throw ConfigError("the body must be a JSON object, such as {\"model\": \"llama-3.1-8b\"}");
  if (twice) throw ConfigError("a key of the body is given twice");
  for (const auto& [key, value] : json.items()) {
    const bool scalar = value.is_string() || value.is_number() || value.is_boolean();
    if (!scalar)
      throw ConfigError(fmt::format("{}: must be a string, a number or true or false",
                                    reports::shortened(reports::clean_utf8(key), 40)));
    query[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return query;
}

void check_keys(const Query& query, const std::vector<QueryKey>& more) {
  std::vector<std::string> valid;
  for (const QueryKey& key : setup_keys()) valid.emplace_back(key.name);
  for (const QueryKey& key : more) valid.emplace_back(key.name);
  for (const auto& [key, value] : query) {
    if (std::find(valid.begin(), valid.end(), key) == valid.end())
      throw ConfigError(unknown_name("key", reports::shortened(reports::clean_utf8(key), 40), valid));
    if (value.size() > kLongestValue)
      throw ConfigError(fmt::format("{}: longer than {} characters", key, kLongestValue));
    if (value.empty()) throw ConfigError(fmt::format("{}: empty; leave the key out for its default", key));
    const auto control = [](unsigned char c) { return c < 32 || c == 127; };
    if (std::any_of(value.begin(), value.end(), control) || reports::clean_utf8(value) != value)
      throw ConfigError(fmt::format("{}: must be plain text", key));
  }
}

int integer_of(const Query& query, std::string_view key, int default_value, int low, int high) {
  const auto it = query.find(key);
  if (it == query.end()) return default_value;
  const std::string& text = it->second;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    throw ConfigError(fmt::format("{}: must be an integer from {} to {}, got '{}'", key, low, high, text));
  return value;
}

std::optional<double> fraction_of(const Query& query, std::string_view key) {
  const std::string text = text_of(query, key);
  if (text.empty()) return std::nullopt;
  double value = -1;
  const auto [end, error] = from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= 1))
    throw ConfigError(fmt::format("{}: must be a number from 0 to 1, got '{}'", key, reports::clean_utf8(text)));
  return value;
}

void check_prefill_steps(const Deployment& deployment, const EstimateRequest& r) {
  if (const double steps = prefill_steps(deployment, r); steps > kMostPrefillSteps) {
    throw ConfigError(fmt::format("batch: {} prompts of {} tokens take {:.0f} prefill steps; at most {} a request",
                                  r.batch, r.prompt_tokens, steps, kMostPrefillSteps));
  }
}

double prefill_steps(const Deployment& d, const EstimateRequest& r) {
  if (d.fidelity == Fidelity::kIdeal) return 1;
  const double budget = static_cast<double>(d.engine.max_num_batched_tokens) * d.sharding.attention_dp;
  const double steps = std::ceil(static_cast<double>(r.batch) * r.prompt_tokens / budget);
  const bool equal = std::fmod(budget, r.prompt_tokens) == 0;  // one step is priced for all
  return equal ? std::min(steps, 2.0) : steps;
}

Setup read_setup(const Query& query) {
  check_names(query);
  Setup setup{.tree = make_map({}, SourceLocation{"request", 0, 0}),
              .scenario = {},
              .request = {},
              .command = "roofcast estimate"};
  set_flags(query, setup);
  set_speculation(query, setup);
  if (!boolean_of(query, "kv_cache", true)) {
    setup.tree = with_assignment(setup.tree, "engine.kv_cache=false", "kv_cache");
    setup.command += " --no-kv-cache";
  }
  if (const std::string fidelity = text_of(query, "fidelity"); !fidelity.empty()) {
    if (fidelity != "ideal" && fidelity != "calibrated")
      throw ConfigError(fmt::format("fidelity: must be ideal or calibrated, got '{}'", fidelity));
    setup.fidelity = fidelity == "ideal" ? Fidelity::kIdeal : Fidelity::kCalibrated;
    setup.command += " --fidelity " + fidelity;
  }
  setup.scenario = query.contains("attention") || has_shape(query) || query.contains("gpu_memory_gb")
                       ? read_scenario(setup.tree, setup.fidelity)
                       : read_scenario(setup.tree, setup.fidelity, library());
  set_request(query, setup);
  check_prefill_steps(setup.deployment(), setup.request);
  return setup;
}

}  // namespace roofcast::explore
