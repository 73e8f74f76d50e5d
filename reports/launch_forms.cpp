// A launch plan as shell commands, for Docker Compose and for Kubernetes.

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/html_text.h"
#include "reports/launch_plan.h"

namespace roofcast {
namespace {

std::string comments_of(const LaunchPlan& plan) {
  std::string out;
  for (const std::string& line : plan.comments) out += "# " + line + "\n";
  return out;
}

std::string indented(const std::string& text, int spaces) {
  std::string out;
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const std::string& line : lines)
    out += (line.empty() ? "" : std::string(static_cast<std::size_t>(spaces), ' ') + line) + "\n";
  return out;
}

/// On any node of the process, told apart by NODE_RANK.
std::string node_script(const LaunchProcess& p) {
  std::string out = "exec " + p.prefix + command_line(p.words);
  if (p.nodes > 1 && !p.further_words.empty()) {
    std::vector<std::string> further = p.words;
    further.insert(further.end(), p.further_words.begin(), p.further_words.end());
    out = fmt::format("if [ \"$NODE_RANK\" = 0 ]; then {}; else exec {}; fi", out, command_line(further));
  }
  return out;
}

/// In double quotes of YAML.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// Compose puts its own variables in place of $NAME.
std::string with_doubled_dollars(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '$' ? "$$" : std::string(1, c);
  return out;
}

}  // namespace

std::string command_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    const bool variable = word.find('$') != std::string::npos;
    out += (out.empty() ? "" : " ") + (variable ? "\"" + word + "\"" : shell_word(word));
  }
  return out;
}

std::string as_shell(const LaunchPlan& plan) {
  std::string out = comments_of(plan);
  for (const LaunchProcess& p : plan.processes) {
    const std::string where = p.nodes > 1 ? fmt::format("{} nodes of {} GPUs each", p.nodes, p.gpus_per_node)
                                          : fmt::format("{} GPU{}", p.gpus_per_node, p.gpus_per_node == 1 ? "" : "s");
    out += p.gpus_per_node > 0 ? fmt::format("\n# {} x {}, each on {}\n", p.copies, p.name, where)
                               : fmt::format("\n# {}\n", p.name);
    for (const LaunchFile& file : p.files) out += fmt::format("cat > {} <<'EOF'\n{}EOF\n", file.name, file.text);
    for (const auto& [key, value] : p.environment) out += fmt::format("export {}={}\n", key, value);
    if (p.nodes == 1 || (p.further_words.empty() && p.prefix.empty() == false)) {
      out += p.prefix + command_line(p.words) + "\n";
      continue;
    }
    out += fmt::format("# on each node, with HEAD_ADDRESS (of the first) and NODE_RANK=0..{} set\n", p.nodes - 1);
    if (p.further_words.empty()) {
      out += command_line(p.words) + "\n";
      continue;
    }
    std::vector<std::string> further = p.words;
    further.insert(further.end(), p.further_words.begin(), p.further_words.end());
    out += fmt::format("if [ \"$NODE_RANK\" = 0 ]; then\n  {}\nelse\n  {}\nfi\n", command_line(p.words),
                       command_line(further));
  }
  return out;
}

