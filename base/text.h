#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace roofcast {

/// The candidate that differs by one edit (Damerau-Levenshtein); else the first that begins with the word; else the one
/// with the smallest distance, up to max(2, a third of the length). Ignores case. Empty if there is none.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);
/// "unknown gpu 'h100'; nearest is 'h100-sxm' (valid: ...)" with at most 12 valid names listed.
std::string unknown_name(std::string_view kind, std::string_view word, std::span<const std::string> valid);
/// The end of that message: "; nearest is 'h100-sxm' (valid: ...)".
std::string nearest_and_valid(std::string_view word, std::span<const std::string> valid);

std::vector<std::string> split(std::string_view text, char separator);  ///< "a,,b" -> 3 parts, "" -> 1
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);

}  // namespace roofcast
