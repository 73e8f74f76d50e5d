#pragma once
// The keys of a catalog (the list of `roofcast models`, `gpus`, ...) and of a catalog_entry (one spec, whose own keys
// are next to `of`); see reports/result_keys.h.

#include "reports/key_group.h"

namespace roofcast::reports::result_keys {

inline constexpr auto kCatalog = keys("of", "entries");
inline constexpr auto kCatalogName = keys("name");
inline constexpr auto kCatalogEntry = keys("of");  // models | gpus | engines | workloads | recipes | clients | kernels
inline constexpr std::array kCatalogGroups{KeyGroup{"", kCatalog}, KeyGroup{"entries[].", kCatalogName}};
inline constexpr std::array kCatalogEntryGroups{KeyGroup{"", kCatalogEntry}};

}  // namespace roofcast::reports::result_keys
