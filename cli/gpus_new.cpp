// roofcast gpus new: a GPU file from the numbers of a datasheet.

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/error_summary.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "hw/efficiency.h"
#include "hw/rooflines.h"
#include "sim/step/operator_error.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

enum class Needed { kAlways, kByKernels, kNever };

/// One key of the file.
struct Figure {
  const char* flag;
  const char* path;  ///< dotted path of the key
  Needed needed;
  const char* example;
  const char* help;
};

constexpr std::array<Figure, 23> kFigures{{
    {"architecture", "architecture", Needed::kAlways, "hopper", "what the matrix units are programmed by"},
    {"sms", "sm_count", Needed::kByKernels, "132", "SMs, compute units or cores"},
    {"memory", "memory_capacity", Needed::kAlways, "94 GB", "as the driver reports it, not as advertised"},
    {"bandwidth", "memory_bandwidth", Needed::kAlways, "3.9 TB/s", "of the memory"},
    {"l2", "l2_cache", Needed::kByKernels, "50 MiB", "the last cache before the memory"},
    {"shared-memory", "shared_memory_per_sm", Needed::kByKernels, "228 KiB", "of an SM"},
    {"clock", "boost_clock", Needed::kNever, "1785 MHz", "highest; times of kernels are transferred with it"},
    {"power", "board_power", Needed::kNever, "400 W", "limit of the board"},
    {"idle-power", "idle_power", Needed::kNever, "60 W", "of an empty GPU"},
    {"fabric", "node.fabric", Needed::kNever, "nvswitch", "what connects the GPUs; pcie where nothing else does"},
    {"gpus-per-node", "node.gpus_per_node", Needed::kNever, "8", "GPUs of a node"},
    {"links", "node.fabric_bandwidth", Needed::kNever, "450 GB/s", "all links of a GPU, one direction"},
    {"domain", "node.fabric_domain", Needed::kNever, "8", "GPUs that the links reach"},
    {"pcie", "node.pcie_bandwidth", Needed::kAlways, "64 GB/s", "one direction"},
    {"nic", "node.nic_bandwidth", Needed::kAlways, "50 GB/s", "network of a GPU, one direction"},
    {"fp32", "dense.fp32", Needed::kNever, "60 TFLOP/s", "dense peak"},
    {"bf16", "dense.bf16", Needed::kAlways, "835 TFLOP/s", "dense peak: a datasheet's sparse figure halved"},
    {"fp16", "dense.fp16", Needed::kNever, "835 TFLOP/s", "dense peak; as bf16 where it is not given"},
    {"fp8", "dense.fp8", Needed::kNever, "1671 TFLOP/s", "dense peak"},
    {"int8", "dense.int8", Needed::kNever, "1671 TFLOP/s", "dense peak"},
    {"int4", "dense.int4", Needed::kNever, "1248 TFLOP/s", "dense peak"},
    {"nvfp4", "dense.nvfp4", Needed::kNever, "9000 TFLOP/s", "dense peak"},
    {"mxfp4", "dense.mxfp4", Needed::kNever, "9000 TFLOP/s", "dense peak"},
}};

/// "--memory 94GB" becomes "94 GB" in the file.
std::string with_space(std::string value) {
  const std::size_t unit = value.find_first_not_of("0123456789.eE+-");
  if (unit != std::string::npos && unit > 0 && value[unit] != ' ') value.insert(unit, " ");
  return value;
}

std::string missing_figures(const Options& options, bool by_roofline_alone) {
  std::string out;
  for (const Figure& f : kFigures) {
    const bool needed = f.needed == Needed::kAlways || (f.needed == Needed::kByKernels && !by_roofline_alone);
    const bool other = std::string_view(f.flag) == "bf16" && options.has("fp16");  // either one is enough
    if (needed && !options.has(f.flag) && !other)
      out += fmt::format("{}--{} (such as '{}')", out.empty() ? "" : ", ", f.flag, f.example);
  }
  return out;
}

struct Near {
  GpuSpec spec;
  ConfigTree constants;  ///< `efficiency` of its file; null if absent
  double distance = 0;   ///< in the logarithms of bandwidth, 16-bit peak and memory
  bool measured = false;
};

double wide_peak(const GpuSpec& gpu) { return std::max(gpu.peak(Dtype::kBf16), gpu.peak(Dtype::kFp16)).base(); }

