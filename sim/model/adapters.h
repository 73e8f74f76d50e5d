#pragma once
// Low-rank adapters beside the weights of a model: y = x W + (x A) B, A of k x r and B of r x n (LoRA, Hu et al. 2021,
// arXiv:2106.09685). Many share one model; each request names one.

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
  int slots = 1;       ///< on the GPU at a time; no more different ones run together
  int slot_rank = 16;  ///< rank that a slot has room for; memory and work follow this rank
  int in_host = 1;     ///< kept in host memory, those on the GPU included; others are on disk
  BytesPerSecond disk{2e9};
  double skew =
      1.0;  ///< the i-th most popular adapter is asked for i^-skew times as often as the first (Zipf); 0: alike
  std::vector<std::string> targets;  ///< products beside which they are
  bool experts = false;              ///< routed experts are among them
};

/// `adapters: {count, rank, slots, slot_rank, host, disk_bandwidth, popularity, targets}`. Throws ConfigError.
AdapterSpec parse_adapters(ConfigReader in, const ModelSpec& model);

/// Bytes of one adapter of `rank` on the GPU that holds most of it, 16 bit. What is replicated under tensor parallelism
/// is as for the weights: A before split outputs, B behind split inputs.
Bytes adapter_bytes(const ModelSpec& model, const AdapterSpec& adapters, const Sharding& sharding, int rank);

/// Shares of the requests, most popular first; they add up to 1.
std::vector<double> adapter_shares(const AdapterSpec& adapters);

/// Different adapters that sequences name, each by itself.
class AdapterHits {
 public:
  explicit AdapterHits(const AdapterSpec& adapters) : shares_(adapter_shares(adapters)), slots_(adapters.slots) {}
  double named(double sequences) const;                                             ///< expected of so many sequences
  double of(double sequences) const { return std::min(named(sequences), slots_); }  ///< that run together

 private:
  std::vector<double> shares_;
  double slots_;
};

/// The work that `adapters` different adapters add to a step of `tokens` tokens on one GPU.
std::vector<Operator> adapter_operators(const OperatorContext& context, const AdapterSpec& spec, double tokens,
                                        double adapters);

}  // namespace roofcast
