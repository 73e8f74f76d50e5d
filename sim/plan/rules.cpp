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

namespace roofcast {

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

bool within(ConfigReader& in, std::string_view key, double value) {
  if (!in.has(key)) return true;
  const std::vector<double> range = in.numbers(key, kAtLeastZero);
  if (range.size() != 2) in.fail(key, "must be [least, most]");
  return value > 0 && value >= range[0] && value <= range[1];
}

bool one_of(ConfigReader& in, std::string_view key, const std::string& value) {
  if (!in.has(key)) return true;
  const std::vector<std::string> names = in.texts(key);
  return !value.empty() &&
         std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches(name, value); });
}

/// A name without a wildcard must be an architecture.
void check_architectures(ConfigReader& in) {
  if (!in.has("architecture")) return;
  for (const std::string& name : in.texts("architecture")) {
    if (name.find('*') == std::string::npos) parse_architecture(name, in.mark_of("architecture"));
  }
}

bool flag_is(ConfigReader& in, std::string_view key, bool known, bool value) {
  return !in.has(key) || (in.boolean(key) == value && known);
}

/// Reads a sum from left to right.
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
    throw ConfigError(node_.mark, fmt::format("'{}' is not a sum of numbers, prompt_tokens, output_tokens, "
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
  int depth_ = 0;  ///< of max(...) in all
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

bool holds(const ConfigTree& when, const DeploymentFacts& facts) {
  if (!when) return true;
  ConfigReader in(when, "a condition");
  const ModelSpec* model = facts.model;
  const Sharding* sharding = facts.sharding;
  bool all = one_of(in, "engine", facts.engine);
  const std::string since = in.text("since", ""), until = in.text("until", "");
  for (const char* bound : {"since", "until"}) {
    if (in.has(bound) && version_numbers(in.text(bound)).empty())
      in.fail(bound, fmt::format("'{}' must be a version", bound));
  }
  if (!since.empty() || !until.empty()) all = all && !facts.version.empty() && in_force(facts.version, since, until);
  all = one_of(in, "gpu", facts.gpu != nullptr ? facts.gpu->name : "") && all;
  check_architectures(in);
  all = one_of(in, "architecture", facts.gpu != nullptr ? std::string(name_of(facts.gpu->architecture)) : "") && all;
  all = one_of(in, "model", model != nullptr ? model->name : "") && all;
  all = one_of(in, "family", model != nullptr ? model->family : "") && all;
  all = one_of(in, "model_type", model != nullptr ? model->model_type : "") && all;
  const Precision* precision = facts.precision;
  all = one_of(in, "weights", precision != nullptr ? std::string(name_of(precision->weights)) : "") && all;
  all = one_of(in, "kv_cache", precision != nullptr ? std::string(name_of(precision->kv_cache)) : "") && all;
  all = flag_is(in, "experts", model != nullptr, model != nullptr && has_experts(*model)) && all;
  all = flag_is(in, "indexed", model != nullptr, model != nullptr && has_indexed_latents(*model)) && all;
  all = flag_is(in, "attention_dp", sharding != nullptr, sharding != nullptr && sharding->attention_dp > 1) && all;
  all = flag_is(in, "disaggregated", true, facts.disaggregated) && all;
  all = within(in, "prompt_tokens", facts.prompt_tokens) && all;
  all = within(in, "output_tokens", facts.output_tokens) && all;
  const std::string from = in.text("client_since", ""), before = in.text("client_until", "");
  if (!from.empty()) all = all && (facts.client_date.empty() || facts.client_date >= from);
  if (!before.empty()) all = all && !facts.client_date.empty() && facts.client_date < before;
  in.finish();
  return all;
}

Amount evaluate_amount(const ConfigNode& text, const DeploymentFacts& facts, double max_num_seqs) {
  return AmountParser(text, facts, max_num_seqs).whole();
}

}  // namespace roofcast
