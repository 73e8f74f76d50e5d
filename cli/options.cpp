#include "cli/options.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/control_characters.h"
#include "base/output_file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "hw/dtype.h"
#include "reports/records_csv.h"
#include "reports/table_width.h"
#include "reports/verdict.h"
#include "sim/plan/deployment_flags.h"
#include "sim/plan/search/condition.h"
#include "sim/serve/overlaid.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace {

/// A canonical path, so that two names of one file are equal.
std::string whole_path(const std::string& path) {
  std::error_code unknown;
  return fs::weakly_canonical(fs::absolute(path, unknown), unknown).string();
}

std::string first_line(std::string text) {
  const auto end = text.find('\n');
  return end == std::string::npos ? text : text.substr(0, end);
}

/// "a | b" of "a | b: which of the two"; empty if the text does not begin like that.
std::vector<std::string> leading_choices(const std::string& text) {
  std::vector<std::string> words;
  const std::string list = text.substr(0, text.find_first_of(":,(;"));
  if (list.find(" | ") == std::string::npos) return {};
  for (const std::string& part : split(list, '|')) {
    const std::string word(trim(part));
    if (word.empty() || word.find(' ') != std::string::npos) return {};
    words.push_back(word);
  }
  return words;
}

/// "FILE.csv" of "FILE.csv: one line per request" and of "FILE.csv of runs"; empty if the text does not begin like
/// that.
std::string leading_value(const std::string& text) {
  const std::string word = text.substr(0, text.find_first_of(": "));
  const bool capital = !word.empty() && word[0] >= 'A' && word[0] <= 'Z';
  if (word.ends_with(',') && word.find(',') + 1 == word.size()) return "";  // a sentence, not a name
  return capital && (word.size() == 1 || (word[1] >= 'A' && word[1] <= 'Z') || word[1] == '/') ? word : "";
}

FlagHelp flag_help(const po::option_description& option) {
  FlagHelp help;
  help.name = option.long_name();
  help.text = option.description();
  if (option.semantic()->max_tokens() == 0) return help;
  boost::any fallback;
  if (option.semantic()->apply_default(fallback)) help.fallback = boost::any_cast<std::string>(fallback);
  help.choices = leading_choices(help.text);
  help.value = leading_value(help.text);
  if (!help.value.empty() && help.text.substr(help.value.size()).starts_with(": "))
    help.choices = leading_choices(help.text.substr(help.value.size() + 2));
  if (!help.value.empty()) {
    help.text.erase(0, help.value.size());
    if (help.text.starts_with(":")) help.text.erase(0, 1);
    help.text = std::string(trim(help.text));
  } else if (constexpr std::size_t kShort = 24; !help.choices.empty() && join(help.choices, "|").size() <= kShort) {
    help.value = join(help.choices, "|");
    help.text.erase(0, std::min(help.text.find_first_of(":,(;"), help.text.size()));
    help.text =
        std::string(trim(help.text.starts_with(":") || help.text.starts_with(",") ? help.text.substr(1) : help.text));
  } else {
    const bool words = help.text.find("such as '") != std::string::npos;  // "94 GB"
    help.value = !help.choices.empty() ? "WORD" : words ? "VALUE" : "N";
  }
  return help;
}

