#pragma once
// A group of replicas that are simulated separately from the others.

#include <utility>
#include <vector>

#include "sim/serve/collector.h"
#include "sim/serve/event_queue.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

/// The recorded events of a group of independent replicas, for merging with those of the other groups in time order.
struct ReplicaTape {
  struct Push {
    SimTime at;
    EventQueue::Kind kind;
  };
  struct Left {
    std::int64_t id;
    std::uint16_t together;          ///< EndedRequest's
    std::size_t begin = 0, end = 0;  ///< its range of recorded collector calls
  };
  struct Event {
    SimTime at;
    EventQueue::Kind kind;
    std::int64_t entered = -1;                    ///< id of the request that arrived and was accepted
    std::size_t calls = 0, pushes = 0, left = 0;  ///< so far
  };
  std::vector<Event> events;
  std::vector<Collector::Call> calls;
  std::vector<Push> pushes;
  std::vector<Left> left;
  std::int64_t entered = -1;

  void end_event(const EventQueue::Event& event) {
    events.push_back({event.at, event.kind, std::exchange(entered, -1), calls.size(), pushes.size(), left.size()});
  }
};

/// Consecutive replicas that are independent of the others, with the pricer of their steps and their collector.
struct Lane {
  int first = 0, replicas = 0;
  StepPricer* pricer = nullptr;
  StepPricer* draft_pricer = nullptr;
  ReplicaTape* tape = nullptr;
  // The last request from the source
  std::int64_t number = 0;  ///< its index among the requests of all lanes
  int replica = 0;          ///< the replica that gets it
};

}  // namespace roofcast
