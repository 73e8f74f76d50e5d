#pragma once
// Constants of a kernel by name, for worked examples.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hw/kernel.h"

namespace roofcast::testing {

/// The kernel's defaults, some of them changed. SIM_CHECK on a name that the kernel does not have.
inline ConstantsBlock constants_of(const Kernel& kernel, const std::map<std::string, double>& changed) {
  std::vector<double> values = kernel.numbers(kernel.defaults());
  const std::vector<FieldFacts> fields = kernel.fields();
  std::size_t found = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto change = changed.find(std::string(fields[i].name));
    if (change == changed.end()) continue;
    values[i] = change->second;
    ++found;
  }
  SIM_CHECK(found == changed.size(), "a constant that the kernel does not have");
  return kernel.from_numbers(values);
}

/// One constant by its name.
inline double value_of(const Kernel& kernel, const ConstantsBlock& block, std::string_view name) {
  SIM_CHECK(block, "the kernel has no constants in this format");
  const std::vector<FieldFacts> fields = kernel.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return kernel.numbers(block)[i];
  }
  fail_check("name", __FILE__, __LINE__, "the kernel has no such constant");
}

}  // namespace roofcast::testing
