#pragma once
// Knowledge distillation: target distribution and loss of a student.

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/error.h"

namespace roofcast {

/// softmax(z / T). A higher temperature T reveals more of the teacher's ranking of unlikely classes.
inline std::vector<double> softened(std::span<const double> logits, double temperature) {
  SIM_CHECK(!logits.empty() && temperature > 0, "logits and a temperature above zero");
  const double top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> out;
  double sum = 0;
  for (double z : logits) sum += out.emplace_back(std::exp((z - top) / temperature));
  for (double& p : out) p /= sum;
  return out;
}

/// sum p ln(p / q), in nats.
inline double kl_divergence(std::span<const double> p, std::span<const double> q) {
  SIM_CHECK(p.size() == q.size(), "distributions over different classes");
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] > 0 ? p[i] * std::log(p[i] / q[i]) : 0.0;
  return sum;
}

/// a CE(label, student at T = 1) + (1 - a) T^2 KL(teacher at T || student at T). T^2 compensates the gradients of the
/// softened softmax, which shrink as 1 / T^2.
/// Source: Hinton, Vinyals, Dean, 2015, arXiv:1503.02531, sections 2 and 2.1.
inline double distillation_loss(std::span<const double> teacher_logits, std::span<const double> student_logits,
                                std::size_t label, double temperature, double hard_weight) {
  const double hard = -std::log(softened(student_logits, 1.0)[label]);
  const double soft = kl_divergence(softened(teacher_logits, temperature), softened(student_logits, temperature));
  return hard_weight * hard + (1 - hard_weight) * temperature * temperature * soft;
}

}  // namespace roofcast
