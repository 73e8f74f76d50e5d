#include "sim/plan/measured/row_scenario.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/config_release.h"
#include "base/text.h"
#include "hw/efficiency.h"
#include "sim/model/recipes.h"
#include "sim/model/stored_format.h"
#include "sim/plan/client.h"
#include "sim/plan/measured/request_settings.h"
#include "sim/plan/measured/submission.h"
#include "sim/plan/scenario.h"
#include "sim/plan/support.h"
#include "sim/step/engine_spec.h"

namespace roofcast {
namespace {

/// Builds a map of a scenario.
class MapBuilder {
 public:
  explicit MapBuilder(SourceLocation location) : location_(std::move(location)) {}
  MapBuilder& put(const std::string& key, const std::string& text) {
    entries_.push_back({key, location_, make_scalar(text, location_)});
    return *this;
  }
  MapBuilder& put(const std::string& key, int value) { return put(key, std::to_string(value)); }
  MapBuilder& put(const std::string& key, const ConfigTree& tree) {
    entries_.push_back({key, location_, tree});
    return *this;
  }
  bool empty() const { return entries_.empty(); }
  ConfigTree map() const { return make_map(entries_, location_); }

 private:
  SourceLocation location_;
  std::vector<ConfigNode::Entry> entries_;
};

/// Words in format columns that are another name of a format.
std::string format_word(const std::string& word) {
  return word == "int4_wo" ? "int4" : word == "int8_wo" ? "int8" : word;
}

/// A row's model and, if its name contains one, the format of its weights.
struct RowModel {
  std::string model, weights;
};
RowModel name_of_row(const RunColumns& columns, std::size_t row) {
  if (const std::string model = columns.text(row, "model"); !model.empty()) return {model, ""};
  std::string published = columns.text(row, "hf_id");
  const std::string format = take_format(published);
  return {library_model_name(published), format};
}

/// One row with its model and the settings of its engine release.
class RowWriter {
 public:
  RowWriter(RunKind kind, const RunColumns& columns, std::size_t row, SpecCache& specs)
      : kind_(kind),
        c_(columns),
        row_(row),
        location_(columns.location(row)),
        specs_(specs),
        recipe_(recipe_of_row(columns, row)),
        name_(name_of_row(columns, row)),
        model_(specs.model(make_scalar(name_.model, location_))) {
    MapBuilder engine(location_);
    engine.put("name", engine_name());
    const std::string version = release_of_row(kind, columns, row, recipe_);
    if (!version.empty() && has_releases(find_named("engines", engine_name(), location_).document))
      engine.put("version", version);
    release_ = engine.map();
    defaults_ = &specs.engine(release_);
    leave_unread();
  }

  ConfigTree scenario() {
    MapBuilder s(location_);
    if (const std::string id = text("id"); !id.empty()) s.put("name", id);
    s.put("model", name_.model).put("gpu", gpu()).put("engine", engine());
    if (recipe_) s.put("recipe", recipe_->name);
    s.put("parallelism", kind_ == RunKind::kDisaggregated ? worker("decode") : parallelism());
    if (const ConfigTree formats = precision()) s.put("precision", formats);
    if (kind_ == RunKind::kDisaggregated)
      s.put("disaggregation", MapBuilder(location_).put("prefill", prefill()).map());
    if (text("speculation") == "mtp" && closed_loop(kind_))
      s.put("speculation", MapBuilder(location_)
                               .put("method", "mtp")
                               .put("num_speculative_tokens", std::max(1, count("num_speculative_tokens", 1)))
                               .map());
    s.put("workload", workload());
    if (beyond_context()) s.put("force_unsupported", "true");  // it was run like this
    return s.map();
  }

 private:
  std::string text(std::string_view name) const {
    const bool unread = std::find(unread_.begin(), unread_.end(), name) != unread_.end();
    return unread ? "" : c_.text(row_, name);
  }
  int count(std::string_view name, int blank) const { return text(name).empty() ? blank : c_.count(row_, name, blank); }
  int isl() const { return c_.needed(row_, "isl"); }
  int osl() const { return c_.needed(row_, "osl"); }

