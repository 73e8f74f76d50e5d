#include "hw/kernels/expert_load.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/normal.h"
#include "hw/kernels/group_limit.h"

namespace roofcast {
namespace {

double local_experts(double experts, double ep) { return std::max(1.0, std::floor(experts / ep)); }

// ---- even routing ----------------------------------------------------------------------------------------------

/// Every expert gets floor(mu) or ceil(mu) of mu = T k / E tokens. Rank 0 takes the first choice of token 0, so it
/// always has at least one assignment.
ExpertLoad balanced_load(double tokens, double top_k, double experts, double ep) {
  const double local = local_experts(experts, ep);
  ExpertLoad load;
  load.assignments = std::max(1.0, tokens * top_k / ep);
  load.hits = std::min(local, std::max(1.0, std::ceil(tokens * top_k / ep - 1e-9)));
  const double mean = load.assignments / load.hits;
  const double low = std::floor(mean), rest = mean - low;
  for (std::size_t i = 0; i < kTileHeights; ++i) {
    load.tiles[i] =
        load.hits * ((1.0 - rest) * std::ceil(low / tile_rows(i)) + rest * std::ceil((low + 1.0) / tile_rows(i)));
  }
  return load;
}

// ---- drawn by popularity ---------------------------------------------------------------------------------------

/// Expected maximum of n standard normals, by Blom's approximation x((n - 3/8)/(n + 1/4)).
double expected_largest(double n) { return n <= 1.0 ? 0.0 : normal_quantile((n - 0.375) / (n + 0.25)); }

/// Probability of each of E experts to be among a token's k: 1 - exp(-lambda w). The popularity w = exp(skew z) is
/// lognormal at the E normal quantiles z; lambda is such that the probabilities sum to k.
std::vector<double> popularity(double top_k, double experts, double skew) {
  const auto count = static_cast<std::size_t>(experts);
  std::vector<double> chance(count);
  if (top_k >= experts) return std::vector<double>(count, 1.0);
  std::vector<double> weight(count);
  for (std::size_t e = 0; e < count; ++e)
    weight[e] = std::exp(skew * normal_quantile((static_cast<double>(e) + 0.5) / experts));
  double low = 0.0, high = 1.0;
  const auto sum = [&](double lambda) {
    double total = 0.0;
    for (std::size_t e = 0; e < count; ++e) total += chance[e] = 1.0 - std::exp(-lambda * weight[e]);
    return total;
  };
  while (sum(high) < top_k) high *= 2.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (sum(middle) < top_k ? low : high) = middle;
  }
  sum(high);
  return chance;
}

/// Adds `weight` times the load of one rank, whose experts a token chooses with these probabilities, to `load`. An
/// expert gets no token with probability (1 - q)^T; ceil(n / tile) is about n / tile + 1/2 for an expert that gets
/// some.
void add_rank(double tokens, double weight, const double* begin, const double* end, ExpertLoad& load) {
  for (const double* q = begin; q != end; ++q) {
    const double chance = std::min(1.0, *q), hit = 1.0 - std::pow(1.0 - chance, tokens);
    load.hits += weight * hit;
    for (std::size_t i = 0; i < kTileHeights; ++i)
      load.tiles[i] += weight * std::max(hit, tokens * chance / tile_rows(i) + 0.5 * hit);
  }
}

/// Each token draws k distinct experts uniformly. A rank of El experts gets T k El/E tokens on average; the variance
/// per token is that of a draw without replacement. The most loaded of ep ranks lies expected_largest(ep) deviations
/// above.
ExpertLoad uniform_load(double tokens, double top_k, double experts, double ep) {
  const double local = local_experts(experts, ep), share = local / experts;
  const double mean = tokens * top_k * share;
  const double left = experts > 1.0 ? (experts - top_k) / (experts - 1.0) : 0.0;
  const double deviation = std::sqrt(std::max(0.0, mean * (1.0 - share) * left));
  ExpertLoad load;
  load.assignments =
      std::clamp(mean + expected_largest(ep) * deviation, std::min(1.0, mean * ep), tokens * std::min(top_k, local));
  const double chance = top_k / experts;
  add_rank(tokens * load.assignments / mean, local, &chance, &chance + 1, load);
  load.hits = std::min(load.assignments, load.hits);
  return load;
}

// ---- power law -------------------------------------------------------------------------------------------------

constexpr int kDraws = 16;
constexpr int kStepsAnOctave = 4;
constexpr int kOctaves = 17;  ///< 2^17 tokens; above, loads grow in proportion
constexpr int kGridPoints = kStepsAnOctave * kOctaves + 1;

/// splitmix64 (Steele, Lea, Flood 2014): the k-th number of stream `draw`, in [0, 1).
double uniform(std::uint64_t draw, std::uint64_t k) {
  std::uint64_t z = (draw * 0x632be59bd9b4e019ULL) + (k + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
}

/// Raises the smallest counts (delta > 0) up to `cap`, or lowers the largest, until `delta` assignments are placed.
void level(std::vector<double>::iterator begin, std::vector<double>::iterator end, double delta, double cap) {
  const auto count = end - begin;
  if (count == 0 || delta == 0.0) return;
  if (delta > 0.0)
    std::sort(begin, end);
  else
    std::sort(begin, end, std::greater<>());
  const double sign = delta > 0.0 ? 1.0 : -1.0;
  double left = std::abs(delta);
  // The first i counts are equal; raise them to the next one, or as far as the rest allows.
  for (std::ptrdiff_t i = 1; left > 0.0; ++i) {
    const double limit = sign > 0.0 ? cap : 0.0;
    const double next = i < count ? begin[i] : limit;
    const double room = sign * (next - *begin) * static_cast<double>(i);
    if (left >= room) {
      std::fill(begin, begin + i, next);
      left -= room;
      if (i >= count) return;
      continue;
    }
    const double whole = std::floor(left / static_cast<double>(i));
    const auto extra = static_cast<std::ptrdiff_t>(left - whole * static_cast<double>(i));
    for (std::ptrdiff_t j = 0; j < i; ++j) begin[j] += sign * (whole + (j < extra ? 1.0 : 0.0));
    return;
  }
}

/// Adds a remainder to the smallest counts, one each, ties to the first; removes a surplus from the largest.
void level_from_first(std::vector<double>& counts, double delta) {
  std::vector<std::size_t> order(counts.size());
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = e;
  const double sign = delta < 0.0 ? -1.0 : 1.0;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sign * counts[a] < sign * counts[b]; });
  const auto left = static_cast<std::size_t>(std::abs(delta));
  for (std::size_t i = 0; i < left; ++i) {
    double& count = counts[order[i % order.size()]];
    count = std::max(0.0, count + sign);
  }
}