std::string as_compose(const LaunchPlan& plan) {
  constexpr int kHostGpus = 8;
  std::string out = comments_of(plan) + "services:\n", configs;
  for (const LaunchProcess& p : plan.processes) {
    const int on_a_host = p.gpus_per_node > 0 ? std::clamp(kHostGpus / p.gpus_per_node, 1, p.copies) : 1;
    if (p.gpus_per_node > 0)
      out += fmt::format("  # {} x {} in all, {} on a host{}\n", p.copies, p.name, on_a_host,
                         p.nodes > 1 ? fmt::format("; on {} hosts together, NODE_RANK=0..{} and HEAD_ADDRESS in .env",
                                                   p.nodes, p.nodes - 1)
                                     : "");
    for (int i = 0; i < on_a_host; ++i) {
      out += fmt::format("  {}-{}:\n    image: {}\n    network_mode: host\n    ipc: host\n", p.name, i + 1, p.image);
      if (!p.environment.empty() || p.nodes > 1) out += "    environment:\n";
      for (const auto& [key, value] : p.environment)
        out += fmt::format("      {}: {}\n", key, quoted(with_doubled_dollars(value)));
      if (p.nodes > 1) out += "      NODE_RANK: ${NODE_RANK}\n      HEAD_ADDRESS: ${HEAD_ADDRESS}\n";
      LaunchProcess one = p;  // copies on one host answer on ports of their own
      for (std::string& word : one.words) {
        if (word == std::to_string(p.port)) word = std::to_string(p.port + i);
      }
      out += fmt::format("    entrypoint: [\"/bin/sh\", \"-c\"]\n    command:\n      - {}\n",
                         quoted(with_doubled_dollars(node_script(one))));
      if (!p.files.empty()) out += "    configs:\n";
      for (const LaunchFile& file : p.files)
        out += fmt::format("      - {{source: {}, target: /{}}}\n", file.name, file.name);
      if (p.gpus_per_node == 0) continue;
      std::string devices;
      for (int g = 0; g < p.gpus_per_node; ++g)
        devices += fmt::format("{}\"{}\"", g > 0 ? ", " : "", i * p.gpus_per_node + g);
      const bool nvidia = plan.gpu_resource == "nvidia.com/gpu";
      out += nvidia ? fmt::format(
                          "    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, device_ids: [{}], "
                          "capabilities: [gpu]}}]}}}}}}\n",
                          devices)
                    : "    devices: [/dev/kfd, /dev/dri]\n    group_add: [video]\n";
    }
    for (const LaunchFile& file : p.files)
      configs += fmt::format("  {}:\n    content: |\n{}", file.name, indented(with_doubled_dollars(file.text), 6));
  }
  return out + (configs.empty() ? "" : "configs:\n" + configs);
}

namespace {

std::string pod_spec(const LaunchPlan& plan, const LaunchProcess& p, int spaces) {
  std::string out =
      fmt::format("containers:\n- name: {}\n  image: {}\n  command: [\"/bin/sh\", \"-c\"]\n  args:\n  - {}\n", p.name,
                  quoted(p.image), quoted(node_script(p)));
  if (!p.environment.empty() || p.nodes > 1) out += "  env:\n";
  for (const auto& [key, value] : p.environment)
    out += fmt::format("  - {{name: {}, value: {}}}\n", key, quoted(value));
  if (p.nodes > 1)
    out +=
        "  - {name: HEAD_ADDRESS, value: \"$(LWS_LEADER_ADDRESS)\"}\n  - {name: NODE_RANK, value: "
        "\"$(LWS_WORKER_INDEX)\"}\n";
  out += fmt::format("  ports:\n  - containerPort: {}\n", p.port);
  if (p.gpus_per_node > 0)
    out += fmt::format("  resources: {{limits: {{{}: {}}}}}\n", plan.gpu_resource, p.gpus_per_node);
  out += "  volumeMounts:\n  - {name: shm, mountPath: /dev/shm}\n";
  for (const LaunchFile& file : p.files)
    out += fmt::format("  - {{name: files, mountPath: /{}, subPath: {}}}\n", file.name, file.name);
  out += "volumes:\n- name: shm\n  emptyDir: {medium: Memory}\n";
  if (!p.files.empty()) out += fmt::format("- name: files\n  configMap: {{name: {}-files}}\n", p.name);
  return indented(out, spaces);
}

}  // namespace

std::string as_kubernetes(const LaunchPlan& plan) {
  std::string out = comments_of(plan);
  for (const LaunchProcess& p : plan.processes) {
    if (!p.files.empty()) {
      out += fmt::format("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}-files}}\ndata:\n", p.name);
      for (const LaunchFile& file : p.files) out += fmt::format("  {}: |\n{}", file.name, indented(file.text, 4));
    }
    if (p.nodes > 1) {
      out += fmt::format(
          "---\napiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {{name: {}}}\nspec:\n  "
          "replicas: {}\n  leaderWorkerTemplate:\n    size: {}\n    workerTemplate:\n      metadata: {{labels: {{app: "
          "{}}}}}\n"
          "      spec:\n{}",
          p.name, p.copies, p.nodes, p.name, pod_spec(plan, p, 8));
    } else {
      out += fmt::format(
          "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {0}}}\nspec:\n  replicas: {1}\n  selector: "
          "{{matchLabels: {{app: {0}}}}}\n  template:\n    metadata: {{labels: {{app: {0}}}}}\n    spec:\n{2}",
          p.name, p.copies, pod_spec(plan, p, 6));
    }
    out += fmt::format(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {0}}}\nspec:\n  selector: {{app: {0}}}\n  ports:\n  - "
        "{{port: "
        "{1}}}\n",
        p.name, p.port);
  }
  return out;
}

}  // namespace roofcast
