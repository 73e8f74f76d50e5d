#include "sim/plan/prices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "sim/plan/spec_cache.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 5> kTiers{"on_demand", "reserved_1y", "reserved_3y", "spot", "owned"};
constexpr double kHoursPerYear = 8760;

std::string tier_of(ConfigReader& in) { return std::string(kTiers[in.choice("tier", kTiers)]); }

/// Depreciation per hour of its life, and its electricity including the facility's.
PriceQuote owned_quote(ConfigReader& in) {
  double usd = 0;
  std::string who = "own, electricity alone";
  if (in.has("usd_per_gpu")) {
    const double years = in.number("years", {0.5, 20.0}), residual = in.number("residual", 0.0, kFraction);
    usd = in.number("usd_per_gpu", kPositive) * (1 - residual) / (years * kHoursPerYear);
    who = "own";
  }
  for (const auto& [key, other] : {std::pair{"power", "usd_per_kwh"}, {"usd_per_kwh", "power"}}) {
    if (in.has(key) && !in.has(other))
      in.fail(key, fmt::format("'{}' of an owned GPU needs '{}': electricity is the product of both", key, other));
  }
  const double kilowatts =
      in.power("power", Watts{0}).value / 1e3 * in.number("power_usage_effectiveness", 1.0, {1.0, 5.0});
  const double electricity = kilowatts * in.number("usd_per_kwh", 0.0, kAtLeastZero);
  if (usd + electricity <= 0)
    in.fail("usd_per_kwh", "an owned GPU cannot be free: set 'usd_per_gpu', or 'power' and 'usd_per_kwh'");
  if (electricity <= 0) who = "own, without electricity";
  return {.tier = "owned",
          .provider = who,
          .region = "",
          .date = "",
          .source = "the scenario",
          .per_gpu = {usd + electricity}};
}

PriceOffer parse_offer(ConfigReader in, const PriceQuote& provider) {
  PriceOffer offer{.gpu = in.text("gpu"), .quote = provider, .sizes = {}};
  offer.quote.tier = tier_of(in);
  offer.quote.per_gpu = in.price("price", UsdPerHour{});
  if (offer.quote.per_gpu.value <= 0) in.fail("price", "'price' must be a price above 0, such as '2.49 USD/h'");
  for (double size : in.numbers("sizes", {1, 1024})) offer.sizes.push_back(static_cast<int>(size));
  if (offer.sizes.empty() || !std::is_sorted(offer.sizes.begin(), offer.sizes.end()))
    in.fail("sizes", "'sizes' must list the GPUs per instance in ascending order");
  offer.quote.date = in.text("date", offer.quote.date);
  offer.quote.source = in.text("source", offer.quote.source);
  offer.quote.region = in.text("region", offer.quote.region);
  in.finish();
  return offer;
}

std::vector<PriceOffer> read_offers() {
  std::vector<PriceOffer> offers;
  for (const std::string& name : names_of("prices")) {
    ConfigReader in(load_named("prices", name, SourceLocation{"prices", 0, 0}), "a price list");
    const PriceQuote provider{.tier = "",
                              .provider = in.text("name"),
                              .region = in.text("region"),
                              .date = in.text("date"),
                              .source = in.text("source"),
                              .checked = in.boolean("checked", true)};
    in.ignore("usd_per_kwh");
    for (const ConfigTree& offer : in.list("offers")) offers.push_back(parse_offer(ConfigReader(offer), provider));
    in.finish();
  }
  return offers;
}

/// Adds the offer in each instance size that holds a replica. If an instance is filled by a replica, larger sizes are
/// skipped. A replica larger than all sizes takes several of the largest.
void add_quotes(std::vector<PriceQuote>& quotes, const PriceOffer& offer, int gpus) {
  auto size = std::lower_bound(offer.sizes.begin(), offer.sizes.end(), gpus);
  if (size == offer.sizes.end()) --size;
  const auto end = *size <= gpus ? size + 1 : offer.sizes.end();
  for (; size != end; ++size) quotes.push_back(offer.quote), quotes.back().host = *size;
}

/// Offers of the tier (and provider) for replicas of `gpus` GPUs.
std::vector<PriceQuote> quotes_of(const GpuSpec& gpu, const std::string& tier, const std::string& provider, int gpus) {
  std::vector<PriceQuote> quotes;
  for (const PriceOffer& o : price_offers()) {
    if (o.gpu != gpu.name || o.quote.tier != tier || (!provider.empty() && o.quote.provider != provider)) continue;
    if (o.sizes.back() < std::min(gpus, gpu.node.gpus_per_node)) continue;
    add_quotes(quotes, o, gpus);
  }
  std::stable_sort(quotes.begin(), quotes.end(),
                   [](const PriceQuote& a, const PriceQuote& b) { return a.per_gpu < b.per_gpu; });
  return quotes;
}

double price_of(const PriceQuote* quote) {
  return quote != nullptr ? quote->per_gpu.value : std::numeric_limits<double>::quiet_NaN();
}

/// Replicas of one deployment.
struct Replicas {
  int gpus = 1, count = 0;  ///< GPUs of each
  int used() const { return gpus * count; }
};

