#include "sim/serve/simulation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

TEST_CASE("simulation: a request alone takes its prefill, then one decode step per token") {
  const auto d = fake::deployment(10000);
  d->engine.host.request_time = Seconds(2e-3);
  d->engine.host.request_latency = Seconds(3e-3);
  fake::Requests source;
  source.add(1.0, 100, 5);
  fake::Recorder seen;
  const ServingMetrics m = simulate(d, source, {}, fake::options(), &seen);
  // ttft = 2 ms intake + 3 ms latency + 1 ms step + 100 * 10 us = 7 ms
  // steps 2..5: 1.01 ms + 0.01 us * context, contexts 100 101 102 103 = 406 -> 4.04 ms + 4.06 us
  REQUIRE(m.completed == 1);
  CHECK(seen.requests[0].ttft.in(kMillisecond) == doctest::Approx(7.0));
  CHECK(seen.requests[0].e2el.in(kMillisecond) == doctest::Approx(7.0 + 4.04406));
  CHECK(seen.requests[0].tpot().in(kMillisecond) == doctest::Approx(4.04406 / 4));
  CHECK(seen.requests[0].queue.in(kMillisecond) == doctest::Approx(5.0));
  CHECK(m.itl_ms.count() == 4);
  CHECK(m.iterations == 5);
  CHECK(m.duration.in(kMillisecond) == doctest::Approx(11.04406));
  CHECK(m.kv_peak_usage == doctest::Approx(112.0 / 10000));  // 104 tokens in 7 blocks of 16
}

TEST_CASE("simulation: a closed loop keeps its users busy") {
  const auto d = fake::deployment(100000);
  d->engine.max_num_seqs = 16;
  fake::Requests source;
  for (int i = 0; i < 40; ++i) source.add(0, 50, 11);
  fake::Recorder seen;
  const ServingMetrics m = simulate(d, source, fake::closed_loop(4), fake::options(), &seen);
  // Four run in lockstep: a step of 4 * 50 tokens = 3 ms, then ten of 1.04 ms + 0.04 us a step and 50 more tokens.
  // Ten rounds of 3 + 10.4 ms + 0.01 us * (10 * 200 + 4 * 45) = 13.4218 ms
  CHECK(m.completed == 40);
  CHECK(m.output_tokens == 440);
  CHECK(m.duration.in(kMillisecond) == doctest::Approx(10 * 13.4218));
  CHECK(m.ttft_ms.mean() == doctest::Approx(3.0));
  CHECK(m.ttft_ms.max() == doctest::Approx(3.0));
  CHECK(m.itl_ms.count() == 400);
}

TEST_CASE("simulation: the work of the warm-up is not in the measured time") {
  const auto d = fake::deployment(10000);
  fake::Requests source;
  source.add(0, 100, 5).add(0.004, 50, 1).add(1, 100, 5);
  WorkloadSpec w;
  w.arrivals.process = ArrivalSpec::Process::kTrace;
  w.warmup_requests = 2;
  const ServingMetrics m = simulate(d, source, w, fake::options());
  // The third request alone: 1 ms + 1 ms of prompt, four steps of 1.01 ms + 0.01 us * (100 101 102 103)
  CHECK(m.completed == 1);
  CHECK(m.gpu_busy_seconds * 1e3 == doctest::Approx(6.04406));
  CHECK(m.gpu_busy_seconds == doctest::Approx(m.duration.base()));
  CHECK(m.flops == doctest::Approx(104));  // a FLOP a token here
  // Sent while the first one's prompt is computed, 0 to 2 ms: of that step a quarter is measured.
  fake::Requests overlapping;
  overlapping.add(0, 100, 1).add(0.0015, 100, 1);
  w.warmup_requests = 1;
  const ServingMetrics part = simulate(d, overlapping, w, fake::options());
  CHECK(part.gpu_busy_seconds * 1e3 == doctest::Approx(0.5 + 2));
  CHECK(part.flops == doctest::Approx(25 + 100));
  // A warm-up request of a thousand tokens goes on after the only counted one; that ends at 4.02 ms, in its second
  // step: 1 ms + 0.11 ms of prompts together, then 1 ms + 0.02 ms and 1.1 us of contexts.
  fake::Requests outlasting;
  outlasting.add(0, 10, 1000).add(0, 100, 2);
  const ServingMetrics cut = simulate(d, outlasting, w, fake::options());
  CHECK(cut.completed == 1);
  CHECK(cut.gpu_busy_seconds == doctest::Approx(cut.duration.base()));
  CHECK(cut.flops == doctest::Approx(10 + 100 + 2));
  // Where another counted one follows, the time between is measured.
  fake::Requests followed;
  followed.add(0, 10, 1000).add(0, 100, 2).add(0.5, 100, 2);
  const ServingMetrics whole = simulate(d, followed, w, fake::options());
  CHECK(whole.completed == 2);
  CHECK(whole.gpu_busy_seconds == doctest::Approx(whole.duration.base()));
}

