#pragma once
// Queues with fixed service times. Waits are in units of the service time.

namespace roofcast {

/// Mean wait of M/D/c at utilization u: that of M/M/c (Erlang's C) / 2 times
///   1 + (1 - u)(c - 1)(sqrt(4 + 5 c) - 2) / (16 u c)
/// (Cosmetatos 1976, https://doi.org/10.1057/jors.1976.120, within a few hundredths of the exact value). For equal
/// prompts that are not split over workers, first come, first served is the order with the shortest mean wait.
double shared_queue_wait(double utilization, int servers);

/// The same for one of c servers to which Poisson arrivals are assigned in turn (Erlang-c gaps):
///   u / (2 c (1 - u)) exp(-2 (1 - u) (1 - 1/c)^2 c / (3 u))
/// (Kraemer and Langenbach-Belz 1976, as in Tijms, A First Course in Stochastic Models, 2003, section 9.6).
double round_robin_wait(double utilization, int servers);

/// The highest utilization at which the mean wait is at most `wait` service times.
double utilization_within(double wait, int servers, double (*mean_wait)(double utilization, int servers));

}  // namespace roofcast
