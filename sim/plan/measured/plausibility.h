#pragma once
// Checks whether a measured run is plausible.

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"

namespace roofcast {

/// Marks implausible runs: MeasuredRun::doubt gives the reason, and they are no longer scored. Runs are checked against
/// their own figures and the datasheet (Fidelity::kIdeal), never against a calibrated prediction. With c requests in
/// flight, a latency of TTFT + osl TPOT, and Little's law, c osl TPOT / latency sequences decode at a time.
///   bytes    TPOT is at least the ideal time of a decode step of that many sequences
///   FLOPs    the latency is at least the ideal time of c prompts, if the same GPUs prefill and decode and the prefix
///            cache is not used
///   service  TTFT is at least the ideal time of one prompt, likewise
///   load     TPOT is at most 1.5 times that at twice the load or more, all else equal; else the whole series is
///            implausible, as nothing says which of its rows is wrong
/// In other tables, each metric separately:
///   ttft_ms  at least one prompt; tpot_ms, itl_ms: at least a decode step of one sequence
///   e2e_ms   at least one request of the batch alone, and as a rate:
///   rates    replica seconds per request are at least the larger of its prompt in a full pass, and its share of the
///            decode steps of as many sequences as are in flight and fit in memory
///   batches  a static batch takes at most 1.5 times as long as one of twice its size or more
/// For a server at a steady batch:
///   Little   tokens/s times the time between tokens is at most 1.5 times the number of sequences
///   power    between the idle and the board power of its GPUs, and equal to joules per token times tokens/s
/// Each check has a tolerance of 15 %, for clocks above the datasheet's and means of few requests.
void mark_implausible(MeasuredRuns& runs, const CsvTable& table);

/// Why a published run of a scenario is implausible, by the same rules and Little's law; empty if it is plausible.
/// Figures that are not published are 0. Runs with drafts, of a trace or of several kinds of clients are not checked.
std::string published_doubt(const Scenario& scenario, double ttft_ms, double tpot_ms, double output_tokens_per_s);

}  // namespace roofcast
