#pragma once
#include <string>

namespace roofcast {

struct Deployment;

/// "; --tp 2 would fit, so would --weights int4": the smallest change of each kind that makes the deployment fit; empty
/// if there is none.
std::string what_would_fit(const Deployment& deployment);

}  // namespace roofcast
