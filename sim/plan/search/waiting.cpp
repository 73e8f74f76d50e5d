#include "sim/plan/search/waiting.h"

#include <cmath>

namespace roofcast {

double shared_queue_wait(double u, int servers) {
  if (u <= 0) return 0;
  const double c = servers, load = u * c;
  double erlang_b = 1;  // of no servers; B(n) = load B(n-1) / (n + load B(n-1))
  for (int n = 1; n <= servers; ++n) erlang_b = load * erlang_b / (n + load * erlang_b);
  const double waiting = erlang_b / (1 - u * (1 - erlang_b));  // Erlang's C
  const double exponential = waiting / (c * (1 - u));
  return exponential / 2 * (1 + (1 - u) * (c - 1) * (std::sqrt(4 + 5 * c) - 2) / (16 * u * c));
}

double round_robin_wait(double u, int servers) {
  if (u <= 0) return 0;
  const double c = servers, evenness = 1 - 1 / c;
  return u / (2 * c * (1 - u)) * std::exp(-2 * (1 - u) * evenness * evenness * c / (3 * u));
}

double utilization_within(double wait, int servers, double (*mean_wait)(double, int)) {
  double low = 0, high = 1;
  for (int i = 0; i < 40; ++i) {
    const double u = (low + high) / 2;
    (mean_wait(u, servers) <= wait ? low : high) = u;
  }
  return low;
}

}  // namespace roofcast