TEST_CASE("simulation: what can never run is counted as failed, and the loop goes on") {
  const auto d = fake::deployment(1000);
  d->engine.max_model_len = 500;
  fake::Requests source;
  source.add(0, 400, 200).add(0, 100, 10).add(0, 2000, 10);
  const ServingMetrics m = simulate(d, source, fake::closed_loop(1), fake::options());
  CHECK(m.failed == 2);
  CHECK(m.completed == 1);
  const auto small = fake::deployment(50);
  fake::Requests again;
  again.add(0, 60, 1).add(0, 20, 10);
  CHECK(simulate(small, again, {}, fake::options()).failed == 1);
}

TEST_CASE("simulation: warm-up ends before the counted requests begin") {
  const auto d = fake::deployment(10000);
  WorkloadSpec workload = fake::closed_loop(2);
  workload.warmup_requests = 3;
  fake::Requests source;
  for (int i = 0; i < 7; ++i) source.add(0, 100, 11);
  fake::Recorder seen;
  const ServingMetrics m = simulate(d, source, workload, fake::options(), &seen);
  CHECK(m.completed == 4);
  CHECK(seen.requests.begin()->first == 3);
  CHECK(seen.requests[3].arrival == seen.requests[4].arrival);
  // Two rounds of 1 + 2 ms prefill and ten steps of 1.02 ms and 0.02 us * (100 .. 109)
  CHECK(m.duration.in(kMillisecond) == doctest::Approx(2 * (3 + 10.2 + 2e-5 * 1045)));
}

TEST_CASE("simulation: users whose warm-up answers come late begin anew once") {
  const auto d = fake::deployment(10000);
  d->engine.host.token_time = kMicrosecond * 100;  // all warm-up answers end in one step, and are delivered after it
  WorkloadSpec workload = fake::closed_loop(3);
  workload.warmup_requests = 6;
  fake::Requests source;
  for (int i = 0; i < 6 + 30; ++i) source.add(0, 100, 11);
  fake::Recorder seen;
  CHECK(simulate(d, source, workload, fake::options(), &seen).completed == 30);
  std::vector<Seconds> begins;
  for (const auto& [id, request] : seen.requests) begins.push_back(request.arrival);
  std::sort(begins.begin(), begins.end());
  CHECK(begins[0] == begins[2]);
  CHECK(begins[3] > begins[2]);  // three in flight, not six
}

TEST_CASE("simulation: users who think when the warm-up ends do not begin anew twice") {
  const auto d = fake::deployment(10000);
  WorkloadSpec workload = fake::closed_loop(4);
  workload.warmup_requests = 8;
  workload.arrivals.think_time = Seconds(5);
  fake::Requests source;
  for (int i = 0; i < 8 + 400; ++i) source.add(0, 100, 11);
  fake::Recorder seen;
  CHECK(simulate(d, source, workload, fake::options(), &seen).completed == 400);
  // Of 4 users who think for 5 s around 15 ms of work, no window of their 400 requests holds a fifth at once.
  std::vector<std::pair<double, int>> edges;
  for (const auto& [id, r] : seen.requests) {
    edges.emplace_back(r.arrival.base(), 1);
    edges.emplace_back((r.arrival + r.e2el).base() - 1e-9, -1);
  }
  std::sort(edges.begin(), edges.end());
  int in_flight = 0, most = 0;
  for (const auto& [at, step] : edges) most = std::max(most, in_flight += step);
  CHECK(most <= 4);
  const double spanned = edges.back().first - edges.front().first;
  CHECK(400 / spanned < 1.15 * 4 / 5.0);  // the rate of four users, not of five
}

