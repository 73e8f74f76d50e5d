#include "sim/serve/request_queue.h"

#include <doctest/doctest.h>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

struct Queued {
  Queued() {
    for (const int prompt : {10, 20, 30}) queue.send(SimTime(prompt), fake::add(requests, prompt, 5));
    for (int i = 0; i < 2; ++i) queue.push(queue.take_arrival());  // the first two wait, the third is on its way
  }
  RequestTable requests;
  RequestQueue queue{requests, QueuePolicy::kFcfs};
};

}  // namespace

TEST_CASE("request queue: counts tokens of waiting prompts, and of all requests") {
  Queued q;
  CHECK(q.queue.size() == 3);
  CHECK(q.queue.waiting_tokens() == 10 + 20);
  CHECK(q.queue.prompt_tokens() == 10 + 20 + 30);
  q.queue.pop();  // it runs, and is still here
  CHECK(q.queue.waiting_tokens() == 20);
  CHECK(q.queue.prompt_tokens() == 60);
  q.queue.left(q.requests[0]);
  CHECK(q.queue.prompt_tokens() == 50);
}

TEST_CASE("request queue: a preempted request waits first, with all that it has to prefill again") {
  Queued q;
  q.queue.pop();
  q.requests[0].target = 13;
  q.queue.push_preempted(0);
  CHECK(q.queue.waiting().front() == 0);
  CHECK(q.queue.waiting_tokens() == 13 + 20);
}

TEST_CASE("request queue: a hundred thousand clients that give up cost no search of the queue") {
  // A search for each would be 5e9 looks.
  constexpr int kMany = 100'000;
  for (const QueuePolicy policy : {QueuePolicy::kFcfs, QueuePolicy::kShortestFirst}) {
    RequestTable requests;
    RequestQueue queue{requests, policy};
    for (int i = 0; i < kMany; ++i) queue.send(SimTime(i), fake::add(requests, 1 + i % 100, 5));
    for (int i = 0; i < kMany / 2; ++i) queue.push(queue.take_arrival());
    for (int i = kMany - 1; i > 0; --i) queue.remove(i);  // the youngest first
    CHECK(queue.size() == 1);
    CHECK(queue.on_their_way() == 0);
    CHECK(queue.waiting().front() == 0);
    CHECK(queue.waiting_tokens() == 1);
  }
}

TEST_CASE("request queue: a reused slot is another request") {
  Queued q;
  q.queue.remove(1);
  q.requests.remove(1);
  CHECK(fake::add(q.requests, 70, 5) == 1);
  q.queue.pop();
  CHECK(q.queue.waiting().empty());  // what waited there is gone
  q.queue.push(1);
  CHECK(q.queue.waiting().front() == 1);
  CHECK(q.queue.waiting_tokens() == 70);
}

TEST_CASE("request queue: requests are removed wherever they are") {
  Queued q;
  q.queue.remove(2);  // on its way
  q.queue.remove(0);  // waiting
  CHECK(q.queue.size() == 1);
  CHECK(q.queue.waiting_tokens() == 20);
  std::vector<Slot> left;
  q.queue.clear(left);
  CHECK(left == std::vector<Slot>{1});
  CHECK(q.queue.size() == 0);
  CHECK(q.queue.prompt_tokens() == 0);
}
