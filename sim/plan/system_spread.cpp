#include "sim/plan/system_spread.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/error_summary.h"
#include "base/text.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 3> kRegimes{"light", "loaded", "saturated"};

struct Uncertainty {
  std::array<SystemSpread, kRegimes.size()> regimes;
  struct Deviation {
    double ttft = 0, tpot = 0;
  };
  Deviation recipe, release, another_vendor;
  LogSpread power;
};

LogSpread parse_spread(ConfigReader& in, std::string_view key) {
  const std::vector<double> pair = in.numbers(key, {-10, 10});
  if (pair.size() != 2 || pair[0] > 0 || pair[1] < 0) in.fail(key, "must be [5 % quantile, 95 % quantile] around 0");
  return {pair[0], pair[1]};
}

Uncertainty read_uncertainty() {
  ConfigReader in(load_named("uncertainty", "serving", Mark{"uncertainty", 0, 0}), "uncertainty");
  in.ignore("name");
  Uncertainty u;
  ConfigReader regimes = in.child("regimes");
  for (std::size_t i = 0; i < kRegimes.size(); ++i) {
    ConfigReader one = regimes.child(kRegimes[i]);
    u.regimes[i] = {parse_spread(one, "ttft"), parse_spread(one, "tpot")};
    one.finish();
  }
  regimes.finish();
  u.power = parse_spread(in, "power");
  ConfigReader unknown = in.child("unknown");
  for (const auto& [key, to] : {std::pair{"recipe", &u.recipe}, {"release", &u.release}}) {
    ConfigReader one = unknown.child(key);
    *to = {one.number("ttft", {0, 5}), one.number("tpot", {0, 5})};
    one.finish();
  }
  unknown.finish();
  ConfigReader vendor = in.child("another_vendor");
  u.another_vendor = {vendor.number("ttft", {0, 5}), vendor.number("tpot", {0, 5})};
  vendor.finish();
  in.finish();
  return u;
}

const Uncertainty& uncertainty() {
  static const Uncertainty read = read_uncertainty();
  return read;
}

LogSpread normal(double deviation) { return {-kNinetyPercent * deviation, kNinetyPercent * deviation}; }

}  // namespace

std::string_view name_of(LoadRegime regime) { return kRegimes[static_cast<std::size_t>(regime)]; }

LoadRegime load_regime(const Deployment& d, int replicas, double in_flight, double tokens) {
  const double each = in_flight / std::max(1, replicas);
  const double room = d.memory.max_batch(tokens, d.engine.block_size) * d.sharding.attention_dp;
  if (each > std::min<double>(room, d.seats())) return LoadRegime::kSaturated;
  return each <= 4.0 * d.sharding.gpus() ? LoadRegime::kLight : LoadRegime::kLoaded;
}

LogSpread together(const LogSpread& one, const LogSpread& other) {
  return {-std::hypot(one.low, other.low), std::hypot(one.high, other.high)};
}

SystemSpread system_spread(const Deployment& d, LoadRegime regime) {
  if (d.fidelity == Fidelity::kIdeal) return {};
  // A backend's own deviation is that of whole runs of one user, on hardware left out.
  const bool whole_runs = d.roofline() != nullptr && !d.roofline()->source.empty();
  if (whole_runs && regime == LoadRegime::kLight) return {};
  const Uncertainty& u = uncertainty();
  SystemSpread spread = u.regimes[static_cast<std::size_t>(regime)];
  const auto widen = [&](const Uncertainty::Deviation& more) {
    spread.ttft = together(spread.ttft, normal(more.ttft));
    spread.tpot = together(spread.tpot, normal(more.tpot));
  };
  if (d.recipe.empty()) widen(u.recipe);
  if (d.engine.beyond_known) widen(u.release);
  if (of_another_vendor(d)) widen(u.another_vendor);
  return spread;
}

LogSpread power_spread(const Deployment& d) {
  return d.fidelity == Fidelity::kIdeal ? LogSpread{} : uncertainty().power;
}

bool of_another_vendor(const Deployment& d) {
  if (d.efficiency.carried_over_from.empty() || d.roofline() != nullptr) return false;
  const std::string first = split(d.efficiency.carried_over_from, ',').front();  // those of other formats may follow
  const ConfigTree measured = load_named("hardware", first, Mark{"hardware", 0, 0});
  const Architecture from = parse_gpu_spec(ConfigReader(measured, "a GPU")).architecture;
  const auto amd = [](Architecture a) { return traits_of(a).matrix_units == MatrixUnits::kMfma; };
  return amd(from) != amd(d.gpu.architecture);
}

}  // namespace roofcast