TEST_CASE("simulation: every send of a closed loop is delayed, the first and those after the warm-up too") {
  const auto run = [](double delay, std::int64_t warmup, fake::Recorder* seen) {
    WorkloadSpec workload = fake::closed_loop(3);
    workload.warmup_requests = warmup;
    workload.arrivals.send_delay = Seconds(delay);
    fake::Requests source;
    for (int i = 0; i < warmup + 3000; ++i) source.add(0, 100, 11);
    return simulate(fake::deployment(10000), source, workload, fake::options(), seen);
  };
  for (const std::int64_t warmup : {0, 7}) {
    fake::Recorder still, delayed;
    const ServingMetrics none = run(0, warmup, &still), some = run(0.1, warmup, &delayed);
    CHECK(none.completed == 3000);
    CHECK(some.completed == 3000);
    CHECK(run(0.1, warmup, nullptr).duration == some.duration);
    std::set<double> first, begins;
    for (const auto& [id, r] : still.requests) {
      if (id < warmup + 3) first.insert(r.arrival.base());
    }
    for (const auto& [id, r] : delayed.requests) begins.insert(r.arrival.base());
    CHECK(first.size() == 1);  // the users begin together
    CHECK(begins.size() == 3000);
    // Little's law: 3 users who are away for 0.1 s and stay as long as their requests take
    CHECK(some.duration.base() == doctest::Approx(3000.0 / 3 * (0.1 + some.e2el_ms.mean() * 1e-3)).epsilon(0.05));
    CHECK(some.ttft_ms.mean() < 1.2 * none.ttft_ms.mean());  // counted from the send
  }
}

TEST_CASE("simulation: a closed loop with a duration stops sending") {
  const auto d = fake::deployment(10000);
  WorkloadSpec workload = fake::closed_loop(1);
  workload.duration = kMillisecond * 100;
  workload.prompt_tokens.law = LengthSpec::Fixed{100};
  workload.output_tokens.law = LengthSpec::Fixed{10};
  // 2 ms + 9 steps of about 1.011 ms: 11.1 ms a request, the tenth begins at 99.9 ms.
  CHECK(simulate(d, workload, fake::options()).completed == 10);
}

TEST_CASE("simulation: what is due beyond the longest time, after the last answer, is not waited for") {
  const auto d = fake::deployment(10000);
  WorkloadSpec workload;
  workload.patience.total = Seconds(8.99e6);
  fake::Requests source;
  source.add(0, 100, 10).add(20000, 100, 10);  // the second's patience ends at 9.01e6 s
  CHECK(simulate(d, source, workload, fake::options()).completed == 2);
  WorkloadSpec users = fake::closed_loop(1);
  users.duration = Seconds(50000);
  users.arrivals.think_time = Seconds(20000);
  users.patience.total = Seconds(8.99e6);
  users.prompt_tokens.law = LengthSpec::Fixed{100};
  users.output_tokens.law = LengthSpec::Fixed{10};
  CHECK(simulate(d, users, fake::options()).completed >= 2);
}

TEST_CASE("simulated time: sums and products beyond its range are never, not long ago") {
  const SimTime long_time = SimTime::of(Seconds(8.9e6));
  CHECK(long_time + long_time > long_time);
  CHECK(1000 * long_time > long_time);
  CHECK_THROWS_AS((long_time + long_time).require(), ConfigError);
  CHECK_NOTHROW(long_time.require());
}

TEST_CASE("simulation: objectives that are met make good requests") {
  const auto d = fake::deployment(10000);
  ServingOptions options = fake::options();
  fake::Requests source;
  source.add(0, 100, 5).add(1, 1000, 5);  // ttft 2 and 11 ms
  options.objectives.ttft = kMillisecond * 5;
  CHECK(simulate(d, source, {}, options).good_requests == 1);
}