/// One draw of the tokens of every expert. Shares follow a power law with density ~ x^-a on [1, 0.8 T] or, if there are
/// fewer assignments than experts, on [0.01, 2]:
///   x = ((B - A) u + A)^(1/(1-a)),  A = low^(1-a), B = high^(1-a);  n = round(x / sum x * T k), at most T.
/// A remainder goes to the smallest experts of each rank, a surplus is taken from the largest. In older versions
/// (`rest_to_first`) the remainder goes to the smallest experts of all ranks, ties to the first, so that few tokens
/// crowd on the first rank.
/// Source: the generator behind NVIDIA aiconfigurator's measurements (Apache-2.0), whose times the constants fit.
void draw_counts(std::uint64_t draw, double tokens, double top_k, double ep, const Routing& routing,
                 std::vector<double>& counts) {
  const double exponent = routing.exponent;
  const double experts = static_cast<double>(counts.size());
  const bool many = tokens * top_k > experts;
  const double low = many ? 1.0 : 0.01, high = many ? std::max(1.0 + 1e-9, 0.8 * tokens) : 2.0;
  const double power = std::abs(exponent - 1.0) < 1e-6 ? 1e-6 : 1.0 - exponent;
  const double a = std::pow(low, power), b = std::pow(high, power);
  double sum = 0.0;
  for (std::size_t e = 0; e < counts.size(); ++e) {
    counts[e] = std::exp(std::log((b - a) * uniform(draw, e) + a) / power);
    sum += counts[e];
  }
  double left = tokens * top_k;
  for (double& count : counts) {
    count = std::min(tokens, std::round(count / sum * tokens * top_k));
    left -= count;
  }
  if (routing.rest_to_first) return level_from_first(counts, left);
  const auto ranks = static_cast<std::size_t>(ep);
  const double sign = left < 0.0 ? -1.0 : 1.0;
  const double whole = std::floor(std::abs(left) / ep), extra = std::abs(left) - whole * ep;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(r * counts.size() / ranks);
    const auto end = counts.begin() + static_cast<std::ptrdiff_t>((r + 1) * counts.size() / ranks);
    level(begin, end, sign * (whole + (static_cast<double>(r) < extra ? 1.0 : 0.0)), tokens);
  }
}

