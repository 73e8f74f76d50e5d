#include "sim/plan/search/condition.h"

#include <array>
#include <cctype>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/number_text.h"
#include "base/text.h"

namespace roofcast {
namespace {

/// A number, or a name.
struct Value {
  std::string text;
  std::optional<double> number;
};

Value value_of(std::string text) {
  double number = 0;
  const std::string_view head = std::string_view(text).substr(0, text.find(' '));  // "6 /s"
  const bool numeric = parse_number(head, number) == NumberFault::kNone;
  return {std::move(text), numeric ? std::optional(number) : std::nullopt};
}

class Reader {
 public:
  Reader(std::string_view text, const ConfigTree& scenario, const SourceLocation& location)
      : text_(text), scenario_(scenario), location_(location) {}

  bool comparison() {
    static constexpr std::array<std::string_view, 6> kOperators{"==", "!=", "<=", ">=", "<", ">"};
    const Value left = sum();
    skip();
    std::string_view op;
    for (std::string_view candidate : kOperators) {
      if (op.empty() && text_.substr(at_).starts_with(candidate)) op = candidate;
    }
    if (op.empty()) fail("expected one of == != < <= > >=");
    at_ += op.size();
    const Value right = sum();
    skip();
    if (at_ != text_.size()) fail(fmt::format("nothing may follow, found '{}'", text_.substr(at_)));
    return compare(left, op, right);
  }

 private:
  bool compare(const Value& a, std::string_view op, const Value& b) const {
    if (!a.number || !b.number) {
      if (op == "==") return a.text == b.text;
      if (op == "!=") return a.text != b.text;
      (void)number(a), (void)number(b);
    }
    const double x = *a.number, y = *b.number;
    if (op == "==") return x == y;
    if (op == "!=") return x != y;
    if (op == "<=") return x <= y;
    if (op == ">=") return x >= y;
    return op == "<" ? x < y : x > y;
  }

  Value sum() {
    Value left = product();
    for (skip(); at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-'); skip()) {
      const char op = text_[at_++];
      const double right = number(product());
      left = {"", op == '+' ? number(left) + right : number(left) - right};
    }
    return left;
  }

  Value product() {
    Value left = factor();
    for (skip(); at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '/'); skip()) {
      const char op = text_[at_++];
      const double right = number(factor());
      left = {"", op == '*' ? number(left) * right : number(left) / right};
    }
    return left;
  }

  Value factor() {
    skip();
    if (at_ < text_.size() && text_[at_] == '(') {
      if (++depth_ > 50) fail("too many parentheses");
      ++at_;
      const Value inner = sum();
      skip();
      if (at_ == text_.size() || text_[at_] != ')') fail("')' is missing");
      ++at_, --depth_;
      return inner;
    }
    const std::size_t begin = at_;
    const auto in_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    };
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    if (at_ == begin) fail(at_ == text_.size() ? "a value is missing" : fmt::format("unexpected '{}'", text_[at_]));
    const std::string_view word = text_.substr(begin, at_ - begin);
    const ConfigTree found = value_at(scenario_, word);
    if (found && found->kind == ConfigNode::Kind::kScalar) return value_of(found->scalar);
    return value_of(std::string(word));
  }

  double number(const Value& v) const {
    if (!v.number) fail(fmt::format("'{}' is neither a number nor a key of the scenario", v.text));
    return *v.number;
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(location_, fmt::format("condition '{}': {}", text_, what));
  }

  std::string_view text_;
  const ConfigTree& scenario_;
  const SourceLocation& location_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

ConfigTree value_at(const ConfigTree& tree, std::string_view dotted_key) {
  ConfigTree at = tree;
  for (const std::string& part : split(dotted_key, '.')) {
    if (!at) return nullptr;
    if (at->kind == ConfigNode::Kind::kScalar) return part == "name" ? at : nullptr;
    const ConfigTree* next = at->find(part);
    if (next == nullptr) return nullptr;
    at = ConfigTree(*next);
  }
  if (at && at->kind == ConfigNode::Kind::kMap && at->find("name") != nullptr) return *at->find("name");
  return at;
}

bool holds(std::string_view condition, const ConfigTree& scenario, const SourceLocation& location) {
  return Reader(condition, scenario, location).comparison();
}

}  // namespace roofcast
