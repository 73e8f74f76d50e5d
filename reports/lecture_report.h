#pragma once
#include <span>
#include <string>

#include "sim/plan/lectures/lecture.h"

namespace roofcast::reports {

/// format: table | json | csv. The csv has one line per cell: table, row, column, value. `inputs`: overridden inputs,
/// NAME=NUMBER,...
std::string lecture_report(const Lecture& lecture, std::span<const LectureTable> tables, const std::string& format,
                           std::span<const std::string> inputs = {});
/// All lectures with their inputs.
std::string lectures_report(const std::string& format);

}  // namespace roofcast::reports