void add_counts(std::span<const double> counts, ExpertLoad& total) {
  for (const double count : counts) {
    total.assignments += count;
    if (count <= 0.0) continue;
    total.hits += std::min(1.0, count);
    for (std::size_t i = 0; i < kTileHeights; ++i) total.tiles[i] += std::min(count, std::ceil(count / tile_rows(i)));
  }
}

std::pair<std::size_t, std::size_t> most_loaded_rank(const std::vector<double>& counts, double ep) {
  const auto ranks = static_cast<std::size_t>(ep);
  std::size_t best_begin = 0, best_end = 0;
  double best = -1.0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::size_t begin = r * counts.size() / ranks, end = (r + 1) * counts.size() / ranks;
    double sum = 0.0;
    for (std::size_t e = begin; e < end; ++e) sum += counts[e];
    if (sum > best) {
      best = sum;
      best_begin = begin;
      best_end = end;
    }
  }
  return {best_begin, best_end};
}

// ---- limited to groups ---------------------------------------------------------------------------------------------

/// Tokens drawn to represent all tokens, and the number of draws.
constexpr std::size_t kGroupedTokens = 128;
constexpr int kGroupedDraws = 4;

/// Marks the experts that token t wants in a balanced draw: t + i E/k, spread over the first E/k if there are few
/// tokens.
void want_balanced(double t, double tokens, std::size_t top_k, std::vector<char>& wanted) {
  const auto experts = static_cast<double>(wanted.size());
  const double stride = std::ceil(experts / static_cast<double>(top_k));
  const double first = tokens >= stride ? t : t * stride / tokens;
  for (std::size_t i = 0; i < top_k; ++i) {
    const double expert = std::floor(std::fmod(first + static_cast<double>(i) * stride, experts));
    wanted[static_cast<std::size_t>(expert)] = 1;
  }
}

/// Each token takes the k experts with the most tokens still to assign.
void want_most(std::size_t top_k, std::vector<double>& to_come, std::vector<std::size_t>& order,
               std::vector<char>& wanted) {
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = e;
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top_k), order.end(),
      [&](std::size_t a, std::size_t b) { return to_come[a] != to_come[b] ? to_come[a] > to_come[b] : a < b; });
  for (std::size_t i = 0; i < top_k; ++i) {
    wanted[order[i]] = 1;
    to_come[order[i]] -= 1.0;
  }
}

