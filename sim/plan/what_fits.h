#pragma once
#include <string>

namespace roofcast {

struct Deployment;

/// "; --tp 2 would fit, so would --weights int4": the smallest change of each kind that makes a deployment fit, empty
/// when none does.
std::string what_would_fit(const Deployment& deployment);

}  // namespace roofcast
