#include "sim/plan/search/assignment.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace roofcast {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Replicas of services by pool and size, largest first.
using Demand = std::map<std::pair<std::size_t, int>, int, std::greater<>>;

/// Number of instances per pool. It depends only on how many instances have how much free room.
std::vector<long> instances_of(const std::vector<GpuPool>& pools, const Demand& demand) {
  std::vector<long> count(pools.size(), 0);
  std::map<std::pair<std::size_t, int>, long> room;  // pool and free GPUs: instances
  for (const auto& [key, replicas] : demand) {
    const auto [pool, gpus] = key;
    const int host = pools[pool].host;
    long left = replicas;
    if (gpus > host) {
      count[pool] += left * ((gpus + host - 1) / host);
      continue;
    }
    for (auto at = room.lower_bound({pool, gpus}); left > 0 && at != room.end() && at->first.first == pool;) {
      const int each = at->first.second / gpus;  // the fullest instance is filled first
      const long filled = std::min(at->second, left / each);
      if (filled > 0) room[{pool, at->first.second - each * gpus}] += filled;
      at->second -= filled, left -= filled * each;
      if (at->second > 0 && left > 0) {
        room[{pool, at->first.second - static_cast<int>(left) * gpus}] += 1;
        at->second -= 1, left = 0;
      }
      at = at->second == 0 ? room.erase(at) : std::next(at);
    }
    const long each = host / gpus, full = left / each, rest = left % each;
    count[pool] += full + (rest > 0 ? 1 : 0);
    if (full > 0) room[{pool, host - static_cast<int>(each) * gpus}] += full;
    if (rest > 0) room[{pool, host - static_cast<int>(rest) * gpus}] += 1;
  }
  return count;
}

/// Totals of a partial choice.
struct Sum {
  int gpus = 0;
  double bare_usd = 0, watts = 0;  ///< USD/h of the GPUs in use, with no instance wasted
};

class Search {
 public:
  Search(const std::vector<GpuPool>& pools, const std::vector<std::vector<FleetOption>>& services,
         const SharedLimits& limits, Cheapest by, std::size_t most_tried)
      : pools_(pools),
        services_(services),
        limits_(limits),
        by_(by),
        most_tried_(most_tried),
        least_(services.size() + 1) {
    for (std::size_t i = services.size(); i-- > 0;) {
      Sum least{std::numeric_limits<int>::max() / 2, kInfinity, kInfinity};
      for (const FleetOption& option : services[i]) {
        const Sum one = sum_of(option);
        least = {std::min(least.gpus, one.gpus), std::min(least.bare_usd, one.bare_usd),
                 std::min(least.watts, one.watts)};
      }
      least_[i] = {least_[i + 1].gpus + least.gpus, least_[i + 1].bare_usd + least.bare_usd,
                   least_[i + 1].watts + least.watts};
    }
    for (const auto& options : services) order_.push_back(by_cost(options));
  }

  AssignmentOutcome run() {
    chosen_.assign(services_.size(), 0);
    choose(0, {});
    const bool all = tried_ <= most_tried_;
    if (best_) best_->proven = all;
    return {.best = best_, .decided = best_.has_value() || all};
  }