/// The number of instances with `host` GPUs for these replicas. A replica larger than an instance takes whole ones.
int instances_of(int host, const Replicas& r) {
  if (r.gpus > host) return r.count * ((r.gpus + host - 1) / host);
  const int each = host / r.gpus;
  return (r.count + each - 1) / each;
}

/// The same for two kinds of replicas together: the larger ones first, the others in the remaining room.
int instances_of(int host, Replicas a, Replicas b) {
  if (a.gpus < b.gpus) std::swap(a, b);
  const int first = instances_of(host, a);
  if (a.gpus > host || a.count == 0) return first + instances_of(host, b);
  const int each = host / a.gpus, full = a.count / each, rest = a.count % each;
  int room = full * ((host - each * a.gpus) / b.gpus);
  if (rest > 0) room += (host - rest * a.gpus) / b.gpus;
  return first + instances_of(host, {b.gpus, std::max(0, b.count - room)});
}

/// Visits each choice of offers, in order of the first deployment's price per GPU; null offers if no price is known.
/// Prefill and decode workers rent from one provider, if one has both.
template <class Visit>
void each_offer(const Deployment& d, const Deployment* prefill, Visit visit) {
  const auto has_offers = [](const Deployment* of) { return of != nullptr && !of->offers.empty(); };
  const std::size_t own = has_offers(&d) ? d.offers.size() : 1,
                    other = has_offers(prefill) ? prefill->offers.size() : 1;
  bool found = false;
  for (const bool one_provider : {true, false}) {
    for (std::size_t i = 0; i < own; ++i) {
      const PriceQuote* a = has_offers(&d) ? &d.offers[i] : nullptr;
      for (std::size_t k = 0; k < other; ++k) {
        const PriceQuote* b = has_offers(prefill) ? &prefill->offers[k] : nullptr;
        if (one_provider && (a == nullptr || b == nullptr || a->provider != b->provider)) continue;
        found = true;
        visit(a, b);
      }
    }
    if (found) return;
  }
}

