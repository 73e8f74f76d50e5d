// libnccl.so.2 of the stub.

#include <cstddef>
#include <cstdlib>

#include "tests/cuda/stub.h"

namespace {
int answer(const char* function) { return roofcast_stub_answer(function, false) == 0 ? 0 : 3; }  // ncclInternalError
}  // namespace

extern "C" {
int ncclGetVersion(int* version) {
  *version = 22809;
  return answer(__func__);
}
int ncclCommInitAll(void** ranks, int count, const int*) {
  const int status = answer(__func__);
  for (int i = 0; i < count; ++i) ranks[i] = status == 0 ? std::malloc(1) : reinterpret_cast<void*>(1);
  return status;
}
int ncclCommDestroy(void* rank) {
  std::free(rank);
  return answer(__func__);
}
int ncclGroupStart() { return answer(__func__); }
int ncclGroupEnd() { return answer(__func__); }
int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*) { return answer(__func__); }
}
