#pragma once
#include "sim/plan/estimate.h"

namespace roofcast {

/// What a closed loop of as many users as `request.batch` settles at, in closed form; nothing where the engine cannot
/// run all of them at a time, batches statically, has no cache, or where speculation is at work, or the decode step is
/// asked for at a context of its own. None either where prompts gather behind steps that the host launches
/// slowly. Prompts are taken to come independently of each other, one when an answer has ended.
///
/// A request of o tokens takes part in o - 1 decode steps and has k = ceil(prompt / budget) steps with a chunk of its
/// prompt. Sequences that decode in a step take their tokens from its budget; `budget` here is what they leave.
/// N users on R ranks, n = N / R each:
///   g = max(k / S, 1 - exp(-n k / S)) is the share of a rank's steps that hold a chunk, or several
///   chunks beside decodes:  S = max(o - 1 + k, n prompt / budget) steps
///   prompts alone:          S = o - 1 + g S, at least o - 1 + n prompt / budget: a rank that prefills decodes nothing
///   ranks that wait for each other's prompts, of which none is without a user: prompts are held for I steps, until
///   every rank has one, some rank decodes nothing any more, or the timeout; then all run theirs, in one of I steps.
///   S = o - 1 + k + the mean wait of a prompt. I and the wait by integration over the time since the last such step.
///   f = 1 - (1 - g)^R of the steps hold a chunk of some rank and take t_mixed, the others t
///   cycle C = S (f t_mixed + (1 - f) t);  tokens/s = N o / (C + what the front end takes)
/// at most what the front end's servers can send, and take in. On one rank t_mixed is the mean over the number of
/// prompts in a step, which is 1 + Poisson((n - 1) / S) in those that a user's own prompt is in.
std::optional<SteadyLoad> steady_load(StepModel& model, const EstimateRequest& request);

/// Why there is none whatever the steps take, in a few words; empty where there is one, unless prompts gather.
std::string why_no_steady_load(const Deployment& deployment, const EstimateRequest& request);

}  // namespace roofcast
