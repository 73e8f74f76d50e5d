#pragma once
// The processes of a planned fleet, independent of how they are started.

#include <string>
#include <utility>
#include <vector>

#include "reports/launch_checkpoint.h"
#include "sim/plan/search/capacity_search.h"

namespace roofcast::reports {

struct LaunchFile {
  std::string name, text;
};

/// One server: a replica, a worker of one role, or a router. On several nodes the same words run on each; HEAD_ADDRESS
/// and NODE_RANK are shell variables.
struct LaunchProcess {
  std::string name;                  ///< server, prefill, decode, router
  int copies = 1;                    ///< copies in the fleet
  int nodes = 1, gpus_per_node = 0;  ///< per copy
  int port = 8000;
  std::string image = {};
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<LaunchFile> files = {};           ///< files next to the process, written before it starts
  std::vector<std::string> setup = {};          ///< a command that each node runs first
  std::vector<std::string> words = {};          ///< command of the first node, without first_words
  std::vector<std::string> first_words = {};    ///< additional words of the first node only
  std::vector<std::string> further_words = {};  ///< additional words of the other nodes only
  std::vector<std::string> head_first = {};     ///< a command that the first node runs first
  std::vector<std::string> others = {};         ///< command of the other nodes, if different
  std::string prefix = {};                      ///< prefix that starts the words on all nodes (mpirun)
};

struct LaunchPlan {
  std::vector<std::string> comments;
  std::vector<LaunchProcess> processes;
  std::string gpu_resource;          ///< resource name in Kubernetes
  std::vector<std::string> weights;  ///< files, folders and (with a $) shell variables with weights
};

/// engine: vllm | sglang | trtllm | llama-cpp. Throws ConfigError for what it cannot launch. Flags:
/// vllm/engine/arg_utils.py, python/sglang/srt/server_args.py, tensorrt_llm/commands/serve.py and llmapi/llm_args.py,
/// common/arg.cpp of llama.cpp.
LaunchPlan launch_plan(const PlannedDeployment& planned, const std::string& engine, const Checkpoints& from);

/// A command line: words quoted for a shell, variables left open.
std::string command_line(const std::vector<std::string>& words);
/// Text for a block of YAML, in quotes only if it needs them. Variables of Compose do not: `${NAME:?what}`.
std::string yaml_text(const std::string& text);

std::string as_shell(const LaunchPlan& plan);
std::string as_compose(const LaunchPlan& plan);
std::string as_kubernetes(const LaunchPlan& plan);

}  // namespace roofcast::reports
