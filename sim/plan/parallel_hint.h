#pragma once
#include <string>

namespace roofcast {

struct Deployment;

/// How many GPUs a replica has whose attention is both split and copied, and what its engine calls that; empty without
/// copies of a split attention. Engines count differently: `--tp 8 --dp 8` are 8 GPUs of SGLang and 64 of vLLM.
std::string parallel_hint(const Deployment& deployment);

}  // namespace roofcast
