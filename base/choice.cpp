#include "base/choice.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace roofcast {

std::size_t choice_of(std::string_view kind, std::string_view word, std::span<const std::string_view> names,
                      const SourceLocation& location) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw ConfigError(location, unknown_name(kind, word, std::vector<std::string>(names.begin(), names.end())));
}

}  // namespace roofcast
