#pragma once

namespace roofcast {

/// Quantile of the standard normal, for a probability within (0, 1): Abramowitz and Stegun 26.2.23 (absolute error
/// 4.5e-4), then two of Halley's steps on the distribution function, which leave about 1e-15.
double normal_quantile(double probability);

}  // namespace roofcast
