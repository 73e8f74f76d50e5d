#include "sim/plan/support.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/config_release.h"
#include "base/text.h"
#include "sim/model/cut_blocks.h"
#include "sim/plan/rules.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Conditions in addition to those of sim/plan/rules.h.
constexpr std::array<std::string_view, 20> kOwnKeys{"method",
                                                    "activations",
                                                    "kv_cache",
                                                    "tp",
                                                    "pp",
                                                    "dcp",
                                                    "ep",
                                                    "attention_copies",
                                                    "not_model",
                                                    "adapters",
                                                    "media",
                                                    "encoder",
                                                    "beams",
                                                    "tree_width",
                                                    "sparse",
                                                    "expert_adapters",
                                                    "encoder_decoder",
                                                    "preemption",
                                                    "prefix_caching",
                                                    "cut_blocks"};

bool is_own(const std::string& key) { return std::find(kOwnKeys.begin(), kOwnKeys.end(), key) != kOwnKeys.end(); }

ConfigTree part_of(const ConfigTree& when, bool own) {
  if (!when) return when;
  auto part = std::make_shared<ConfigNode>(*when);
  std::erase_if(part->entries, [&](const ConfigNode::Entry& entry) { return is_own(entry.key) != own; });
  return part;
}

bool has_beams(const Scenario& s) {
  if (!s.workload) return false;
  const auto beams = [](const WorkloadSpec& w) { return w.samples.beams && w.samples.several(); };
  return beams(*s.workload) || std::any_of(s.workload->clients.begin(), s.workload->clients.end(), beams);
}

/// What `cut_blocks` names.
const std::string kExperts = "experts", kOthers = "others";

/// The conditions of kOwnKeys.
class OwnCondition {
 public:
  explicit OwnCondition(const ConfigTree& when) {
    ConfigReader in(part_of(when, true), "a condition");
    method_ = names_of(in, "method"), preemption_ = names_of(in, "preemption"),
    activations_ = names_of(in, "activations"), kv_cache_ = names_of(in, "kv_cache"),
    cut_blocks_ = names_of(in, "cut_blocks");
    for (const std::string& name : cut_blocks_.value_or(std::vector<std::string>{})) {
      if (name != kExperts && name != kOthers)
        in.fail("cut_blocks", unknown_name("cut_blocks", name, std::array{kExperts, kOthers}));
    }
    tp_ = range_of(in, "tp"), pp_ = range_of(in, "pp"), dcp_ = range_of(in, "dcp"), ep_ = range_of(in, "ep");
    copies_ = range_of(in, "attention_copies"), tree_width_ = range_of(in, "tree_width");
    if (in.has("not_model"))
      not_model_.emplace(make_map({{"model", in.location(), in.tree("not_model")}}, in.location()));
    for (const auto& [key, flag] : {std::pair{"adapters", &adapters_},
                                    {"media", &media_},
                                    {"encoder", &encoder_},
                                    {"encoder_decoder", &encoder_decoder_},
                                    {"beams", &beams_},
                                    {"sparse", &sparse_},
                                    {"expert_adapters", &expert_adapters_},
                                    {"prefix_caching", &prefix_caching_}}) {
      if (in.has(key)) *flag = in.boolean(key);
    }
    in.finish();
  }

  bool holds(const Scenario& s, const Deployment& d, const DeploymentFacts& facts) const {
    const SpeculationSpec& drafts = s.serving.speculation;
    return among(method_, drafts.active() ? name_of(drafts.method) : "none") &&
           among(preemption_, d.engine.preemption) && among(activations_, name_of(d.precision.activations)) &&
           among(kv_cache_, name_of(d.precision.kv_cache)) && within(tp_, d.sharding.tp) &&
           within(pp_, d.sharding.pp) && within(dcp_, d.sharding.dcp) && within(ep_, d.sharding.ep) &&
           within(copies_, d.sharding.attention_dp) && within(tree_width_, drafts.active() ? drafts.tree_width : 0) &&
           is(adapters_, d.adapters.has_value()) && is(media_, !d.media.empty()) &&
           is(encoder_, d.model.encoder_only) && is(encoder_decoder_, d.model.attends_to_encoder()) &&
           is(beams_, has_beams(s)) && is(sparse_, d.precision.two_of_four) &&
           is(expert_adapters_, d.adapters && d.adapters->experts) && is(prefix_caching_, d.engine.prefix_caching) &&
           !(not_model_ && not_model_->holds(facts)) && (!cut_blocks_ || cut(d));
  }