std::vector<Near> nearest(const GpuSpec& gpu) {
  std::vector<Near> out;
  for (const std::string& name : names_of("hardware")) {
    const ConfigTree tree = load_named("hardware", name, SourceLocation{"gpus new", 0, 0});
    Near near{.spec = parse_gpu_spec(ConfigReader(tree, "a GPU")), .constants = {}};
    const auto apart = [](double a, double b) { return std::log(a / b) * std::log(a / b); };
    near.distance = std::sqrt(apart(near.spec.memory_bandwidth.base(), gpu.memory_bandwidth.base()) +
                              apart(wide_peak(near.spec), wide_peak(gpu)) +
                              apart(near.spec.memory_capacity.base(), gpu.memory_capacity.base()));
    const ConfigTree* constants = tree->find("efficiency");
    if (constants != nullptr) near.constants = *constants;
    near.measured = near.constants && near.constants->find("vllm") != nullptr;
    out.push_back(std::move(near));
  }
  std::sort(out.begin(), out.end(), [](const Near& a, const Near& b) { return a.distance < b.distance; });
  return out;
}

/// The GPU whose constants it takes: a measured GPU of the same generation, else of the vendor's last generation with
/// the same formats.
std::string constants_text(const GpuSpec& gpu, const std::vector<Near>& near) {
  if (by_roofline(gpu.architecture)) return "";
  for (const Near& n : near) {
    if (n.measured && n.spec.architecture == gpu.architecture)
      return fmt::format("efficiency:\n  carried_over_from: {}  # measured, of the same generation\n", n.spec.name);
  }
  for (const Near& n : near) {
    if (n.constants && n.spec.architecture == gpu.architecture && n.constants->find("carried_over_from") != nullptr)
      return fmt::format(
          "# As {}, the nearest of its architecture.\n{}", n.spec.name,
          to_yaml(*make_map({{"efficiency", n.constants->location, n.constants}}, n.constants->location)));
  }
  const bool narrow = gpu.peak(Dtype::kNvfp4) > FlopsPerSecond(0);
  std::string out = fmt::format("efficiency:\n  carried_over_from: {}  # the nearest measured GPU with its formats\n",
                                narrow ? "b200-sxm" : "h100-sxm");
  if (traits_of(gpu.architecture).matrix_units == MatrixUnits::kMmaSync)
    out += "  ampere_kernels_from: a100-sxm  # matrix units by mma.sync: products and attention are Ampere's\n";
  return out +
         "  # matrix_limit: 0.6  # the share of the peaks that the board's power sustains in long products, where it "
         "is known\n"
         "  another_generation: true\n";
}

std::string file_text(const Options& options, const std::string& name) {
  std::string out =
      fmt::format("# {}.\n# Which datasheet? Put the source of every other figure beside it.\nname: {}\n", name, name);
  std::string map;
  for (const Figure& f : kFigures) {
    std::string key = f.path;
    const std::size_t dot = key.find('.');
    const std::string in = dot == std::string::npos ? "" : key.substr(0, dot);
    if (dot != std::string::npos) key.erase(0, dot + 1);
    const bool twin = key == "fp16" && !options.has("fp16") && options.has("bf16");
    if (!options.has(f.flag) && !twin) continue;
    const std::string fabric = options.has("fabric") ? options.text("fabric") : "";
    if (fabric.starts_with("nv")) {  // NVLink has its own terms
      if (key == "fabric_bandwidth") key = "nvlink_bandwidth";
      if (key == "fabric_domain") key = "nvlink_domain";
    }
    if (in != map && !in.empty()) out += in + ":\n";
    map = in;
    out += fmt::format("{}{}: {}  # {}\n", in.empty() ? "" : "  ", key,
                       with_space(options.text(twin ? "bf16" : f.flag)), f.help);
  }
  return out;
}

