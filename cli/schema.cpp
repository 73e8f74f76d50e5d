// roofcast schema KIND: the JSON Schema of a kind of result.

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/output_file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/json_schema.h"

namespace roofcast::cli {
namespace po = boost::program_options;

int run_schema(std::span<const std::string> arguments) {
  std::vector<std::string> kinds;
  for (const reports::ResultSchema& schema : reports::kResultSchemas) kinds.emplace_back(schema.name);
  Options options("roofcast schema KIND [--out FILE]   |   roofcast schema --folder DIR",
                  "The JSON Schema of a kind of result, as in docs/schemas.\nKinds: " + join(kinds, ", "));
  options.add().add_options()("out", po::value<std::string>(), "FILE: write here instead of to stdout")(
      "folder", po::value<std::string>(), "DIR: writes KIND.json for every kind");
  options.positional("kind", 1);
  if (!options.parse(arguments)) return kDone;
  if (options.has("folder")) {
    for (const reports::ResultSchema& schema : reports::kResultSchemas)
      write_file("--folder", fmt::format("{}/{}.json", options.text("folder"), schema.name),
                 reports::json_schema_text(schema));
    return kDone;
  }
  if (!options.has("kind")) throw ConfigError("schema: of which kind of result? one of " + join(kinds, ", "));
  const std::string& kind = options.value<std::vector<std::string>>("kind").front();
  for (const reports::ResultSchema& schema : reports::kResultSchemas) {
    if (schema.name != kind) continue;
    options.write(reports::json_schema_text(schema));
    return kDone;
  }
  throw ConfigError(unknown_name("kind of result", kind, kinds));
}

}  // namespace roofcast::cli
