#pragma once
// Queues of fixed service times. Waits are in service times.

namespace roofcast {

/// Mean wait of M/D/c at utilization u: that of M/M/c (Erlang's C) / 2 times
///   1 + (1 - u)(c - 1)(sqrt(4 + 5 c) - 2) / (16 u c)
/// (Cosmetatos 1976, https://doi.org/10.1057/jors.1976.120, within some hundredths of the exact value). Equal prompts
/// that are not split over workers wait the least, in the mean, one at a time in the order of arrival.
double shared_queue_wait(double utilization, int servers);

/// The same of one of c servers that Poisson arrivals are dealt to in turn (Erlang-c gaps):
///   u / (2 c (1 - u)) exp(-2 (1 - u) (1 - 1/c)^2 c / (3 u))
/// (Kraemer and Langenbach-Belz 1976, as in Tijms, A First Course in Stochastic Models, 2003, section 9.6).
double dealt_queue_wait(double utilization, int servers);

/// The highest utilization at which the mean wait is at most so many service times.
double utilization_within(double wait, int servers, double (*mean_wait)(double utilization, int servers));

}  // namespace roofcast
