#pragma once
// JSON Schema (draft 2020-12) of every kind of result, made from the keys that its writer is checked against.

#include <string>

#include "reports/result_schema.h"

namespace roofcast::reports {

/// Keys that are not declared are allowed. A group of keys that stand together is "dependentRequired".
Json json_schema(const ResultSchema& schema);
/// What is wrong with the first key that holds another type than its schema says, such as "'pareto' must be a list, got
/// \"abc\""; empty where nothing is. Only the first 1000 entries of a list are checked.
std::string wrong_type(const Json& result, const ResultSchema& schema);
/// The file in docs/schemas.
std::string json_schema_text(const ResultSchema& schema);

}  // namespace roofcast::reports
