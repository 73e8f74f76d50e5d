#pragma once
// The engine release on which kernels were measured.

#include <optional>
#include <string>

namespace roofcast {

struct Deployment;

struct KernelRelease {
  std::string engine, version;
};

/// From the source of the GEMM constants, which every fit has: its last part, such as "vllm-0.24.0". Empty for the
/// ideal roofline, for roofline efficiencies, and if the source names no release.
std::optional<KernelRelease> kernel_release(const Deployment& deployment);

/// Whether that release is of another engine or minor version: 0.12 and 0.24, but not 0.24.0 and 0.24.1.
bool has_kernels_of_another_release(const Deployment& deployment);
/// Whether they were measured under another engine.
bool has_kernels_of_another_engine(const Deployment& deployment);

}  // namespace roofcast
