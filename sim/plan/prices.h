#pragma once
// Cost of a GPU: offers of providers by tier (configs/prices/*.yaml), or the user's own figures.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "sim/step/deployment.h"

namespace roofcast {

/// Thrown if nobody offers the requested tier; a plan distinguishes it from a mistake in its file.
class NoOffer : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// One line of a provider's list.
struct PriceOffer {
  std::string gpu;
  PriceQuote quote;
  UsdPerHour price{};      ///< per GPU
  std::vector<int> sizes;  ///< GPUs per instance on sale, ascending
};

/// Every shipped offer, read once.
std::span<const PriceOffer> price_offers();

/// What a scenario's `price` asks for: a tier, `{tier, provider}`, or a machine of one's own, `{tier: owned,
/// usd_per_gpu, years, residual, power, power_usage_effectiveness, usd_per_kwh, host}`.
struct PriceQuestion {
  std::string tier;  ///< empty: not given, which means on_demand
  std::string provider;
  std::optional<PriceOffer> own;
  Mark mark;
};
PriceQuestion parse_price(const ConfigTree& tree);

/// The cheapest offer of the tier whose instances hold a replica of `gpus` GPUs (or a whole node of it); null: none.
const PriceOffer* cheapest_offer(const GpuSpec& gpu, const std::string& tier, const std::string& provider, int gpus);

/// On demand, for a single GPU or in the smallest host that it comes in; NaN if nobody lists it.
UsdPerHour list_price(const GpuSpec& gpu);

/// Sets gpu.price and price of a deployment whose GPU and sharding are known. `written`: the scenario gives the price
/// itself, or a GPU file of the user's does. The default tier is on demand; if nobody offers that, costs are NaN.
/// Throws NoOffer if a requested tier is offered by nobody.
void set_price(Deployment& deployment, const PriceQuestion& question, bool written);

/// GPUs that are paid for: whole hosts. A host holds several replicas if they fit.
double paid_gpus(const Deployment& deployment, double replicas);
UsdPerHour usd_per_hour(const Deployment& deployment, double replicas);

/// "2.69 USD/h a GPU (on_demand, runpod, 2026-05-22)".
std::string price_line(const Deployment& deployment);

/// Changes with the shipped offers.
std::uint64_t prices_fingerprint();

}  // namespace roofcast
