#pragma once
// Low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685): y = x W + (x A) B with A of k x r and B of r x n. Many
// adapters share one base model; each request names one.

#include <algorithm>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "base/units.h"

namespace roofcast {

struct ModelSpec;
struct Operator;
struct OperatorContext;
struct Sharding;

struct AdapterSpec {
  int count = 1;       ///< adapters that requests name
  int rank = 16;       ///< rank of each adapter
  int slots = 1;       ///< adapters on the GPU at a time; at most as many distinct ones run together
  int slot_rank = 16;  ///< maximum rank of a slot; memory and work follow this rank
  int in_host = 1;     ///< adapters in host memory, including those on the GPU; others are on disk
  BytesPerSecond disk{2e9};
  double skew = 1.0;  ///< the i-th most popular adapter is used i^-skew times as often as the first (Zipf); 0: uniform
  std::vector<std::string> targets;  ///< weight matrices that have adapters
  bool experts = false;              ///< routed experts have adapters
};

/// `adapters: {count, rank, slots, slot_rank, host, disk_bandwidth, popularity, targets}`. Throws ConfigError.
AdapterSpec parse_adapters(ConfigReader in, const ModelSpec& model);

/// Bytes of one adapter of rank `rank` in 16 bit, on the GPU that holds most of it. Under tensor parallelism, A is
/// replicated if outputs are split and B is replicated if inputs are split.
Bytes adapter_bytes(const ModelSpec& model, const AdapterSpec& adapters, const Sharding& sharding, int rank);

/// Fractions of the requests per adapter, most popular first; they sum to 1.
std::vector<double> adapter_shares(const AdapterSpec& adapters);

/// Expected number of distinct adapters among sequences that each draw one independently.
class AdapterHits {
 public:
  explicit AdapterHits(const AdapterSpec& adapters) : shares_(adapter_shares(adapters)), slots_(adapters.slots) {}
  double named(double sequences) const;  ///< expected number for `sequences` sequences
  double of(double sequences) const { return std::min(named(sequences), slots_); }  ///< the same, limited to the slots

 private:
  std::vector<double> shares_;
  double slots_;
};

/// The operators that `adapters` distinct adapters add to a step of `tokens` tokens on one GPU.
std::vector<Operator> adapter_operators(const OperatorContext& context, const AdapterSpec& spec, double tokens,
                                        double adapters);

}  // namespace roofcast
