#include "cli/options.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/output_file.h"
#include "base/text.h"
#include "sim/plan/deployment_flags.h"
#include "sim/plan/search/condition.h"

namespace roofcast {
namespace po = boost::program_options;
namespace {

std::string first_line(std::string text) {
  const auto end = text.find('\n');
  return end == std::string::npos ? text : text.substr(0, end);
}

}  // namespace

Options::Options(std::string usage, std::string help)
    : usage_(std::move(usage)), help_(std::move(help)), description_("Options", 110) {
  description_.add_options()("help,h", "show this text");
}

void Options::add_deployment_flags() {
  auto add = description_.add_options();
  for (const DeploymentFlag& f : deployment_flags()) add(f.name, po::value<std::string>(), f.help);
  add("fidelity", po::value<std::string>()->default_value("calibrated"),
      "ideal | calibrated: the datasheet roofline, or what a machine really does");
  add("force-unsupported", "price what cannot run all the same, and say so");
  add("set", po::value<std::vector<std::string>>()->composing(), "KEY=VALUE: any key of the scenario, repeatable");
}

void Options::add_output_flags() {
  description_.add_options()("format", po::value<std::string>()->default_value("table"), "table | json | csv")(
      "out", po::value<std::string>(), "FILE instead of stdout");
}

void Options::positional(const char* name, int max_count) {
  positional_.add(name, max_count);
  description_.add_options()(name, po::value<std::vector<std::string>>(), "as above");
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
  } catch (const po::error_with_option_name& e) {
    throw ConfigError(fmt::format("{}: {}", e.get_option_name(), first_line(e.what())));
  } catch (const po::error& e) {
    throw ConfigError(first_line(e.what()));
  }
  if (values_.count("help")) {
    std::cout << "usage: " << usage_ << "\n" << help_ << "\n\n" << description_;
    return false;
  }
  if (values_.count("format")) (void)format();
  check_folders();
  return true;
}

void Options::check_folders() const {
  for (const char* flag : {"out", "requests-out", "perfetto", "openmetrics"}) {
    if (!values_.count(flag)) continue;
    const std::string path = text(flag);
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code unknown;
    if (!folder.empty() && !std::filesystem::is_directory(folder, unknown))
      throw ConfigError(fmt::format("--{}: cannot write '{}': no such folder", flag, path));
  }
}

std::int64_t Options::integer(const std::string& flag, std::int64_t low, std::int64_t high) const {
  const std::string& text = values_[flag].as<std::string>();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    throw ConfigError(fmt::format("--{}: must be an integer from {} to {}, got '{}'", flag, low, high, text));
  }
  return value;
}

ConfigTree Options::document(const std::string& positional, const std::string& folder) const {
  if (!has(positional)) return make_map({}, Mark{"command line", 0, 0});
  const std::string command = split(usage_, ' ').at(1);  // "roofcast COMMAND ..."
  return load_named(folder, value<std::vector<std::string>>(positional).front(), Mark{command, 0, 0});
}

ConfigTree Options::scenario(ConfigTree tree, const Assign& assign) const {
  for (const DeploymentFlag& f : deployment_flags()) {
    if (!values_.count(f.name)) continue;
    const std::string origin = std::string("--") + f.name;
    const ConfigTree value = make_scalar(values_[f.name].as<std::string>(), Mark{origin, 0, 0});
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

void Options::write(const std::string& text) const {
  if (!values_.count("out")) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  write_file("--out", values_["out"].as<std::string>(), text);
}

}  // namespace roofcast
