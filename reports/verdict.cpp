#include "reports/verdict.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/html_text.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

/// Only columns with at most this rank.
Table table_of(const VerdictTable& t, int rank) {
  const auto kept = [&](const Row& row) {
    Row out;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (t.ranks.empty() || t.ranks[i] <= rank) out.push_back(row[i]);
    }
    return out;
  };
  Table table(kept(t.columns));
  table.words(t.words);
  for (const Row& row : t.rows) table.row(kept(row));
  return table;
}

/// All columns if `wide`, else as many as fit in 100 characters.
std::string table_text(const VerdictTable& t, bool wide) {
  constexpr std::size_t kPage = 100;
  const int most = t.ranks.empty() ? 0 : *std::max_element(t.ranks.begin(), t.ranks.end());
  Table table = table_of(t, most);
  for (int rank = most - 1; !wide && rank >= 0 && table.width() > kPage; --rank) table = table_of(t, rank);
  return table.text();
}

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> out;
  if (!list.is_array()) return out;
  for (const Json& text : list) {
    if (text.is_string()) out.push_back(clean_utf8(text.get<std::string>()));
  }
  return out;
}

VerdictTable read_table(const Json& json) {
  VerdictTable table;
  table.columns = texts_of(json.value("columns", Json::array()));
  for (const Json& row : json.value("rows", Json::array())) {
    table.rows.push_back(texts_of(row));
    table.rows.back().resize(table.columns.size());
  }
  if (const auto all = json.find("in_all"); all != json.end() && all->is_number_unsigned())
    table.in_all = all->get<std::size_t>();
  return table;
}

constexpr std::array<std::string_view, 5> kAlarms{"MISSED", "DOES NOT FIT", "SATURATED", "no deployment",
                                                  "exceeds the limit"};

}  // namespace

bool is_alarm(std::string_view line) {
  return std::any_of(kAlarms.begin(), kAlarms.end(),
                     [&](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

std::string with_colors(const std::string& text) {
  std::string out;
  bool first = true;
  for (const std::string& line : split(text, '\n')) {
    if (!first) out += "\n";
    first = false;
    out += is_alarm(line) ? "\033[31m" + line + "\033[0m" : line;
  }
  return out;
}

VerdictPart& ResultVerdict::add(std::string title, const std::string& lines) {
  VerdictPart& part = parts.emplace_back(VerdictPart{.title = std::move(title)});
  part.lines = split(lines, '\n');
  while (!part.lines.empty() && part.lines.back().empty()) part.lines.pop_back();
  return part;
}

VerdictPart& ResultVerdict::add(std::string title, VerdictTable table) {
  VerdictPart& part = parts.emplace_back(VerdictPart{.title = std::move(title)});
  part.table = std::move(table);
  return part;
}

std::string verdict_text(const ResultVerdict& verdict, bool wide) {
  std::string out;
  for (const VerdictPart& part : verdict.parts) {
    if (!out.empty()) out += "\n";
    if (!part.title.empty()) out += part.title + "\n";
    for (const std::string& line : part.lines) out += line + "\n";
    if (!part.table) continue;
    out += table_text(*part.table, wide);
    if (const std::size_t shown = part.table->rows.size(); part.table->in_all > shown)
      out += fmt::format("the first {} of {}\n", shown, part.table->in_all);
  }
  return out;
}

Json verdict_json(const ResultVerdict& verdict) {
  Json out = Json::array();
  for (const VerdictPart& part : verdict.parts) {
    Json entry = Json::object();
    if (!part.title.empty()) entry["title"] = part.title;
    if (!part.lines.empty()) entry["lines"] = part.lines;
    if (part.command) entry["command"] = true;
    if (part.table) {
      entry["table"] = {{"columns", part.table->columns}, {"rows", part.table->rows}};
      if (part.table->in_all > part.table->rows.size()) entry["table"]["in_all"] = part.table->in_all;
    }
    out.push_back(std::move(entry));
  }
  return out;
}

ResultVerdict read_verdict(const Json& result) {
  ResultVerdict verdict;
  const auto list = result.find("verdict");
  if (list == result.end() || !list->is_array()) return verdict;
  for (const Json& entry : *list) {
    if (!entry.is_object()) continue;
    VerdictPart& part = verdict.parts.emplace_back();
    if (const auto title = entry.find("title"); title != entry.end() && title->is_string())
      part.title = clean_utf8(title->get<std::string>());
    part.lines = texts_of(entry.value("lines", Json::array()));
    const auto command = entry.find("command");
    part.command = command != entry.end() && command->is_boolean() && command->get<bool>();
    if (const auto table = entry.find("table"); table != entry.end() && table->is_object())
      part.table = read_table(*table);
  }
  return verdict;
}

}  // namespace roofcast::reports