/// On a terminal with colours, unless NO_COLOR is set (no-color.org).
bool colors_wanted() {
  const char *no = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && (no == nullptr || *no == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

/// The value that `set`, the tree of one assignment, gives the key: the value, or its name or tier. A scalar precision
/// names the weights. Null: none.
ConfigTree named_in(const ConfigTree& set, const std::string& key) {
  const ConfigTree precision = value_at(set, "precision");
  if (key == "precision.weights" && precision && precision->kind == ConfigNode::Kind::kScalar) return precision;
  const ConfigTree value = value_at(set, key);
  if (!value || value->kind != ConfigNode::Kind::kMap) return value;
  return value_at(value, key == "price" ? "tier" : "name");
}

std::optional<Dtype> dtype_of(const std::string& name) {
  try {
    return parse_dtype(name, SourceLocation{});
  } catch (const ConfigError&) {
    return std::nullopt;  // a recipe, or nothing
  }
}

/// Whether a flag's word and the value of a --set mean the same.
bool says_the_same(const std::string& key, const std::string& told, const ConfigTree& value) {
  if (!value || value->kind != ConfigNode::Kind::kScalar) return false;
  if (value->scalar == told) return true;
  if (key.starts_with("precision.")) return dtype_of(told) && dtype_of(told) == dtype_of(value->scalar);
  for (const auto& [named, kind] : {std::pair{"model", "models"}, {"gpu", "hardware"}}) {
    if (key == named)
      return !shipped_name(kind, told).empty() && shipped_name(kind, told) == shipped_name(kind, value->scalar);
  }
  return false;
}

}  // namespace

CommandHelp Options::help() const {
  CommandHelp help{usage_, help_, positional_name_, {}};
  for (const auto& option : description_.options()) {
    if (option->long_name() != positional_name_) help.flags.push_back(flag_help(*option));
  }
  return help;
}

Options::Options(std::string usage, std::string help)
    : usage_(std::move(usage)), help_(std::move(help)), description_("Options") {
  description_.add_options()("help,h", "show this text");
}

void Options::add_deployment_flags() {
  auto add = description_.add_options();
  for (const DeploymentFlag& f : deployment_flags()) add(f.name, po::value<std::string>(), f.help);
  add("fidelity", po::value<std::string>()->default_value("calibrated"),
      "ideal | calibrated: the datasheet roofline, or fitted to measurements");
  add("force-unsupported", "estimate even what the engine cannot run, with a warning");
  add("set", po::value<std::vector<std::string>>()->composing(), "KEY=VALUE: any key of the scenario, repeatable");
}

void Options::add_format_flags() {
  description_.add_options()("format", po::value<std::string>()->default_value("table"), "table | json | csv")(
      "columns", po::value<std::string>(), "NAMES: only these columns of the CSV, separated by commas");
}

void Options::add_output_flags() {
  add_format_flags();
  description_.add_options()("out", po::value<std::string>(), "FILE: write here instead of to stdout");
}

void Options::positional(const char* name, int max_count) {
  positional_.add(name, max_count);
  positional_name_ = name;
  description_.add_options()(name, po::value<std::vector<std::string>>());
}

bool Options::parse(std::span<const std::string> arguments) {
  try {
    const std::vector<std::string> words(arguments.begin(), arguments.end());
    po::command_line_parser parser(words);
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(parser.options(description_).positional(positional_).style(style).run(), values_);
    po::notify(values_);
  } catch (const po::unknown_option& e) {
    std::vector<std::string> valid;
    for (const auto& option : description_.options()) valid.push_back("--" + option->long_name());
    throw ConfigError(unknown_name("flag", e.get_option_name(), valid));
  } catch (const po::too_many_positional_options_error&) {
    throw ConfigError(fmt::format("too many words; usage: {}", first_line(usage_)));
  } catch (const po::error_with_option_name& e) {
    throw ConfigError(fmt::format("{}: {}", e.get_option_name(), first_line(e.what())));
  } catch (const po::error& e) {
    throw ConfigError(first_line(e.what()));
  }
  if (values_.count("help")) {
    if (collected_help() != nullptr)
      *collected_help() = help();
    else {
      constexpr std::size_t kUsualWidth = 100;
      reports::set_table_width(terminal_width());
      std::cout << reports::within_width(help_text(help(), terminal_width().value_or(kUsualWidth)));
    }
    return false;
  }
  if (values_.count("format")) (void)format();
  check_output_files();
  // A file is as wide as needed, unless $COLUMNS limits it.
  const bool asked = std::getenv("COLUMNS") != nullptr;
  reports::set_table_width(values_.count("out") && !asked ? std::nullopt : terminal_width());
  return true;
}

void Options::check_output_files() {
  for (const char* flag : {"out", "requests-out", "perfetto", "openmetrics", "bench-out"}) {
    if (!values_.count(flag)) continue;
    const std::string path = text(flag);
    const fs::path folder = fs::path(path).parent_path();
    std::error_code unknown;
    if (!folder.empty() && !fs::is_directory(folder, unknown))
      throw ConfigError(fmt::format("--{}: cannot write '{}': no such folder", flag, path));
    if (path.starts_with("/dev/")) continue;
    const auto [other, first] = written_.emplace(whole_path(path), flag);
    if (!first)
      throw ConfigError(fmt::format("--{}: '{}' is written by --{} too; name another file", flag, path, other->second));
  }
  std::vector<std::string> read;
  if (has(positional_name_)) read = value<std::vector<std::string>>(positional_name_);
  for (const char* flag : {"trace", "bench", "data", "prometheus", "merge"}) {
    if (!has(flag)) continue;
    if (const auto* several = boost::any_cast<std::vector<std::string>>(&values_[flag].value()))
      read.insert(read.end(), several->begin(), several->end());
    else
      read.push_back(text(flag));
  }
  for (const std::string& path : read) {
    std::error_code unknown;  // a shipped name is not a file here
    if (fs::exists(path, unknown)) check_kept(path);
  }
}

void Options::check_kept(const std::string& path) const {
  const auto found = written_.find(whole_path(path));
  if (found == written_.end()) return;
  throw ConfigError(fmt::format("--{}: '{}' is read too, and would be lost; name another file", found->second, path));
}

void Options::check_files_of(const ConfigNode& node, const std::string& key) const {
  if (written_.empty()) return;
  for (const ConfigNode::Entry& entry : node.entries) {
    if (entry.value) check_files_of(*entry.value, entry.key);
  }
  for (const ConfigTree& item : node.items) check_files_of(*item, key);
  if (node.kind != ConfigNode::Kind::kScalar) return;
  if (key != "file" && key != "counts" && node.scalar.find_first_of("./") == std::string::npos) return;
  std::error_code unknown;
  for (const std::string& path : {beside(node.scalar, node.location), node.scalar}) {
    if (fs::is_regular_file(path, unknown)) check_kept(path);
  }
}

std::int64_t Options::integer(const std::string& flag, std::int64_t low, std::int64_t high) const {
  const std::string& text = values_[flag].as<std::string>();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool octal = text.size() > 1 && text[0] == '0';  // to some readers
  if (error != std::errc() || end != text.data() + text.size() || octal || value < low || value > high) {
    throw ConfigError(fmt::format("--{}: must be an integer from {} to {}, got '{}'", flag, low, high, text));
  }
  return value;
}

ConfigTree Options::document(const std::string& positional, const std::string& folder) const {
  if (!has(positional)) return make_map({}, SourceLocation{"command line", 0, 0});
  const std::string command = split(usage_, ' ').at(1);  // "roofcast COMMAND ..."
  const std::string& name = value<std::vector<std::string>>(positional).front();
  const bool lines = name.ends_with(".csv") || name.ends_with(".jsonl");
  if (lines && command == "simulate")
    throw ConfigError(fmt::format("simulate: '{}' is a file of requests; pass it with --trace {}", name, name));
  const ConfigTree tree = load_named(folder, name, SourceLocation{command, 0, 0});
  check_files_of(*tree, "");
  for (const auto& [key, kind] : {std::pair{"search", "plan"}, {"grid", "sweep"}}) {
    if (command != kind && tree->find(key) != nullptr)
      throw ConfigError(tree->location, fmt::format("this is a {} (it has '{}'); use roofcast {}", kind, key, kind));
  }
  return tree;
}

/// Throws ConfigError if a flag and a --set give one key different values.
void Options::check_set_once() const {
  if (!values_.count("set")) return;
  std::vector<std::pair<std::string, std::string>> keys;  // of a flag and of the scenario
  for (const DeploymentFlag& f : deployment_flags()) keys.emplace_back(f.name, f.key);
  keys.emplace_back("seed", "seed");
  for (const auto& [flag, path] : keys) {
    if (!has(flag)) continue;
    for (const std::string& assignment : values_["set"].as<std::vector<std::string>>()) {
      const std::string key = assignment.substr(0, assignment.find('=')), told = text(flag);
      const bool within = key.starts_with(path + ".") && (key == path + ".name" || key == path + ".tier");
      if (path != key && !path.starts_with(key + ".") && !within) continue;
      const ConfigTree set = with_assignment(make_map({}, SourceLocation{"--set", 0, 0}), assignment, "--set");
      if (!says_the_same(path, told, named_in(set, path)))
        throw ConfigError(fmt::format("--set {}: --{} {} sets the same; give one of the two", assignment, flag, told));
    }
  }
}

ConfigTree Options::scenario(ConfigTree tree, const Assign& assign) const {
  check_set_once();
  for (const DeploymentFlag& f : deployment_flags()) {
    if (!values_.count(f.name)) continue;
    const std::string origin = std::string("--") + f.name;
    const ConfigTree value = make_scalar(values_[f.name].as<std::string>(), SourceLocation{origin, 0, 0});
    tree = assign ? assign(tree, f.key, value, origin) : with_value(tree, f.key, value, origin);
  }
  if (values_.count("set")) {
    for (const std::string& assignment : values_["set"].as<std::vector<std::string>>()) {
      const std::string key = assignment.substr(0, assignment.find('='));
      const ConfigTree set = with_assignment(tree, assignment, "--set"), value = value_at(set, key);
      tree = assign && value ? assign(tree, key, value, "--set " + key) : set;
    }
  }
  if (values_.count("force-unsupported")) tree = with_assignment(tree, "force_unsupported=true", "--force-unsupported");
  if (has("seed")) tree = with_assignment(tree, "seed=" + text("seed"), "--seed");
  check_files_of(*tree, "");
  return tree;
}

Fidelity Options::fidelity() const {
  const std::string name = text("fidelity");
  if (name == "ideal") return Fidelity::kIdeal;
  if (name == "calibrated") return Fidelity::kCalibrated;
  throw ConfigError(fmt::format("--fidelity: must be ideal or calibrated, got '{}'", name));
}

std::string Options::format() const {
  const std::string name = text("format");
  if (name != "table" && name != "json" && name != "csv") {
    throw ConfigError(fmt::format("--format: must be table, json or csv, got '{}'", name));
  }
  return name;
}

std::string Options::formatted(const Report& report) const {
  if (!has("columns")) return report(format());
  if (format() == "json") throw ConfigError("--columns: not with --format json");
  return reports::with_columns(report("csv"), text("columns"), format());
}

void Options::write_report(const Report& report) const {
  const std::string text = formatted(report);
  write(format() == "table" ? reports::within_width(without_controls(text)) : text);
}

void Options::write(const std::string& text) const {
  if (!values_.count("out")) {
    const bool table = values_.count("format") > 0 && format() == "table";
    const std::string shown = table && colors_wanted() ? reports::with_colors(text) : text;
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    return;
  }
  write_file("--out", values_["out"].as<std::string>(), text);
}

void Options::write_pieces(const std::function<void(const Piece& write)>& report) const {
  if (!values_.count("out"))
    return report([](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  OutputFile file("--out", values_["out"].as<std::string>());
  report([&](std::string_view text) { file.write(text); });
  file.close();
}

}  // namespace roofcast::cli
