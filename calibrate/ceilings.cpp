#include "calibrate/ceilings.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "hw/constants_file.h"
#include "hw/dtype.h"
#include "hw/efficiency.h"
#include "hw/kernel_rules.h"

namespace roofcast::calibrate {
namespace {

/// A rate or a cost from one record, in the unit of its ceiling.
struct Reading {
  std::string name, unit;
  double value = 0;
  bool lowest = false;  ///< the smallest reading is the ceiling
  std::optional<double> datasheet{};
};

std::optional<double> peak_of(const GpuSpec* gpu, const std::string& dtype) {
  if (!gpu || dtype == "int4_wo" || dtype.empty()) return std::nullopt;
  const FlopsPerSecond peak = gpu->peak(parse_dtype(dtype, SourceLocation{"dtype", 0, 0}));
  return peak.base() > 0.0 ? std::optional(peak.base() / 1e12) : std::nullopt;
}

std::optional<Reading> read_stream(const Record& r, double seconds, const GpuSpec* gpu) {
  const auto bytes = static_cast<double>(r.point.number("bytes"));
  const std::string& kind = r.point.word("kind");
  const double rate = r.bytes / seconds / 1e12;
  if (bytes >= 4 * r.device.l2_bytes) {
    const auto datasheet = gpu ? std::optional(gpu->memory_bandwidth.base() / 1e12) : std::nullopt;
    return Reading{"memory, " + kind, "TB/s", rate, false, datasheet};
  }
  if (bytes * (kind == "copy" ? 2.0 : 1.0) > 0.5 * r.device.l2_bytes) return std::nullopt;
  return Reading{"L2, " + kind, "TB/s", rate};
}

std::optional<Reading> reading_of(const Record& r, const GpuSpec* gpu) {
  const double us = statistics_of(r.samples_us).median_us, seconds = us * 1e-6;
  const Point& p = r.point;
  if (p.op == "stream") return read_stream(r, seconds, gpu);
  if (p.op == "tensor_rate")
    return Reading{"matrix units " + p.dtype + " (" + p.word("instruction") + ")", "TFLOP/s", r.flops / seconds / 1e12,
                   false, peak_of(gpu, p.dtype)};
  if (p.op == "gemm" && p.dtype != "int4_wo")
    return Reading{"product " + p.dtype, "TFLOP/s", r.flops / seconds / 1e12, false, peak_of(gpu, p.dtype)};
  if (p.op == "gemm") return Reading{"4-bit product, bytes", "TB/s", r.bytes / seconds / 1e12};
  if (p.op == "attention_decode") return Reading{"decode attention, bytes", "TB/s", r.bytes / seconds / 1e12};
  if (p.op == "attention_prefill")
    return Reading{"prefill attention", "TFLOP/s", r.flops / seconds / 1e12, false, peak_of(gpu, p.dtype)};
  if (p.op == "launch") {
    const std::string& kind = p.word("kind");
    return Reading{kind == "stream"  ? "launch from the host"
                   : kind == "graph" ? "launch of a graph"
                                     : "kernel inside a graph",
                   "us", us, true};
  }
  if (p.op == "copy") {
    const auto datasheet = gpu ? std::optional(gpu->node.pcie_bandwidth.base() / 1e9) : std::nullopt;
    return Reading{p.word("direction") + ", " + p.word("memory"), "GB/s", r.bytes / seconds / 1e9, false, datasheet};
  }
  if (p.op == "all_reduce") {
    const auto gpus = static_cast<double>(p.number("gpus"));
    const auto datasheet = gpu ? std::optional(gpu->node.fabric_bandwidth.base() / 1e9) : std::nullopt;
    return Reading{"all-reduce, bus bandwidth", "GB/s", r.bytes * 2 * (gpus - 1) / gpus / seconds / 1e9, false,
                   datasheet};
  }
  return std::nullopt;
}

ShownBlock shown(const Kernel& kernel, Dtype dtype, const ConstantsBlock& block, const std::string& kernels,
                 const std::array<ConfigTree, 2>& blocks) {
  const FitRecord& record = *block.record;
  ShownBlock out{.family = kernels,
                 .block = place_of(kernel, dtype),
                 .constants = {},
                 .provenance = std::string(name_of(record.provenance)),
                 .source = record.source,
                 .rows = record.rows,
                 .mape = record.mape,
                 .discrepancy = record.discrepancy};
  const std::vector<double> values = kernel.numbers(block);
  for (const FieldFacts& field : kernel.fields()) {
    const std::size_t i = out.constants.size();
    const double error = i < record.standard_errors.size() ? record.standard_errors[i] : 0.0;
    const bool stated = std::any_of(blocks.begin(), blocks.end(),
                                    [&](const ConfigTree& own) { return own && own->find(field.name) != nullptr; });
    out.constants.push_back(
        {std::string(field.name), values[i], stated && error > 0.0 ? std::optional(error) : std::nullopt, stated});
  }
  return out;
}

/// Blocks of the shared map that are equal under every kernel set of `all` are listed once, first, as shared.
void share_once(const ConfigTree& map, std::vector<ShownBlock>& all) {
  const auto key = [](const ShownBlock::Constant& c) { return std::tie(c.name, c.value, c.stated); };
  const auto equal = [&](const ShownBlock::Constant& a, const ShownBlock::Constant& b) { return key(a) == key(b); };
  const auto same = [&](const ShownBlock& a, const ShownBlock& b) {
    return a.rows == b.rows && a.source == b.source &&
           std::equal(a.constants.begin(), a.constants.end(), b.constants.begin(), b.constants.end(), equal);
  };
  std::vector<ShownBlock> shared;
  for (const ShownBlock& first : all) {
    const auto of_place = [&](const ShownBlock& other) { return other.block == first.block; };
    if (!block_in(map, first.block) || std::any_of(shared.begin(), shared.end(), of_place)) continue;
    const auto agrees = [&](const ShownBlock& other) { return !of_place(other) || same(first, other); };
    if (!std::all_of(all.begin(), all.end(), agrees)) continue;
    shared.push_back(first);
    shared.back().family = kSharedMap;
  }
  for (const ShownBlock& once : shared)
    std::erase_if(all, [&](const ShownBlock& block) { return block.block == once.block; });
  all.insert(all.begin(), shared.begin(), shared.end());
}

}  // namespace

std::vector<Ceiling> ceilings_of(const RecordFile& file, const GpuSpec* gpu) {
  std::vector<Ceiling> out;
  for (const Record& record : file.records) {
    if (!record.has_time()) continue;
    std::optional<Reading> reading = reading_of(record, gpu);
    if (!reading) continue;
    if (is_hot(record)) reading->name += ", under load";
    auto at = std::find_if(out.begin(), out.end(), [&](const Ceiling& c) { return c.name == reading->name; });
    const bool fresh = at == out.end();
    if (!fresh && (reading->lowest ? reading->value >= at->value : reading->value <= at->value)) continue;
    if (fresh) at = out.insert(out.end(), Ceiling{});
    const double error = statistics_of(record.samples_us).standard_error;
    *at = {reading->name, reading->value, reading->unit, error, reading->datasheet, record.point.key()};
  }
  return out;
}

std::vector<ShownBlock> blocks_of(const ConfigTree& gpu) {
  std::vector<ShownBlock> out;
  const ConfigTree shared = constants_in(*gpu, kSharedMap);
  for (const auto& rules : all_kernel_rules()) {
    const std::string& name = rules->name();
    const std::array<ConfigTree, 2> maps{shared, constants_in(*gpu, name)};
    const BlocksBeneath beneath = blocks_beneath(gpu, name);
    if (rules->base() != nullptr && !maps[1]) continue;  // they belong to the set that it extends
    const Efficiency in_force = load_gpu(gpu, name).efficiency;
    if (in_force.kernels() != name) continue;
    for (const Kernel* kernel : kernels()) {
      for (std::size_t i = 0; i < kDtypeCount; ++i) {
        const auto dtype = static_cast<Dtype>(i);
        const ConstantsBlock& block = in_force.block(*kernel, dtype);
        if (!block) continue;
        const std::string place = place_of(*kernel, dtype);
        const std::array<ConfigTree, 2> own{block_in(maps[0], place), block_in(maps[1], place)};
        if (own[0] || own[1] || beneath.contains(place)) out.push_back(shown(*kernel, dtype, block, name, own));
      }
    }
  }
  share_once(shared, out);
  return out;
}

std::vector<Ceiling> ceilings_of(const std::vector<ShownBlock>& blocks, const GpuSpec& gpu) {
  std::vector<Ceiling> out;
  for (const ShownBlock& block : blocks) {
    const auto add = [&](std::string_view constant, const std::string& what, double peak, const char* unit) {
      for (const ShownBlock::Constant& c : block.constants) {
        if (c.name != constant || peak <= 0.0) continue;
        out.push_back({block.family + " " + block.block + ": " + what, c.value * peak, unit,
                       c.standard_error ? *c.standard_error / c.value : 0.0, peak, std::string(constant)});
      }
    };
    const double memory = gpu.memory_bandwidth.base() / 1e12;
    for (const char* name : {"bandwidth_efficiency", "bandwidth_fraction"}) add(name, "memory", memory, "TB/s");
    const std::string dtype = block.block.substr(block.block.find_last_of('.') + 1);
    const auto names = dtype_names();
    const auto known = std::find(names.begin(), names.end(), dtype);
    if (known == names.end()) continue;
    const double peak = gpu.dense[static_cast<std::size_t>(known - names.begin())].base() / 1e12;
    for (const char* name : {"compute_efficiency", "compute_fraction"}) add(name, "matrix units", peak, "TFLOP/s");
  }
  return out;
}

}  // namespace roofcast::calibrate
