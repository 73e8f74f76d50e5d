// Parses text into a ConfigTree: plain text by read_plain_yaml; all other text, and text with an error, from the events
// of libyaml. The documents of libyaml keep duplicate keys and follow aliases.

#include "base/config_parse.h"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <new>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/config_text.h"
#include "base/plain_yaml.h"
#include "base/read_file.h"

namespace roofcast {
namespace {

constexpr std::size_t kLimitBytes = 8'000'000;  // the scanner can take about 100 bytes of memory per byte
constexpr std::size_t kLimitNodes = 1'000'000;
constexpr std::size_t kLimitDepth = 200;  // functions on trees are recursive

constexpr const char* kSecondDocument = "a second document begins here; only one per file is allowed";
constexpr const char* kOpenQuote = "this quoted text is not closed";
constexpr const char* kBracket = "this bracket is never closed or stands where a key is expected";

/// The number of bytes of the character that begins at `byte`.
std::size_t character_length(std::string_view text, std::size_t byte) {
  std::size_t end = byte + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) ++end;
  return end - byte;
}

/// Locations within one text. The scanner counts characters, a column counts bytes; they agree in ASCII. The value of a
/// flag has no line or column.
class Locations {
 public:
  Locations(std::string_view text, const std::string& path, bool has_lines)
      : text_(text), path_(path), has_lines_(has_lines), ascii_(is_ascii(text)) {
    if (text.starts_with("\xEF\xBB\xBF")) byte_ = line_begin_ = 3;  // a byte order mark, which the scanner skips
  }

  SourceLocation at(const yaml_mark_t& location) {
    if (!has_lines_) return SourceLocation{path_};
    if (ascii_ && location.index < text_.size())
      return SourceLocation{path_, static_cast<int>(location.line) + 1, static_cast<int>(location.column) + 1};
    go_to(location.index);
    return SourceLocation{path_, line_, static_cast<int>(byte_ - line_begin_) + 1};
  }
  SourceLocation at(int line, int column) const {
    return has_lines_ ? SourceLocation{path_, line + 1, column + 1} : SourceLocation{path_};
  }
  SourceLocation at_byte(std::size_t byte) const {
    return has_lines_ ? location_at(text_, byte, path_.str()) : SourceLocation{path_};
  }
  std::string_view text_from(const yaml_mark_t& location) {
    go_to(location.index);
    return text_.substr(byte_);
  }

 private:
  /// Searches from the last location, because the next one is usually near.
  void go_to(std::size_t character) {
    for (; character_ < character && byte_ < text_.size(); ++character_) {
      if (text_[byte_] == '\n') {
        ++line_;
        line_begin_ = byte_ + 1;
      }
      byte_ += character_length(text_, byte_);
    }
    for (; character_ > character; --character_) {
      do --byte_;
      while ((static_cast<unsigned char>(text_[byte_]) & 0xC0u) == 0x80u);
      if (text_[byte_] != '\n') continue;
      --line_;
      line_begin_ = text_.substr(0, byte_).rfind('\n') + 1;  // npos + 1 is 0
    }
  }

  static bool is_ascii(std::string_view text) {
    unsigned char bits = 0;
    for (const char c : text) bits |= static_cast<unsigned char>(c);
    return bits < 0x80;
  }

