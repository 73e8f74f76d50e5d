#pragma once
#include <cstddef>

namespace roofcast {

/// Operators with similar errors.
enum class OperatorFamily { kGemm, kAttentionPrefill, kAttentionDecode, kExperts, kState, kElementwise, kCollective };
inline constexpr std::size_t kOperatorFamilies = 7;

}  // namespace roofcast
