// Speculative decoding: the closed forms, the acceptance rule and its exactness.

#include "sim/plan/speculation_math.h"

#include <array>
#include <cmath>

#include "lecture.h"
#include "sim/plan/lectures/rejection_sampling.h"

using namespace lecture;

TEST_CASE("alpha 0.8, k 4, cost ratio 0.11: 3.36 / 1.44 = 2.33, where k a + 1 promises 4.2 / 1.44 = 2.9") {
  // 1 + 0.8 + 0.64 + 0.512 + 0.4096 = 3.3616
  CHECK(expected_tokens(0.8, 4) == doctest::Approx(3.3616).epsilon(1e-12));
  CHECK(speculation_speedup(0.8, 4, 0.11) == doctest::Approx(3.3616 / 1.44).epsilon(1e-12));
  CHECK(expected_tokens_bound(0.8, 4) == doctest::Approx(4.2));
  CHECK(expected_tokens_bound(0.8, 4) / 1.44 == within(2.9));
}

TEST_CASE("alpha 0.9, k 4: 4.10 tokens per step, not 4.6") {
  CHECK(expected_tokens(0.9, 4) == doctest::Approx((1 - std::pow(0.9, 5)) / 0.1).epsilon(1e-12));
  CHECK(expected_tokens(0.9, 4) == within(4.10, 0.001));
  CHECK(expected_tokens_bound(0.9, 4) == doctest::Approx(4.6));
}

TEST_CASE("at a = 1 every pass gives k + 1 tokens, at a = 0 one") {
  for (int k : {0, 1, 4, 7}) {
    CHECK(expected_tokens(1, k) == k + 1);
    CHECK(expected_tokens(0, k) == 1);
    CHECK(expected_tokens_bound(1, k) == k + 1);
  }
}

TEST_CASE("k a + 1 is an upper bound") {
  for (double a = 0; a <= 1.0; a += 0.05) {
    for (int k = 0; k <= 10; ++k) CHECK(expected_tokens(a, k) <= expected_tokens_bound(a, k) + 1e-12);
  }
}

TEST_CASE("an acceptance of 0 is never faster than none") {
  for (int k : {1, 3, 7}) CHECK(speculation_speedup(0, k, 0) <= 1.0);
  CHECK(best_drafts(0, 0.05, 16).drafts == 0);
}

TEST_CASE("the best k: later drafts are worth a^k and cost r") {
  CHECK(best_drafts(0.8, 0.11, 32).drafts ==
        6);  // 3.951 / 1.66 = 2.380; k = 5: 3.689 / 1.55 = 2.380, k = 7: 4.161 / 1.77 = 2.351
  CHECK(best_drafts(0.8, 0.0, 32).drafts == 32);  // free drafts: as many as allowed
  CHECK(best_drafts(0.3, 0.5, 32).drafts == 0);   // 1.3 / 1.5
}

TEST_CASE("draft-model pairs of the lectures, k = 4: what their acceptance gives") {
  // Llama-2 7B for 70B: r = 13.2 / 138 GB read a token; a ~ 0.7: 2.773 / 1.382 = 2.0, the lecture: 2 to 2.5
  CHECK(speculation_speedup(0.7, 4, 6.61 / 68.7) == within(2.0));
  // Llama 68M for 7B: r = 0.01; a ~ 0.5: 1.9375 / 1.04 = 1.86, the lecture: 1.5 to 2
  CHECK(speculation_speedup(0.5, 4, 0.01) == within(1.86));
  // n-gram, no cost, a of 0.3 to 0.5: 1.43 to 1.94; the lecture: 1.3 to 1.8
  CHECK(speculation_speedup(0.3, 4, 0) == within(1.43));
  CHECK(speculation_speedup(0.5, 4, 0) == within(1.94));
  // early exit, a ~ 0.6, after a quarter of the layers 2.306 / 2 = 1.15; 1.5 to 2 needs a tenth: 2.306 / 1.4 = 1.65
  CHECK(speculation_speedup(0.6, 4, 0.25) == within(1.15));
  CHECK(speculation_speedup(0.6, 4, 0.10) == within(1.65));
  // "right 70 % of the time, about 2x": with a 1B draft for a 70B, 2.773 / (1 + 4 / 70) = 2.62
  CHECK(speculation_speedup(0.7, 4, 1.0 / 70) == within(2.62));
}

