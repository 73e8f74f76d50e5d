#pragma once
// The engine release whose kernels were measured.

#include <optional>
#include <string>

namespace roofcast {

struct Deployment;

struct KernelRelease {
  std::string engine, version;
};

/// That of the constants of products, which are fitted wherever anything is: the last part of their source, as
/// "vllm-0.24.0". Nothing for the ideal roofline, for shares of a roofline, and where the source names no release.
std::optional<KernelRelease> kernel_release(const Deployment& deployment);

/// Whether it is another engine's, or of another minor release: 0.12 and 0.24, not 0.24.0 and 0.24.1.
bool has_kernels_of_another_release(const Deployment& deployment);

}  // namespace roofcast
