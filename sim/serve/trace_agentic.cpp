// Sessions of agents as JSON lines, one session per line.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_file.h"
#include "sim/serve/trace_lines.h"

namespace roofcast {
namespace {

using Json = nlohmann::json;

double number_at(const Json& object, const char* key, const Place& place) {
  const auto found = object.find(key);
  if (found == object.end()) place.fail(fmt::format("'{}' is missing", key));
  const double value = found->is_number() ? found->get<double>() : std::nan("");
  if (!std::isfinite(value)) place.fail(fmt::format("'{}' must be a finite number", key));
  return value;
}

/// Agent sessions, one per line; hashes are local to a session. Sub-agents have their own requests, timed from their
/// start. Requests without output were aborted and are skipped.
class AgenticReader {
 public:
  explicit AgenticReader(Trace& trace) : trace_(trace) {}

  void add(std::string_view line, const Place& place) {
    check_json_size(fmt::format("{}:{}", place.path, place.line), line);
    const Json session = Json::parse(line.begin(), line.end(), nullptr, false);
    if (!session.is_object()) place.fail("is not a JSON object");
    const double block_tokens = number_at(session, "block_size", place);
    if (block_tokens < 1.0 || block_tokens > 1e6) place.fail("'block_size' must be between 1 and 1000000");
    if (trace_.block_tokens != 0 && trace_.block_tokens != static_cast<int>(block_tokens)) {
      place.fail("'block_size' must be the same in all sessions");
    }
    trace_.block_tokens = static_cast<int>(block_tokens);
    const auto scope = session.find("hash_id_scope");
    // Local ids mean nothing in another session; global ones do.
    salt_ = scope != session.end() && *scope == "global" ? 0 : mix_bits(static_cast<std::uint64_t>(trace_.sessions));
    add_requests(session, 0.0, 0, place);
    ++trace_.sessions;
  }

 private:
  void add_requests(const Json& holder, double begin, int depth, const Place& place) {
    const auto requests = holder.find("requests");
    if (requests == holder.end() || !requests->is_array()) place.fail("'requests' must be a list");
    for (const Json& request : *requests) {
      if (!request.is_object()) place.fail("a request must be an object");
      const double start = begin + number_at(request, "t", place);
      if (request.contains("requests")) {
        if (depth > 8) place.fail("sub-agents are nested too deeply");
        add_requests(request, start, depth + 1, place);
      } else {
        add_request(request, start, place);
      }
    }
  }

  void add_request(const Json& request, double start, const Place& place) {
    Trace::Row row;
    row.seconds = start;
    row.session = trace_.sessions;
    row.prompt_tokens = tokens_of(number_at(request, "in", place), "in", place);
    const double output = number_at(request, "out", place);
    if (output == 0.0) return;
    row.output_tokens = tokens_of(output, "out", place);
    row.first_block = trace_.block_hashes.size();
    if (const auto hashes = request.find("hash_ids"); hashes != request.end()) {
      if (!hashes->is_array()) place.fail("'hash_ids' must be a list of whole numbers");
      for (const Json& hash : *hashes) {
        if (!hash.is_number_integer()) place.fail("'hash_ids' must be a list of whole numbers");
        trace_.block_hashes.push_back(mix_bits(hash.get<std::uint64_t>() ^ salt_));
      }
    }
    row.blocks = static_cast<std::uint32_t>(trace_.block_hashes.size() - row.first_block);
    add_row(trace_, row, place);
  }

  Trace& trace_;
  std::uint64_t salt_ = 0;
};

}  // namespace

void read_agentic_rows(std::string_view text, const std::string& path, Trace& trace) {
  add_lines(text, path, trace, AgenticReader(trace));
}

}  // namespace roofcast
