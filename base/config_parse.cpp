// From text to a ConfigTree. yaml-cpp scans; its events, not its nodes, are used, because its nodes keep
// duplicate keys (first wins), follow aliases, and forget the position of what is absent.

#include "base/config_parse.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "base/config_text.h"
#include "base/read_file.h"

namespace roofcast {
namespace {

constexpr std::size_t kLimitBytes = 8'000'000;  // the scanner takes a hundred bytes for some of these
constexpr std::size_t kLimitNodes = 1'000'000;
constexpr std::size_t kLimitDepth = 200;  // what walks a tree does so by recursion

/// Positions within one text. A flag's value has none.
struct Origin {
  const std::string& path;
  bool has_lines;

  Mark at(const YAML::Mark& mark) const {  // theirs count from 0, and -1 is unknown
    return has_lines ? Mark{path, mark.line + 1, mark.column + 1} : Mark{path};
  }
};

/// Builds the tree of one document from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const Origin& origin) : origin_(origin) {}
  ConfigTree root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) throw ConfigError(origin_.at(mark), "only one document a file: this begins a second one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    if (awaits_key()) throw ConfigError(origin_.at(mark), "a key is missing, or is null");
    add(make_node(ConfigNode::Kind::kNull, mark));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw ConfigError(origin_.at(mark), "aliases (*name) are not read here: write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& text) override {
    const bool quoted = is_quoted(tag, mark);
    if (awaits_key()) return begin_entry(text, quoted, mark);
    auto node = make_node(ConfigNode::Kind::kScalar, mark);
    node->scalar = text;
    node->quoted = quoted;
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value style) override {
    open(ConfigNode::Kind::kList, tag, style, mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value style) override {
    open(ConfigNode::Kind::kMap, tag, style, mark);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    std::shared_ptr<ConfigNode> node;
    bool has_key = false;  // a map's key was read, its value not yet
    std::string key;
    Mark key_mark;
    std::unordered_set<std::string> seen;  // filled once a map is too large to search
  };

  bool awaits_key() const {
    return !open_.empty() && open_.back().node->kind == ConfigNode::Kind::kMap && !open_.back().has_key;
  }

  std::shared_ptr<ConfigNode> make_node(ConfigNode::Kind kind, const YAML::Mark& mark) {
    if (++nodes_ > kLimitNodes)
      throw ConfigError(origin_.at(mark), fmt::format("more than {} values in one document", kLimitNodes));
    auto node = std::make_shared<ConfigNode>();
    node->kind = kind;
    node->mark = origin_.at(mark);
    return node;
  }

  /// The parser calls plain scalars "?" and quoted ones "!".
  bool is_quoted(const std::string& tag, const YAML::Mark& mark) const {
    if (tag == "?" || tag.empty()) return false;
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return true;
    throw ConfigError(origin_.at(mark), fmt::format("the tag '{}' is not read here", tag));
  }

  void open(ConfigNode::Kind kind, const std::string& tag, YAML::EmitterStyle::value style, const YAML::Mark& mark) {
    if (awaits_key()) {  // the scanner also takes an outermost bracket without an end for a key
      const bool bracket = style == YAML::EmitterStyle::Flow;
      throw ConfigError(origin_.at(mark), bracket ? "this bracket is never closed, or stands where a key is due"
                                                  : "a key must be text, not a list or a map");
    }
    is_quoted(tag, mark);
    if (open_.size() >= kLimitDepth) {
      throw ConfigError(origin_.at(mark), fmt::format("nested deeper than {} levels", kLimitDepth));
    }
    open_.emplace_back().node = make_node(kind, mark);
  }

  void close() {
    ConfigTree done = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(done));
  }

  void begin_entry(const std::string& key, bool quoted, const YAML::Mark& mark) {
    Frame& map = open_.back();
    const Mark here = origin_.at(mark);
    if (key == "<<" && !quoted) throw ConfigError(here, "merge keys (<<) are not read here: write the keys out");
    if (const Mark* first = earlier(map, key)) {
      const std::string where = first->line > 0 ? fmt::format(", first on line {}", first->line) : "";
      throw ConfigError(here, fmt::format("duplicate key '{}'{}", key, where));
    }
    map.has_key = true;
    map.key = key;
    map.key_mark = here;
  }

  /// Where the key stood before, if it did. Small maps are searched; large ones keep a set.
  static const Mark* earlier(Frame& map, const std::string& key) {
    constexpr std::size_t kSearched = 32;
    const auto& entries = map.node->entries;
    if (entries.size() >= kSearched) {
      if (map.seen.empty()) {
        for (const ConfigNode::Entry& entry : entries) map.seen.insert(entry.key);
      }
      if (map.seen.insert(key).second) return nullptr;
    }
    const auto same = [&](const ConfigNode::Entry& entry) { return entry.key == key; };
    const auto found = std::find_if(entries.begin(), entries.end(), same);
    return found == entries.end() ? nullptr : &found->key_mark;
  }

  void add(ConfigTree value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Frame& parent = open_.back(); parent.node->kind == ConfigNode::Kind::kList) {
      parent.node->items.push_back(std::move(value));
    } else {
      parent.node->entries.push_back({std::move(parent.key), std::move(parent.key_mark), std::move(value)});
      parent.has_key = false;
    }
  }

  Origin origin_;
  std::size_t nodes_ = 0;
  std::vector<Frame> open_;
  ConfigTree root_;
};

/// Ends every text that the scanner sees: a comment without a line end. After a line end the scanner would take
/// the end of the file for the end of a quoted text.
constexpr std::string_view kSentinel = "\n#";

/// What the scanner could not read. Positions within the sentinel are the end of the user's text.
ConfigError malformed(const YAML::Exception& error, std::string_view text, const Origin& origin) {
  const std::string_view language = origin.path.ends_with(".json") ? "JSON" : "YAML";
  const bool at_end = !error.mark.is_null() && static_cast<std::size_t>(error.mark.pos) >= text.size();
  Mark mark{origin.path};
  if (origin.has_lines && at_end) mark = mark_at(text, text.size(), origin.path);
  if (!error.mark.is_null() && !at_end) mark = origin.at(error.mark);
  const bool open_quote = error.msg == YAML::ErrorMsg::EOF_IN_SCALAR;
  return ConfigError(mark,
                     fmt::format("malformed {}: {}", language, open_quote ? "a quoted text has no end" : error.msg));
}

ConfigTree parse(std::string_view text, const Origin& origin) {
  if (text.size() > kLimitBytes) {
    throw ConfigError(Mark{origin.path}, fmt::format("is larger than {} MB", kLimitBytes / 1000000));
  }
  if (const auto fault = find_text_fault(text)) {
    throw ConfigError(origin.has_lines ? mark_at(text, fault->offset, origin.path) : Mark{origin.path}, fault->what);
  }
  const std::string read = origin.path.ends_with(".json") ? join_surrogates(text) : std::string(text);
  TreeBuilder builder(origin);
  try {
    std::istringstream stream(read + std::string(kSentinel));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw malformed(error, read, origin);
  }
  if (!builder.root()) throw ConfigError(Mark{origin.path}, "is empty");
  return builder.root();
}

}  // namespace

ConfigTree parse_config_file(const std::string& path) { return parse_config_text(read_file(path, kLimitBytes), path); }

ConfigTree parse_config_text(std::string_view text, const std::string& path) { return parse(text, {path, true}); }

ConfigTree parse_config_value(std::string_view text, const std::string& origin) { return parse(text, {origin, false}); }

}  // namespace roofcast