/// One draw with the group limit: the load of rank 0, which is the most loaded rank in the benchmark.
void add_grouped_draw(std::uint64_t draw, double tokens, double top_k, double ep, const Routing& routing,
                      std::vector<double>& counts, ExpertLoad& total) {
  const bool balanced = routing.kind == Routing::Kind::kBalanced;
  const auto k = static_cast<std::size_t>(top_k),
             some = static_cast<std::size_t>(
                 std::min(tokens, static_cast<double>(balanced ? counts.size() : kGroupedTokens)));
  const double each = tokens / static_cast<double>(some);
  const GroupLimit limit(counts.size(), k);
  std::vector<double> to_come(counts.size()), got(counts.size());
  if (!balanced) {
    draw_counts(draw, tokens, top_k, ep, routing, counts);
    const auto [begin, end] = most_loaded_rank(counts, ep);
    std::swap_ranges(counts.begin() + static_cast<std::ptrdiff_t>(begin),
                     counts.begin() + static_cast<std::ptrdiff_t>(end), counts.begin());
    for (std::size_t e = 0; e < counts.size(); ++e) to_come[e] = counts[e] / each;
  }
  std::vector<std::size_t> order(counts.size());
  std::vector<char> wanted(counts.size());
  for (std::size_t t = 0; t < some; ++t) {
    std::fill(wanted.begin(), wanted.end(), 0);
    if (balanced) want_balanced(static_cast<double>(t), tokens, k, wanted);
    if (!balanced) want_most(k, to_come, order, wanted);
    limit.add_token(wanted, each, got);
  }
  add_counts({got.data(), static_cast<std::size_t>(std::max(1.0, std::floor(static_cast<double>(got.size()) / ep)))},
             total);
}

/// The probabilities of the expert slots, rank by rank, as placed by EPLB's global policy: each redundant copy goes to
/// the expert with the highest load per copy; then the most loaded remaining copy goes to the least loaded rank with a
/// free slot. Tokens are spread evenly over the copies of an expert. Source: github.com/deepseek-ai/EPLB, eplb.py
/// (replicate_experts, balanced_packing).
std::vector<double> balanced_places(const std::vector<double>& chances, double redundant, std::size_t ranks) {
  std::vector<double> copies(chances.size(), 1.0);
  for (int i = 0; i < static_cast<int>(redundant); ++i) {
    std::size_t most = 0;
    for (std::size_t e = 1; e < chances.size(); ++e) {
      if (chances[e] / copies[e] > chances[most] / copies[most]) most = e;
    }
    copies[most] += 1.0;
  }
  std::vector<double> each;
  for (std::size_t e = 0; e < chances.size(); ++e)
    each.insert(each.end(), static_cast<std::size_t>(copies[e]), chances[e] / copies[e]);
  std::sort(each.begin(), each.end(), std::greater<>());
  std::vector<std::vector<double>> placed(ranks);
  std::vector<double> load(ranks);
  for (const double chance : each) {
    std::size_t least = ranks;
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t room = (r + 1) * each.size() / ranks - r * each.size() / ranks;
      if (placed[r].size() < room && (least == ranks || load[r] < load[least])) least = r;
    }
    placed[least].push_back(chance);
    load[least] += chance;
  }
  std::vector<double> places;
  for (const std::vector<double>& rank : placed) places.insert(places.end(), rank.begin(), rank.end());
  return places;
}

/// Each token draws by popularity, independently of the others. Unless `balanced`, experts are placed regardless of
/// popularity, by seeded draws. Each placement adds the noise of the tokens' draws to every rank's mean; the most
/// loaded rank counts.
ExpertLoad popularity_load(double tokens, double ep, const std::vector<double>& chances, bool balanced) {
  const auto ranks = static_cast<std::size_t>(ep);
  std::vector<double> placed = chances;
  ExpertLoad load;
  const int draws = ranks > 1 ? kDraws : 1;
  for (int d = 0; d < draws; ++d) {
    const auto stream = static_cast<std::uint64_t>(d) + 1;
    std::size_t fullest = 0;
    double most = -1.0, expected = 1.0;
    if (ranks > 1 && !balanced) {
      for (std::size_t e = placed.size() - 1; e > 0; --e)
        std::swap(placed[e], placed[static_cast<std::size_t>(uniform(stream, e) * static_cast<double>(e + 1))]);
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      double mean = 0.0, variance = 0.0;
      for (std::size_t e = r * placed.size() / ranks; e < (r + 1) * placed.size() / ranks; ++e) {
        mean += tokens * placed[e];
        variance += tokens * placed[e] * (1.0 - placed[e]);
      }
      const double z =
          ranks > 1 ? normal_quantile(std::clamp(uniform(stream, placed.size() + r), 1e-9, 1.0 - 1e-9)) : 0.0;
      const double got = std::max(0.0, mean + z * std::sqrt(std::max(0.0, variance)));
      if (got > most) most = got, expected = mean, fullest = r;
    }
    const double* all = placed.data();
    load.assignments += most / draws;
    add_rank(tokens * most / std::max(expected, 1e-300), 1.0 / draws, all + fullest * placed.size() / ranks,
             all + (fullest + 1) * placed.size() / ranks, load);
  }
  load.hits = std::clamp(load.hits, std::min(1.0, load.assignments), load.assignments);
  return load;
}

