#include "sim/step/step_parts.h"

#include <algorithm>
#include <utility>

#include "sim/step/operator_cost.h"

namespace roofcast {
namespace {

/// GEMMs are priced exactly up to here (in block fp8 a product of 4,103 rows takes 5 % more than one of 4,096), and
/// linearly between multiples of 64 beyond, where a wave of tiles is a small part of the whole.
constexpr int kExactTokens = 16384;
constexpr int kTokenKnot = 64;
/// Larger steps are not cached, because the memory of knots grows with the largest.
constexpr double kRememberedTokens = 1 << 24;
constexpr std::size_t kMostPrefills = 1U << 18;

/// Up to 64 whole tokens, then up to a sixteenth more.
double rounded(double tokens) {
  const double whole = std::ceil(tokens);
  if (whole <= 64) return whole;
  const double width = std::ldexp(1.0, std::ilogb(whole) - 4);
  return std::ceil(whole / width) * width;
}

}  // namespace

namespace {

void add(OperatorSum& sum, const Operator& op, const Cost& cost, const Machine& machine) {
  const Launches launches = launches_of(op.work, machine);
  sum.seconds += op.count * cost.time.base();
  sum.flops += op.count * cost.flops.base();
  sum.bytes += op.count * cost.bytes.base();
  sum.launches += op.count * launches.eager;
  sum.kernels += op.count * launches.replayed;
  sum.collectives += launches.collective ? op.count : 0.0;
}

}  // namespace

OperatorSum sum_of(const std::vector<Operator>& operators, const Machine& machine) {
  OperatorSum sum{.seconds = 0};
  for (const Operator& op : operators) add(sum, op, cost_of(op.work, machine), machine);
  return sum;
}

PricedOperators price(std::vector<Operator> operators, const Machine& machine) {
  PricedOperators out{.operators = std::move(operators), .costs = {}};
  out.costs.reserve(out.operators.size());
  for (const Operator& op : out.operators) out.costs.push_back(cost_of(op.work, machine));
  return out;
}

OperatorSum sum_of(const PricedOperators& priced, const Machine& machine) {
  OperatorSum sum{.seconds = 0};
  for (std::size_t i = 0; i < priced.costs.size(); ++i) add(sum, priced.operators[i], priced.costs[i], machine);
  return sum;
}

OperatorSum between(const OperatorSum& a, const OperatorSum& b, double t) {
  return {.seconds = a.seconds + t * (b.seconds - a.seconds),
          .flops = a.flops + t * (b.flops - a.flops),
          .bytes = a.bytes + t * (b.bytes - a.bytes),
          .launches = a.launches,
          .kernels = a.kernels,
          .collectives = a.collectives};
}

StepParts::StepParts(const Deployment& deployment)
    : context_(deployment.operator_context()),
      machine_(deployment.machine()),
      skew_(deployment.fidelity == Fidelity::kIdeal ? 0.0 : deployment.engine.host.rank_skew.base()),
      combining_sms_(deployment.gpu.architecture == Architecture::kBlackwell ? combining_sms(deployment) : 0.0),
      spec_(deployment.adapters) {
  auto weights = std::make_shared<std::vector<LayerWeights>>();
  for (const LayerKind& kind : deployment.model.layers)
    weights->push_back(layer_weights(deployment.model, kind, deployment.sharding));
  context_.weights = std::move(weights);
}

/// Ranks that share the experts are priced by the tokens of the most loaded rank and of the group, both rounded up.
std::vector<Operator> StepParts::operators(const TokenPart& part) const {
  if (context_.sharding.attention_dp <= 1) return token_operators(context_, part.tokens);
  const double mine = rounded(part.tokens);
  return token_operators(context_, mine, std::max(mine, rounded(part.group_tokens)), part.prompts);
}

std::vector<Operator> StepParts::operators(const HeadPart& part) const { return head_operators(context_, part.rows); }

std::vector<Operator> StepParts::operators(const AdapterPart& part) const {
  SIM_CHECK(spec_.has_value(), "a deployment with adapters");
  return adapter_operators(context_, *spec_, part.tokens, part.adapters);
}

/// The tokens of the step itself are cached before they attend.
std::vector<Operator> StepParts::operators(const DecodePart& part) const {
  const double context = std::max<double>(part.mean_context, part.query_len);
  return decode_mixing(context_, {.batch = part.sequences,
                                  .mean_context = context,
                                  .max_context = context,
                                  .query_len = static_cast<double>(part.query_len)});
}

std::vector<Operator> StepParts::operators(const PrefillPart& part) const {
  return prefill_mixing(
      context_,
      {.batch = static_cast<double>(part.chunks), .query_len = part.tokens, .context_before = part.context_before});
}

/// Without attention-DP the price depends only on the number of tokens.
const PricedOperators& StepParts::priced(const TokenPart& part) {
  const bool alone = context_.sharding.attention_dp <= 1;
  return latest(tokens_priced_, alone ? TokenPart{part.tokens, part.tokens, false} : part);
}

OperatorSum StepParts::token_sum(double tokens) {
  const auto price = [&](double m) { return sum_of(priced(TokenPart{m, m, false}), machine_); };
  if (tokens <= 0) return {.seconds = 0};
  const double whole = std::ceil(tokens);
  if (whole <= kExactTokens) {
    return tokens_exact_.at(static_cast<std::size_t>(whole), [&] { return price(whole); });
  }
  if (whole > kRememberedTokens) return price(whole);
  const double knot = std::floor(whole / kTokenKnot);
  const auto at = [&](double k) {
    return tokens_knots_.at(static_cast<std::size_t>(k), [&] { return price(k * kTokenKnot); });
  };
  return between(at(knot), at(knot + 1), whole / kTokenKnot - knot);
}

OperatorSum StepParts::sum(const TokenPart& part) {
  if (context_.sharding.attention_dp <= 1) return token_sum(part.tokens);
  const double mine = rounded(part.tokens);
  auto [slot, fresh] = groups_.try_emplace({mine, std::max(mine, rounded(part.group_tokens)), part.prompts});
  if (fresh) slot->second = sum_of(priced(part), machine_);
  return slot->second;
}

/// With few SMs, combine is slower over NVLink (Blackwell); over a network they only hand the data over (Hopper).
const StagedSum& StepParts::staged(const TokenPart& part) {
  const double mine = rounded(part.tokens);
  auto [slot, fresh] = staged_.try_emplace({mine, std::max(mine, rounded(part.group_tokens)), part.prompts});
  StagedSum& sum = slot->second;
  if (!fresh) return sum;
  for (Operator& op : operators(part)) {
    if (auto* exchange = std::get_if<ExchangeShape>(&op.work); exchange != nullptr && exchange->combine)
      exchange->sms = combining_sms_;
    const OperatorSum one = sum_of({op}, machine_);
    (op.stage == Stage::kOutside ? sum.outside : sum.routed).add(one);
    sum.seconds.of[static_cast<std::size_t>(op.stage)] += one.seconds;
    if (const auto* exchange = std::get_if<ExchangeShape>(&op.work)) {
      const ExchangeOnSms on_sms = exchange_on_sms(*exchange, machine_);
      (exchange->combine ? sum.seconds.combine_alone : sum.seconds.dispatch_alone) += op.count * on_sms.alone.base();
      sum.seconds.sm_share = std::max(sum.seconds.sm_share, on_sms.share);
    }
  }
  return sum;
}

Cost StepParts::beside(const Operator& op, const Cost& alone) const {
  const auto* exchange = std::get_if<ExchangeShape>(&op.work);
  if (exchange == nullptr || !exchange->combine || combining_sms_ <= 0) return alone;
  ExchangeShape lent = *exchange;
  lent.sms = combining_sms_;
  return cost_of(lent, machine_);
}

OperatorSum StepParts::sum(const HeadPart& part) {
  if (part.rows <= 0) return {.seconds = 0};
  const double whole = std::ceil(part.rows);
  return head_.at(static_cast<std::size_t>(whole), [&] { return sum_of(priced(HeadPart{whole}), machine_); });
}

std::vector<Operator> StepParts::operators(const EncoderPart& part) const {
  const Encoders& all = context_.model->encoders;
  const auto& encoder = part.work.sound ? all.sounds : all.pictures;
  SIM_CHECK(encoder.has_value(), "a model with an encoder");
  return encoder_operators(context_, *encoder, part.work);
}

OperatorSum StepParts::sum(const EncoderPart& part) {
  if (encoders_.size() > kMostPrefills) encoders_.clear();
  const EncoderWork& w = part.work;
  auto [slot, fresh] = encoders_.try_emplace({w.items, w.sequences, w.patches, w.outputs, w.sound});
  if (fresh) slot->second = sum_of(operators(part), machine_);
  return slot->second;
}

OperatorSum StepParts::sum(const AdapterPart& part) {
  if (adapters_.size() > kMostPrefills) adapters_.clear();
  auto [slot, fresh] = adapters_.try_emplace({part.tokens, part.adapters});
  if (fresh) slot->second = sum_of(priced(part), machine_);
  return slot->second;
}

DecodeCurve& StepParts::make_curve(int decodes, int query_len) {
  const std::uint64_t key = (static_cast<std::uint64_t>(decodes) << 32) | static_cast<std::uint64_t>(query_len);
  DecodeCurve& made = curves_.try_emplace(key).first->second;
  if (query_len == 1) {
    const auto i = static_cast<std::size_t>(decodes);
    if (plain_curves_.size() <= i) plain_curves_.resize(i + 1 + i / 2, nullptr);
    plain_curves_[i] = &made;
  }
  return made;
}

DecodeKnot StepParts::knot(const DecodePart& part, double mean_context) const {
  DecodePart there = part;
  there.mean_context = mean_context;
  const OperatorSum sum = sum_of(operators(there), machine_);
  return {sum.seconds + skew_ * sum.collectives, sum.flops, sum.bytes, sum.launches};
}

OperatorSum StepParts::sum(const PrefillPart& part) {
  if (prefills_.size() > kMostPrefills) prefills_.clear();
  auto [slot, fresh] = prefills_.try_emplace(part);
  OperatorSum& sum = slot->second;
  if (fresh) {
    sum = sum_of(priced(part), machine_);
    sum.seconds += skew_ * sum.collectives;
  }
  return sum;
}

}  // namespace roofcast