TEST_CASE("simulation: two replicas share the load") {
  const auto d = fake::deployment(10000);
  ServingOptions options = fake::options();
  options.replicas = 2;
  fake::Requests source;
  for (int i = 0; i < 10; ++i) source.add(0, 100, 11);
  fake::Recorder seen;
  const ServingMetrics m = simulate(d, source, {}, options, &seen);
  int on_second = 0;
  for (const auto& [id, r] : seen.requests) on_second += r.replica;
  CHECK(on_second == 5);
  CHECK(m.gpu_busy_seconds == doctest::Approx(2 * m.duration.base()));
}

TEST_CASE("disaggregation: prefill, transfer, decode") {
  const auto d = fake::deployment(10000);
  ServingOptions options = fake::options();
  options.disaggregation = {
      .prefill = d, .prefill_replicas = 1, .bandwidth = BytesPerSecond(112e3), .latency = kMillisecond};
  fake::Requests source;
  source.add(0, 100, 5);
  fake::Recorder seen;
  const ServingMetrics m = simulate(d, source, {}, options, &seen);
  REQUIRE(seen.transfers.size() == 1);
  const TransferRecord& t = seen.transfers[0];
  CHECK(t.from == 0);
  CHECK(t.to == 1);
  CHECK(t.bytes == Bytes(112));
  CHECK(t.prefilled.in(kMillisecond) == doctest::Approx(2.0));
  CHECK(t.start == t.prefilled);
  CHECK(t.end.in(kMillisecond) == doctest::Approx(3.0));
  // 2 ms prefill; 112 B (7 blocks) over the link in 1 ms, and 1 ms latency; 4 steps as if alone
  CHECK(seen.requests[0].ttft.in(kMillisecond) == doctest::Approx(4.0));
  CHECK(seen.requests[0].e2el.in(kMillisecond) == doctest::Approx(4.0 + 4.04406));
  CHECK(seen.requests[0].replica == 1);
  CHECK(m.iterations == 5);
}

TEST_CASE("disaggregation: layers that leave as they are computed hide the transfer behind the prefill") {
  const auto ttft = [](CacheTransfer when, double bytes_per_s) {
    const auto d = fake::deployment(10000);
    d->engine.cache_transfer = when;
    d->model.order.assign(10, 0);
    ServingOptions options = fake::options();
    options.disaggregation = {
        .prefill = d, .prefill_replicas = 1, .bandwidth = BytesPerSecond(bytes_per_s), .latency = kMillisecond};
    fake::Requests source;
    source.add(0, 100, 5);
    fake::Recorder seen;
    simulate(d, source, {}, options, &seen);
    return seen.requests[0].ttft.in(kMillisecond);
  };
  // 2 ms of prefill, 112 B of cache, 1 ms of latency. At 112 B/ms one layer of ten is left after the prefill; at 28
  // B/ms all take 4 ms, of which the prefill hides 1.8.
  CHECK(ttft(CacheTransfer::kAfterPrefill, 112e3) == doctest::Approx(4.0));
  CHECK(ttft(CacheTransfer::kByLayer, 112e3) == doctest::Approx(3.1));
  CHECK(ttft(CacheTransfer::kByLayer, 28e3) == doctest::Approx(0.2 + 4 + 1));
  CHECK(ttft(CacheTransfer::kByChunk, 112e3) == doctest::Approx(4.0));  // one chunk
}

TEST_CASE("disaggregation: the side with the larger shares of a cache may be the slower one") {
  auto decode = std::make_shared<Deployment>(*fake::deployment(10000)),
       prefill = std::make_shared<Deployment>(*fake::deployment(10000));
  const Disaggregation split{.prefill = prefill, .bandwidth = BytesPerSecond(1000)};
  CHECK(transfer_bandwidth(*decode, split, 1).base() == doctest::Approx(1000));
  // The prefill GPU holds twice of what a decode GPU does: it sends to two of them, 500 B/s to each.
  for (CacheGroup& group : prefill->memory.layout.groups) group.bytes_per_token *= 2.0;
  CHECK(transfer_bandwidth(*decode, split, 1).base() == doctest::Approx(500));
  for (CacheGroup& group : decode->memory.layout.groups) group.bytes_per_token *= 4.0;
  CHECK(transfer_bandwidth(*decode, split, 1).base() == doctest::Approx(1000));
}

