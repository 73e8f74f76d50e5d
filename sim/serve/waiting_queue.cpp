#include "sim/serve/waiting_queue.h"

#include <array>

#include "sim/serve/named_row.h"

namespace roofcast {
namespace {

constexpr std::array kPolicies{
    QueuePolicyName{"fcfs", "in the order of arrival", QueuePolicy::kFcfs},
    QueuePolicyName{"priority", "smallest priority number first, then by arrival", QueuePolicy::kPriority},
    QueuePolicyName{"shortest_first", "shortest prompt first, then by arrival", QueuePolicy::kShortestFirst},
    QueuePolicyName{"fair", "fair queueing: clients in turn, by tokens served", QueuePolicy::kFair},
};

}  // namespace

std::span<const QueuePolicyName> queue_policies() { return kPolicies; }
QueuePolicy queue_policy(const std::string& name) { return named_row(kPolicies, "queue policy", name).policy; }

}  // namespace roofcast
