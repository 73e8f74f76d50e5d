// The entry of libFuzzer. FUZZ_TARGET names the target.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const roofcast::fuzz::Target* const target = [] {
    const char* name = std::getenv("FUZZ_TARGET");
    const roofcast::fuzz::Target* found = roofcast::fuzz::find_target(name == nullptr ? "" : name);
    if (found == nullptr) std::fputs("FUZZ_TARGET names no target\n", stderr), std::_Exit(2);
    return found;
  }();
  roofcast::fuzz::feed(*target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