TEST_CASE("acceptance of 70 to 90 % gives 2.8 to 4.1 tokens per step at k = 4: 5 takes k = 7") {
  CHECK(expected_tokens(0.7, 4) == within(2.77, 0.002));
  CHECK(expected_tokens(0.9, 7) == within(5.70, 0.002));
}

TEST_CASE("a wrong first draft costs the whole round's drafts, not one") {
  CHECK(speculation_speedup(0, 4, 0.11) == doctest::Approx(1 / 1.44));
}

TEST_CASE("the lectures' two tokens: q = 0.3, 0.7 against p = 0.5, 0.5") {
  const std::array q{0.3, 0.7}, p{0.5, 0.5};
  CHECK(acceptance_rate(q, p) == doctest::Approx(0.5 * 0.6 + 0.5 * 1.0));
  CHECK(residual_distribution(q, p)[0] == 0.0);
  CHECK(residual_distribution(q, p)[1] == doctest::Approx(1.0));
  const auto out = output_distribution(q, p);
  CHECK(out[0] == doctest::Approx(0.3).epsilon(1e-12));  // 0.5 x 0.6
  CHECK(out[1] == doctest::Approx(0.7).epsilon(1e-12));  // 0.5 x 1.0 + 0.5 x 0.4 x 1.0
}

TEST_CASE("the output is the target's distribution for any draft, also one that never draws a token") {
  const std::array<double, 4> q{0.1, 0.2, 0.3, 0.4}, p{0.7, 0.0, 0.3, 0.0};
  const auto out = output_distribution(q, p);
  for (std::size_t x = 0; x < q.size(); ++x) CHECK(out[x] == doctest::Approx(q[x]).epsilon(1e-12));
}

TEST_CASE("Monte Carlo: 200,000 tokens fall as the target says, and 0.8 of them are the draft's") {
  const std::array q{0.3, 0.7}, p{0.5, 0.5};
  Random random(7);
  int first = 0, accepted = 0;
  const int n = 200000;
  for (int i = 0; i < n; ++i) {
    const SpeculativeSample s = sample_speculatively(q, p, random);
    first += s.token == 0 ? 1 : 0;
    accepted += s.accepted ? 1 : 0;
  }
  // standard deviations 0.001: four of them
  CHECK(std::abs(first / double(n) - 0.3) < 0.004);
  CHECK(std::abs(accepted / double(n) - 0.8) < 0.004);
}

TEST_CASE("Monte Carlo: whole rounds of k = 4 drafts give the closed form's tokens") {
  const std::array q{0.3, 0.7}, p{0.5, 0.5};  // accepted with 0.8
  Random random(11);
  const int rounds = 100000;
  double tokens = 0;
  for (int i = 0; i < rounds; ++i) {
    bool going = true;
    for (int k = 0; k < 4 && going; ++k) {
      going = sample_speculatively(q, p, random).accepted;
      tokens += 1;  // the draft, or the correction that ends the round
    }
    tokens += going ? 1 : 0;  // all kept: the verifying pass adds one
  }
  CHECK(tokens / rounds == doctest::Approx(expected_tokens(0.8, 4)).epsilon(0.01));
  // A lecture's sketch returns "up to k tokens": it forgets that last one, 1 + a + ... + a^(k-1) = 2.95
  CHECK(expected_tokens(0.8, 3) == within(2.952, 0.001));
}

TEST_CASE("verifying 5 positions of a 70B takes the time of one: the weights bound both") {
  StepModel model(deploy("llama-2-70b", "h100-sxm", "parallelism: {tp: 2}"));
  const auto step = [&](int sequences, int query_len) {
    return model.time(
        {.decodes = sequences, .decode_context = sequences * 1000.0, .query_len = query_len, .prefills = {}});
  };
  CHECK(step(1, 5) / step(1, 1) == within(1.0));
  // ... until the batch fills the GPU: 256 x 5 rows are past the ridge point
  CHECK(step(256, 5) / step(256, 1) > 2.0);
}
