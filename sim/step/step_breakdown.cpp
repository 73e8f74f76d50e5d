// A step operator by operator.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "sim/step/operator_cost.h"
#include "sim/step/operator_error.h"
#include "sim/step/step_state.h"

namespace roofcast {
namespace {

double discrepancy(const PricedOperators& priced, std::size_t i, const Deployment& d) {
  std::vector<double>& known = priced.discrepancies;
  if (known.empty()) known.assign(priced.operators.size(), std::numeric_limits<double>::quiet_NaN());
  if (std::isnan(known[i])) known[i] = discrepancy_of(priced.operators[i].work, *d.efficiency, d.gpu, d.roofline());
  return known[i];
}

/// Calls with the same name share a line; its bound is that of the slowest.
void add_operator(std::vector<OperatorTime>& lines, const std::string& name, const PricedOperators& priced,
                  std::size_t i, const Cost& cost, double count, const Deployment& d) {
  if (count <= 0) return;
  // Searched from the end, where the mixers of many prompts are.
  auto line = std::find_if(lines.rbegin(), lines.rend(), [&](const OperatorTime& l) { return l.name == name; });
  if (line == lines.rend()) {
    lines.push_back({.name = name,
                     .cost = {.bound = cost.bound},
                     .family = family_of(priced.operators[i].work),
                     .discrepancy = discrepancy(priced, i, d)});
    line = lines.rbegin();
  }
  if (cost.time * count > line->cost.time) line->cost.bound = cost.bound;
  line->count += count;
  line->cost.time += cost.time * count;
  line->cost.flops += cost.flops * count;
  line->cost.bytes += cost.bytes * count;
}

/// The bound that takes most of the time.
Bound slowest_bound(const std::vector<OperatorTime>& lines) {
  std::array<double, 5> seconds{};
  for (const OperatorTime& line : lines) seconds[static_cast<std::size_t>(line.cost.bound)] += line.cost.time.base();
  return static_cast<Bound>(std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
}

void add_totals(StepBreakdown& out) {
  for (const OperatorTime& op : out.operators) {
    out.gpu_time += op.cost.time;
    out.flops += op.cost.flops;
    out.bytes += op.cost.bytes;
  }
}

/// The factor by which the operators of a part are scaled to sum to the time of the part.
double slowdown(const PricedOperators&, const auto&, const Machine&) { return 1.0; }
double slowdown(const PricedOperators& priced, const DecodePart& part, const Machine& machine) {
  if (part.least_seconds <= 0) return 1.0;
  const double alone = sum_of(priced, machine).seconds;
  return std::max(alone, part.least_seconds) / alone;
}

}  // namespace

StepBreakdown StepModel::breakdown(const StepBatch& asked) {
  State& s = *state_;
  const Machine machine = s.deployment->machine();
  const StepTotal total = s.total(asked);
  const StepBatch batch = s.encoding.of_decoder(asked);
  StepBreakdown out;
  out.operators.reserve(32);  // few models have more
  const double exposed = total.overlap ? total.overlap->exposed(total.attention) : 1.0;
  const auto add_of = [&](StepParts& parts, const auto& part, double share, const auto& wanted) {
    const PricedOperators& priced = parts.priced(part);
    const double slower = slowdown(priced, part, machine);
    const bool encodes = s.encoding.is_encoder(parts);
    std::string encoder_name;
    for (std::size_t i = 0; i < priced.costs.size(); ++i) {
      const Operator& op = priced.operators[i];
      if (!wanted(op.stage)) continue;
      Cost cost = total.overlap ? s.parts.beside(op, priced.costs[i]) : priced.costs[i];
      cost.time *= slower;
      if (op.stage == Stage::kDispatch || op.stage == Stage::kCombine) cost.time *= exposed;
      if (launches_of(op.work, machine).collective) cost.time += Seconds(s.host.rank_skew());
      const std::string& name = encodes ? (encoder_name = "encoder_" + op.name) : op.name;
      add_operator(out.operators, name, priced, i, cost, op.count * share, *s.deployment);
    }
  };
  const auto add_some = [&](const auto& part, double share, const auto& wanted) {
    add_of(s.parts, part, share, wanted);
  };
  const auto all = [](Stage) { return true; };
  const auto add = [&](const auto& part, double share, double) { add_some(part, share, all); };
  const double tokens = s.host.padded_tokens(batch, total.rank);
  const TokenPart whole{tokens, total.rank.group_tokens, !batch.prefills.empty()};
  if (total.overlap) {
    const double batches = total.overlap->batches;
    add_some(s.piece(whole, batches), batches, [](Stage stage) { return stage != Stage::kOutside; });
    add_some(whole, 1.0, [](Stage stage) { return stage == Stage::kOutside; });
  } else {
    add(whole, 1.0, 1.0);
  }
  if (const auto added = s.adapter_part(batch, tokens, total.rank))
    add(added->in_batches(total.mixers.batches), total.mixers.batches, 1.0);
  add(HeadPart{total.rank.logit_rows}, 1.0, 1.0);  // without the rows that a graph is padded with
  s.for_each_mixer_part(total.mixers, batch.query_len, total.host.gap, add);
  for (const EncoderWork& work : batch.encodes) add(EncoderPart{work}, 1.0, 1.0);
  s.encoding.for_each_part(
      asked.prefills, [&](StepParts& of, const auto& part, double share, double) { add_of(of, part, share, all); });
  add_totals(out);
  out.time = total.time();
  out.host_time = std::max(Seconds(0), out.time - out.gpu_time);  // time runs linearly between knots: it may be less
  const Seconds meanwhile(total.host.least(total.sum.launches));
  out.host = {out.gpu_time, meanwhile, out.time};
  out.bound = meanwhile + Seconds(total.host.before) > out.gpu_time ? Bound::kHost : slowest_bound(out.operators);
  return out;
}

Seconds StepModel::gpu_time_alone(int tokens, int context_before) {
  constexpr std::size_t kMost = 1U << 16;
  auto& alone = state_->alone;
  const std::pair key{tokens, context_before};
  if (const auto found = alone.find(key); found != alone.end()) return found->second;
  if (alone.size() > kMost) alone.clear();
  const std::vector<PrefillChunk> chunks(static_cast<std::size_t>(deployment().sharding.attention_dp),
                                         {tokens, context_before, true});
  return alone[key] = breakdown({.decodes = 0, .decode_context = 0, .prefills = chunks}).gpu_time;
}

}  // namespace roofcast
