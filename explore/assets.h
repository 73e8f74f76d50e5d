#pragma once
#include <string_view>

namespace roofcast::explore {

/// Files of explore/page that the build turned into strings (cmake/embed.cmake).
extern const std::string_view kExplorePage, kExploreStyle, kExploreScript, kExploreCharts, kExploreCanvases,
    kExploreAsk, kExplorePlan, kExploreLessons, kExploreQuestion;

}  // namespace roofcast::explore
