#include "hw/changed_gpu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/config_library.h"

namespace roofcast {
namespace {

constexpr std::string_view kConstants = "efficiency";

ConfigTree without_constants(const ConfigTree& gpu) {
  std::vector<ConfigNode::Entry> kept;
  std::copy_if(gpu->entries.begin(), gpu->entries.end(), std::back_inserter(kept),
               [](const ConfigNode::Entry& entry) { return entry.key != kConstants; });
  return make_map(std::move(kept), gpu->location);
}

bool equal(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

}  // namespace

ConfigTree with_constants_of(const ConfigTree& gpu, const std::string& name, const SourceLocation& named_at) {
  const ConfigTree* constants = gpu->find(kConstants);
  if (constants == nullptr || !*constants || (*constants)->kind == ConfigNode::Kind::kNull) return gpu;
  return with_value(without_constants(gpu), "efficiency.carried_over_from", make_scalar(name, named_at), named_at);
}

ConfigTree with_changed_figures(const ConfigTree& written, const ConfigTree& gpu) {
  constexpr std::array<std::string_view, 8> kOfTheChip{
      "sm_count",    "memory_bandwidth",       "l2_cache",    "shared_memory_per_sm",
      "boost_clock", "exponentials_per_clock", "board_power", "dense"};
  if (written->kind != ConfigNode::Kind::kMap) return gpu;
  const auto says = [&](std::string_view key) { return written->find(key) != nullptr; };
  const ConfigTree* name = written->find("name");
  if (name == nullptr || says("architecture") || says("like") || says("base")) return gpu;
  if (std::none_of(kOfTheChip.begin(), kOfTheChip.end(), says)) return gpu;
  const ConfigTree* own = written->find(kConstants);
  if (own == nullptr || !*own || (*own)->kind != ConfigNode::Kind::kMap)
    return with_constants_of(with_sibling(gpu), (*name)->scalar, (*name)->location);
  // Constants in the scenario override the transferred ones; a source named there replaces this one.
  if ((*own)->find("pooled_with") != nullptr) return gpu;
  const ConfigTree measured = with_sibling(load_named("hardware", (*name)->scalar, (*name)->location));
  if (measured->find(kConstants) == nullptr) return gpu;
  const ConfigTree carried = with_constants_of(with_sibling(gpu), (*name)->scalar, (*name)->location);
  return overlay(carried, make_map({{std::string(kConstants), (*own)->location, *own}}, (*own)->location));
}

bool same_chip(const GpuSpec& a, const GpuSpec& b) {
  bool same = a.architecture == b.architecture && a.sm_count == b.sm_count;
  const auto compare = [&](double x, double y) { same = same && equal(x, y); };
  compare(a.l2_cache.base(), b.l2_cache.base());
  compare(a.shared_memory_per_sm.base(), b.shared_memory_per_sm.base());
  compare(a.exponentials_per_clock, b.exponentials_per_clock);
  compare(a.board_power.value, b.board_power.value);
  compare(a.memory_bandwidth.base() / a.machine.memory_bandwidth,
          b.memory_bandwidth.base() / b.machine.memory_bandwidth);
  compare(a.boost_clock.base() / a.machine.clock, b.boost_clock.base() / b.machine.clock);
  for (std::size_t i = 0; i < kDtypeCount; ++i)
    compare(a.dense[i].base() / a.machine.clock, b.dense[i].base() / b.machine.clock);
  return same;
}

}  // namespace roofcast
