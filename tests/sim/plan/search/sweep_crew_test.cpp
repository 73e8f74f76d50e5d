#include "sim/plan/search/sweep_crew.h"

#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include <doctest/doctest.h>

#include "sim/plan/search/sweep_run.h"

using namespace roofcast;

namespace {

/// Ranks as threads of one process.
struct Mailboxes {
  explicit Mailboxes(int ranks) : boxes(static_cast<std::size_t>(ranks)) {}
  std::mutex mutex;
  std::vector<std::deque<RankMessage>> boxes;
  bool unclean = false;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(Mailboxes& mail, int rank) : mail_(mail), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(mail_.boxes.size()); }
  void send(int to, const std::string& text) override {
    const std::lock_guard lock(mail_.mutex);
    mail_.boxes[static_cast<std::size_t>(to)].push_back({rank_, text});
  }
  std::optional<RankMessage> poll() override {
    const std::lock_guard lock(mail_.mutex);
    auto& box = mail_.boxes[static_cast<std::size_t>(rank_)];
    if (box.empty()) return std::nullopt;
    RankMessage message = std::move(box.front());
    box.pop_front();
    return message;
  }
  void leave(bool clean) override {
    const std::lock_guard lock(mail_.mutex);
    mail_.unclean = mail_.unclean || !clean;
  }

 private:
  Mailboxes& mail_;
  int rank_;
};

SweepSpec small_sweep() {
  return parse_sweep(
      parse_config_text("scenario: {model: llama-2-7b, gpu: h100-sxm, output_tokens: 16}\n"
                        "grid: {batch: {from: 1, to: 20, step: 1}, prompt_tokens: {from: 100, to: 1000, step: 100}}\n",
                        "s.yaml"));
}

constexpr CrewOptions kQuick{.heartbeat = std::chrono::milliseconds(5), .silence = std::chrono::milliseconds(2000)};

}  // namespace

TEST_CASE("crew: a sweep by several ranks keeps what a sweep alone does, each point once") {
  const SweepSpec sweep = small_sweep();
  const std::atomic<bool> stop{false};
  SweepStore alone(":memory:"), together(":memory:");
  const SweepOutcome expected = run_sweep(sweep, Fidelity::kCalibrated, alone, stop);
  Mailboxes mail(4);
  std::vector<std::thread> others;
  for (int r = 1; r < 4; ++r) {
    others.emplace_back([&mail, r] {
      ThreadRanks ranks(mail, r);
      serve_sweep(ranks, small_sweep, Fidelity::kCalibrated, kQuick);
    });
  }
  SweepOutcome outcome;
  {
    ThreadRanks ranks(mail, 0);
    SweepCrew crew(ranks, kQuick);
    outcome = run_sweep(sweep, Fidelity::kCalibrated, together, stop, nullptr, &crew);
    CHECK(crew.lost() == 0);
  }
  for (std::thread& t : others) t.join();
  CHECK(outcome.computed == 200);
  CHECK(outcome.hashes == expected.hashes);
  for (const std::string& hash : expected.hashes) CHECK(together.find(hash) == alone.find(hash));
  CHECK_FALSE(mail.unclean);
}

TEST_CASE("crew: the points of a rank that falls silent are done by the others") {
  const SweepSpec sweep = small_sweep();
  const std::atomic<bool> stop{false};
  Mailboxes mail(3);
  std::thread dead([&mail] {  // asks for work, takes it and is never heard of again
    ThreadRanks ranks(mail, 1);
    for (;;) {
      const auto m = ranks.poll();
      if (m && m->text[0] == 'g') ranks.send(0, "q");
      if (m && (m->text[0] == 'w' || m->text[0] == 's')) return;
      std::this_thread::yield();
    }
  });
  std::thread alive([&mail] {
    ThreadRanks ranks(mail, 2);
    serve_sweep(ranks, small_sweep, Fidelity::kCalibrated, kQuick);
  });
  std::set<std::uint64_t> done;
  {
    ThreadRanks ranks(mail, 0);
    SweepCrew crew(ranks, {.heartbeat = std::chrono::milliseconds(5), .silence = std::chrono::milliseconds(200)});
    SpecCache specs;
    const std::vector<std::uint64_t> points = kept_points(sweep);
    std::uint64_t results = 0;
    crew.run(
        points,
        [&](std::uint64_t point) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that the others get their share
          return run_one_point(sweep, point, Fidelity::kCalibrated, specs);
        },
        [&](PointResult&& r) {
          ++results;
          done.insert(r.point);
          CHECK(r.error.empty());
        },
        stop);
    CHECK(crew.lost() == 1);
    CHECK(results == points.size());
  }
  dead.join();
  alive.join();
  CHECK(done.size() == 200);
  CHECK(mail.unclean);
}

TEST_CASE("crew: without work the others are sent home without reading the sweep") {
  Mailboxes mail(2);
  bool read = false;
  std::thread other([&] {
    ThreadRanks ranks(mail, 1);
    serve_sweep(
        ranks, [&] { return read = true, small_sweep(); }, Fidelity::kCalibrated, kQuick);
  });
  {
    ThreadRanks ranks(mail, 0);
    const SweepCrew crew(ranks, kQuick);
  }
  other.join();
  CHECK_FALSE(read);
}
