#include "base/error.h"

#include <fmt/format.h>

#include "base/control_characters.h"

namespace roofcast {
namespace {

/// A message stays on one line whatever the user's value contains.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : without_controls(text)) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out;
}

/// "path:line:column: ", as far as these are known.
std::string place_of(const SourceLocation& location) {
  std::string out = location.path.str();
  if (location.line > 0) out += fmt::format("{}{}", out.empty() ? "" : ":", location.line);
  if (location.line > 0 && location.column > 0) out += fmt::format(":{}", location.column);
  return out.empty() ? out : one_line(out) + ": ";
}

}  // namespace

ConfigError::ConfigError(const SourceLocation& location, std::string_view message)
    : std::runtime_error(place_of(location) + one_line(message)),
      location_(std::make_shared<const SourceLocation>(location)),
      message_at_(place_of(location).size()) {}

void fail_check(const char* condition, const char* file, int line, std::string_view message) {
  std::string_view name(file);
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0; the folder is of no use to the reader
  throw InternalError(fmt::format("{}:{}: check failed: {}: {}", name, line, condition, message));
}

}  // namespace roofcast
