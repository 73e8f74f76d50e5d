#pragma once
#include <string_view>

namespace roofcast::explore {

/// Files of explore/page, embedded as strings by the build (cmake/embed.cmake).
extern const std::string_view kExplorePage, kExploreStyle, kExploreScript, kExploreCharts, kExploreCanvases,
    kExploreAsk, kExplorePlan, kExploreLessons, kExploreQuestion;

}  // namespace roofcast::explore
