// roofcast kernels [NAME [--gpu GPU] [--engine vllm|sglang|trtllm]]

#include <algorithm>

#include "base/config_library.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "reports/kernel_report.h"

namespace roofcast::cli {
namespace {

const Kernel& find_kernel(const std::string& name) {
  std::vector<std::string> names;
  for (const Kernel* kernel : kernels()) {
    if (kernel->name() == name) return *kernel;
    names.emplace_back(kernel->name());
  }
  throw ConfigError(SourceLocation{"kernels", 0, 0}, unknown_name("kernel", name, names));
}

}  // namespace

int run_kernels(std::span<const std::string> arguments) {
  Options options("roofcast kernels [NAME [--gpu GPU] [--engine vllm|sglang|trtllm]] [--format table|json|csv]",
                  "The kernels that operators are priced by, and their constants on a GPU.");
  options.add().add_options()("gpu", boost::program_options::value<std::string>(),
                              "GPU: show the constants on this GPU")(
      "engine", boost::program_options::value<std::string>()->default_value("vllm"),
      "vllm | sglang | trtllm: engine whose kernels were measured");
  options.add_output_flags();
  options.positional("name", 1);
  if (!options.parse(arguments)) return kDone;
  if (!options.has("name")) {
    if (options.has("gpu")) throw ConfigError("--gpu: needs the name of a kernel before it");
    options.write_report(reports::kernels_report);
    return kDone;
  }
  const Kernel& kernel = find_kernel(options.value<std::vector<std::string>>("name").front());
  if (!options.has("gpu")) {
    options.write_report([&](const std::string& format) { return reports::kernel_report(kernel, nullptr, format); });
    return kDone;
  }
  const std::string engine = options.text("engine");
  const std::vector<std::string>& sets = kernel_sets();
  if (std::find(sets.begin(), sets.end(), engine) == sets.end())
    throw ConfigError("--engine: " + unknown_name("engine", engine, sets));
  const CalibratedGpu gpu =
      load_gpu(load_named("hardware", options.text("gpu"), SourceLocation{"--gpu", 0, 0}), engine);
  options.write_report([&](const std::string& format) { return reports::kernel_report(kernel, &gpu, format); });
  return kDone;
}

}  // namespace roofcast::cli
