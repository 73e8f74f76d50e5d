// roofcast explore: the browser page and its API.

#include <cstdio>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/serving.h"
#include "explore/api.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

}  // namespace

int run_explore(std::span<const std::string> arguments) {
  Options options("roofcast explore [--port N] [--bind ADDRESS]",
                  "A page in the browser on which every slider moves every chart, and the JSON API behind it\n"
                  "(docs/explorer.md). Runs until interrupted.");
  options.add().add_options()("port", po::value<std::string>()->default_value("8377"), "N: port; 0 picks a free one")(
      "bind", po::value<std::string>()->default_value("127.0.0.1"),
      "ADDRESS: address to listen on; with any but 127.0.0.1 other machines can connect");
  if (!options.parse(arguments)) return kDone;
  const std::string address = options.text("bind");
  const auto begins = [&] {
    if (!is_loopback(address))
      fmt::print(stderr, "--bind {}: whoever reaches this machine can use the explorer\n", address);
    explore::warm_up();
  };
  serve_until_interrupted({.address = address, .port = static_cast<int>(options.integer("port", 0, 65535))},
                          "the explorer", begins);
  return kDone;
}

}  // namespace roofcast::cli
