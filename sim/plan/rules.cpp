#include "sim/plan/rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "base/config_release.h"
#include "base/text.h"
#include "sim/model/feed_forward_model.h"
#include "sim/model/mixer_model.h"
#include "sim/step/deployment.h"

namespace roofcast {

DeploymentFacts facts_of(const Deployment& d) {
  return {.engine = d.engine.name,
          .version = d.engine.version,
          .client_date = "",
          .gpu = &d.gpu,
          .model = &d.model,
          .sharding = &d.sharding,
          .precision = &d.precision};
}

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    for (std::size_t skip = 0; skip <= text.size(); ++skip) {
      if (matches(pattern.substr(1), text.substr(skip))) return true;
    }
    return false;
  }
  return !text.empty() && pattern.front() == text.front() && matches(pattern.substr(1), text.substr(1));
}

namespace {

/// A range `least, most`; empty if the key is absent.
std::optional<std::pair<double, double>> range_of(ConfigReader& in, std::string_view key) {
  if (!in.has(key)) return std::nullopt;
  const std::vector<double> range = in.numbers(key, kAtLeastZero);
  if (range.size() != 2) in.fail(key, "must be [least, most]");
  return std::pair(range[0], range[1]);
}

std::optional<std::vector<std::string>> names_of(ConfigReader& in, std::string_view key) {
  return in.has(key) ? std::optional(in.texts(key)) : std::nullopt;
}

std::optional<bool> flag_of(ConfigReader& in, std::string_view key) {
  return in.has(key) ? std::optional(in.boolean(key)) : std::nullopt;
}

bool one_of(const std::optional<std::vector<std::string>>& names, std::string_view value) {
  if (!names) return true;
  return !value.empty() &&
         std::any_of(names->begin(), names->end(), [&](const std::string& name) { return matches(name, value); });
}

bool flag_is(const std::optional<bool>& asked, bool known, bool value) { return !asked || (*asked == value && known); }

/// A name without a wildcard must be an architecture.
void check_architectures(ConfigReader& in) {
  if (!in.has("architecture")) return;
  for (const std::string& name : in.texts("architecture")) {
    if (name.find('*') == std::string::npos) parse_architecture(name, in.location_of("architecture"));
  }
}

/// Parses a sum from left to right.
class AmountParser {
 public:
  AmountParser(const ConfigNode& node, const DeploymentFacts& facts, double max_num_seqs)
      : node_(node), text_(node.scalar), facts_(facts), max_num_seqs_(max_num_seqs) {}

  Amount whole() {
    const Amount amount = sum();
    skip();
    if (at_ < text_.size()) fail();
    return amount;
  }

 private:
  [[noreturn]] void fail() const {
    throw ConfigError(node_.location, fmt::format("'{}' is not a sum of numbers, prompt_tokens, output_tokens, "
                                                  "concurrency, max_num_seqs and max(a, b)",
                                                  text_));
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Amount sum() {
    Amount total = term();
    while (true) {
      const bool plus = take('+'), minus = !plus && take('-');
      if (!plus && !minus) return total;
      const Amount next = term();
      total.value += plus ? next.value : -next.value;
      total.known = total.known && next.known;
    }
  }
  Amount term() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word.empty()) fail();
    if (word.find_first_not_of("0123456789") == std::string::npos && word.size() < 10)
      return {std::strtod(word.c_str(), nullptr), true};
    if (word == "max") return larger();
    if (word == "max_num_seqs") return {max_num_seqs_, max_num_seqs_ > 0};
    if (word == "prompt_tokens") return {facts_.prompt_tokens, facts_.prompt_tokens > 0};
    if (word == "output_tokens") return {facts_.output_tokens, facts_.output_tokens > 0};
    if (word == "concurrency") return {facts_.concurrency, facts_.concurrency > 0};
    fail();
  }
  Amount larger() {
    if (++depth_ > 16 || !take('(')) fail();
    const Amount left = sum();
    if (!take(',')) fail();
    const Amount right = sum();
    if (!take(')')) fail();
    return {std::max(left.value, right.value), left.known && right.known};
  }

  const ConfigNode& node_;
  const std::string& text_;
  const DeploymentFacts& facts_;
  double max_num_seqs_;
  std::size_t at_ = 0;
  int depth_ = 0;  ///< nesting depth of max(...)
};

}  // namespace

