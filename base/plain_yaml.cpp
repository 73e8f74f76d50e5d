#include "base/plain_yaml.h"

#include <algorithm>
#include <cstddef>

namespace roofcast {
namespace {

/// libyaml takes no key of more than 1,024 characters.
constexpr std::size_t kLongestPlainKey = 1000;

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

class PlainYaml {
 public:
  PlainYaml(std::string_view text, PlainYamlHandler& out) : text_(text), out_(out) {}

  bool read() {
    const auto odd = [](char c) { return c != '\n' && (c < ' ' || c > '~'); };
    if (std::any_of(text_.begin(), text_.end(), odd) || !skip()) return false;
    const bool done = at_bracket() ? in_line() : column() == 0 && block(0);
    return done && ended_ && !failed_;
  }

 private:
  struct Scalar {
    std::string_view text = {};
    bool quoted = false;
    int line = 0, column = 0;
  };

  int column() const { return static_cast<int>(at_ - line_begin_); }
  bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool at_bracket() const { return at('[') || at('{'); }
  bool blank_at(std::size_t i) const { return i >= text_.size() || text_[i] == ' ' || text_[i] == '\n'; }
  bool at_item() const { return at('-') && blank_at(at_ + 1); }
  bool at_colon() const { return at(':') && blank_at(at_ + 1); }
  void blanks() {
    while (at(' ')) ++at_;
  }
  bool fail() {
    failed_ = ended_ = true;
    return false;
  }

  /// Skips blanks, line ends and comments. False at the end of the text.
  bool skip() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_, line_begin_ = at_ + 1;
      } else if (c == '#') {
        if (at_ > line_begin_ && text_[at_ - 1] != ' ') return fail();
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      } else if (c != ' ') {
        return at_ > line_begin_ || !text_.substr(at_).starts_with("...") || fail();
      }
    }
    ended_ = true;
    return false;
  }

  /// Reads the scalar that begins here. False if it is not of one line, or not plain.
  bool scan(Scalar& out, bool in_bracket) {
    if (at_ >= text_.size()) return false;
    out = {.line = line_, .column = column()};
    const char first = text_[at_];
    if (first == '"' || first == '\'') return scan_quoted(out, first);
    const bool minus =
        first == '-' && at_ + 1 < text_.size() && (is_letter_or_digit(text_[at_ + 1]) || text_[at_ + 1] == '.');
    if (!is_letter_or_digit(first) && !minus &&
        std::string_view("_./+()<=~$^;\\").find(first) == std::string_view::npos)
      return false;
    const std::size_t begin = at_;
    std::size_t end = at_;  // after the last character that is not blank
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      const char c = text_[at_];
      if (c == ' ') continue;
      if (c == '#' && text_[at_ - 1] == ' ') break;
      if (c == ':') {
        if (blank_at(at_ + 1)) break;
        if (in_bracket) return false;
      }
      if (in_bracket && (c == ',' || c == '[' || c == ']' || c == '{' || c == '}')) break;
      if (in_bracket && c == '?') return false;
      end = at_ + 1;
    }
    out.text = text_.substr(begin, end - begin);
    return true;
  }
  bool scan_quoted(Scalar& out, char quote) {
    const std::size_t begin = at_ + 1;
    std::size_t end = begin;
    while (end < text_.size() && text_[end] != quote) {
      if (text_[end] == '\n' || (quote == '"' && text_[end] == '\\')) return false;
      ++end;
    }
    at_ = end + 1;
    if (end >= text_.size() || (quote == '\'' && at('\''))) return false;
    out.text = text_.substr(begin, end - begin);
    out.quoted = true;
    return true;
  }
  void put(const Scalar& s) { out_.scalar(s.text, s.quoted, s.line, s.column); }

  /// A key and its colon.
  bool key(bool in_bracket) {
    Scalar name;
    const std::size_t begin = at_;
    if (!scan(name, in_bracket)) return false;
    blanks();
    if (!at_colon() || at_ - begin > kLongestPlainKey) return false;
    ++at_;
    put(name);
    return true;
  }
  bool at_key() {
    const std::size_t begin = at_;
    Scalar name;
    const bool scanned = scan(name, false);
    blanks();
    const bool is_key = scanned && at_colon();
    at_ = begin;
    return is_key;
  }

  /// A map or a list whose entries begin in this column.
  bool block(int column) { return at_item() ? list(column) : map(column); }

  bool map(int column) {
    out_.open(true, false, line_, column);
    do {
      if (!key(false) || !value(column)) return false;
    } while (goes_on(column));
    out_.close();
    return !deeper(column);
  }

  bool list(int column) {
    out_.open(false, false, line_, column);
    do {
      const int line = line_;
      ++at_;
      if (!skip() || line_ != line) return false;
      const bool nested = at_item() || (!at_bracket() && at_key());
      if (!(nested ? block(this->column()) : in_line())) return false;
    } while (goes_on(column) && at_item());
    out_.close();
    return !deeper(column);
  }

  bool goes_on(int column) const { return !ended_ && this->column() == column; }
  bool deeper(int column) const { return !ended_ && this->column() > column; }

  /// Reads the value of a key that begins in this column. A list may begin in the same column.
  bool value(int column) {
    const int line = line_;
    if (!skip()) return false;
    if (line_ == line) return in_line();
    const int here = this->column();
    if (here == column) return at_item() && list(here);
    return here > column && (at_bracket() ? in_line() : block(here));
  }

  /// Reads a scalar or a bracket that ends its line.
  bool in_line() {
    if (at_bracket()) {
      if (!bracket()) return false;
    } else {
      Scalar s;
      if (!scan(s, false)) return false;
      put(s);
    }
    const int line = line_;
    return !skip() || line_ != line;
  }

  bool bracket() {
    const bool map = at('{');
    const char end = map ? '}' : ']';
    out_.open(map, true, line_, column());
    do {
      const bool first = text_[at_] != ',';
      ++at_;
      if (!skip()) return false;
      if (first && at(end)) break;
      if (map && (!key(true) || !skip())) return false;
      if (at_bracket()) {
        if (!bracket()) return false;
      } else {
        Scalar s;
        if (!scan(s, true)) return false;
        put(s);
      }
      if (!skip()) return false;
    } while (at(','));
    if (!at(end)) return false;
    ++at_;
    out_.close();
    return true;
  }

  std::string_view text_;
  PlainYamlHandler& out_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 0;
  bool ended_ = false, failed_ = false;
};

}  // namespace

bool read_plain_yaml(std::string_view text, PlainYamlHandler& out) { return PlainYaml(text, out).read(); }

}  // namespace roofcast
