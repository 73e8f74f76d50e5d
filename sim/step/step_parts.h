#pragma once
// The parts of a step: the operators of each, and their sums, which are remembered.

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/container_hash/hash.hpp>

#include "sim/model/encoder.h"
#include "sim/step/decode_curve.h"
#include "sim/step/deployment.h"

namespace roofcast {

/// Operators added up.
struct OperatorSum {
  double seconds = std::numeric_limits<double>::quiet_NaN();
  double flops = 0, bytes = 0;
  double launches = 0;     ///< from the host, in an eager step
  double kernels = 0;      ///< in a CUDA graph
  double collectives = 0;  ///< calls in which ranks meet
  bool known() const { return !std::isnan(seconds); }
  /// `share` of the work of another part, and `starts` of its launches.
  void add(const OperatorSum& more, double share = 1.0, double starts = 1.0) {
    seconds += more.seconds * share;
    flops += more.flops * share;
    bytes += more.bytes * share;
    launches += more.launches * starts;
    kernels += more.kernels * share;
    collectives += more.collectives * share;
  }
};
OperatorSum sum_of(const std::vector<Operator>& operators, const Machine& machine);
OperatorSum between(const OperatorSum& a, const OperatorSum& b, double t);

/// All layers but their mixers, of the fullest rank; `group_tokens` are those of all attention-DP ranks.
struct TokenPart {
  double tokens, group_tokens;
  bool prompts;  ///< some of them are of prompts
};
/// Final norm, LM head and sampling.
struct HeadPart {
  double rows;
};
/// Adapters beside the products of the layers.
struct AdapterPart {
  double tokens, adapters;
};
/// Pictures or sounds that pass an encoder.
struct EncoderPart {
  EncoderWork work;
};
/// Mixers of the decoding sequences of one rank.
struct DecodePart {
  double sequences;
  int query_len;
  double mean_context;
  double least_seconds = 0;  ///< what they take at least beside prefill
  double gap = 0;            ///< seconds between two kernels
};
/// Mixers of one prefill chunk. All chunks of a step run in one launch: each is priced as one of `chunks` equal ones.
struct PrefillPart {
  std::size_t chunks;
  double tokens, context_before;
  bool operator==(const PrefillPart&) const = default;
};

/// What a DecodePart sums up to, on its segment of the curve.
struct DecodeLine {
  OperatorSum here;  ///< at the part's context
  DecodeSegment segment;
  DecodeKnot low, high;
};

/// Sums by a whole number, priced once. A number makes room for the 64 about it, not for all below.
class RememberedSums {
 public:
  const OperatorSum& at(std::size_t i, const auto& price) {
    if (pages_.size() <= i / kPage) pages_.resize(i / kPage + 1);
    auto& page = pages_[i / kPage];
    if (!page) page = std::make_unique<Page>();
    OperatorSum& sum = (*page)[i % kPage];
    if (!sum.known()) sum = price();
    return sum;
  }

 private:
  static constexpr std::size_t kPage = 64;
  using Page = std::array<OperatorSum, kPage>;
  std::vector<std::unique_ptr<Page>> pages_;
};

/// Not thread-safe. `deployment` must outlive it.
class StepParts {
 public:
  explicit StepParts(const Deployment& deployment);

  std::vector<Operator> operators(const TokenPart& part) const;
  std::vector<Operator> operators(const HeadPart& part) const;
  std::vector<Operator> operators(const AdapterPart& part) const;
  std::vector<Operator> operators(const EncoderPart& part) const;
  std::vector<Operator> operators(const DecodePart& part) const;
  std::vector<Operator> operators(const PrefillPart& part) const;

  OperatorSum sum(const TokenPart& part);
  OperatorSum sum(const HeadPart& part);
  OperatorSum sum(const AdapterPart& part);
  OperatorSum sum(const EncoderPart& part);
  OperatorSum sum(const DecodePart& part) { return line(part).here; }
  OperatorSum sum(const PrefillPart& part);
  DecodeLine line(const DecodePart& part);

 private:
  OperatorSum token_sum(double tokens);
  DecodeCurve& curve(int decodes, int query_len);
  DecodeCurve& make_curve(int decodes, int query_len);

  struct PrefillHash {
    std::size_t operator()(const PrefillPart& key) const {
      std::size_t seed = key.chunks;
      boost::hash_combine(seed, static_cast<std::uint64_t>(key.tokens));
      boost::hash_combine(seed, static_cast<std::uint64_t>(key.context_before));
      return seed;
    }
  };
  using EncoderKey = std::tuple<double, double, double, bool>;
  using GroupKey = std::tuple<double, double, bool>;  ///< of a TokenPart

  OperatorContext context_;
  Machine machine_;
  std::optional<AdapterSpec> spec_;
  RememberedSums tokens_exact_, tokens_knots_, head_;
  std::unordered_map<std::uint64_t, DecodeCurve> curves_;  ///< by batch and query length
  std::vector<DecodeCurve*> plain_curves_;  ///< by batch, one query token: the common case without hashing
  std::unordered_map<PrefillPart, OperatorSum, PrefillHash> prefills_;
  std::unordered_map<GroupKey, OperatorSum, boost::hash<GroupKey>> groups_;
  std::unordered_map<std::pair<double, double>, OperatorSum, boost::hash<std::pair<double, double>>> adapters_;
  std::unordered_map<EncoderKey, OperatorSum, boost::hash<EncoderKey>> encoders_;
};

}  // namespace roofcast
