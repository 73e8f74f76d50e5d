#pragma once
// The parts of a step: their operators, and cached sums of these.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/container_hash/hash.hpp>

#include "sim/step/decode_curve.h"
#include "sim/step/deployment.h"
#include "sim/step/expert_overlap.h"
#include "sim/step/operator_sum.h"
#include "sim/step/part_kinds.h"

namespace roofcast {

/// Sums of a TokenPart by stage.
struct StagedSum {
  StageSeconds seconds;
  OperatorSum outside{.seconds = 0}, routed{.seconds = 0};  ///< layers without and with routed experts
};

/// A position between two knots of a DecodePart's curve. The pointers stay valid until the next knot is priced.
struct DecodePlace {
  DecodeSegment segment;
  const DecodeKnot& low;
  const DecodeKnot& high;
  double t;  ///< position between low (0) and high (1)

  double between(double DecodeKnot::*what) const { return low.*what + t * (high.*what - low.*what); }
  /// Seconds of the mixers, including the gaps between their kernels.
  double seconds(const DecodePart& part) const {
    return std::max(between(&DecodeKnot::seconds), part.least_seconds) + part.gap * low.launches;
  }
};

/// Not thread-safe. `deployment` must outlive it.
class StepParts {
 public:
  explicit StepParts(const Deployment& deployment);

  /// The operators of a part. The latest parts of each kind are cached: successive steps often have the same parts.
  const PricedOperators& priced(const TokenPart& part);
  const PricedOperators& priced(const HeadPart& part) { return latest(head_priced_, part); }
  const PricedOperators& priced(const PrefillPart& part) { return latest(prefills_priced_, part); }
  PricedOperators priced(const AdapterPart& part) const { return price(operators(part), machine_); }
  PricedOperators priced(const EncoderPart& part) const { return price(operators(part), machine_); }
  PricedOperators priced(const EncodedPart& part) const { return price(operators(part), machine_); }
  PricedOperators priced(const DecodePart& part) const { return price(operators(part), machine_); }

  OperatorSum sum(const TokenPart& part);
  /// The cost of an operator that overlaps others: only a few SMs combine the experts' results.
  Cost beside(const Operator& op, const Cost& alone) const;
  /// The same by stage.
  const StagedSum& staged(const TokenPart& part);
  OperatorSum sum(const HeadPart& part);
  OperatorSum sum(const AdapterPart& part);
  OperatorSum sum(const EncoderPart& part);
  OperatorSum sum(const EncodedPart& part) const { return sum_of(operators(part), machine_); }
  OperatorSum sum(const DecodePart& part) {
    const DecodePlace at = place(part);
    return {.seconds = at.seconds(part),
            .flops = at.between(&DecodeKnot::flops),
            .bytes = at.between(&DecodeKnot::bytes),
            .launches = at.low.launches};
  }
  OperatorSum sum(const PrefillPart& part);
  [[gnu::always_inline]] DecodePlace place(const DecodePart& part) {  // every decode step calls it
    DecodeCurve& knots = curve(static_cast<int>(part.sequences), part.query_len);
    const auto priced = [&](double context) { return knot(part, context); };
    const DecodeSegment segment = decode_segment(part.mean_context);
    const DecodeKnot& high = knots.at(segment.index + 1, segment.high, priced);  // makes room for the lower one, too
    const DecodeKnot& low = knots.at(segment.index, segment.low, priced);
    return {segment, low, high, (part.mean_context - segment.low) / (segment.high - segment.low)};
  }

 private:
  std::vector<Operator> operators(const TokenPart& part) const;
  std::vector<Operator> operators(const HeadPart& part) const;
  std::vector<Operator> operators(const AdapterPart& part) const;
  std::vector<Operator> operators(const EncoderPart& part) const;
  std::vector<Operator> operators(const EncodedPart& part) const { return encoded_operators(context_, part.tokens); }
  std::vector<Operator> operators(const DecodePart& part) const;
  std::vector<Operator> operators(const PrefillPart& part) const;

  template <class Part>
  struct Latest {
    std::array<std::optional<std::pair<Part, PricedOperators>>, 8> parts;
    std::size_t next = 0;  ///< the place of the next part
  };
  template <class Part>
  const PricedOperators& latest(Latest<Part>& kept, const Part& part) {
    for (const auto& known : kept.parts) {
      if (known && known->first == part) return known->second;
    }
    auto& place = kept.parts[kept.next++ % kept.parts.size()];
    return place.emplace(part, price(operators(part), machine_)).second;
  }
  OperatorSum token_sum(double tokens);
  DecodeKnot knot(const DecodePart& part, double mean_context) const;
  DecodeCurve& curve(int decodes, int query_len) {
    const auto i = static_cast<std::size_t>(decodes);
    const bool known = query_len == 1 && i < plain_curves_.size() && plain_curves_[i] != nullptr;
    return known ? *plain_curves_[i] : make_curve(decodes, query_len);
  }
  DecodeCurve& make_curve(int decodes, int query_len);

  struct PrefillHash {
    std::size_t operator()(const PrefillPart& key) const {
      std::size_t seed = key.chunks;
      boost::hash_combine(seed, static_cast<std::uint64_t>(key.tokens));
      boost::hash_combine(seed, static_cast<std::uint64_t>(key.context_before));
      return seed;
    }
  };
  using EncoderKey = std::tuple<double, double, double, double, bool>;
  using GroupKey = std::tuple<double, double, bool>;  ///< fields of a TokenPart

  OperatorContext context_;
  Machine machine_;
  Latest<TokenPart> tokens_priced_;
  Latest<HeadPart> head_priced_;
  Latest<PrefillPart> prefills_priced_;
  RememberedSums<> tokens_exact_, tokens_knots_, head_;
  double skew_;           ///< seconds between the arrivals of ranks at a collective
  double combining_sms_;  ///< SMs that combine results while experts still run; 0: all
  std::optional<AdapterSpec> spec_;
  std::unordered_map<std::uint64_t, DecodeCurve> curves_;  ///< per batch and query length
  std::vector<DecodeCurve*> plain_curves_;  ///< per batch with one query token: the common case, without hashing
  std::unordered_map<PrefillPart, OperatorSum, PrefillHash> prefills_;
  std::unordered_map<GroupKey, OperatorSum, boost::hash<GroupKey>> groups_;
  std::unordered_map<std::pair<double, double>, OperatorSum, boost::hash<std::pair<double, double>>> adapters_;
  std::unordered_map<GroupKey, StagedSum, boost::hash<GroupKey>> staged_;
  std::unordered_map<EncoderKey, OperatorSum, boost::hash<EncoderKey>> encoders_;
};

}  // namespace roofcast
