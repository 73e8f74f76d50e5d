#pragma once
// Lists of the keys of a result, each with its place.

#include <array>
#include <span>
#include <string_view>

namespace roofcast::reports::result_keys {

template <class... Texts>
consteval auto keys(Texts... texts) {
  return std::array<std::string_view, sizeof...(texts)>{texts...};
}

/// kAlways: at every such place. kTogether: all of the group's keys or none of them. kSometimes: each by itself.
enum class Presence { kAlways, kTogether, kSometimes };
struct KeyGroup {
  std::string_view place;
  std::span<const std::string_view> keys;
  Presence presence = Presence::kAlways;
};

}  // namespace roofcast::reports::result_keys