  std::string_view text_;
  SharedText path_;
  bool has_lines_, ascii_;
  std::size_t character_ = 0, byte_ = 0, line_begin_ = 0;
  int line_ = 1;
};

struct Event : yaml_event_t {
  Event() : yaml_event_t{} {}
  ~Event() { yaml_event_delete(this); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

struct Parser : yaml_parser_t {
  explicit Parser(std::string_view text) : yaml_parser_t{} {
    if (yaml_parser_initialize(this) == 0) throw std::bad_alloc();
    yaml_parser_set_input_string(this, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Parser() { yaml_parser_delete(this); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
};

const char* text_of(const yaml_char_t* text) { return reinterpret_cast<const char*>(text); }

/// Builds the tree of one document from the parser's events, or from those of a plain text.
class TreeBuilder final : public PlainYamlHandler {
 public:
  explicit TreeBuilder(Locations& locations) : locations_(locations) {}
  ConfigTree root() const { return root_; }
  /// The location of the opening bracket if the document is a bracketed list or map that is not closed; else null.
  const SourceLocation* open_bracket() const {
    return open_.empty() || !open_.front().bracket ? nullptr : &open_.front().node->location;
  }

  void take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (root_) throw ConfigError(locations_.at(event.start_mark), kSecondDocument);
        return;
      case YAML_ALIAS_EVENT:
        throw ConfigError(locations_.at(event.start_mark), "aliases (*name) are not supported: write the value out");
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event.data.scalar;
        const bool quoted = is_text(scalar.tag, event.start_mark) || scalar.style != YAML_PLAIN_SCALAR_STYLE;
        return put({text_of(scalar.value), scalar.length}, quoted, locations_.at(event.start_mark));
      }
      case YAML_SEQUENCE_START_EVENT: {
        const auto& start = event.data.sequence_start;
        return open(ConfigNode::Kind::kList, start.tag, start.style == YAML_FLOW_SEQUENCE_STYLE, event.start_mark);
      }
      case YAML_MAPPING_START_EVENT: {
        const auto& start = event.data.mapping_start;
        return open(ConfigNode::Kind::kMap, start.tag, start.style == YAML_FLOW_MAPPING_STYLE, event.start_mark);
      }
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return close();
      default:
        return;
    }
  }

  void scalar(std::string_view text, bool quoted, int line, int column) override {
    put(text, quoted, locations_.at(line, column));
  }
  void open(bool map, bool bracket, int line, int column) override {
    begin(map ? ConfigNode::Kind::kMap : ConfigNode::Kind::kList, bracket, locations_.at(line, column));
  }
  void close() override {
    ConfigTree done = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(done));
  }

 private:
  struct Frame {
    std::shared_ptr<ConfigNode> node;
    bool bracket = false;
    bool has_key = false;  // the key of an entry has been read, but not its value
    std::string key;
    SourceLocation key_location;
    std::unordered_set<std::string> seen;  // filled only for maps too large for a linear search
  };

  bool awaits_key() const {
    return !open_.empty() && open_.back().node->kind == ConfigNode::Kind::kMap && !open_.back().has_key;
  }

  std::shared_ptr<ConfigNode> make_node(ConfigNode::Kind kind, SourceLocation location) {
    auto node = std::make_shared<ConfigNode>();
    node->kind = kind;
    node->location = std::move(location);
    if (++nodes_ > kLimitNodes)
      throw ConfigError(node->location, fmt::format("more than {} values in one document", kLimitNodes));
    return node;
  }

  /// Whether a tag turns a value into text.
  bool is_text(const yaml_char_t* tag, const yaml_mark_t& location) {
    if (tag == nullptr) return false;
    const std::string_view name = text_of(tag);
    if (name == "!" || name == YAML_STR_TAG) return true;
    throw ConfigError(locations_.at(location), fmt::format("the tag '{}' is not supported", name));
  }

  void put(std::string_view text, bool quoted, SourceLocation location) {
    const bool null = !quoted && (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL");
    if (awaits_key()) {
      if (null) throw ConfigError(location, "a key is missing, or is null");
      return begin_entry(text, quoted, std::move(location));
    }
    auto node = make_node(null ? ConfigNode::Kind::kNull : ConfigNode::Kind::kScalar, std::move(location));
    if (!null) node->scalar = text;
    node->quoted = quoted;
    add(std::move(node));
  }

  void open(ConfigNode::Kind kind, const yaml_char_t* tag, bool bracket, const yaml_mark_t& location) {
    if (!awaits_key()) is_text(tag, location);
    begin(kind, bracket, locations_.at(location));
  }
  void begin(ConfigNode::Kind kind, bool bracket, SourceLocation location) {
    if (awaits_key()) throw ConfigError(location, bracket ? kBracket : "a key must be text, not a list or a map");
    if (open_.size() >= kLimitDepth)
      throw ConfigError(location, fmt::format("nested deeper than {} levels", kLimitDepth));
    Frame& frame = open_.emplace_back();
    frame.node = make_node(kind, std::move(location));
    frame.bracket = bracket;
  }

  void begin_entry(std::string_view text, bool quoted, SourceLocation here) {
    Frame& map = open_.back();
    if (text == "<<" && !quoted) throw ConfigError(here, "merge keys (<<) are not supported: write the keys out");
    std::string key(text);
    if (const SourceLocation* first = earlier(map, key)) {
      const std::string where = first->line > 0 ? fmt::format(", first on line {}", first->line) : "";
      throw ConfigError(here, fmt::format("duplicate key '{}'{}", key, where));
    }
    map.has_key = true;
    map.key = std::move(key);
    map.key_location = std::move(here);
  }

  /// The location of an earlier key of the same name. Small maps are searched; large ones keep a set.
  static const SourceLocation* earlier(Frame& map, const std::string& key) {
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
    return found == entries.end() ? nullptr : &found->key_location;
  }

  void add(ConfigTree value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Frame& parent = open_.back(); parent.node->kind == ConfigNode::Kind::kList) {
      parent.node->items.push_back(std::move(value));
    } else {
      parent.node->entries.push_back({std::move(parent.key), std::move(parent.key_location), std::move(value)});
      parent.has_key = false;
    }
  }

  Locations& locations_;
  std::size_t nodes_ = 0;
  std::vector<Frame> open_;
  ConfigTree root_;
};

/// The error for text that the scanner could not read.
ConfigError malformed(const yaml_parser_t& parser, const TreeBuilder& builder, Locations& locations) {
  if (parser.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
  const auto error_at = [&](const SourceLocation& location, std::string_view what) {
    return ConfigError(location,
                       fmt::format("malformed {}: {}", location.path.str().ends_with(".json") ? "JSON" : "YAML", what));
  };
  const std::string_view problem = parser.problem;
  if (parser.error == YAML_READER_ERROR) return error_at(locations.at_byte(parser.problem_offset), problem);
  const SourceLocation location = locations.at(parser.problem_mark);
  const std::string_view rest = locations.text_from(parser.problem_mark);
  if (problem == "could not find expected ':'")  // reported after the key, which may end on an earlier line
    return error_at(locations.at(parser.context_mark), "this key has no ':'");
  if (problem == "did not find expected <document start>") return {location, kSecondDocument};
  if (problem == "found character that cannot start any token" && rest.starts_with('\t'))
    return error_at(location, "a tab cannot indent; use spaces");
  if (problem == "found unknown escape character") {
    if (rest.size() < 2) return error_at(locations.at_byte(std::string_view::npos), kOpenQuote);
    return error_at(location, fmt::format("unknown escape character: {}", rest.substr(1, character_length(rest, 1))));
  }
  if (problem == "found unexpected end of stream") return error_at(location, kOpenQuote);
  if (rest.empty() && builder.open_bracket()) return {*builder.open_bracket(), kBracket};
  return error_at(location, problem);
}

/// Null if the text is not plain, or has an error. libyaml then reads it again and finds the error.
ConfigTree parse_plain(std::string_view text, const std::string& path, bool has_lines) {
  Locations locations(text, path, has_lines);
  TreeBuilder builder(locations);
  try {
    return read_plain_yaml(text, builder) ? builder.root() : nullptr;
  } catch (const ConfigError&) {
    return nullptr;
  }
}

ConfigTree parse_by_libyaml(std::string_view text, const std::string& path, bool has_lines) {
  Locations locations(text, path, has_lines);
  TreeBuilder builder(locations);
  Parser parser(text);
  for (bool ended = false; !ended;) {
    Event event;
    if (yaml_parser_parse(&parser, &event) == 0) throw malformed(parser, builder, locations);
    builder.take(event);
    ended = event.type == YAML_STREAM_END_EVENT;
  }
  if (!builder.root()) throw ConfigError(SourceLocation{path}, "is empty");
  return builder.root();
}

ConfigTree parse(std::string_view text, const std::string& path, bool has_lines) {
  if (text.size() > kLimitBytes) {
    throw ConfigError(SourceLocation{path}, fmt::format("is larger than {} MB", kLimitBytes / 1000000));
  }
  if (const auto fault = find_text_fault(text)) {
    throw ConfigError(has_lines ? location_at(text, fault->offset, path) : SourceLocation{path}, fault->what);
  }
  const std::string read = path.ends_with(".json") ? join_surrogates(text) : std::string(text);
  if (ConfigTree plain = parse_plain(read, path, has_lines)) return plain;
  return parse_by_libyaml(read, path, has_lines);
}

}  // namespace

ConfigTree parse_config_file(const std::string& path) { return parse_config_text(read_file(path, kLimitBytes), path); }

/// JSON written by `roofcast import` or `roofcast workloads NAME` is read without its result header.
ConfigTree parse_config_text(std::string_view text, const std::string& path) {
  const ConfigTree tree = parse(text, path, true);
  const ConfigTree* kind = tree->find("kind");
  if (kind == nullptr || !*kind || tree->find("schema") == nullptr) return tree;
  if ((*kind)->scalar != "import" && (*kind)->scalar != "catalog_entry") return tree;
  auto document = std::make_shared<ConfigNode>(*tree);
  std::erase_if(document->entries, [](const ConfigNode::Entry& entry) {
    return entry.key == "kind" || entry.key == "schema" || entry.key == "of";
  });
  return document;
}

ConfigTree parse_config_value(std::string_view text, const std::string& origin) { return parse(text, origin, false); }

}  // namespace roofcast
