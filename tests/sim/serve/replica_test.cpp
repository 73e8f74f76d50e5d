// A replica by itself, driven event by event.
#include "sim/serve/replica.h"

#include <doctest/doctest.h>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Prompts run alone, and only in every fourth step.
class EveryFourth final : public Scheduler {
 public:
  void plan(StepPlan& step) override {
    since_prefill_ = step.steps() - prefilled_at_;
    if (step.decoding() == 0 || since_prefill_ >= 4) step.prefill(step.budget(), StepPlan::WhenFull::kWait);
    if (step.has_prefill()) {
      prefilled_at_ = step.steps();
    } else {
      step.decode();
    }
  }
  std::int64_t steady_steps(const StepPlan& step) const override {
    const bool prompts = step.waiting() > 0 || step.running() > step.decoding();
    return prompts ? std::max<std::int64_t>(1, 4 - since_prefill_) : Scheduler::steady_steps(step);
  }
  /// Three steps may have passed, and a request that came first does not run yet.
  bool arrival_matters(const StepPlan&) const override { return true; }

 private:
  std::int64_t prefilled_at_ = 0, since_prefill_ = 0;
};

}  // namespace

TEST_CASE("replica: a scheduler returns for how many steps its plan stays the same") {
  for (const std::int64_t steps_per_event : {std::int64_t{1}, std::int64_t{1} << 40}) {
    CAPTURE(steps_per_event);
    fake::Recorder seen;
    fake::LinearPricer pricer;
    RequestTable requests;
    Collector collector({}, &seen);
    ReplicaOptions options;
    options.scheduler = []() -> std::unique_ptr<Scheduler> { return std::make_unique<EveryFourth>(); };
    options.max_steps_per_event = steps_per_event;
    Replica replica(fake::deployment(10000), options, pricer, nullptr, requests, collector);
    replica.submit(fake::add(requests, 10, 20), SimTime(0));
    replica.submit(fake::add(requests, 10, 20), SimTime::of(1.5 * kMillisecond));
    std::vector<Replica::Ended> ended;
    while (replica.pending()) {
      const SimTime now = replica.due();
      if (replica.busy()) replica.end_run(ended);
      replica.start_run(now);
    }
    std::vector<std::int64_t> prefills;  // the steps before each
    std::int64_t steps = 0;
    for (const StepRecord& s : seen.steps) {
      if (s.prefills > 0) prefills.push_back(steps);
      steps += s.steps;
    }
    CHECK(prefills == std::vector<std::int64_t>{0, 4});
  }
}

TEST_CASE("replica: a cache is copied back even while a prompt waits for those of other ranks") {
  const auto d = fake::deployment(10000);
  d->engine.scheduler = "no_evict";
  d->engine.max_num_batched_tokens = 100;
  d->sharding.attention_dp = 2;
  d->engine.attention_dp_balance = true;
  d->engine.prefill_wait_steps = 1000;
  fake::Recorder seen;
  fake::LinearPricer pricer;
  RequestTable requests;
  Collector collector({}, &seen);
  ReplicaOptions options;
  options.transfer_bandwidth = BytesPerSecond(1e6);
  Replica replica(d, options, pricer, nullptr, requests, collector);
  const auto add = [&](std::int64_t id) {
    Request request;
    request.id = id;
    request.prompt_tokens = 10;
    request.output_tokens = 40;
    const Slot slot = requests.add(request);
    requests[slot].target = 10;
    return slot;
  };
  const auto next_event = [&] {
    const SimTime now = replica.due();
    std::vector<Replica::Ended> ended;
    if (replica.busy()) replica.end_run(ended);
    replica.start_run(now);
  };
  replica.submit(add(0), SimTime(0));
  replica.submit(add(1), SimTime(0));
  next_event();                        // both ranks prefill
  replica.submit(add(2), SimTime(0));  // the first rank's: held, for the second has none
  const Slot prefilled = add(3);
  requests[prefilled].base = 10;
  requests[prefilled].produced = 1;
  replica.submit_prefilled(prefilled, SimTime(0));
  next_event();
  CHECK(replica.take_fetches().size() == 1);
  next_event();  // the cache is here
  next_event();
  REQUIRE(seen.steps.size() == 3);
  CHECK(seen.steps[0].prefill_tokens == 20);
  CHECK(seen.steps[1].decodes == 2);
  CHECK(seen.steps[2].decodes == 3);
  CHECK(seen.steps[1].prefill_tokens + seen.steps[2].prefill_tokens == 0);
}

