#pragma once
// JSON Schema (draft 2020-12) for every kind of result, generated from the keys that writers are checked against.

#include <string>

#include "reports/result_schema.h"

namespace roofcast::reports {

/// Keys that are not declared are allowed. A group of keys that stand together is "dependentRequired".
Json json_schema(const ResultSchema& schema);
/// Describes the first key whose type differs from its schema, such as "'pareto' must be a list, got \"abc\""; empty if
/// there is none. Only the first 1000 entries of a list are checked.
std::string wrong_type(const Json& result, const ResultSchema& schema);
/// The file in docs/schemas.
std::string json_schema_text(const ResultSchema& schema);

}  // namespace roofcast::reports
