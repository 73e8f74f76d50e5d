#pragma once
// Three kinds of failure, never mixed. ConfigError: the user's input is wrong. Infeasible, a value: no answer exists.
// SIM_CHECK: a bug in roofcast.

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace roofcast {

/// Text that is shared between copies, because all nodes of a document name the same file.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text) : text_(text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text))) {}
  SharedText(const char* text) : SharedText(std::string(text)) {}
  const std::string& str() const {
    static const std::string none;
    return text_ ? *text_ : none;
  }
  operator const std::string&() const { return str(); }
  bool empty() const { return text_ == nullptr; }
  friend bool operator==(const SharedText& a, std::string_view b) { return std::string_view(a.str()) == b; }

 private:
  std::shared_ptr<const std::string> text_;
};

/// A source location. Lines and columns count from 1; 0 means unknown.
struct SourceLocation {
  SharedText path;
  int line = 0;
  int column = 0;
};

/// The user's file or flag is wrong. what() is one line, `path:line:column: message` or `--flag: message`. The program
/// exits with status 2.
class ConfigError : public std::runtime_error {
 public:
  ConfigError(const SourceLocation& location, std::string_view message);
  explicit ConfigError(const std::string& message)
      : std::runtime_error(message), location_(std::make_shared<const SourceLocation>()) {}

  /// The location, as far as it is known, and the message without it.
  const SourceLocation& location() const { return *location_; }
  std::string message() const { return what() + message_at_; }

 private:
  std::shared_ptr<const SourceLocation> location_;  // shared, because copying an exception must not throw
  std::size_t message_at_ = 0;
};

/// No answer exists: the model does not fit, or no deployment meets the objective. A table shows it beside the other
/// answers; the program then exits with status 3.
struct Infeasible {
  std::string reason;
};

/// The machine lacks something that a command needs (a CUDA device, rsvg-convert). The program exits with status 3.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A bug in roofcast. The program exits with status 1.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* condition, const char* file, int line, std::string_view message);

}  // namespace roofcast

/// Checks an invariant that only a bug can break. Also active in Release builds.
#define SIM_CHECK(cond, message)                                             \
  do {                                                                       \
    if (!(cond)) ::roofcast::fail_check(#cond, __FILE__, __LINE__, message); \
  } while (false)
