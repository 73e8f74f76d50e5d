#pragma once
// Cores for simulating independent replicas in parallel.

#if !defined(__EMSCRIPTEN__)
#include <tbb/task_arena.h>
#endif

#include "sim/plan/parallel.h"
#include "sim/serve/simulation.h"

namespace roofcast {

inline Cores all_cores() {
#if defined(__EMSCRIPTEN__)
  return {};
#else
#if defined(__SANITIZE_THREAD__)
  const int count = 2;
#else
  const int count = tbb::this_task_arena::max_concurrency();
#endif
  return {.count = count,
          .run = [](std::size_t n, const std::function<void(std::size_t)>& task) { parallel_for_each_index(n, task); }};
#endif
}

}  // namespace roofcast
