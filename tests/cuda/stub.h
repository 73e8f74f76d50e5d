#pragma once
// A CUDA runtime and the libraries around it that do nothing and fail where a test says: memory lies on the host,
// kernels do not run, every event is a millisecond after the one before.

#include <string>

namespace roofcast::stub {

/// All is well from here on, and calls are counted from 0.
void reset();
/// Call number `call` since the reset answers `error`; after an error that ends the process so do all calls behind it.
void fail_at(int call, int error);
int calls();
/// Of one function.
int calls(const std::string& function);
/// The function that was told to fail; empty when the count has not come so far.
const std::string& failed();

}  // namespace roofcast::stub

/// Every function asks it what to answer: 0, or the error. Also the stub libraries do.
extern "C" int roofcast_stub_answer(const char* function, bool of_runtime);
