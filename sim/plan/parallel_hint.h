#pragma once
#include <string>

namespace roofcast {

struct Deployment;

/// The number of GPUs per replica if attention is both tensor- and data-parallel, and the engine's flags for it; else
/// empty. Engines count differently: `--tp 8 --dp 8` means 8 GPUs in SGLang and 64 in vLLM.
std::string parallel_hint(const Deployment& deployment);

}  // namespace roofcast
