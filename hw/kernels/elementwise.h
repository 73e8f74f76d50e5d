#pragma once
// Operators that stream data: norms, rotary embedding, activations, residuals, quantization, KV writes, embedding
// look-ups, sampling, copies.

#include <span>

#include "hw/cost.h"
#include "hw/kernel_fwd.h"

namespace roofcast {

struct ElementwiseParameters {
  double launch_us = 2.0;  ///< in a CUDA graph, including the kernel's ramp-up and drain
  double bandwidth_fraction = 0.85;
  double flops_fraction = 0.5;
  double chained_read_us = 0.5;
  double host_copy_us = 10.0;        ///< a cudaMemcpyAsync from pinned memory
  double host_copy_fraction = 0.85;  ///< of PCIe: 24 of 28 GB/s on Gen4 x16, as measured by bandwidthTest
  static std::span<const Parameter<ElementwiseParameters>> fields();
};

const KernelOf<ElementwiseParameters>& elementwise_kernel();

/// `launches` kernels that together move `bytes` (read and written) and do `flops` on the CUDA cores. `chain`: number
/// of dependent reads of one thread, each with its computation.
Cost elementwise(Bytes bytes, Flops flops, double launches, const Machine& machine, double chain = 0.0);
/// A copy from host to device or back, over PCIe.
Cost host_copy(Bytes bytes, const Machine& machine);

}  // namespace roofcast
