// Traces as JSON lines, one request per line.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/from_chars.h"
#include "sim/serve/trace_lines.h"

namespace roofcast {
namespace {

using Json = nlohmann::json;

/// The relevant keys of Mooncake and Bailian lines.
enum Key : std::size_t { kTimestamp, kInput, kOutput, kChat, kParent, kKeys, kHashes = kKeys, kOther };
constexpr std::array<std::string_view, kKeys> kKeyNames = {"timestamp", "input_length", "output_length", "chat_id",
                                                           "parent_chat_id"};

/// Receives one flat object during parsing: numbers by key, and the list hash_ids. Builds no tree.
struct FlatLine {
  std::array<std::optional<double>, kKeys> numbers;
  std::vector<std::uint64_t>& hashes;
  bool bad_hash = false;
  Key at = kOther;
  int depth = 0;

  explicit FlatLine(std::vector<std::uint64_t>& into) : hashes(into) {}
  void clear() {
    numbers = {};
    bad_hash = false;
    at = kOther;
    depth = 0;
  }

  bool take(double value) {
    if (depth == 1 && at < kKeys) numbers[at] = value;
    if (depth == 2 && at == kHashes) bad_hash = true;
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    if (depth != 2 || at != kHashes) return take(static_cast<double>(value));
    hashes.push_back(value);
    return hashes.size() <= kMostHashes;
  }
  bool number_integer(std::int64_t value) {
    if (depth == 2 && at == kHashes) return number_unsigned(static_cast<std::uint64_t>(value));
    return take(static_cast<double>(value));
  }
  bool number_float(double value, const std::string&) { return take(value); }
  bool null() { return true; }
  bool boolean(bool) { return other(); }
  bool string(std::string&) { return other(); }
  bool binary(Json::binary_t&) { return other(); }
  bool other() {
    if (depth == 2 && at == kHashes) bad_hash = true;
    return true;
  }
  bool key(std::string& name) {
    if (depth != 1) return true;
    at = name == "hash_ids" ? kHashes : kOther;
    for (std::size_t i = 0; i < kKeys; ++i) {
      if (name == kKeyNames[i]) at = static_cast<Key>(i);
    }
    return true;
  }
  bool start_object(std::size_t) { return enter(); }
  bool end_object() { return leave(); }
  bool start_array(std::size_t) {
    if (depth == 0) return false;
    return enter();
  }
  bool end_array() { return leave(); }
  bool enter() { return ++depth < 64; }
  bool leave() {
    --depth;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) { return false; }
};

/// The same for a line of plain numbers, plain strings and a plain list, as in the published traces; nine times as fast
/// as the library. False for anything else, valid or not, which the library then parses.
class PlainLine {
 public:
  PlainLine(std::string_view line, FlatLine& into) : at_(line.data()), end_(line.data() + line.size()), into_(into) {}

  bool read() {
    if (!skip('{')) return false;
    do {
      std::string_view name;
      if (!text(name) || !skip(':')) return false;
      key_.assign(name);
      into_.depth = 1;
      into_.key(key_);
      if (!value()) return false;
    } while (skip(','));
    return skip('}') && (blanks(), at_ == end_);
  }

 private:
  void blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
  }
  bool skip(char wanted) {
    blanks();
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  bool text(std::string_view& into) {
    if (!skip('"')) return false;
    const char* const begin = at_;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ == '\\' || *at_ < 0x20 || *at_ > 0x7e) return false;  // escapes, control and non-ASCII bytes
      ++at_;
    }
    into = std::string_view(begin, static_cast<std::size_t>(at_ - begin));
    return skip('"');
  }
  template <typename Number>
  bool number(Number& into) {
    blanks();
    if (at_ == end_ || (*at_ != '-' && (*at_ < '0' || *at_ > '9'))) return false;
    if (*at_ == '0' && at_ + 1 != end_ && at_[1] >= '0' && at_[1] <= '9') return false;
    const auto [stop, fault] = from_chars(at_, end_, into);
    at_ = stop;
    return fault == std::errc{};
  }
  bool value() {
    blanks();
    if (at_ == end_) return false;
    std::string_view ignored;
    if (*at_ == '"') return text(ignored);
    if (*at_ == '[') return into_.at == kHashes && list();
    double read = 0.0;
    return number(read) && into_.take(read);
  }
  bool list() {
    if (!skip('[')) return false;
    if (skip(']')) return true;
    do {
      std::uint64_t hash = 0;
      if (!number(hash)) return false;
      into_.hashes.push_back(hash);
      if (into_.hashes.size() > kMostHashes) return false;
    } while (skip(','));
    return skip(']');
  }

  const char* at_;
  const char* end_;
  FlatLine& into_;
  std::string key_;
};

/// Mooncake and Bailian: one request per line.
class FlatReader {
 public:
  FlatReader(JsonTrace kind, Trace& trace) : bailian_(kind == JsonTrace::kBailian), trace_(trace) {
    trace_.block_tokens = bailian_ ? 16 : 512;
  }

  void add(std::string_view line, const Place& place) {
    const std::size_t first = trace_.block_hashes.size();
    FlatLine parsed(trace_.block_hashes);
    if (!PlainLine(line, parsed).read()) {
      trace_.block_hashes.resize(first);
      parsed.clear();
      if (!Json::sax_parse(line.begin(), line.end(), &parsed)) {
        check_size(trace_, place);
        place.fail("is not a JSON object");
      }
    }
    if (parsed.bad_hash) place.fail("'hash_ids' must be a list of whole numbers");
    Trace::Row row;
    if (!parsed.numbers[kTimestamp]) place.fail("'timestamp' is missing");
    row.seconds = *parsed.numbers[kTimestamp] / (bailian_ ? 1.0 : 1000.0);
    row.prompt_tokens = tokens_of(parsed.numbers[kInput], "input_length", place);
    row.output_tokens = tokens_of(parsed.numbers[kOutput], "output_length", place);
    const std::size_t blocks = trace_.block_hashes.size() - first;
    const auto block_tokens = static_cast<std::size_t>(trace_.block_tokens);
    const std::size_t most = (static_cast<std::size_t>(row.prompt_tokens) + block_tokens - 1) / block_tokens;
    if (blocks > most) {
      place.fail(fmt::format("has {} hash_ids, but a prompt of {} tokens has {} blocks of {}", blocks,
                             row.prompt_tokens, most, block_tokens));
    }
    for (std::size_t i = first; i < trace_.block_hashes.size(); ++i) {
      trace_.block_hashes[i] = mix_bits(trace_.block_hashes[i]);
    }
    row.first_block = first;
    row.blocks = static_cast<std::uint32_t>(blocks);
    if (bailian_) row.session = session_of(parsed);
    add_row(trace_, row, place);
  }

 private:
  /// A chat whose parent is known continues the parent's session.
  int session_of(const FlatLine& line) {
    const auto parent = chats_.find(line.numbers[kParent].value_or(-1.0));
    const int session = parent != chats_.end() ? parent->second : trace_.sessions++;
    if (line.numbers[kChat]) chats_[*line.numbers[kChat]] = session;
    return session;
  }

  bool bailian_;
  Trace& trace_;
  std::unordered_map<double, int> chats_;
};

}  // namespace

void read_json_rows(std::string_view text, const std::string& path, JsonTrace kind, Trace& trace) {
  if (kind == JsonTrace::kAgentic) return read_agentic_rows(text, path, trace);
  add_lines(text, path, trace, FlatReader(kind, trace));
}

}  // namespace roofcast
