#pragma once
// Step models that many simulations use one after another, in any thread.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/plan/search/known_draws.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

/// What simulations of a search leave for later ones. Lends step models and takes them back: what one simulation priced
/// the next need not. Prices do not depend on what a model priced before, so neither do results on which of several
/// models is lent. Must outlive what it lends.
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
  /// By deployment, which is kept alive, so that no other comes to its address.
  std::map<std::shared_ptr<const Deployment>, std::vector<std::unique_ptr<StepPricer>>> free_;
};

}  // namespace roofcast
