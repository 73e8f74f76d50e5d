#include "sim/plan/search/pricer_pool.h"

namespace roofcast {

class PricerPool::Lent final : public StepPricer {
 public:
  Lent(PricerPool& pool, std::shared_ptr<const Deployment> deployment, std::unique_ptr<StepPricer> pricer)
      : pool_(pool), deployment_(std::move(deployment)), pricer_(std::move(pricer)) {}
  ~Lent() override {
    const std::lock_guard lock(pool_.mutex_);
    pool_.free_[deployment_].push_back(std::move(pricer_));
  }
  StepCost cost(const StepBatch& batch) override { return pricer_->cost(batch); }
  Seconds run_time(const StepBatch& first, std::int64_t steps) override { return pricer_->run_time(first, steps); }
  StepCost decode_run(const StepBatch& first, std::int64_t steps) override { return pricer_->decode_run(first, steps); }
  std::int64_t steps_within(const StepBatch& first, Seconds budget, std::int64_t limit) override {
    return pricer_->steps_within(first, budget, limit);
  }

 private:
  PricerPool& pool_;
  std::shared_ptr<const Deployment> deployment_;
  std::unique_ptr<StepPricer> pricer_;
};

std::unique_ptr<StepPricer> PricerPool::lend(const std::shared_ptr<const Deployment>& deployment) {
  std::unique_ptr<StepPricer> pricer;
  {
    const std::lock_guard lock(mutex_);
    auto& free = free_[deployment];
    if (!free.empty()) pricer = std::move(free.back()), free.pop_back();
  }
  if (!pricer) pricer = make_model_pricer(deployment);
  return std::make_unique<Lent>(*this, deployment, std::move(pricer));
}

}  // namespace roofcast