  /// Treats cells as blank if a rule of the recipe marks them as unread.
  void leave_unread() {
    if (!recipe_) return;
    const ConfigTree* version = release_->find("version");
    const std::string day = text("measured");
    const DeploymentFacts facts{.engine = engine_name(),
                                .version = version != nullptr ? (*version)->scalar : "",
                                .client_date = is_date(day) ? day : "",
                                .gpu = &specs_.gpu(make_scalar(gpu(), location_), defaults_->kernels).spec,
                                .model = &model_,
                                .disaggregated = kind_ == RunKind::kDisaggregated};
    unread_ = unread_columns(*recipe_, facts);
  }

  /// A table of one engine need not name it, because its recipe applies only to that engine.
  std::string engine_name() const {
    const std::string written = text("engine");
    return written.empty() && recipe_ && recipe_->engines.size() == 1 ? recipe_->engines.front() : written;
  }

  std::string gpu() const {
    const std::string name = text("gpu");
    const ConfigTree* part = recipe_ && recipe_->parts ? recipe_->parts->find(name) : nullptr;
    return part != nullptr && *part ? (*part)->scalar : name;
  }

  void put_flag(MapBuilder& m, const char* column, const char* key) const {
    if (const std::string value = text(column); !value.empty()) m.put(key, value != "0" ? "true" : "false");
  }
  void put_count(MapBuilder& m, const char* column, const char* key) const {
    if (!text(column).empty()) m.put(key, std::max(1, count(column, 1)));
  }

  ConfigTree engine() const {
    MapBuilder m(location_);
    m.put("name", engine_name());
    if (const ConfigTree* version = release_->find("version")) m.put("version", *version);
    if (!text("memory_fraction").empty()) m.put("gpu_memory_utilization", text("memory_fraction"));
    put_count(m, "max_num_seqs", "max_num_seqs");
    budget(m);
    put_count(m, "stream_interval", "stream_interval");
    put_flag(m, "chunked_prefill", "chunked_prefill");
    put_flag(m, "async_scheduling", "async_scheduling");
    put_flag(m, "prefix_caching", "prefix_caching");
    if (!text("prefill_wait_ratio").empty()) m.put("prefill_wait_ratio", text("prefill_wait_ratio"));
    put_count(m, "prefill_wait_steps", "prefill_wait_steps");
    put_count(m, "recv_interval", "receive_interval");
    put_count(m, "postprocess_workers", "postprocess_workers");
    if (text("mixed_chunk") == "1") m.put("scheduler", "mixed_chunk");
    if (!text("front_end").empty()) m.put("front_end", text("front_end"));
    kernels(m);
    graphs(m);
    if (beyond_context()) m.put("max_model_len", isl() + osl());
    return m.map();
  }

  /// A measured run was served, so its prompts fitted into one step: the budget where prompts are not cut, or the
  /// single pass of a static batch.
  void budget(MapBuilder& m) const {
    if (kind_ == RunKind::kStatic) {
      const int batch = std::max(1, count("batch", 1));
      const double all = static_cast<double>(batch) * isl();
      const int whole = static_cast<int>(std::min(all, 131072.0));
      const bool one_pass = engine_traits(engine_name()).static_batch_in_one_pass;
      m.put("max_num_batched_tokens", std::max(isl(), one_pass ? whole : defaults_->max_num_batched_tokens));
      if (defaults_->compiled) m.put("max_num_seqs", batch);
      return;
    }
    if (!text("max_num_tokens").empty()) {
      const int written = std::max(1, count("max_num_tokens", 1));
      const bool cut = text("chunked_prefill") != "0";
      m.put("max_num_batched_tokens", cut ? written : std::max(written, isl()));
    } else if (kind_ == RunKind::kAggregated && uncut() && isl() > defaults_->max_num_batched_tokens &&
               !recipe_sets()) {
      m.put("max_num_batched_tokens", isl());
    }
  }
  bool uncut() const {
    const std::string chunked = text("chunked_prefill");
    return chunked == "0" || (chunked.empty() && engine_traits(engine_name()).chunks_when_told);
  }
  /// Whether a rule of the recipe may set the budget itself.
  bool recipe_sets() const {
    if (!recipe_) return false;
    return std::any_of(recipe_->rules.begin(), recipe_->rules.end(), [](const LaunchRule& rule) {
      return rule.engine && rule.engine->find("max_num_batched_tokens") != nullptr;
    });
  }