  /// The first product with split blocks, of those that the rule covers.
  std::optional<CutBlocks> cut(const Deployment& d) const {
    if (!cut_blocks_) return std::nullopt;
    for (CutBlocks& c : cut_blocks(d.model, d.precision, d.sharding)) {
      if (among(cut_blocks_, c.experts ? kExperts : kOthers)) return std::move(c);
    }
    return std::nullopt;
  }

 private:
  using Names = std::optional<std::vector<std::string>>;
  using Range = std::optional<std::pair<double, double>>;
  static Names names_of(ConfigReader& in, std::string_view key) {
    return in.has(key) ? Names(in.texts(key)) : std::nullopt;
  }
  static Range range_of(ConfigReader& in, std::string_view key) {
    if (!in.has(key)) return std::nullopt;
    const std::vector<double> range = in.numbers(key, kAtLeastZero);
    if (range.size() != 2) in.fail(key, "must be [least, most]");
    return std::pair(range[0], range[1]);
  }
  static bool among(const Names& names, std::string_view value) {
    return !names || std::find(names->begin(), names->end(), value) != names->end();
  }
  static bool is(const std::optional<bool>& asked, bool value) { return !asked || *asked == value; }
  static bool within(const Range& range, double value) {
    return !range || (value >= range->first && value <= range->second);
  }

  Names method_, activations_, kv_cache_, preemption_, cut_blocks_;
  Range tp_, pp_, dcp_, ep_, copies_, tree_width_;
  std::optional<bool> adapters_, media_, encoder_, encoder_decoder_, beams_, sparse_, expert_adapters_, prefix_caching_;
  std::optional<Condition> not_model_;
};

/// Read once: every scenario asks all rules of its engine.
struct ReadRule {
  SupportRule rule;
  Condition when;
  OwnCondition own;
  std::vector<std::string> model_types;  ///< of a rule that says with which release models came
  std::string came_with;
};

/// `when: {until: RELEASE, model_type: NAMES}` and nothing else.
void take_first_release(const ConfigTree& when, ReadRule& rule) {
  if (!when || when->entries.size() != 2) return;
  const ConfigTree *until = when->find("until"), *types = when->find("model_type");
  if (until == nullptr || types == nullptr) return;
  rule.came_with = (*until)->scalar;
  if ((*types)->kind == ConfigNode::Kind::kScalar) rule.model_types.push_back((*types)->scalar);
  for (const ConfigTree& item : (*types)->items) rule.model_types.push_back(item->scalar);
}

/// Read once: rules and traits of one engine.
struct SupportTable {
  std::vector<ReadRule> rules;
  EngineTraits traits;
};

EngineTraits read_traits(ConfigReader& in) {
  static constexpr std::array<std::pair<std::string_view, bool EngineTraits::*>, 3> kTraits{
      {{"splits_by_layers", &EngineTraits::splits_by_layers},
       {"chunks_when_told", &EngineTraits::chunks_when_told},
       {"static_batch_in_one_pass", &EngineTraits::static_batch_in_one_pass}}};
  EngineTraits out;
  for (const std::string& word : in.has("traits") ? in.texts("traits") : std::vector<std::string>{}) {
    const auto found = std::find_if(kTraits.begin(), kTraits.end(), [&](const auto& t) { return t.first == word; });
    if (found == kTraits.end()) {
      std::vector<std::string_view> valid;
      for (const auto& [name, member] : kTraits) valid.push_back(name);
      in.fail("traits", fmt::format("unknown trait '{}' (valid: {})", word, fmt::join(valid, ", ")));
    }
    out.*found->second = true;
  }
  return out;
}

SupportTable read_table(const std::string& name) {
  ConfigReader in(load_named("support", name, SourceLocation{"support", 0, 0}), "a support table");
  in.ignore("name");
  SupportTable table{.rules = {}, .traits = read_traits(in)};
  std::vector<ReadRule>& rules = table.rules;
  for (const ConfigTree& item : in.list("rules")) {
    ConfigReader rule(item, "a rule");
    const ConfigTree when = rule.tree("when");
    const SupportRule told{
        .runs = rule.text("runs", "no") == "unknown", .reason = rule.text("reason"), .source = rule.text("source")};
    rule.finish();
    rules.push_back({told, Condition(part_of(when, false)), OwnCondition(when), {}, {}});
    if (!told.runs) take_first_release(when, rules.back());
  }
  in.finish();
  return table;
}

const SupportTable& table_of(const std::string& engine) {
  static std::mutex mutex;
  static std::map<std::string, SupportTable> read;
  const std::lock_guard lock(mutex);
  const auto known = read.find(engine);
  if (known != read.end()) return known->second;
  const std::vector<std::string> names = names_of("support");
  const bool shipped = std::find(names.begin(), names.end(), engine) != names.end();
  return read[engine] = shipped ? read_table(engine) : SupportTable{};
}

