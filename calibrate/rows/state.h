#pragma once
// Tables of measured state mixers; `op` and `phase` (context or generation) name the kernel within the layer.
//   gated_delta_net   engine, op, phase, batch, seq_len, num_k_heads, head_k_dim, num_v_heads, head_v_dim, latency_us
//   mamba2            engine, op, phase, batch, seq_len, d_state, heads, head_dim, n_groups, latency_us

#include <vector>

#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"
#include "hw/kernels/state/state_kernel.h"

namespace roofcast::calibrate {

struct StateRow {
  RowHeader header;
  StateMixer mixer;
  bool convolution = false;  ///< else the recurrence
  bool prompt = false;       ///< else one token per sequence
  double batch = 1, query_len = 1;
};

/// The time of a recurrence's row under the row's timing.
Seconds recurrence_row_time(const StateRow& row, const StateParameters& constants, const GpuSpec& gpu);

std::vector<StateRow> read_gated_delta_rows(const CsvTable& table);
std::vector<StateRow> read_mamba2_rows(const CsvTable& table);

KernelOperator gated_delta_operator();
KernelOperator mamba2_operator();

}  // namespace roofcast::calibrate
