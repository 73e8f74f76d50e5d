#pragma once
// JSON Schema (draft 2020-12) of every kind of result, made from the keys that its writer is checked against.

#include <string>

#include "reports/result_schema.h"

namespace roofcast::reports {

/// Keys that are not declared are allowed. A group of keys that stand together is "dependentRequired".
Json json_schema(const ResultSchema& schema);
/// The file in docs/schemas.
std::string json_schema_text(const ResultSchema& schema);

}  // namespace roofcast::reports
