#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/measured_data.h"

namespace {

constexpr int kSkipped = 77;  // SKIP_RETURN_CODE in CMakeLists.txt
bool g_skipped = false;

}  // namespace

void roofcast::testing::skip_test(const std::string& reason) {
  MESSAGE("SKIPPED: " << reason);
  g_skipped = true;
}

int main(int argc, char** argv) {
  const int status = doctest::Context(argc, argv).run();
  return status == 0 && g_skipped ? kSkipped : status;
}