TEST_CASE("replica: routers see the prompt tokens of all requests here, whether or not they have run") {
  const auto d = fake::deployment(4 * 16);  // the second is preempted at its 33rd token
  fake::Recorder seen;
  fake::LinearPricer pricer;
  RequestTable requests;
  Collector collector({}, &seen);
  Replica replica(d, {}, pricer, nullptr, requests, collector);
  Request request;
  request.prompt_tokens = 16;
  request.output_tokens = 30;
  for (int i = 0; i < 2; ++i) replica.submit(requests.add(request), SimTime(0));
  std::vector<Replica::Ended> ended;
  while (replica.pending()) {
    CHECK(replica.outstanding_tokens() == 16 * replica.outstanding());
    const SimTime now = replica.due();
    if (replica.busy()) replica.end_run(ended);
    replica.start_run(now);
  }
  CHECK(ended.size() == 2);
  CHECK(collector.metrics().preemptions == 1);
  CHECK(replica.outstanding_tokens() == 0);
}

namespace {

/// A replica of two ranks, event by event.
struct TwoRanks {
  explicit TwoRanks(const std::string& scheduler) {
    deployment->engine.scheduler = scheduler;
    deployment->engine.max_num_batched_tokens = 100;
    deployment->sharding.attention_dp = 2;
    options.transfer_bandwidth = BytesPerSecond(1e4);
  }
  Slot add(int prompt, int output) {
    Request request;
    request.id = next_id++;
    request.prompt_tokens = prompt;
    request.output_tokens = output;
    const Slot slot = requests.add(request);
    requests[slot].target = prompt;
    return slot;
  }
  void next_event() {
    const SimTime now = replica().due();
    if (replica().busy()) replica().end_run(ended);
    replica().start_run(now);
  }
  Replica& replica() {
    if (!made) made = std::make_unique<Replica>(deployment, options, pricer, nullptr, requests, collector);
    return *made;
  }
  std::shared_ptr<Deployment> deployment = fake::deployment(1000);
  fake::Recorder seen;
  fake::LinearPricer pricer;
  RequestTable requests;
  Collector collector{{}, &seen};
  ReplicaOptions options;
  std::vector<Replica::Ended> ended;
  std::unique_ptr<Replica> made;
  std::int64_t next_id = 0;
};

}  // namespace

TEST_CASE("ranks: one decodes while the other prefills, where prompts run alone") {
  TwoRanks t("prefill_first");
  t.replica().submit(t.add(10, 40), SimTime(0));
  t.next_event();  // the first rank prefills
  t.replica().submit(t.add(20, 40), SimTime(0));
  t.next_event();  // and decodes beside the second one's prompt
  t.next_event();
  REQUIRE(t.seen.steps.size() == 2);
  CHECK(t.seen.steps[1].decodes == 1);
  CHECK(t.seen.steps[1].prefill_tokens == 20);
}

TEST_CASE("ranks: each has its own pool, sequence limit and token budget") {
  TwoRanks t("decode_first");
  t.deployment->engine.max_num_seqs = 1;
  for (int i = 0; i < 3; ++i) t.replica().submit(t.add(80, 4), SimTime(0));
  t.next_event();
  t.next_event();
  REQUIRE(t.seen.steps.size() == 1);
  CHECK(t.seen.steps[0].prefill_tokens == 160);  // 80 of each rank's 100
  CHECK(t.replica().running() == 2);             // the third waits for the first rank's place
  CHECK(t.replica().queued() == 1);
  // A request of more than one rank's cache can never run, whatever the two have together.
  CHECK_FALSE(t.replica().can_serve(t.requests[t.add(900, 200)]));
  CHECK(t.replica().can_serve(t.requests[t.add(900, 90)]));
}

TEST_CASE("ranks: requests go to the rank with the fewest, or in turn") {
  for (const RankChoice choice : {RankChoice::kFewest, RankChoice::kInTurn}) {
    TwoRanks t("decode_first");
    t.deployment->engine.rank_choice = choice;
    const Slot first = t.add(10, 40), second = t.add(10, 1), third = t.add(10, 40);
    t.replica().submit(first, SimTime(0));
    t.replica().submit(second, SimTime(0));
    CHECK(t.requests[first].rank == 0);
    CHECK(t.requests[second].rank == 1);
    t.next_event();
    t.next_event();  // the second has ended
    t.replica().submit(third, SimTime(0));
    CHECK(t.requests[third].rank == (choice == RankChoice::kFewest ? 1 : 0));
  }
}

TEST_CASE("ranks: caches arrive in parallel, each over its rank's own NIC") {
  TwoRanks t("decode_first");
  std::vector<Slot> slots;
  for (int i = 0; i < 2; ++i) {
    slots.push_back(t.add(100, 5));
    t.requests[slots.back()].base = 100;
    t.requests[slots.back()].produced = 1;
    t.replica().submit_prefilled(slots.back(), SimTime(0));
  }
  t.next_event();
  REQUIRE(t.seen.transfers.size() == 2);
  // Seven blocks of 16 tokens, a byte each, at 10 kB/s
  for (const TransferRecord& transfer : t.seen.transfers) {
    CHECK(transfer.start == Seconds(0));
    CHECK(transfer.end.base() == doctest::Approx(0.0112));
  }
}