bool has_experts(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerKind& layer) { return facts_of(layer.feed_forward).experts > 0; });
}

bool has_indexed_latents(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const LayerKind& layer) {
    const MixerFacts mixer = facts_of(layer.mixer);
    return mixer.cache == TokenCache::kLatent && mixer.chosen_tokens > 0;
  });
}

Condition::Condition(const ConfigTree& when) {
  if (!when) return;
  ConfigReader in(when, "a condition");
  engine_ = names_of(in, "engine");
  since_ = in.text("since", ""), until_ = in.text("until", "");
  for (const char* bound : {"since", "until"}) {
    if (in.has(bound) && version_numbers(in.text(bound)).empty())
      in.fail(bound, fmt::format("'{}' must be a version", bound));
  }
  gpu_ = names_of(in, "gpu");
  check_architectures(in);
  architecture_ = names_of(in, "architecture");
  model_ = names_of(in, "model"), family_ = names_of(in, "family"), model_type_ = names_of(in, "model_type");
  weights_ = names_of(in, "weights"), kv_cache_ = names_of(in, "kv_cache");
  experts_ = flag_of(in, "experts"), indexed_ = flag_of(in, "indexed");
  attention_dp_ = flag_of(in, "attention_dp"), disaggregated_ = flag_of(in, "disaggregated");
  if (const auto range = range_of(in, "prompt_tokens")) prompt_tokens_ = {range->first, range->second};
  if (const auto range = range_of(in, "output_tokens")) output_tokens_ = {range->first, range->second};
  if (const auto range = range_of(in, "ep")) ep_ = {range->first, range->second};
  client_since_ = in.text("client_since", ""), client_until_ = in.text("client_until", "");
  in.finish();
}

bool Condition::holds(const DeploymentFacts& facts) const {
  const auto within = [](const std::optional<Amounts>& range, double value) {
    return !range || (value > 0 && value >= range->least && value <= range->most);
  };
  const ModelSpec* model = facts.model;
  const Precision* precision = facts.precision;
  if (!one_of(engine_, facts.engine)) return false;
  if (!client_since_.empty() && !facts.client_date.empty() && facts.client_date < client_since_) return false;
  if (!client_until_.empty() && (facts.client_date.empty() || facts.client_date >= client_until_)) return false;
  const bool dated = !since_.empty() || !until_.empty();
  return one_of(gpu_, facts.gpu != nullptr ? std::string_view(facts.gpu->name) : "") &&
         one_of(architecture_, facts.gpu != nullptr ? name_of(facts.gpu->architecture) : "") &&
         one_of(model_, model != nullptr ? std::string_view(model->name) : "") &&
         one_of(family_, model != nullptr ? std::string_view(model->family) : "") &&
         one_of(model_type_, model != nullptr ? std::string_view(model->model_type) : "") &&
         one_of(weights_, precision != nullptr ? name_of(precision->weights) : "") &&
         one_of(kv_cache_, precision != nullptr ? name_of(precision->kv_cache) : "") &&
         flag_is(experts_, model != nullptr, model != nullptr && has_experts(*model)) &&
         flag_is(indexed_, model != nullptr, model != nullptr && has_indexed_latents(*model)) &&
         flag_is(attention_dp_, facts.sharding != nullptr,
                 facts.sharding != nullptr && facts.sharding->attention_dp > 1) &&
         flag_is(disaggregated_, true, facts.disaggregated) && within(prompt_tokens_, facts.prompt_tokens) &&
         within(ep_, facts.sharding != nullptr ? facts.sharding->ep : 0) &&
         within(output_tokens_, facts.output_tokens) &&
         (!dated || (!facts.version.empty() && in_force(facts.version, since_, until_)));
}

bool asks_for_day(const ConfigTree& when) {
  return when && (when->find("client_since") != nullptr || when->find("client_until") != nullptr);
}

bool holds(const ConfigTree& when, const DeploymentFacts& facts) { return Condition(when).holds(facts); }

Amount evaluate_amount(const ConfigNode& text, const DeploymentFacts& facts, double max_num_seqs) {
  return AmountParser(text, facts, max_num_seqs).whole();
}

}  // namespace roofcast
