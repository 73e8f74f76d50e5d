#pragma once
// Network bandwidth of instances that are only part of a host.

#include "base/units.h"

namespace roofcast {

/// Instances that are part of a host do not include its NICs. For H100 instances one provider documents 20 Gbit/s
/// (github.com/scaleway/docs-content, pages/gpu/reference-content/gpu-instances-bandwidth-overview.mdx, 2025-05-12).
inline constexpr BytesPerSecond kLinkOfPartialHost{20e9 / 8};

}  // namespace roofcast
