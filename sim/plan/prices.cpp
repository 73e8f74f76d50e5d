#include "sim/plan/prices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "sim/plan/spec_cache.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 5> kTiers{"on_demand", "reserved_1y", "reserved_3y", "spot", "owned"};
constexpr double kHoursPerYear = 8760;

std::string tier_of(ConfigReader& in) { return std::string(kTiers[in.choice("tier", kTiers)]); }

/// Depreciation over the hours of its life, and its power with the building's.
double owned_usd_per_hour(ConfigReader& in) {
  const double usd = in.number("usd_per_gpu", kPositive), years = in.number("years", {0.5, 20.0}),
               residual = in.number("residual", 0.0, kFraction);
  const double kilowatts =
      in.power("power", Watts{0}).value / 1e3 * in.number("power_usage_effectiveness", 1.0, {1.0, 5.0});
  return usd * (1 - residual) / (years * kHoursPerYear) + kilowatts * in.number("usd_per_kwh", 0.0, kAtLeastZero);
}

PriceOffer parse_offer(ConfigReader in, const PriceQuote& provider) {
  PriceOffer offer{.gpu = in.text("gpu"), .quote = provider, .price = {}, .sizes = {}};
  offer.quote.tier = tier_of(in);
  offer.price = in.price("price", UsdPerHour{});
  if (offer.price.value <= 0) in.fail("price", "'price' must be a price above 0, such as '2.49 USD/h'");
  for (double size : in.numbers("sizes", {1, 1024})) offer.sizes.push_back(static_cast<int>(size));
  if (offer.sizes.empty() || !std::is_sorted(offer.sizes.begin(), offer.sizes.end()))
    in.fail("sizes", "'sizes' must list the GPUs of an instance, ascending");
  offer.quote.date = in.text("date", offer.quote.date);
  offer.quote.source = in.text("source", offer.quote.source);
  offer.quote.region = in.text("region", offer.quote.region);
  in.finish();
  return offer;
}

std::vector<PriceOffer> read_offers() {
  std::vector<PriceOffer> offers;
  for (const std::string& name : names_of("prices")) {
    ConfigReader in(load_named("prices", name, Mark{"prices", 0, 0}), "a price list");
    const PriceQuote provider{.tier = "",
                              .provider = in.text("name"),
                              .region = in.text("region"),
                              .date = in.text("date"),
                              .source = in.text("source")};
    for (const ConfigTree& offer : in.list("offers")) offers.push_back(parse_offer(ConfigReader(offer), provider));
    in.finish();
  }
  return offers;
}

/// An instance for a replica: the smallest that holds it, else the largest.
int host_for(const PriceOffer& offer, int gpus) {
  const auto at = std::lower_bound(offer.sizes.begin(), offer.sizes.end(), gpus);
  return at == offer.sizes.end() ? offer.sizes.back() : *at;
}

void take(Deployment& d, const PriceOffer& offer) {
  d.gpu.price = offer.price;
  d.price = offer.quote;
  d.price.host = host_for(offer, d.sharding.gpus());
}

std::string known_tiers(const std::string& gpu) {
  std::vector<std::string> known;
  for (const PriceOffer& o : price_offers()) {
    if (o.gpu != gpu) continue;
    const std::string text =
        fmt::format("{} of {} in instances of {}", o.quote.tier, o.quote.provider, fmt::join(o.sizes, ", "));
    if (std::find(known.begin(), known.end(), text) == known.end()) known.push_back(text);
  }
  return known.empty() ? "none" : join(known, "; ");
}

}  // namespace

std::span<const PriceOffer> price_offers() {
  static const std::vector<PriceOffer> offers = read_offers();
  return offers;
}

