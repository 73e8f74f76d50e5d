#include "sim/plan/parallel_hint.h"
#include "sim/step/deployment.h"

#include <doctest/doctest.h>

using namespace roofcast;

TEST_CASE("copies of a split attention are named in the units of the engine") {
  Deployment d;
  d.sharding = {.tp = 8, .attention_dp = 8};
  d.engine.name = "sglang";
  CHECK(parallel_hint(d) ==
        "--tp 8 --attention-dp 8 are 64 GPUs per replica (--tp 64 --dp 8 --enable-dp-attention of sglang); "
        "--tp 1 --attention-dp 8 are 8 GPUs per replica (--tp 8 --dp 8 --enable-dp-attention of sglang)");
  d.engine.name = "trtllm";
  CHECK(parallel_hint(d) ==
        "--tp 8 --attention-dp 8 are 64 GPUs per replica; "
        "--tp 1 --attention-dp 8 are 8 GPUs per replica (tp_size 8, enable_attention_dp of trtllm)");
  d.sharding = {.tp = 1, .attention_dp = 8};
  CHECK(parallel_hint(d).empty());
  d.sharding = {.tp = 8};
  CHECK(parallel_hint(d).empty());
}
