#include "explore/job_queue.h"

#include <doctest/doctest.h>

using namespace roofcast::explore;

namespace {

/// Whether the next job is a long one.
bool next_is_long(JobQueue& jobs) {
  const std::optional<Job> job = jobs.take();
  REQUIRE(job);
  return job->takes_long;
}

void add(JobQueue& jobs, bool takes_long) {
  Job job{};
  job.takes_long = takes_long;
  CHECK(jobs.add(std::move(job)));
}

}  // namespace

TEST_CASE("job queue: where few threads started, one is left for short jobs") {
  for (const std::size_t workers : {1, 2, 4}) {
    CAPTURE(workers);
    JobQueue jobs(2, 32);
    jobs.set_workers(workers);
    for (const bool takes_long : {true, true, true, false}) add(jobs, takes_long);
    CHECK(next_is_long(jobs));
    if (workers > 2) CHECK(next_is_long(jobs));
    CHECK(!next_is_long(jobs));
    jobs.done(true);
    CHECK(next_is_long(jobs));
  }
}