TEST_CASE("disaggregation: caches pass the spine where one leaf does not hold both sides") {
  auto decode = std::make_shared<Deployment>(*fake::deployment(10000));
  decode->gpu.node.nic_bandwidth = BytesPerSecond(1000);
  decode->gpu.node.leaf_gpus = 3 * decode->sharding.gpus();
  decode->gpu.node.oversubscription = 4.0;
  Disaggregation split{.prefill = std::make_shared<Deployment>(*decode)};
  CHECK(transfer_bandwidth(*decode, split, 2).base() == doctest::Approx(1000));
  CHECK(transfer_bandwidth(*decode, split, 3).base() == doctest::Approx(250));
  split.prefill_replicas = 2;
  CHECK(transfer_bandwidth(*decode, split, 2).base() == doctest::Approx(250));
  // Replicas that autoscaling may add count: 1 + 2 at the most are below a leaf, 2 + 2 are not.
  ServingOptions options;
  options.disaggregation = split;
  CHECK(transfer_bandwidth(*decode, options).base() == doctest::Approx(1000));
  options.fleet.autoscaling.emplace().max = 2;
  CHECK(transfer_bandwidth(*decode, options).base() == doctest::Approx(250));
  options.disaggregation->prefill_replicas = 1;
  CHECK(transfer_bandwidth(*decode, options).base() == doctest::Approx(1000));
  options.fleet.prefill_autoscaling.emplace().max = 2;
  CHECK(transfer_bandwidth(*decode, options).base() == doctest::Approx(250));
  split.bandwidth = BytesPerSecond(700);  // as told
  CHECK(transfer_bandwidth(*decode, split, 2).base() == doctest::Approx(700));
}

TEST_CASE("simulation: ends when its observer has seen enough") {
  struct Three final : Observer {
    void on_request(const RequestRecord&) override { ++seen; }
    bool enough() const override { return seen >= 3; }
    int seen = 0;
  } three;
  fake::Requests source;
  for (int i = 0; i < 10; ++i) source.add(0.1 * i, 100, 5);
  const ServingMetrics m = simulate(fake::deployment(10000), source, {}, fake::options(), &three);
  CHECK(three.seen == 3);
  CHECK(m.completed == 3);
}

TEST_CASE("disaggregation: a full decode pool holds caches back on the prefill side") {
  const auto small = fake::deployment(8 * 16), prefill = fake::deployment(8 * 16);
  ServingOptions options = fake::options();
  options.disaggregation = {
      .prefill = prefill, .prefill_replicas = 1, .bandwidth = BytesPerSecond(1e9), .latency = Seconds(0)};
  fake::Requests source;
  for (int i = 0; i < 4; ++i) source.add(0, 60, 60);  // 4 blocks each, 8 in the end: one decodes at a time
  fake::Recorder seen;
  const ServingMetrics m = simulate(small, source, {}, options, &seen);
  CHECK(m.completed == 4);
  // Two are prefilled and fill the pool of the prefill side; the others start when those have been fetched.
  CHECK(seen.steps[0].prefill_tokens == 120);
  CHECK(seen.requests[3].queue > seen.requests[0].ttft);
}

TEST_CASE("simulation: more bandwidth to the cache and fewer costs are never slower for a request alone") {
  const auto d = fake::deployment(10000);
  double last = 0;
  for (const double context : {0.0, 1e-9, 1e-8, 1e-7}) {
    fake::Requests source;
    source.add(0, 100, 50);
    const double now =
        simulate(d, source, {}, fake::options({.fixed = 1e-3, .token = 1e-5, .context = context})).duration.base();
    CHECK(now > last);
    last = now;
  }
}

TEST_CASE("simulation: a run whose queue grows says so, whatever ends it") {
  // 10 us a token and 1 ms a step: 16 sequences decode at most 16 / (1 ms + 160 us) = 13,800 tokens/s, 138 requests/s.
  const auto d = fake::deployment(1e6);
  d->engine.max_num_seqs = 16;
  WorkloadSpec w;
  w.prompt_tokens = {LengthSpec::Fixed{10}};
  w.output_tokens = {LengthSpec::Fixed{100}};
  w.requests = 3000;
  w.arrivals.process = ArrivalSpec::Process::kPoisson;
  const auto load = [&](double rate) {
    w.arrivals.rate = PerSecond(rate);
    return simulate(d, w, fake::options()).load;
  };
  CHECK_FALSE(load(60).saturated);
  const LoadVerdict v = load(300);
  CHECK(v.saturated);
  CHECK(v.offered.base() == doctest::Approx(300).epsilon(0.1));
  w.patience.total =
      Seconds(2);  // those who wait give up: the queue stays short, and the load is too much all the same
  CHECK(load(300).saturated);
  w.arrivals.process = ArrivalSpec::Process::kAllAtOnce;
  w.patience = {};
  CHECK_FALSE(simulate(d, w, fake::options()).load.saturated);  // no rate, nothing to hold
}

