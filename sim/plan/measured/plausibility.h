#pragma once
// Whether a measured run can be what its table says it is.

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"

namespace roofcast {

/// Marks runs that cannot be so: MeasuredRun::doubt says why, and they are no longer scored. A run is
/// judged by its own figures and by the datasheet (Fidelity::kIdeal), never by a calibrated prediction. With c requests
/// in flight, a latency of TTFT + osl TPOT and Little's law, c osl TPOT / latency of them decode at a time.
///   bytes    TPOT is at least the datasheet's time of a decode step of that many sequences
///   FLOPs    the latency is at least the datasheet's time of c prompts, where the same GPUs prefill and decode, and
///            no prompt is found in the prefix cache
///   service  TTFT is at least the datasheet's time of one prompt, likewise
///   load     TPOT is not half as long again as at twice the load or more, all else equal
/// Of other tables each metric by itself:
///   ttft_ms  at least one prompt; tpot_ms, itl_ms: at least a decode step of one sequence
///   e2e_ms   at least one request of the batch alone, and as a rate:
///   rates    a request's seconds of a replica are at least its prompt's in a full pass, and its decode steps' shared
///            by as many as are in flight and fit the memory, whichever is longer
///   batches  a static batch does not take half as long again as one of twice its size or more
/// And of a server at a steady batch:
///   Little   tokens/s times the gap between tokens is at most half more than the sequences
///   power    between the idle and the board power of its GPUs, and the product of its joules a token and tokens/s
/// Each with a tolerance of 15 %, for clocks above the datasheet's and means of few requests.
void mark_implausible(MeasuredRuns& runs, const CsvTable& table);

/// Why a published run of a scenario cannot be so, by the same rules and Little's law; empty: it can. Figures that are
/// not published are 0. Runs with drafts, of a trace and of several kinds of clients are not judged.
std::string published_doubt(const Scenario& scenario, double ttft_ms, double tpot_ms, double output_tokens_per_s);

}  // namespace roofcast
