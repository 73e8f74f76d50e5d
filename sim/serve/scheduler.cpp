#include "sim/serve/scheduler.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "sim/serve/waiting_queue.h"

namespace roofcast {
namespace {

constexpr std::array kSchedulers{
    SchedulerKind{"decode_first",
                  "vLLM V1: running sequences, then waiting prompts in chunks; preempts when blocks run out",
                  [] { return SchedulerRules{}; }},
    SchedulerKind{"prefill_first", "SGLang: waiting prompts run alone and first, with a share of their output reserved",
                  [] { return SchedulerRules{.mixed = false, .reserves = true}; }},
    SchedulerKind{"mixed_chunk", "SGLang with --enable-mixed-chunk: a chunk of the waiting prompts runs beside decode",
                  [] { return SchedulerRules{.reserves = true}; }},
    SchedulerKind{"no_evict", "TensorRT-LLM: in-flight batching, admits only what can run to its end",
                  [] { return SchedulerRules{.reserves = true, .whole_output = true}; }},
    SchedulerKind{"prefill_no_evict", "prompts run alone and first, and only what can run to its end is admitted",
                  [] { return SchedulerRules{.mixed = false, .reserves = true, .whole_output = true}; }},
    SchedulerKind{
        "static", "what waits becomes a batch that runs until its last sequence has ended",
        [] { return SchedulerRules{.mixed = false, .reserves = true, .whole_output = true, .whole_batch = true}; }},
};

constexpr std::array kPolicies{
    QueuePolicyName{"fcfs", "in the order of arrival", QueuePolicy::kFcfs},
    QueuePolicyName{"priority", "smallest priority number first, then by arrival", QueuePolicy::kPriority},
    QueuePolicyName{"shortest_first", "shortest prompt first, then by arrival", QueuePolicy::kShortestFirst},
};

template <class Table>
const auto& find_named(const Table& table, const char* kind, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& row : table) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  throw ConfigError(unknown_name(kind, name, names));
}

}  // namespace

std::span<const SchedulerKind> schedulers() { return kSchedulers; }
SchedulerRules make_scheduler(const std::string& name) { return find_named(kSchedulers, "scheduler", name).make(); }

std::span<const QueuePolicyName> queue_policies() { return kPolicies; }
QueuePolicy queue_policy(const std::string& name) { return find_named(kPolicies, "queue policy", name).policy; }

}  // namespace roofcast
