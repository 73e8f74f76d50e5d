#pragma once
// The cost of a fleet: provider offers by tier (configs/prices/*.yaml), or the user's own prices.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "sim/step/price_quote.h"

namespace roofcast {

struct Deployment;
struct GpuSpec;

/// Thrown if nobody offers the requested tier; a plan distinguishes it from a mistake in its file.
class NoOffer : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// One line of a provider's price list.
struct PriceOffer {
  std::string gpu;
  PriceQuote quote;        ///< host: not set
  std::vector<int> sizes;  ///< GPUs per instance on offer, ascending
};

/// Every shipped offer, read once.
std::span<const PriceOffer> price_offers();
/// The default price of electricity in USD/kWh (configs/prices/us-electricity.yaml).
double usual_usd_per_kwh();

/// The `price` of a scenario: a tier, `{tier, provider}`, or an owned machine `{tier: owned, usd_per_gpu, years,
/// residual, power, power_usage_effectiveness, usd_per_kwh, host}`.
struct PriceQuestion {
  std::string tier;  ///< empty: not given, which means on_demand
  std::string provider;
  std::optional<PriceOffer> own;
  SourceLocation location;
};
PriceQuestion parse_price(const ConfigTree& tree);

/// On-demand price of a single GPU or the smallest available host; NaN if nobody lists it.
UsdPerHour list_price(const GpuSpec& gpu);

/// Sets the offers of a deployment whose GPU and sharding are set: offers of the tier whose instances hold a replica
/// (or a whole node of it). `written`: the scenario, or the user's GPU file, gives the price. Without a tier, on
/// demand; if nobody offers that, there is no price. Throws NoOffer if nobody offers a requested tier.
void set_offers(Deployment& deployment, const PriceQuestion& question, bool written);

/// The lowest price of one GPU, a lower bound of any bill. NaN if no price is known.
UsdPerHour least_gpu_price(const Deployment& deployment);

/// A fleet for some hours: decode (or all) replicas of one deployment, and prefill workers of another.
struct FleetSpan {
  int replicas = 0, prefill_replicas = 0;
  double hours = 1;
};

/// The bill of a fleet over its spans. Instances are rented whole; replicas share one if they fit.
struct Bill {
  /// Replicas of one deployment, and their part of shared instances.
  struct Part {
    const PriceQuote* quote = nullptr;  ///< one of the deployment's offers; null: no price is known
    double gpu_hours = 0, usd = 0;      ///< GPU hours and USD paid for
  };
  Part decode, prefill;
  double hours = 0;
  double usd() const { return decode.usd + prefill.usd; }
  double usd_per_hour() const { return hours > 0 ? usd() / hours : 0; }
  double paid_gpus() const { return hours > 0 ? (decode.gpu_hours + prefill.gpu_hours) / hours : 0; }  ///< mean
};

/// The bill at the given offers.
Bill bill_at(const Deployment& deployment, const PriceQuote* quote, const Deployment* prefill,
             const PriceQuote* prefill_quote, std::span<const FleetSpan> spans);
/// The bill at the cheapest offers over all spans. Disaggregated prefill and decode workers rent from one provider, if
/// one has both.
Bill cheapest_bill(const Deployment& deployment, const Deployment* prefill, std::span<const FleetSpan> spans);
/// The bill of this many replicas per hour.
Bill cheapest_bill(const Deployment& deployment, int replicas);

/// The cheapest bill, and bills whose used GPUs cost less if other fleets share the instances.
std::vector<Bill> bills_worth_sharing(const Deployment& deployment, const Deployment* prefill, const FleetSpan& span);

/// "on_demand, runpod, 2026-05-22"; ", unchecked list" if the provider's own list was not checked.
std::string offer_words(const PriceQuote& quote);
/// "2.69 USD/h per GPU (on_demand, runpod, 2026-05-22)". `quote`: null if no price is known.
std::string price_line(const Deployment& deployment, const PriceQuote* quote);
/// The same for a fleet; both roles' prices if they differ.
std::string bill_line(const Deployment& deployment, const Deployment* prefill, const Bill& bill);

/// A hash of the shipped offers.
std::uint64_t prices_fingerprint();

}  // namespace roofcast
