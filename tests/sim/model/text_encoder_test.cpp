// Encoders of text.
#include <doctest/doctest.h>

#include "tests/sim/model/models.h"

using namespace roofcast;

TEST_CASE("encoders have the parameters that they are published with") {
  const auto millions = [](const char* name) { return count_parameters(shipped(name)).total / 1e6; };
  CHECK(millions("bert-base") == doctest::Approx(109.48).epsilon(1e-3));  // arXiv:1810.04805: 110 M; 109,482,240
  CHECK(millions("bge-large-en-v1.5") == doctest::Approx(335.14).epsilon(1e-3));  // BERT-large: 335,141,888
  CHECK(millions("distilbert-base") == doctest::Approx(66.36).epsilon(1e-3));     // 66,362,880
  CHECK(millions("bge-m3") == doctest::Approx(567.75).epsilon(1e-3));             // its model card: 568 M
  CHECK(millions("modernbert-base") == doctest::Approx(149.0).epsilon(5e-3));     // arXiv:2412.13663: 149 M
}

TEST_CASE("encoders keep no cache and have no head") {
  const ModelSpec model = shipped("bge-m3");
  CHECK(model.encoder_only);
  CHECK(model.max_context == 8192);
  CHECK(cache_layout(model, model.precision, {}).bytes_per_token() == Bytes(0));
  OperatorContext context;
  context.model = &model;
  for (const Operator& op : head_operators(context, 8)) CHECK(op.name == "norm");
}

TEST_CASE("every token of an encoder sees all others") {
  // 100 tokens of 16 heads of 64 in each of 24 layers: 4 x 100 x 100 x 1024 FLOP, twice as many as causal ones
  const ModelSpec model = shipped("bge-large-en-v1.5");
  OperatorContext context;
  context.model = &model;
  for (const Operator& op : prefill_mixing(context, {.batch = 1, .query_len = 100})) {
    const auto& work = std::get<PrefillWork>(op.work);
    CHECK(op.count == 24);
    CHECK(work.shape.query_len * (work.shape.context_before + (work.shape.query_len + 1) / 2) == 100 * 100);
  }
}