 private:
  Sum sum_of(const FleetOption& option) const {
    Sum sum{.watts = option.watts};
    for (const PooledReplicas& part : option.parts) {
      sum.gpus += part.gpus * part.replicas;
      sum.bare_usd += part.gpus * part.replicas * pools_[part.pool].usd_per_gpu_hour;
    }
    return sum;
  }
  /// Cheapest first, so that a good choice is found early.
  std::vector<std::size_t> by_cost(const std::vector<FleetOption>& options) const {
    std::vector<std::size_t> order(options.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const Sum x = sum_of(options[a]), y = sum_of(options[b]);
      return by_ == Cheapest::kUsd ? x.bare_usd < y.bare_usd : x.gpus < y.gpus;
    });
    return order;
  }
  /// True for unknown values too.
  static bool beyond(double value, double limit) { return !(value <= limit * (1 + 1e-9)); }
  bool beyond_limits(const Sum& so_far, std::size_t next) const {
    return so_far.gpus + least_[next].gpus > limits_.max_gpus ||
           (limits_.max_usd_per_hour && beyond(so_far.bare_usd + least_[next].bare_usd, *limits_.max_usd_per_hour)) ||
           (limits_.max_watts && beyond(so_far.watts + least_[next].watts, *limits_.max_watts)) || beyond_stock();
  }
  bool beyond_stock() const {
    return std::any_of(limits_.available.begin(), limits_.available.end(), [&](const auto& kind) {
      int used = 0;
      for (const auto& [key, replicas] : demand_) {
        if (pools_[key.first].gpu == kind.first) used += key.second * replicas;
      }
      return used > kind.second;
    });
  }
  /// Whether no completion of this choice beats the best so far.
  bool beaten(const Sum& so_far, std::size_t next) const {
    if (!best_) return false;
    const double usd = so_far.bare_usd + least_[next].bare_usd;
    const int gpus = so_far.gpus + least_[next].gpus;
    if (by_ == Cheapest::kGpus) return gpus > best_->gpus || (gpus == best_->gpus && usd >= best_->usd_per_hour - 1e-9);
    return usd > best_->usd_per_hour + 1e-9 || (usd > best_->usd_per_hour - 1e-9 && gpus >= best_->gpus);
  }
  bool better(const Assignment& a) const {
    if (!best_) return true;
    const double usd = a.usd_per_hour - best_->usd_per_hour;
    if (by_ == Cheapest::kGpus && a.gpus != best_->gpus) return a.gpus < best_->gpus;
    return std::abs(usd) > 1e-9 ? usd < 0 : a.gpus < best_->gpus;
  }
  void complete(const Sum& sum) {
    Assignment a{.chosen = chosen_, .gpus = sum.gpus, .watts = sum.watts};
    const std::vector<long> count = instances_of(pools_, demand_);
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      const double paid = static_cast<double>(count[p]) * pools_[p].host;
      a.paid_gpus += paid;
      a.usd_per_hour += paid * pools_[p].usd_per_gpu_hour;
    }
    if (limits_.max_usd_per_hour && beyond(a.usd_per_hour, *limits_.max_usd_per_hour)) return;
    if (better(a)) best_ = std::move(a);
  }
  void take(const FleetOption& option, int sign) {
    for (const PooledReplicas& part : option.parts) demand_[{part.pool, part.gpus}] += sign * part.replicas;
  }
  void choose(std::size_t service, const Sum& so_far) {
    if (service == services_.size()) return complete(so_far);
    for (const std::size_t i : order_[service]) {
      if (++tried_ > most_tried_) return;
      const FleetOption& option = services_[service][i];
      const Sum own = sum_of(option),
                sum{so_far.gpus + own.gpus, so_far.bare_usd + own.bare_usd, so_far.watts + own.watts};
      if (beaten(sum, service + 1)) continue;
      take(option, 1);
      chosen_[service] = i;
      if (!beyond_limits(sum, service + 1)) choose(service + 1, sum);
      take(option, -1);
    }
  }

  const std::vector<GpuPool>& pools_;
  const std::vector<std::vector<FleetOption>>& services_;
  const SharedLimits& limits_;
  Cheapest by_;
  std::size_t most_tried_;
  std::vector<Sum> least_;  ///< lower bounds over the remaining services
  std::vector<std::vector<std::size_t>> order_;
  std::vector<std::size_t> chosen_;
  Demand demand_;
  std::size_t tried_ = 0;
  std::optional<Assignment> best_;
};

}  // namespace

int gpus_of(const FleetOption& option) {
  int gpus = 0;
  for (const PooledReplicas& part : option.parts) gpus += part.gpus * part.replicas;
  return gpus;
}

std::vector<Instance> packed(const std::vector<GpuPool>& pools, const std::vector<FleetOption>& fleets) {
  struct Item {
    std::size_t pool, service, part;
    int gpus;
  };
  std::vector<Item> items;
  for (std::size_t s = 0; s < fleets.size(); ++s) {
    for (std::size_t p = 0; p < fleets[s].parts.size(); ++p) {
      const PooledReplicas& part = fleets[s].parts[p];
      items.insert(items.end(), static_cast<std::size_t>(part.replicas), Item{part.pool, s, p, part.gpus});
    }
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.pool != b.pool ? a.pool < b.pool : a.gpus > b.gpus; });
  std::vector<Instance> out;
  std::map<std::pair<std::size_t, int>, std::vector<std::size_t>> room;  // pool and free GPUs: instances
  for (const Item& item : items) {
    const int host = pools[item.pool].host;
    for (int left = item.gpus; item.gpus > host && left > 0; left -= host) {
      const int here = std::min(left, host);
      out.push_back({item.pool, {{item.service, here}}, {{item.service, item.part, here}}});
    }
    if (item.gpus > host) continue;
    auto at = room.lower_bound({item.pool, item.gpus});
    std::size_t into = out.size();
    int left = host;
    if (at != room.end() && at->first.first == item.pool) {
      into = at->second.front(), left = at->first.second;
      at->second.erase(at->second.begin());
      if (at->second.empty()) room.erase(at);
    } else {
      out.push_back({item.pool, {}, {}});
    }
    auto& within = out[into].gpus;
    const auto own = std::find_if(within.begin(), within.end(), [&](const auto& g) { return g.first == item.service; });
    if (own != within.end()) {
      own->second += item.gpus;
    } else {
      within.emplace_back(item.service, item.gpus);
    }
    out[into].replicas.push_back({item.service, item.part, item.gpus});
    if (left > item.gpus) room[{item.pool, left - item.gpus}].push_back(into);
  }
  for (Instance& instance : out) {
    std::sort(instance.gpus.begin(), instance.gpus.end());
    std::sort(instance.replicas.begin(), instance.replicas.end());
  }
  return out;
}

std::vector<int> first_gpus(const Instance& instance) {
  std::vector<std::size_t> order(instance.replicas.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return instance.replicas[a].gpus > instance.replicas[b].gpus; });
  std::vector<int> first(order.size());
  int next = 0;
  for (const std::size_t i : order) first[i] = std::exchange(next, next + instance.replicas[i].gpus);
  return first;
}

AssignmentOutcome cheapest_assignment(const std::vector<GpuPool>& pools,
                                      const std::vector<std::vector<FleetOption>>& services, const SharedLimits& limits,
                                      Cheapest by, std::size_t most_tried) {
  return Search(pools, services, limits, by, most_tried).run();
}

}  // namespace roofcast
