#pragma once
// Lines as `calibrate measure` writes them on an H100, of products that take 4 us and the larger of work and traffic.

#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace roofcast::testing {

/// `engine`: whose kernel the lines say it was.
inline std::string made_up_products(const std::string& engine) {
  std::string lines;
  const auto add = [&](int m, int n, int k) {
    const double work = 2.0 * m * n * k / 700e12, traffic = 2.0 * (1.0 * m * k + 1.0 * n * k + 1.0 * m * n) / 3e12;
    const double us = 4.0 + 1e6 * std::max(work, traffic);
    const nlohmann::json state{
        {"sm_clock_mhz", 0}, {"memory_clock_mhz", 0}, {"temperature_c", 0}, {"power_w", 0}, {"throttled", false}};
    lines += nlohmann::json{{"op", "gemm"},
                            {"dtype", "bf16"},
                            {"shape", {{"m", m}, {"n", n}, {"k", k}}},
                            {"engine", engine},
                            {"kernel", "made up"},
                            {"stop", "converged"},
                            {"note", ""},
                            {"flops", 1},
                            {"bytes", 1},
                            {"commit", "x"},
                            {"time", "2026-11-22T00:00:00Z"},
                            {"repeats", 1},
                            {"device",
                             {{"name", "NVIDIA H100 80GB HBM3"},
                              {"driver", "1"},
                              {"cuda", "13.0"},
                              {"compute_capability", "9.0"},
                              {"sm_count", 132},
                              {"devices", 1},
                              {"memory_bytes", 85.0e9},
                              {"l2_bytes", 52428800}}},
                            {"before", state},
                            {"after", state},
                            {"throttled_samples", nlohmann::json::array()},
                            {"samples_us", {us, us, us}}}
                 .dump() +
             "\n";
  };
  for (int m = 1; m <= 8192; m *= 2) {
    for (const auto& [n, k] : {std::pair{4096, 4096}, {6144, 4096}, {28672, 4096}, {4096, 14336}}) add(m, n, k);
  }
  return lines;
}

}  // namespace roofcast::testing