  void kernels(MapBuilder& m) const {
    const std::string attention = text("attention_backend"), experts = text("moe_backend");
    if (attention.find("prefill trtllm") != std::string::npos) m.put("sparse_attention", "trtllm");
    if (experts == "CUTLASS") m.put("moe_kernel", "cutlass");
    if (experts == "TRTLLM") m.put("moe_kernel", "low_latency");
    if (experts == "TRITON") m.put("moe_kernel", "triton");
    if (experts.starts_with("MARLIN")) m.put("moe_kernel", "marlin");
  }

  void graphs(MapBuilder& m) const {
    if (text("cuda_graph_max_batch").empty()) return;
    MapBuilder graphs(location_);
    graphs.put("max_batch", count("cuda_graph_max_batch", 0));
    m.put("cuda_graphs", graphs.map());
  }

  /// The run asked for a longer context than the checkpoint has (TensorRT-LLM's max_seq_len, vLLM's max_model_len). A
  /// table of positions cannot be extended.
  bool beyond_context() const {
    return kind_ != RunKind::kSteady && model_.position_embeddings == 0 && model_.max_context > 0 &&
           isl() + osl() > model_.max_context;
  }

  /// A layout may name only the GPUs of the experts, such as "tp 1, ep 4" on four.
  int steady_tp(int tp, int copies) const {
    return count("ep", 1) > tp * copies ? std::max(1, count("gpus", 1) / copies) : tp;
  }

  ConfigTree parallelism() const {
    const int tp = std::max(1, count("tp", 1)), dp = std::max(1, count("dp", 1));
    const int copies = std::max(std::max(1, count("attention_dp", 1)), dp);
    MapBuilder m(location_);
    // TensorRT-LLM's attention-DP tables write tp for the GPUs of the experts.
    m.put("tp", kind_ == RunKind::kSteady ? steady_tp(tp, copies) : dp > 1 ? std::max(1, tp / copies) : tp);
    if (count("pp", 1) > 1) m.put("pp", count("pp", 1));
    if (copies > 1) m.put("attention_dp", copies);
    if (const int ep = std::max(count("moe_ep", 1), count("ep", 1)); ep > 1) m.put("ep", ep);
    return m.map();
  }

  /// Layout of one worker of a disaggregated run. Dense models write 0 for their experts.
  Sharding sharding_of_worker(const std::string& role) const {
    const auto size = [&](const char* name) { return std::max(1, count(role + name, 1)); };
    const int copies = size("_attention_dp_size"), ep = size("_moe_ep_size");
    int tp = size("_tp_size");
    // Where attention-DP is counted within tp, the GPUs of the experts are all of a worker's GPUs.
    const int expert_gpus = size("_moe_tp_size") * ep;
    if (copies > 1 && tp * copies > expert_gpus && expert_gpus > 1) tp = std::max(1, expert_gpus / copies);
    return {.tp = tp, .pp = size("_pp_size"), .attention_dp = copies, .ep = ep};
  }
  ConfigTree worker(const std::string& role) const {
    const Sharding s = sharding_of_worker(role);
    MapBuilder m(location_);
    m.put("tp", s.tp);
    if (s.pp > 1) m.put("pp", s.pp);
    if (s.attention_dp > 1) m.put("attention_dp", s.attention_dp);
    if (s.ep > 1) m.put("ep", s.ep);
    if (const int workers = std::max(1, count(role + "_num_workers", 1)); workers > 1) m.put("replicas", workers);
    return m.map();
  }