PriceQuestion parse_price(const ConfigTree& tree) {
  PriceQuestion question;
  if (!tree) return question;
  question.mark = tree->mark;
  if (tree->kind == ConfigNode::Kind::kScalar) {
    ConfigReader in(make_map({{"tier", tree->mark, tree}}, tree->mark), "a price");
    question.tier = tier_of(in);
    return question;
  }
  ConfigReader in(tree, "a price");
  question.tier = tier_of(in);
  if (in.has("usd_per_gpu")) {
    if (question.tier != "owned") in.fail("usd_per_gpu", "'usd_per_gpu' belongs to 'tier: owned'");
    PriceOffer own;
    own.quote = {.tier = "owned", .provider = "own", .region = "", .date = "", .source = "the scenario"};
    own.price = {owned_usd_per_hour(in)};
    own.sizes = {static_cast<int>(in.integer("host", 8, {1, 1024}))};
    question.own = own;
  } else {
    question.provider = in.text("provider", "");
  }
  in.finish();
  return question;
}

const PriceOffer* cheapest_offer(const GpuSpec& gpu, const std::string& tier, const std::string& provider, int gpus) {
  const PriceOffer* best = nullptr;
  for (const PriceOffer& o : price_offers()) {
    if (o.gpu != gpu.name || o.quote.tier != tier || (!provider.empty() && o.quote.provider != provider)) continue;
    if (o.sizes.back() < std::min(gpus, gpu.node.gpus_per_node)) continue;
    if (best == nullptr || o.price < best->price) best = &o;
  }
  return best;
}

UsdPerHour list_price(const GpuSpec& gpu) {
  const PriceOffer* offer = cheapest_offer(gpu, std::string(kTiers.front()), "", 1);
  if (offer != nullptr) return offer->price;
  return UsdPerHour{std::numeric_limits<double>::quiet_NaN()};
}

void set_price(Deployment& d, const PriceQuestion& question, bool written) {
  if (written) {
    d.price = {.tier = "given", .provider = "", .region = "", .date = "", .source = "the scenario"};
  } else if (question.own) {
    take(d, *question.own);
  } else {
    const std::string tier = question.tier.empty() ? std::string(kTiers.front()) : question.tier;
    const PriceOffer* offer = cheapest_offer(d.gpu, tier, question.provider, d.sharding.gpus());
    if (offer != nullptr) return take(d, *offer);
    if (!question.tier.empty()) {
      throw NoOffer(
          question.mark,
          fmt::format("no {} price{} of {} for {} GPU{} at once is known (known: {}); 'gpu: {{name: {}, price: 2 "
                      "USD/h}}' gives one",
                      tier, question.provider.empty() ? "" : " of " + question.provider, d.gpu.name, d.sharding.gpus(),
                      d.sharding.gpus() == 1 ? "" : "s", known_tiers(d.gpu.name), d.gpu.name));
    }
    d.gpu.price = {std::numeric_limits<double>::quiet_NaN()};
    d.price = {.tier = "none", .provider = "", .region = "", .date = "", .source = ""};
  }
}

double paid_gpus(const Deployment& d, double replicas) {
  const int gpus = d.sharding.gpus(), host = d.price.host;
  if (host <= 1 || replicas <= 0) return gpus * replicas;
  const double hosts =
      gpus <= host ? std::ceil(replicas / (host / gpus) - 1e-9) : replicas * ((gpus + host - 1) / host);
  return hosts * host;
}

UsdPerHour usd_per_hour(const Deployment& d, double replicas) { return {paid_gpus(d, replicas) * d.gpu.price.value}; }

std::string price_line(const Deployment& d) {
  const PriceQuote& p = d.price;
  if (p.tier == "none") return fmt::format("no on-demand price of {} is known", d.gpu.name);
  std::string out = fmt::format("{:.2f} USD/h per GPU ({}", d.gpu.price.value, p.tier);
  for (const std::string* part : {&p.provider, &p.date}) out += part->empty() ? "" : ", " + *part;
  return out + (p.host > 1 ? fmt::format(", in instances of {})", p.host) : ")");
}

std::uint64_t prices_fingerprint() {
  static const std::uint64_t print = [] {
    std::uint64_t state = hash_text("prices");
    for (const std::string& name : names_of("prices"))
      state = hash_text(to_yaml(*load_named("prices", name, Mark{"prices", 0, 0})), state);
    return state;
  }();
  return print;
}

}  // namespace roofcast
