#pragma once
// A deployment of round numbers: a token of cache is a byte, and a step's time is a sum of a few microseconds.

#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "sim/serve/live_request.h"
#include "sim/serve/simulation.h"
#include "sim/step/deployment.h"

namespace roofcast::fake {

/// step = 1000 us + 10 us a token + 0.01 us a cached token of the decoding sequences
struct StepLaw {
  double fixed = 1e-3, token = 10e-6, context = 1e-8;
  double launched = 0;          ///< s of a decode step until the host has launched its kernels, at most `fixed`
  double prefill_launched = 0;  ///< of a step that holds prompts
  double host = 0;              ///< s of a step in which the GPU waits for the host, at most `fixed`
};

class LinearPricer final : public StepPricer {
 public:
  explicit LinearPricer(StepLaw law = {}) : law_(law) {}

  StepCost cost(const StepBatch& b) override {
    double tokens = b.decodes * b.query_len;
    for (const PrefillChunk& c : b.prefills) tokens += c.tokens;
    return {.time = Seconds(law_.fixed + law_.token * tokens + law_.context * b.decode_context),
            .flops = Flops(tokens),
            .bytes = Bytes(0),
            .launched = Seconds(b.prefills.empty() ? law_.launched : law_.prefill_launched),
            .host = Seconds(law_.host)};
  }
  /// Contexts c, c + b q, c + 2 b q, ...: an arithmetic series.
  StepCost decode_run(const StepBatch& first, std::int64_t steps) override {
    const double n = static_cast<double>(steps), tokens = first.decodes * first.query_len;
    const double contexts = n * first.decode_context + tokens * n * (n - 1) / 2;
    return {.time = Seconds(n * (law_.fixed + law_.token * tokens) + law_.context * contexts),
            .flops = Flops(n * tokens),
            .bytes = Bytes(0),
            .launched = Seconds(law_.launched),
            .host = Seconds(law_.host * n)};
  }
  std::int64_t steps_within(const StepBatch& batch, Seconds budget, std::int64_t limit) override {
    std::int64_t low = 0, high = limit;  // the first n that does not end before the budget, or the limit
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (decode_run(batch, middle).time < budget)
        low = middle + 1;
      else
        high = middle;
    }
    return std::max<std::int64_t>(1, std::min(low, limit));
  }

 private:
  StepLaw law_;
};

/// One GPU whose cache holds `tokens` tokens of a byte each; no host costs.
inline std::shared_ptr<Deployment> deployment(double tokens) {
  auto d = std::make_shared<Deployment>();
  d->gpu.node.pcie_bandwidth = BytesPerSecond(1e6);
  d->memory.layout.groups = {{.bytes_per_token = Bytes(1), .window = 0}};
  d->memory.cache = Bytes(tokens);
  return d;
}

inline ServingOptions options(StepLaw law = {}) {
  ServingOptions o;
  o.pricer = [law](std::shared_ptr<const Deployment>) { return std::make_unique<LinearPricer>(law); };
  return o;
}

/// A request of a table, with hashes of prefix blocks of 16 tokens.
inline Slot add(RequestTable& requests, int prompt, int output, std::vector<std::uint64_t> blocks = {}) {
  Request request;
  request.prompt_tokens = prompt;
  request.output_tokens = output;
  request.prefix_blocks.assign(blocks.begin(), blocks.end());
  request.prefix_block_tokens = 16;
  return requests.add(request);
}

/// Requests given one by one.
class Requests final : public RequestSource {
 public:
  Requests() = default;
  explicit Requests(std::vector<Request> requests) : requests_(std::move(requests)) {}
  Requests& add(double arrival, int prompt, int output) {
    Request r;
    r.id = static_cast<std::int64_t>(requests_.size());
    r.arrival = Seconds(arrival);
    r.prompt_tokens = prompt;
    r.output_tokens = output;
    requests_.push_back(r);
    return *this;
  }
  bool next(Request& request) override {
    if (at_ == requests_.size()) return false;
    request = requests_[at_++];
    return true;
  }
  std::vector<Request>& all() { return requests_; }

 private:
  std::vector<Request> requests_;
  std::size_t at_ = 0;
};

/// Remembers everything.
class Recorder final : public Observer {
 public:
  void on_step(const StepRecord& s) override { steps.push_back(s); }
  void on_transfer(const TransferRecord& transfer) override { transfers.push_back(transfer); }
  void on_request(const RequestRecord& r) override { requests[r.id] = r; }
  std::vector<StepRecord> steps;
  std::vector<TransferRecord> transfers;
  std::map<std::int64_t, RequestRecord> requests;
};

inline WorkloadSpec closed_loop(int users) {
  WorkloadSpec w;
  w.arrivals.process = ArrivalSpec::Process::kClosedLoop;
  w.arrivals.concurrency = users;
  return w;
}

}  // namespace roofcast::fake
