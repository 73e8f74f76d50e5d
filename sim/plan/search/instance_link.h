#pragma once
// The network of instances that are part of a host.

#include "base/units.h"

namespace roofcast {

/// Instances that are part of a host do not come with its NICs. H100s have 20 Gbit/s by instance at a provider that
/// says so (github.com/scaleway/docs-content, pages/gpu/reference-content/gpu-instances-bandwidth-overview.mdx,
/// 2025-05-12).
inline constexpr BytesPerSecond kLinkOfPartialHost{20e9 / 8};

}  // namespace roofcast
