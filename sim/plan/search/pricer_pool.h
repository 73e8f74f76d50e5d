#pragma once
// A thread-safe pool of step models that simulations use one after another.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/plan/search/known_draws.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

/// Lends step models and takes them back, so that later simulations reuse cached prices. A price does not depend on
/// what a model priced before, so results do not depend on which model is lent. Must outlive what it lends.
class PricerPool {
 public:
  std::unique_ptr<StepPricer> lend(const std::shared_ptr<const Deployment>& deployment);
  PricerFactory factory() {
    return [this](const std::shared_ptr<const Deployment>& deployment) { return lend(deployment); };
  }
  KnownDraws& draws() { return draws_; }

 private:
  class Lent;
  std::mutex mutex_;
  KnownDraws draws_;
  /// Keyed by deployment, which is kept alive so that its address stays unique.
  std::map<std::shared_ptr<const Deployment>, std::vector<std::unique_ptr<StepPricer>>> free_;
};

}  // namespace roofcast