/// Loads under one routing law at four token counts per octave.
class LoadTable {
 public:
  LoadTable(double top_k, double experts, double ep, const Routing& routing)
      : top_k_(top_k), experts_(experts), ep_(ep), routing_(routing) {
    if (routing.kind == Routing::Kind::kPopularity) chances_ = popularity(top_k, experts, routing.skew);
    if (routing.redundant > 0)
      chances_ = balanced_places(chances_, routing.redundant, static_cast<std::size_t>(std::max(1.0, ep)));
  }
  bool is(double top_k, double experts, double ep, const Routing& routing) const {
    return top_k == top_k_ && experts == experts_ && ep == ep_ && routing.kind == routing_.kind &&
           routing.grouped == routing_.grouped && routing.redundant == routing_.redundant &&
           (routing.kind == Routing::Kind::kPopularity
                ? routing.skew == routing_.skew
                : routing.exponent == routing_.exponent && routing.rest_to_first == routing_.rest_to_first);
  }
  static double grid_tokens(int point) {
    const int octave = point / kStepsAnOctave, step = point % kStepsAnOctave;
    return std::ldexp(1.0 + static_cast<double>(step) / kStepsAnOctave, octave);
  }
  static int grid_below(double tokens) {
    int exponent = 0;
    const double mantissa = std::frexp(tokens, &exponent);  // [0.5, 1)
    return kStepsAnOctave * (exponent - 1) + static_cast<int>((2.0 * mantissa - 1.0) * kStepsAnOctave);
  }
  const ExpertLoad& at(int point) {
    std::atomic<const ExpertLoad*>& slot = points_[static_cast<std::size_t>(point)];
    const ExpertLoad* known = slot.load(std::memory_order_acquire);
    if (!known) {
      auto drawn = std::make_unique<const ExpertLoad>(draw(grid_tokens(point)));
      const std::scoped_lock lock(mutex_);
      if (!(known = slot.load(std::memory_order_acquire))) {
        known = drawn.get();
        owned_.push_back(std::move(drawn));
        slot.store(known, std::memory_order_release);
      }
    }
    return *known;
  }

 private:
  ExpertLoad draw(double tokens) const {
    if (routing_.kind == Routing::Kind::kPopularity)
      return popularity_load(tokens, ep_, chances_, routing_.redundant > 0);
    const double whole = std::max(1.0, std::round(tokens));
    std::vector<double> counts(static_cast<std::size_t>(experts_));
    ExpertLoad load;
    const int draws = !routing_.grouped ? kDraws : routing_.kind == Routing::Kind::kBalanced ? 1 : kGroupedDraws;
    for (int d = 0; d < draws; ++d) {
      const auto stream = static_cast<std::uint64_t>(d) + 1;
      if (routing_.grouped) {
        add_grouped_draw(stream, whole, top_k_, ep_, routing_, counts, load);
        continue;
      }
      draw_counts(stream, whole, top_k_, ep_, routing_, counts);
      const auto [begin, end] = most_loaded_rank(counts, ep_);
      add_counts({counts.data() + begin, end - begin}, load);
    }
    load.assignments /= draws;
    load.hits /= draws;
    for (double& tiles : load.tiles) tiles /= draws;
    return load;
  }

  double top_k_, experts_, ep_;
  Routing routing_;
  std::vector<double> chances_;
  std::array<std::atomic<const ExpertLoad*>, kGridPoints> points_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<const ExpertLoad>> owned_;
};

