#include "base/json_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/read_file.h"

namespace roofcast {
namespace {

constexpr std::size_t kFileLimit = std::size_t{1} << 30;
constexpr std::size_t kMostValues = 40'000'000;
constexpr std::size_t kContainer = 4;    // numbers that take as much memory as an object, a list or a text
constexpr std::size_t kMostKeys = 2000;  // per object, because each new key is compared with all earlier ones
constexpr std::size_t kMostDepth = 200;  // because documents are walked by recursion

SourceLocation location_at(const std::string& path, const std::string& text, std::size_t byte) {
  const std::string_view before = std::string_view(text).substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {path, static_cast<int>(line + 1), static_cast<int>(std::max<std::size_t>(1, before.size() - start))};
}

/// Python writes NaN and Infinity, which JSON does not have.
bool python_number(const std::string& text, std::size_t byte) {
  const std::size_t begin = byte < 2 ? 0 : byte - 2;
  const std::string_view here = std::string_view(text).substr(begin, 4);
  return here.find("Na") != std::string_view::npos || here.find("In") != std::string_view::npos;
}

}  // namespace

/// The parser's callback could count too, but its time grows with the square of a list's length.
std::size_t check_json_size(const std::string& path, std::string_view text) {
  std::array<std::size_t, kMostDepth + 1> keys{};  // of the open object of each depth
  std::size_t values = 0, depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    if (c == ',') ++values;
    if (c == '[' || c == '{' || quoted) values += kContainer;
    if (c == '[' || c == '{') {
      if (++depth > kMostDepth)
        throw ConfigError(SourceLocation{path}, fmt::format("nested deeper than {} levels", kMostDepth));
      keys[depth] = 0;
    }
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c == ':' && ++keys[depth] > kMostKeys && depth > 1)
      throw ConfigError(SourceLocation{path}, fmt::format("more than {} keys in one object", kMostKeys));
    if (values > kMostValues)
      throw ConfigError(SourceLocation{path}, fmt::format("more than {} values in one document", kMostValues));
  }
  return keys[1];
}

nlohmann::ordered_json parse_json(const std::string& path, const std::string& text, const std::string& expected) {
  try {
    if (check_json_size(path, text) > kMostKeys)
      throw ConfigError(SourceLocation{path}, fmt::format("more than {} keys in one object", kMostKeys));
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    const SourceLocation location = location_at(path, text, e.byte);
    if (e.byte >= text.size())
      throw ConfigError(location, "the JSON ends too early; was the result written completely?");
    if (python_number(text, e.byte)) throw ConfigError(location, "JSON has no NaN and no Infinity");
    if (location.line > 1 && location.column == 1 && nlohmann::json::accept(text.substr(0, e.byte - 1)))
      throw ConfigError(location, fmt::format("a second document begins here; expected {}, one per file", expected));
    throw ConfigError(location, fmt::format("not valid JSON here; expected {}", expected));
  } catch (const nlohmann::json::exception&) {
    throw ConfigError(SourceLocation{path, 0, 0}, "not valid JSON: a number is out of range");
  }
}

nlohmann::ordered_json read_json(const std::string& path, const std::string& expected) {
  const std::string text = read_file(path, kFileLimit);
  if (text.find_first_not_of(" \t\r\n\xEF\xBB\xBF") == std::string::npos)
    throw ConfigError(SourceLocation{path, 0, 0}, "the file is empty");
  return parse_json(path, text, expected);
}

}  // namespace roofcast
