#include "sim/serve/scheduler.h"

#include <array>

#include "sim/serve/named_row.h"
#include "sim/serve/step_plan.h"

namespace roofcast {

std::unique_ptr<Scheduler> make_decode_first();
std::unique_ptr<Scheduler> make_prefill_first();
std::unique_ptr<Scheduler> make_mixed_chunk();
std::unique_ptr<Scheduler> make_no_evict();
std::unique_ptr<Scheduler> make_prefill_no_evict();
std::unique_ptr<Scheduler> make_static_batch();

namespace {

constexpr std::array kSchedulers{
    SchedulerKind{"decode_first",
                  "vLLM V1: running sequences, then waiting prompts in chunks; preempts when blocks run out",
                  make_decode_first},
    SchedulerKind{"prefill_first", "SGLang: waiting prompts run alone and first, with a share of their output reserved",
                  make_prefill_first},
    SchedulerKind{"mixed_chunk",
                  "SGLang with --enable-mixed-chunk: a chunk of the waiting prompts runs together with decode",
                  make_mixed_chunk},
    SchedulerKind{"no_evict", "TensorRT-LLM: in-flight batching, admits only requests that can run to completion",
                  make_no_evict},
    SchedulerKind{"prefill_no_evict", "prompts run alone and first; admits only requests that can run to completion",
                  make_prefill_no_evict},
    SchedulerKind{"static", "a padded batch of waiting requests runs until its last sequence has ended",
                  make_static_batch},
};

}  // namespace

std::span<const SchedulerKind> schedulers() { return kSchedulers; }
std::unique_ptr<Scheduler> make_scheduler(const std::string& name) {
  return named_row(kSchedulers, "scheduler", name).make();
}
std::string continuous_scheduler(const std::string& name) {
  return make_scheduler(name)->continuous() ? name : EngineSpec{}.scheduler;
}

bool Scheduler::arrival_matters(const StepPlan& step) const { return step.arrival_could_start(); }

}  // namespace roofcast