/// Tables live as long as the program; each thread caches the last few it used.
LoadTable& table_for(double top_k, double experts, double ep, const Routing& routing) {
  thread_local std::array<LoadTable*, 4> recent{};
  thread_local std::size_t next = 0;
  for (LoadTable* table : recent) {
    if (table && table->is(top_k, experts, ep, routing)) return *table;
  }
  static std::mutex mutex;
  static std::deque<LoadTable> tables;
  const std::scoped_lock lock(mutex);
  auto found = std::find_if(tables.begin(), tables.end(),
                            [&](const LoadTable& table) { return table.is(top_k, experts, ep, routing); });
  LoadTable& table = found != tables.end() ? *found : tables.emplace_back(top_k, experts, ep, routing);
  recent[next++ % recent.size()] = &table;
  return table;
}

ExpertLoad tabled_load(double tokens, double top_k, double experts, double ep, const Routing& routing) {
  LoadTable& table =
      table_for(top_k, std::round(experts), std::round(std::min(ep, experts + routing.redundant)), routing);
  const double largest = std::ldexp(1.0, kOctaves);
  const double scale = std::max(1.0, tokens / largest);
  tokens = std::min(tokens, largest);
  const int below = LoadTable::grid_below(tokens);
  const double low = LoadTable::grid_tokens(below);
  ExpertLoad load = table.at(below);
  if (tokens > low) {
    const ExpertLoad& above = table.at(below + 1);
    const double t = (tokens - low) / (LoadTable::grid_tokens(below + 1) - low);
    load.assignments += t * (above.assignments - load.assignments);
    load.hits += t * (above.hits - load.hits);
    for (std::size_t i = 0; i < kTileHeights; ++i) load.tiles[i] += t * (above.tiles[i] - load.tiles[i]);
  }
  load.assignments *= scale;
  for (double& tiles : load.tiles) tiles *= scale;
  return load;
}

/// EPLB gives all ranks nearly the same load: each has an even share of the total.
ExpertLoad levelled_load(double tokens, double top_k, double experts, double ep, const Routing& routing) {
  ExpertLoad load = tabled_load(tokens, top_k, experts, 1.0, routing);
  load.assignments /= ep;
  load.hits = std::max(std::min(1.0, load.hits), load.hits / ep);
  for (double& tiles : load.tiles) tiles = std::max(load.hits, tiles / ep);
  return load;
}

ExpertLoad load_by_law(double whole, double top_k, double experts, double ep, const Routing& routing) {
  switch (routing.kind) {
    case Routing::Kind::kBalanced:
      return routing.grouped ? tabled_load(whole, top_k, experts, ep, routing)
                             : balanced_load(whole, top_k, experts + routing.redundant, ep);
    case Routing::Kind::kUniform:
      return uniform_load(whole, top_k, experts + routing.redundant, ep);
    case Routing::Kind::kPowerLaw:
      if (routing.levelled) return levelled_load(whole, top_k, experts, ep, routing);
      return tabled_load(whole, top_k, experts, ep, routing);
    case Routing::Kind::kPopularity:
      return tabled_load(whole, top_k, experts, ep, routing);
  }
  fail_check("routing", __FILE__, __LINE__, "no such routing");
}

}  // namespace

ExpertLoad expert_load(double tokens, double top_k, double experts, double ep, const Routing& routing) {
  SIM_CHECK(tokens >= 0.0 && top_k >= 1.0 && experts >= top_k && ep >= 1.0, "a mixture of experts without experts");
  if (tokens == 0.0) return {};
  const double whole = std::max(1.0, tokens);
  ExpertLoad load = load_by_law(whole, top_k, experts, ep, routing);
  // A token chooses distinct experts, so the noise of the draws cannot exceed all experts of a rank.
  const double most = whole * std::min(top_k, local_experts(experts + routing.redundant, ep));
  load.assignments = std::min(load.assignments, most);
  return load;
}

double max_rank_load(double tokens, double top_k, double experts, double ep, const Routing& routing) {
  if (tokens <= 0.0 || ep <= 1.0) return 1.0;
  const double whole = std::max(1.0, tokens);
  return expert_load(tokens, top_k, experts, ep, routing).assignments / (whole * top_k / ep);
}

}  // namespace roofcast