/// The same number of GPUs, or fewer, that split the model in whole blocks; empty: none found.
std::string in_whole_blocks(const Deployment& d) {
  const auto loads = [&](const Sharding& s) {
    try {
      check_sharding(d.model, s, {});
      return cut_blocks(d.model, d.precision, s).empty();
    } catch (const CannotSplit&) {
      return false;
    }
  };
  std::vector<std::string> out;
  Sharding whole = d.sharding;
  whole.ep = whole.tp * whole.attention_dp;
  if (loads(whole)) out.push_back(fmt::format("ep {}, which keeps experts whole", whole.ep));
  for (int tp = d.sharding.tp - 1; tp >= 1; --tp) {
    Sharding fewer = d.sharding;
    fewer.tp = tp, fewer.dcp = 1, fewer.ep = std::min(fewer.ep, tp * fewer.attention_dp);
    if (d.sharding.tp % tp != 0 || !loads(fewer)) continue;
    out.push_back(fewer.ep > 1 ? fmt::format("tp {} with ep {}", tp, fewer.ep) : fmt::format("tp {}", tp));
    break;
  }
  return out.empty() ? "" : "; what loads: " + fmt::format("{}", fmt::join(out, ", or "));
}

/// The figures behind the rule.
std::string cut_text(const CutBlocks& cut, const Deployment& d) {
  return fmt::format(": the width of {} is {}, {} on a GPU{}", cut.part, cut.whole, cut.share, in_whole_blocks(d));
}

void add_rules(std::vector<SupportRule>& out, const std::string& table, const Scenario& s, const Deployment& d) {
  DeploymentFacts facts = facts_of(d);
  facts.disaggregated = s.serving.disaggregation.has_value();
  for (const ReadRule& read : table_of(table).rules) {
    if (!read.own.holds(s, d, facts) || !read.when.holds(facts)) continue;
    out.push_back(read.rule);
    if (const auto cut = read.own.cut(d)) out.back().reason += cut_text(*cut, d);
  }
}

}  // namespace

EngineTraits engine_traits(const std::string& engine) { return table_of(engine).traits; }

std::vector<SupportRule> support_rules(const Scenario& s) {
  std::vector<SupportRule> out;
  for (const auto& d : {s.deployment, s.serving.disaggregation ? s.serving.disaggregation->prefill : nullptr}) {
    if (!d) continue;
    add_rules(out, "all-engines", s, *d);
    add_rules(out, d->engine.name, s, *d);
  }
  return out;
}

std::vector<std::string> older_than_model(const Scenario& s, const std::string& published) {
  std::vector<std::string> out;
  if (published.empty() || s.deployment->fidelity == Fidelity::kIdeal) return out;
  for (const auto& d : {s.deployment, s.serving.disaggregation ? s.serving.disaggregation->prefill : nullptr}) {
    if (!d || d->engine.released.empty() || d->engine.released >= published) continue;
    const std::vector<ReadRule>& rules = table_of(d->engine.name).rules;
    const bool known = std::any_of(rules.begin(), rules.end(), [&](const ReadRule& rule) {
      return !rule.came_with.empty() && compare_versions(d->engine.version, rule.came_with) >= 0 &&
             std::any_of(rule.model_types.begin(), rule.model_types.end(),
                         [&](const std::string& type) { return matches(type, d->model.model_type); });
    });
    const std::string line =
        fmt::format("not known to run: {} {} of {} is older than {}, which was published on {}", d->engine.name,
                    d->engine.version, d->engine.released, d->model.name, published);
    if (!known && std::find(out.begin(), out.end(), line) == out.end()) out.push_back(line);
  }
  return out;
}

std::vector<std::string> check_support(const Scenario& s, bool forced, const SourceLocation& location) {
  std::vector<std::string> doubts;
  if (s.deployment->fidelity == Fidelity::kIdeal) return doubts;  // the ideal roofline needs no engine
  for (const SupportRule& rule : support_rules(s)) {
    const std::string text = fmt::format("{} ({})", rule.reason, rule.source);
    if (!rule.runs && !forced)
      throw CannotRun(location, "cannot run: " + text + "; --force-unsupported estimates it all the same");
    const std::string doubt =
        (rule.runs ? "no record that this runs: " : "cannot run, estimated all the same: ") + text;
    if (std::find(doubts.begin(), doubts.end(), doubt) == doubts.end()) doubts.push_back(doubt);
  }
  return doubts;
}

}  // namespace roofcast
