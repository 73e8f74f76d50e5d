// roofcast lecture: the lectures' worked examples.

#include "cli/command.h"
#include "cli/options.h"
#include "reports/lecture_report.h"

namespace roofcast::cli {
namespace po = boost::program_options;

int run_lecture(std::span<const std::string> arguments) {
  Options options("roofcast lecture [NAME] [options]",
                  "A worked example of the lectures (docs/lectures.md), computed from its inputs; without a name, the\n"
                  "list of them.");
  options.add().add_options()("set", po::value<std::vector<std::string>>()->composing(),
                              "NAME=NUMBER,...: an input of the example");
  options.add_output_flags();
  options.positional("name", 1);
  if (!options.parse(arguments)) return kDone;
  const auto inputs = options.has("set") ? options.value<std::vector<std::string>>("set") : std::vector<std::string>{};
  if (!options.has("name")) {
    if (!inputs.empty()) throw ConfigError("--set: of which lecture?");
    options.write_report(reports::lectures_report);
    return kDone;
  }
  const Lecture& lecture = lecture_named(options.value<std::vector<std::string>>("name").front());
  const std::vector<LectureTable> tables = tables_of(lecture, inputs);
  options.write_report(
      [&](const std::string& format) { return reports::lecture_report(lecture, tables, format, inputs); });
  return kDone;
}

}  // namespace roofcast::cli