namespace {

/// Two turns and more of 100 and 100 tokens each, at 5 requests a second, which is faster than they are answered.
WorkloadSpec hasty_turns(int requests, int turns) {
  WorkloadSpec w;
  w.arrivals.process = ArrivalSpec::Process::kConstant;
  w.arrivals.rate = PerSecond(5);
  w.requests = requests;
  w.turns = turns;
  w.prompt_tokens = w.output_tokens = LengthSpec{LengthSpec::Fixed{100}};
  return w;
}

}  // namespace

TEST_CASE("turns that wait for the answers before them count as load: too many sessions are an overload") {
  // Four at a time, a second each: four requests a second.
  const fake::StepLaw slow{.fixed = 10e-3, .token = 0, .context = 0};
  const auto load_at = [&](double rate) {
    const std::shared_ptr<Deployment> d = fake::deployment(1e6);
    d->engine.max_num_seqs = 4;
    WorkloadSpec w = hasty_turns(400, 4);
    w.arrivals.rate = PerSecond(rate);
    return simulate(d, w, fake::options(slow)).load;
  };
  CHECK(load_at(40).saturated);
  CHECK(load_at(40).offered.base() == doctest::Approx(40).epsilon(0.02));
  CHECK_FALSE(load_at(2).saturated);
}

TEST_CASE("a later turn is sent when the answer that it contains has ended, and not before") {
  // Steps of 10 ms: an answer takes about a second, and the clock has the next turn after 0.2 s.
  const fake::StepLaw slow{.fixed = 10e-3, .token = 0, .context = 0};
  for (const int turns : {2, 3}) {
    fake::Recorder seen;
    const ServingMetrics m = simulate(fake::deployment(1e6), hasty_turns(turns, turns), fake::options(slow), &seen);
    CHECK(m.completed == turns);
    for (int i = 1; i < turns; ++i) {
      const RequestRecord &before = seen.requests.at(i - 1), &turn = seen.requests.at(i);
      CHECK(turn.arrival.base() == doctest::Approx((before.arrival + before.e2el).base()));
      CHECK(turn.prompt_tokens == 100 + 200 * i);
    }
  }
  // Two branches begin when the turn has ended from which they part, and each goes on by itself.
  WorkloadSpec parting = hasty_turns(5, 3);
  parting.branches = 2, parting.branch_after = 1;
  fake::Recorder seen;
  simulate(fake::deployment(1e6), parting, fake::options(slow), &seen);
  REQUIRE(seen.requests.size() == 5);
  const auto end_of = [&](int i) { return (seen.requests.at(i).arrival + seen.requests.at(i).e2el).base(); };
  int at_root = 0;
  for (const auto& [id, r] : seen.requests) {
    if (r.prompt_tokens == 300) at_root += r.arrival.base() == doctest::Approx(end_of(0)) ? 1 : 0;
    if (r.prompt_tokens == 500) CHECK(r.arrival.base() > end_of(0) + 0.9);
  }
  CHECK(at_root == 2);
}

TEST_CASE("a turn that is refused or given up lets the next one go") {
  const fake::StepLaw slow{.fixed = 10e-3, .token = 0, .context = 0};
  WorkloadSpec w = hasty_turns(2, 2);
  w.patience.total = Seconds(0.5);
  fake::Recorder seen;
  const ServingMetrics m = simulate(fake::deployment(1e6), w, fake::options(slow), &seen);
  CHECK(m.cancelled == 2);  // both were sent
  w.patience.total.reset();
  const ServingMetrics none = simulate(fake::deployment(100), w, fake::options(slow));
  CHECK(none.failed == 2);  // neither fits
}
