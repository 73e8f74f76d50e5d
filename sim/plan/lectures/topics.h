#pragma once
// The tables of each lecture.

#include "sim/plan/lectures/lecture.h"

namespace roofcast {

using LectureTables = std::vector<LectureTable>;

// compression.cpp
LectureTables quantization_tables(const LectureInputs& in);
LectureTables format_tables(const LectureInputs& in);
LectureTables pruning_tables(const LectureInputs& in);
LectureTables distillation_tables(const LectureInputs& in);
LectureTables quality_tables(const LectureInputs& in);
// decoding.cpp
LectureTables rejection_tables(const LectureInputs& in);
LectureTables speculation_tables(const LectureInputs& in);
LectureTables draft_tables(const LectureInputs& in);
// memory.cpp
LectureTables roofline_tables(const LectureInputs& in);
LectureTables attention_tables(const LectureInputs& in);
LectureTables latent_tables(const LectureInputs& in);
LectureTables waste_tables(const LectureInputs& in);
LectureTables batching_tables(const LectureInputs& in);
// serving.cpp
LectureTables cache_tables(const LectureInputs& in);
LectureTables configurator_tables(const LectureInputs& in);
LectureTables launch_tables(const LectureInputs& in);

}  // namespace roofcast