/// Figures far from those of every known GPU of the same architecture (of all GPUs, if none is known), probably due to
/// a wrong unit.
std::string far_off(const GpuSpec& gpu, const std::vector<Near>& near) {
  struct Compared {
    const char* name;
    double (*of)(const GpuSpec&);
  };
  constexpr double kFar =
      4;  // GPUs of one architecture differ by up to 7x, but none is this far outside of their range
  static constexpr std::array<Compared, 6> kCompared{{
      {"memory", [](const GpuSpec& g) { return g.memory_capacity.base(); }},
      {"bandwidth", [](const GpuSpec& g) { return g.memory_bandwidth.base(); }},
      {"bf16", wide_peak},
      {"fp8", [](const GpuSpec& g) { return g.peak(Dtype::kFp8).base(); }},
      {"pcie", [](const GpuSpec& g) { return g.node.pcie_bandwidth.base(); }},
      {"nic", [](const GpuSpec& g) { return g.node.nic_bandwidth.base(); }},
  }};
  const bool known =
      std::any_of(near.begin(), near.end(), [&](const Near& n) { return n.spec.architecture == gpu.architecture; });
  std::string out;
  for (const Compared& c : kCompared) {
    double low = 0, high = 0;
    for (const Near& n : near) {
      const double value = c.of(n.spec);
      if (!(value > 0) || (known && n.spec.architecture != gpu.architecture)) continue;
      low = low > 0 ? std::min(low, value) : value;
      high = std::max(high, value);
    }
    const double value = c.of(gpu);
    if (!(value > 0) || !(low > 0) || (value * kFar >= low && value <= high * kFar)) continue;
    const bool less = value < low;
    out += fmt::format("warning: --{}: {:.3g} times {} every known {}part; is the unit right?\n", c.name,
                       less ? low / value : value / high, less ? "below" : "above",
                       known ? fmt::format("{} ", name_of(gpu.architecture)) : std::string());
  }
  return out;
}

/// What results for the GPU are based on.
std::string interval_text(const ConfigTree& tree, const GpuSpec& gpu) {
  const CalibratedGpu loaded = load_gpu(tree);
  const double s = kNinetyPercent * discrepancy_of(GemmShape{}, loaded.efficiency, loaded.spec);
  const std::string from =
      by_roofline(gpu.architecture)
          ? fmt::format("{:.0f} % of its roofline: nothing is measured", 100 * assumed_roofline().wide[0].memory)
          : fmt::format("constants carried over from {}", loaded.efficiency.carried_over_from.empty()
                                                              ? "the same GPU"
                                                              : loaded.efficiency.carried_over_from);
  return fmt::format("{}\n90 % interval of a matrix product: {:.2f} to {:.2f} times what is predicted\n", from,
                     std::exp(-s), std::exp(s));
}

}  // namespace

int run_gpus_new(std::span<const std::string> arguments) {
  Options options(
      "roofcast gpus new NAME --architecture A --memory '94 GB' --bandwidth '3.9 TB/s' --bf16 '835 TFLOP/s' ... [--out "
      "FILE]",
      "Writes a GPU file from the figures of a datasheet, and says what is near and what answers rest on.");
  for (const Figure& f : kFigures)
    options.add().add_options()(f.flag, po::value<std::string>(),
                                fmt::format("{}, such as '{}'", f.help, f.example).c_str());
  options.add().add_options()("out", po::value<std::string>(), "FILE: write here instead of to stdout");
  options.positional("name", 1);
  if (!options.parse(arguments)) return kDone;
  if (!options.has("name"))
    throw ConfigError("gpus new: --name is missing; give a name in lower case, such as 'h100-nvl'");
  const std::string name = options.value<std::vector<std::string>>("name").front();
  const bool known = options.has("architecture");
  const bool alone =
      known && by_roofline(parse_architecture(options.text("architecture"), SourceLocation{"--architecture", 0, 0}));
  if (const std::string missing = missing_figures(options, alone); !missing.empty())
    throw ConfigError("gpus new: these figures are missing: " + missing);
  std::string text = file_text(options, name);
  const GpuSpec gpu = parse_gpu_spec(ConfigReader(parse_config_text(text, "gpus new"), "a GPU"));
  const std::vector<Near> near = nearest(gpu);
  text += constants_text(gpu, near);
  options.write(text);
  fmt::print(stderr, "{}", far_off(gpu, near));
  std::string shown;
  for (std::size_t i = 0; i < near.size() && i < 3; ++i)
    shown += fmt::format("{}{}{}", i > 0 ? ", " : "", near[i].spec.name, near[i].measured ? " (measured)" : "");
  fmt::print(stderr, "nearest by bandwidth, peak and memory: {}\n{}", shown,
             interval_text(parse_config_text(text, "gpus new"), gpu));
  return kDone;
}

}  // namespace roofcast::cli