  /// Prefill workers take as many prompts at once as their column says, and at least the engine's own budget.
  ConfigTree prefill() const {
    const int batch = std::max(1, count("prefill_batch_size", 1));
    EngineSpec engine = *defaults_;
    engine.settle(specs_.gpu(make_scalar(gpu(), location_), engine.kernels).spec, sharding_of_worker("prefill"));
    const int tokens = std::max(batch * isl(), engine.max_num_batched_tokens);
    MapBuilder own(location_);
    own.put("max_num_batched_tokens", tokens).put("max_num_seqs", std::max(1, tokens / isl()));
    return MapBuilder(location_).put("parallelism", worker("prefill")).put("engine", own.map()).map();
  }

  ConfigTree precision() const {
    const std::string column = text("weight_dtype");
    const std::string weights = format_word(column.empty() ? name_.weights : column),
                      experts = format_word(text("moe_weight_dtype")), cache = format_word(text("kv_dtype"));
    const Precision& own = model_.precision;
    MapBuilder m(location_);
    Dtype base = own.weights;
    bool set = false;
    if (!weights.empty()) {
      Dtype format = stored_format(model_, parse_dtype(weights, location_));
      // A checkpoint has one format: if experts are scaled by blocks, so is the rest.
      if (format == Dtype::kFp8 && experts == "fp8_block") format = Dtype::kFp8Block;
      // A checkpoint stored in that format keeps its details (formats of experts, group sizes).
      set = format != own.weights || (own.weights == Dtype::kBf16 && experts.empty());
      if (set) m.put("weights", std::string(name_of(format)));
      base = format;
    }
    const Dtype now = set ? base : own.expert_weights;
    const Dtype wanted = !experts.empty() && experts != weights ? stored_format(model_, parse_dtype(experts, location_))
                         : !weights.empty()                     ? base
                                                                : now;
    if (wanted != now) m.put("expert_weights", std::string(name_of(wanted)));
    if (!cache.empty()) m.put("kv_cache", std::string(name_of(parse_dtype(cache, location_))));
    return m.empty() ? nullptr : m.map();
  }

  /// The client that sends the load, from the recipe; empty: unknown.
  std::string client_name() const {
    if (!recipe_) return "";
    for (const std::string& load : {text("task"), text("isl") + "/" + text("osl")}) {
      const ConfigTree* own = recipe_->clients ? recipe_->clients->find(load) : nullptr;
      if (own != nullptr && *own) return (*own)->scalar;
    }
    return recipe_->client;
  }

  ConfigTree workload() const {
    MapBuilder m(location_);
    const std::string sender = client_name();
    const bool client = !sender.empty();
    if (client) m.put("client", sender);
    if (client && is_date(text("measured"))) m.put("client_date", text("measured"));
    if (kind_ == RunKind::kSteady) return steady(m, client);
    if (closed_loop(kind_)) {
      // A blank column means that the decode workers' batches are full.
      const int full = std::max(1, count("decode_num_workers", 1)) * std::max(1, count("decode_batch_size", 1));
      const int users = text("concurrency").empty() ? full : c_.needed(row_, "concurrency");
      if (client) {
        m.put("concurrency", users);
      } else {
        m.put("arrivals", MapBuilder(location_).put("process", "closed_loop").put("concurrency", users).map());
        m.put("requests", std::min(10 * users, 1'000'000));
      }
      if (text("warmed_up") == "0") m.put("warmup_requests", 0);
    } else if (kind_ == RunKind::kOnline) {
      const std::string rate = text("request_rate");
      const bool all_at_once = rate == "inf" || c_.number(row_, "request_rate", 0) <= 0;
      if (client) {
        m.put("rate", all_at_once ? "inf" : rate + " /s");
      } else {
        MapBuilder arrivals(location_);
        arrivals.put("process", all_at_once ? "all_at_once" : "poisson");
        if (!all_at_once) arrivals.put("rate", rate + " /s");
        m.put("arrivals", arrivals.map()).put("requests", 500);
      }
    } else {
      if (!client) m.put("arrivals", MapBuilder(location_).put("process", "all_at_once").map());
      if (kind_ == RunKind::kStatic) m.put("requests", std::max(1, count("batch", 1)));
      if (kind_ == RunKind::kOffline && !client) m.put("requests", 3000);
    }
    m.put("prompt_tokens", isl()).put("output_tokens", osl());
    put_count(m, "distinct_prompts", "distinct_prompts");
    return m.map();
  }

