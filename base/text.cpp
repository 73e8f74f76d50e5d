#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace roofcast {
namespace {

/// Edits (insert, delete, replace, transpose neighbours) that turn a into b. No substring is edited twice.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

constexpr std::size_t kLongestWord = 200;  // the time grows with the product of the lengths

/// Shortens a name for messages: in a file that is not a table, a "column name" can be as long as the file.
std::string shortened(std::string_view name) {
  constexpr std::size_t kShown = 60;
  return name.size() <= kShown ? std::string(name) : std::string(name.substr(0, kShown)) + "...";
}

/// Lower case, with parts joined by '-': "M4 Max" and "m4_max" become "m4-max".
std::string hyphened(std::string_view name) {
  std::string out = lower(name);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == ' ' || c == '_'; }, '-');
  return out;
}

/// The longest name that the word begins with, up to a '-': 'qwen3-32b' for 'qwen3-32b-instruct'.
std::string_view longest_beginning(const std::string& word, std::span<const std::string> names) {
  std::string_view longest;
  for (const std::string& name : names) {
    if (name.size() > longest.size() && name.find('-') != std::string::npos && word.starts_with(hyphened(name) + "-"))
      longest = name;
  }
  return longest;
}

/// The first parts of the name, as many as the word has: 'b200' for 'b200-sxm'.
std::string beginning(const std::string& name, const std::string& word) {
  std::string out = hyphened(name);
  std::size_t end = 0;
  for (auto parts = std::count(word.begin(), word.end(), '-'); end != std::string::npos && parts >= 0; --parts)
    end = out.find('-', end + (end > 0 ? 1 : 0));
  return out.substr(0, end);
}

}  // namespace

std::string nearest_name(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > kLongestWord) return "";
  const std::string wanted = hyphened(word);
  // Two edits change most of a short word, especially a number: 'b100' is not a misspelt 'a10g'.
  const bool digits = std::any_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
  const std::size_t near = word.size() > 6 ? word.size() / 3 : word.size() > 4 && !digits ? 2 : 1;
  std::size_t best = near + 1;
  std::string_view found;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(candidate.size(), wanted.size());
    const std::size_t shorter = std::min(candidate.size(), wanted.size());
    if (longer - shorter >= best) continue;
    const std::size_t distance = edit_distance(wanted, hyphened(candidate));
    if (distance < best && distance < longer) {  // equal to longer: nothing in common
      best = distance;
      found = candidate;
    }
  }
  if (best > 1 && word.size() >= 2) {
    const auto first = [&](auto&& fits) { return std::find_if(candidates.begin(), candidates.end(), fits); };
    auto other = first([&](const std::string& name) { return hyphened(name).starts_with(wanted); });
    if (other == candidates.end())
      other = first([&](const std::string& name) { return hyphened(name).find(wanted) != std::string::npos; });
    if (other != candidates.end()) return *other;
    if (const std::string_view longest = longest_beginning(wanted, candidates); !longest.empty())
      return std::string(longest);
    const auto of_parts = [&](const std::string& name) { return edit_distance(wanted, beginning(name, wanted)) <= 1; };
    other =
        first([&](const std::string& name) { return hyphened(name).starts_with(wanted.front()) && of_parts(name); });
    if (other == candidates.end()) other = first(of_parts);
    if (found.empty() && wanted.size() > 3 && other != candidates.end()) return *other;
  }
  return std::string(found);
}

std::string nearest_and_valid(std::string_view word, std::span<const std::string> valid) {
  constexpr std::size_t kListed = 12;
  const std::string nearest = nearest_name(word, valid);
  std::string out;
  if (!nearest.empty()) out += fmt::format("; nearest is '{}'", nearest);
  if (valid.empty()) return out + " (there are none)";
  std::vector<std::string> listed;
  for (const std::string& name : valid.first(std::min(kListed, valid.size()))) listed.push_back(shortened(name));
  out += fmt::format(" (valid: {}", join(listed, ", "));
  if (valid.size() > kListed) out += fmt::format(" and {} more", valid.size() - kListed);
  return out + ")";
}

std::string unknown_name(std::string_view kind, std::string_view word, std::span<const std::string> valid) {
  return fmt::format("unknown {} '{}'{}", kind, shortened(word), nearest_and_valid(word, valid));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');  // ASCII only, whatever the locale
  }
  return out;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

}  // namespace roofcast
