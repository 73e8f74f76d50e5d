#pragma once
#include <cstddef>

namespace roofcast {

/// Operators whose errors are alike.
enum class OperatorFamily { kGemm, kAttentionPrefill, kAttentionDecode, kExperts, kState, kElementwise, kCollective };
inline constexpr std::size_t kOperatorFamilies = 7;

}  // namespace roofcast
