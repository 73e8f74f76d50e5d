#include "hw/rooflines.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/config_library.h"

namespace roofcast {
namespace {

constexpr PerSecond kUsualClock(1.95e9);  ///< clock of a GPU whose file has none: H100 has 1.98, B200 1.965 GHz
constexpr std::array<std::string_view, 3> kWidths{"w16", "w8", "w4"};

RooflineShares parse_shares(ConfigReader in) {
  RooflineShares s;
  s.memory = in.number("memory", s.memory, Range{0.01, 1.0});
  s.compute = in.number("compute", s.compute, Range{0.001, 1.0});
  s.flops_per_cycle = in.number("flops_per_cycle", 0.0, kAtLeastZero);
  in.finish();
  return s;
}

UnpackRates parse_rates(ConfigReader in) {
  UnpackRates r;
  r.values_per_cycle = in.number("values_per_cycle", 0.0, kAtLeastZero);
  r.flops_per_cycle = in.number("flops_per_cycle", 0.0, kAtLeastZero);
  in.finish();
  return r;
}

RooflineBackend parse_backend(ConfigReader in) {
  RooflineBackend b;
  b.name = in.text("name");
  for (const ConfigTree& item : in.list("architectures")) {
    if (item->kind != ConfigNode::Kind::kScalar) throw ConfigError(item->location, "must name an architecture");
    b.architectures.push_back(parse_architecture(item->scalar, item->location));
  }
  b.source = in.text("source");
  b.by_hand = in.boolean("by_hand", false);
  b.operator_time = in.time("operator_time");
  if (b.operator_time.base() < 0.0) in.fail("operator_time", "must be at least 0");
  b.discrepancy = in.number("discrepancy", kPositive);
  b.few_tokens = in.number("few_tokens", 0.0, kAtLeastZero);
  b.pass_tokens = in.number("pass_tokens", 0.0, kAtLeastZero);
  if (in.has("few")) b.few = parse_rates(in.child("few"));
  if (in.has("many")) b.many = parse_rates(in.child("many"));
  if (in.has("few") && b.few_tokens < 1.0) in.fail("few", "needs 'few_tokens', at least 1");
  if (b.pass_tokens > 0.0 && b.pass_tokens < 1.0) in.fail("pass_tokens", "must be at least 1, or 0 for no passes");
  ConfigReader formats = in.child("formats");
  for (std::size_t i = 0; i < kWidths.size(); ++i) b.wide[i] = parse_shares(formats.child(kWidths[i]));
  formats.finish();
  in.finish();
  return b;
}

}  // namespace

const RooflineBackend& Rooflines::on(Architecture architecture) const {
  for (const RooflineBackend& b : backends) {
    if (std::find(b.architectures.begin(), b.architectures.end(), architecture) != b.architectures.end()) return b;
  }
  return assumed_roofline();
}

Rooflines parse_rooflines(ConfigReader in) {
  Rooflines out;
  out.name = in.text("name");
  in.ignore("help");
  for (const ConfigTree& item : in.list("backends"))
    out.backends.push_back(parse_backend(ConfigReader(item, "a backend")));
  in.finish();
  return out;
}

std::shared_ptr<const Rooflines> load_rooflines(const std::string& name, const SourceLocation& location) {
  static std::mutex mutex;
  static std::map<ConfigTree, std::shared_ptr<const Rooflines>>
      read;  // keyed by document: a changed document is another tree
  const ConfigTree document = load_named("rooflines", name, location);
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Rooflines>& rooflines = read[document];
  if (!rooflines) rooflines = std::make_shared<const Rooflines>(parse_rooflines(ConfigReader(document, "rooflines")));
  return rooflines;
}

const RooflineBackend& assumed_roofline() {
  static const RooflineBackend kAssumed;
  return kAssumed;
}

namespace {

/// The time in which the SMs read the weights, unpack and multiply them; `cycles`: of all SMs per second.
double unpack_seconds(const WeightWork& w, Flops flops, double cycles, const RooflineBackend& b) {
  const auto over = [&](double work, double per_cycle) { return per_cycle > 0 ? work / (per_cycle * cycles) : 0.0; };
  const double passes = b.pass_tokens > 0 ? std::max(1.0, w.tokens / b.pass_tokens) : 1.0;
  const double read = over(w.values * passes, b.many.values_per_cycle);
  if (element_bits(w.format) > 8.0) return w.tokens > 1.0 ? read : 0.0;
  const double share = std::min(1.0, b.few_tokens / std::max(1.0, w.tokens));
  const double few = over(w.values, b.few.values_per_cycle) + over(flops.base() * share, b.few.flops_per_cycle);
  return share < 1.0 ? std::max(few, read + over(flops.base(), b.many.flops_per_cycle)) : few;
}

}  // namespace

Cost roofline_cost(const Cost& ideal, double operators, const WeightWork& weights, const GpuSpec& gpu,
                   const RooflineBackend& backend) {
  const RooflineShares& s = backend.shares(weights.format);
  const PerSecond clock = gpu.boost_clock.base() > 0.0 ? gpu.boost_clock : kUsualClock;
  const double cycles = gpu.sm_count > 1 ? clock.base() * gpu.sm_count : 0.0;  // per second, over all SMs
  const FlopsPerSecond wide = std::max(gpu.peak(Dtype::kBf16), gpu.peak(Dtype::kFp16));
  const Seconds at_peak = ideal.bound == Bound::kCompute ? ideal.time : std::min(ideal.time, ideal.flops / wide);
  const Seconds memory = ideal.bytes / gpu.memory_bandwidth / s.memory;
  Seconds compute = at_peak / s.compute;
  if (cycles > 0.0) {
    if (s.flops_per_cycle > 0.0)
      compute = std::max(compute, Seconds(ideal.flops.base() / (s.flops_per_cycle * cycles)));
    compute = std::max(compute, Seconds(unpack_seconds(weights, ideal.flops, cycles, backend)));
  }
  const Seconds work = std::max(memory, compute), start = operators * backend.operator_time;
  Cost cost = ideal;
  cost.time = work + start;
  cost.bound = start > work ? Bound::kLatency : compute > memory ? Bound::kCompute : Bound::kMemory;
  return cost;
}

}  // namespace roofcast