/// USD of the GPUs in use, with no instance wasted.
double least_usd(const Deployment& d, const PriceQuote* own, const Deployment* prefill, const PriceQuote* other,
                 std::span<const FleetSpan> spans) {
  double used = 0, prefilling = 0;
  for (const FleetSpan& span : spans) {
    used += span.hours * span.replicas * d.sharding.gpus();
    if (prefill != nullptr) prefilling += span.hours * span.prefill_replicas * prefill->sharding.gpus();
  }
  return used * price_of(own) + (prefill != nullptr ? prefilling * price_of(other) : 0);
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

double usual_usd_per_kwh() {
  const ConfigTree list = load_named("prices", "us-electricity", SourceLocation{"prices", 0, 0});
  return ConfigReader(list, "a price list").number("usd_per_kwh", kPositive);
}

PriceQuestion parse_price(const ConfigTree& tree) {
  PriceQuestion question;
  if (!tree) return question;
  question.location = tree->location;
  if (tree->kind == ConfigNode::Kind::kScalar) {
    if (tree->scalar.find("USD") != std::string::npos)
      throw ConfigError(tree->location, fmt::format("'{}' is not a tier ({}); set a price of your own as gpu.price",
                                                    tree->scalar, fmt::join(kTiers, ", ")));
    ConfigReader in(make_map({{"tier", tree->location, tree}}, tree->location), "a price");
    question.tier = tier_of(in);
    return question;
  }
  ConfigReader in(tree, "a price");
  question.tier = tier_of(in);
  if (in.has("usd_per_gpu") || in.has("usd_per_kwh")) {
    const char* key = in.has("usd_per_gpu") ? "usd_per_gpu" : "usd_per_kwh";
    if (question.tier != "owned") in.fail(key, fmt::format("'{}' belongs to 'tier: owned'", key));
    PriceOffer own;
    own.quote = owned_quote(in);
    own.sizes = {static_cast<int>(in.integer("host", 8, {1, 1024}))};
    question.own = own;
  } else {
    question.provider = in.text("provider", "");
  }
  in.finish();
  return question;
}

UsdPerHour list_price(const GpuSpec& gpu) {
  const PriceQuote* best = nullptr;
  const std::vector<PriceQuote> quotes = quotes_of(gpu, std::string(kTiers.front()), "", 1);
  for (const PriceQuote& q : quotes) {
    if (best == nullptr || q.host * q.per_gpu.value < best->host * best->per_gpu.value) best = &q;
  }
  return best != nullptr ? best->per_gpu : UsdPerHour{std::numeric_limits<double>::quiet_NaN()};
}

void set_offers(Deployment& d, const PriceQuestion& question, bool written) {
  d.offers.clear();
  if (written) {
    d.offers.push_back(
        {.tier = "given", .provider = "", .region = "", .date = "", .source = "the scenario", .per_gpu = d.gpu.price});
  } else if (question.own) {
    add_quotes(d.offers, *question.own, d.sharding.gpus());
  } else {
    const std::string tier = question.tier.empty() ? std::string(kTiers.front()) : question.tier;
    d.offers = quotes_of(d.gpu, tier, question.provider, d.sharding.gpus());
    if (!d.offers.empty() || question.tier.empty()) return;
    throw NoOffer(
        question.location,
        fmt::format("no {} price{} of {} for {} GPU{} at once is known (known: {}); 'gpu: {{name: {}, price: 2 "
                    "USD/h}}' gives one",
                    tier, question.provider.empty() ? "" : " of " + question.provider, d.gpu.name, d.sharding.gpus(),
                    d.sharding.gpus() == 1 ? "" : "s", known_tiers(d.gpu.name), d.gpu.name));
  }
}

UsdPerHour least_gpu_price(const Deployment& d) {
  return d.offers.empty() ? UsdPerHour{std::numeric_limits<double>::quiet_NaN()} : d.offers.front().per_gpu;
}

Bill bill_at(const Deployment& d, const PriceQuote* quote, const Deployment* prefill, const PriceQuote* prefill_quote,
             std::span<const FleetSpan> spans) {
  Bill bill{.decode = {quote}, .prefill = {prefill_quote}};
  const bool shared = prefill != nullptr && quote != nullptr && prefill_quote != nullptr &&
                      d.gpu.name == prefill->gpu.name && *quote == *prefill_quote;
  const auto paid = [](const PriceQuote* q, const Replicas& r) {
    return q != nullptr ? static_cast<double>(instances_of(q->host, r)) * q->host : r.used();
  };
  for (const FleetSpan& span : spans) {
    const Replicas own{d.sharding.gpus(), span.replicas},
        other{prefill != nullptr ? prefill->sharding.gpus() : 1, prefill != nullptr ? span.prefill_replicas : 0};
    bill.hours += span.hours;
    double own_paid = paid(quote, own), other_paid = paid(prefill_quote, other);
    if (shared && own.used() + other.used() > 0) {
      const double all = static_cast<double>(instances_of(quote->host, own, other)) * quote->host;
      own_paid = all * own.used() / (own.used() + other.used());
      other_paid = all - own_paid;
    }
    bill.decode.gpu_hours += own_paid * span.hours;
    bill.prefill.gpu_hours += other_paid * span.hours;
  }
  bill.decode.usd = bill.decode.gpu_hours * price_of(quote);
  bill.prefill.usd = prefill != nullptr ? bill.prefill.gpu_hours * price_of(prefill_quote) : 0;
  return bill;
}

Bill cheapest_bill(const Deployment& d, const Deployment* prefill, std::span<const FleetSpan> spans) {
  std::optional<Bill> best;
  each_offer(d, prefill, [&](const PriceQuote* own, const PriceQuote* other) {
    if (best && least_usd(d, own, prefill, other, spans) >= best->usd()) return;
    const Bill bill = bill_at(d, own, prefill, other, spans);
    if (!best || bill.usd() < best->usd()) best = bill;
  });
  return *best;
}

Bill cheapest_bill(const Deployment& d, int replicas) {
  const FleetSpan span{.replicas = replicas};
  return cheapest_bill(d, nullptr, {&span, 1});
}

std::vector<Bill> bills_worth_sharing(const Deployment& d, const Deployment* prefill, const FleetSpan& span) {
  std::vector<Bill> out{cheapest_bill(d, prefill, {&span, 1})};
  each_offer(d, prefill, [&, usd = out.front().usd()](const PriceQuote* own, const PriceQuote* other) {
    const bool known = own == out.front().decode.quote && other == out.front().prefill.quote;
    if (!known && least_usd(d, own, prefill, other, {&span, 1}) < usd)
      out.push_back(bill_at(d, own, prefill, other, {&span, 1}));
  });
  return out;
}

std::string offer_words(const PriceQuote& quote) {
  std::string out = quote.tier;
  for (const std::string* part : {&quote.provider, &quote.date}) out += part->empty() ? "" : ", " + *part;
  return out + (quote.checked ? "" : ", unchecked list");
}

std::string price_line(const Deployment& d, const PriceQuote* quote) {
  if (quote == nullptr) return fmt::format("no on-demand price of {} is known", d.gpu.name);
  return fmt::format("{:.2f} USD/h per GPU ({}{})", quote->per_gpu.value, offer_words(*quote),
                     quote->host > 1 ? fmt::format(", in instances of {}", quote->host) : "");
}

std::string bill_line(const Deployment& d, const Deployment* prefill, const Bill& bill) {
  const std::string own = price_line(d, bill.decode.quote);
  if (prefill == nullptr) return own;
  const std::string other = price_line(*prefill, bill.prefill.quote);
  return own == other ? own : fmt::format("{}; prefill {}", own, other);
}

std::uint64_t prices_fingerprint() {
  static const std::uint64_t print = [] {
    std::uint64_t state = hash_text("prices");
    for (const std::string& name : names_of("prices"))
      state = hash_text(to_yaml(*load_named("prices", name, SourceLocation{"prices", 0, 0})), state);
    return state;
  }();
  return print;
}

}  // namespace roofcast
