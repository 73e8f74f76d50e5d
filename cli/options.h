#pragma once
// Flags that commands share, and how they modify a scenario.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "base/config_node.h"
#include "cli/help.h"
#include "hw/cost.h"

namespace roofcast::cli {

/// Parsed flags of one command; get() after parse().
class Options {
 public:
  Options(std::string usage, std::string help);

  boost::program_options::options_description& add() { return description_; }
  /// --model, --gpu, --engine, parallelism, precision, --set, --fidelity.
  void add_deployment_flags();
  /// --format table|json|csv, --columns and --out.
  void add_output_flags();
  /// Only the first two, for commands whose --out means something else.
  void add_format_flags();
  void positional(const char* name, int max_count);
  /// The flags as --help shows them. A flag's text starts with its value in capitals ("FILE.csv: one line per request")
  /// or with its choices ("table | json | csv"); a number needs neither.
  CommandHelp help() const;

  /// False if --help was given and printed. Throws ConfigError("--flag: message").
  bool parse(std::span<const std::string> arguments);

  bool has(const std::string& flag) const { return values_.count(flag) > 0 && !values_[flag].defaulted(); }
  template <class T>
  const T& value(const std::string& flag) const {
    return values_[flag].as<T>();
  }
  std::string text(const std::string& flag) const { return values_.count(flag) ? values_[flag].as<std::string>() : ""; }

  /// An integer flag within bounds.
  std::int64_t integer(const std::string& flag, std::int64_t low, std::int64_t high) const;

  /// The document named by the positional argument: a file, or a name in configs/`folder`. Empty without an argument.
  ConfigTree document(const std::string& positional, const std::string& folder) const;
  /// Overrides a value of a document in a command's own way; `origin` names the flag.
  using Assign = std::function<ConfigTree(const ConfigTree& tree, const std::string& key, const ConfigTree& value,
                                          const std::string& origin)>;
  /// `scenario` with the deployment flags, --set and --seed applied.
  ConfigTree scenario(ConfigTree scenario, const Assign& assign = {}) const;
  Fidelity fidelity() const;
  std::string format() const;  ///< table | json | csv

  /// Throws ConfigError if the output of a flag would replace `path`, a file that the command reads or keeps.
  void check_kept(const std::string& path) const;

  /// Writes the result of `report` for --format, or the --columns of its CSV, to --out or stdout.
  using Report = std::function<std::string(const std::string& format)>;
  std::string formatted(const Report& report) const;
  /// Writes a table; on a terminal, long lines are broken.
  void write_report(const Report& report) const;
  /// Writes to --out or stdout. Throws ConfigError if that fails.
  void write(const std::string& text) const;
  /// The same piece by piece, for what is too large to be held in memory. If `report` throws, --out is left as it was,
  /// and stdout is cut off.
  using Piece = std::function<void(std::string_view)>;
  void write_pieces(const std::function<void(const Piece& write)>& report) const;

 private:
  /// Checks the output files before a long run: their folders exist, and no two outputs, nor an output and an input,
  /// are the same file.
  void check_output_files();
  /// The same for files that `tree` names.
  void check_files_of(const ConfigNode& tree, const std::string& key) const;
  void check_set_once() const;

  std::string usage_, help_, positional_name_;
  boost::program_options::options_description description_;
  boost::program_options::positional_options_description positional_;
  boost::program_options::variables_map values_;
  std::map<std::string, std::string> written_;  ///< canonical output paths, and the flag of each
};

}  // namespace roofcast::cli