  /// As many users as ran concurrently on average.
  ConfigTree steady(MapBuilder& m, bool client) const {
    if (text("task").find("image") != std::string::npos || text("task").find("video") != std::string::npos)
      throw ConfigError(location_, "its prompts hold images or videos, whose encoder is not simulated");
    const auto whole = [&](const char* name) {
      return static_cast<int>(std::lround(std::clamp(c_.number(row_, name, 1), 1.0, 1e6)));
    };
    const int users = whole("mean_batch");
    if (client)
      m.put("concurrency", users);
    else
      m.put("arrivals", MapBuilder(location_).put("process", "closed_loop").put("concurrency", users).map())
          .put("requests", std::min(3 * users, 1'000'000));
    if (!text("isl").empty()) m.put("prompt_tokens", isl());
    m.put("output_tokens", whole("mean_output_tokens"));
    return m.map();
  }

  RunKind kind_;
  const RunColumns& c_;
  std::size_t row_;
  SourceLocation location_;
  SpecCache& specs_;
  std::optional<LaunchRecipe> recipe_;
  RowModel name_;
  const ModelSpec& model_;
  ConfigTree release_;
  const EngineSpec* defaults_ = nullptr;
  std::vector<std::string> unread_;  ///< columns that count as blank
};

bool is_version(const std::string& text) {
  const std::vector<int> numbers = version_numbers(text);
  return !numbers.empty() && numbers.front() < 100;
}

}  // namespace

std::optional<LaunchRecipe> recipe_of_row(const RunColumns& columns, std::size_t row) {
  if (const std::string name = columns.text(row, "recipe"); !name.empty())
    return find_launch_recipe(name, columns.location(row));
  for (const char* column : {"protocol", "source"}) {
    if (auto recipe = known_launch_recipe(columns.text(row, column))) return recipe;
  }
  if (const std::string protocol = columns.text(row, "protocol"); !protocol.empty()) {
    if (!nearest_name(protocol, launch_recipe_names()).empty())
      throw ConfigError(columns.location(row), unknown_name("protocol", protocol, launch_recipe_names()));
  }
  for (const std::string& name : names_of("recipes")) {
    const auto recipe = known_launch_recipe(name);
    if (recipe && !recipe->columns.empty() &&
        std::all_of(recipe->columns.begin(), recipe->columns.end(), [&](const auto& c) { return columns.has(c); }))
      return recipe;
  }
  return std::nullopt;
}

std::string release_of_row(RunKind kind, const RunColumns& columns, std::size_t row,
                           const std::optional<LaunchRecipe>& recipe) {
  std::string version = columns.text(row, closed_loop(kind) ? "engine_version" : "version");
  version.resize(std::min(version.find_first_of(" +(-"), version.size()));
  const std::string day = columns.text(row, "measured");
  std::string engine = columns.text(row, "engine");
  if (engine.empty() && recipe && recipe->engines.size() == 1) engine = recipe->engines.front();
  const auto image = [&](const std::string& key) { return recipe ? image_on(*recipe, key, day) : ""; };
  if (kind == RunKind::kDisaggregated) {
    if (const std::string on = image(engine + "-workers"); !on.empty()) return on;
  }
  if (is_version(version)) return version;
  if (const std::string on = image(engine); !on.empty()) return on;
  return is_date(day) ? day : "";
}

ConfigTree scenario_of_row(RunKind kind, const RunColumns& columns, std::size_t row, SpecCache& specs) {
  if (kind == RunKind::kSubmission) return submission_scenario(recipe_of_row(columns, row), columns, row);
  return RowWriter(kind, columns, row, specs).scenario();
}

}  // namespace roofcast
