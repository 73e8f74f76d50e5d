#include "sim/plan/search/sweep_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "sim/plan/spec_cache.h"

namespace roofcast {
namespace {

/// Everything that a store is made of, as SQLite keeps it.
constexpr std::array<const char*, 3> kTables{
    "CREATE TABLE about(key TEXT PRIMARY KEY, value TEXT, checksum TEXT)",
    "CREATE TABLE points(hash TEXT PRIMARY KEY, result TEXT NOT NULL, checksum TEXT) WITHOUT ROWID",
    "CREATE TABLE grid(position INTEGER PRIMARY KEY, hash TEXT NOT NULL, point_values TEXT NOT NULL,"
    "                  checksum TEXT)"};
constexpr int kLongestText = 1 << 26;  // bytes of a result, and of all values of a point

constexpr int kApplicationId = 0x726f6f66;  // "roof"
constexpr int kLayout = 2;                  // of the tables, as PRAGMA user_version
constexpr int kPendingLimit = 256;
constexpr double kSlowPoint = 0.02;  // seconds
constexpr std::chrono::milliseconds kCommitEvery{200};
constexpr int kWaitForLock = 2000;  // milliseconds: a killed process may take a while to die

constexpr auto kReplace = nlohmann::json::error_handler_t::replace;  // names of files may be any bytes

class Statement {
 public:
  Statement(sqlite3* db, const char* sql) { status_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr); }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  bool ready() const { return status_ == SQLITE_OK; }
  void bind(int at, const std::string& text) {
    sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
  int step() { return ready() ? sqlite3_step(statement_) : status_; }
  void reset() { sqlite3_reset(statement_); }
  std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return data == nullptr ? std::string()
                           : std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int status_ = SQLITE_OK;
};

/// The checksum of a row, because SQLite does not detect flipped bits.
std::string checksum(const std::string& first, const std::string& second) {
  return fmt::format("{:016x}", hash_text(second, hash_text("\n", hash_text(first))));
}

/// For an address that SQLite reads as a URI.
std::string uri_of(const std::string& path) {
  std::string out = "file:";
  for (const char c : path) out += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", c) : std::string(1, c);
  return out + "?immutable=1";
}

}  // namespace

struct SweepStore::Handle {
  sqlite3* db = nullptr;
  std::unique_ptr<Statement> insert, select;
  std::string path;
  std::string origin = "--store: ";  ///< prefix of error messages

  ~Handle() {
    insert.reset(), select.reset();
    sqlite3_close(db);
  }
  [[noreturn]] void fail(int status) const {
    std::string what =
        fmt::format("'{}' cannot be used: {}", path, db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(status));
    if (status == SQLITE_BUSY || status == SQLITE_LOCKED) what = fmt::format("'{}' is in use by another process", path);
    if (status == SQLITE_NOTADB || status == SQLITE_CORRUPT) {
      what = fmt::format(
          "'{}' is damaged or not the store of a sweep; it was left as it is: name another, or move it away", path);
    }
    if (status == SQLITE_IOERR) {
      what = fmt::format("'{}' cannot be written ({}); finished points are kept, run the sweep again to go on", path,
                         sqlite3_errmsg(db));
    }
    if (status == SQLITE_READONLY)
      what = fmt::format("'{}' may not be written; --store names another, or ':memory:'", path);
    if (status == SQLITE_FULL)
      what = fmt::format("no space left for '{}'; finished points are kept, run the sweep again to go on", path);
    throw ConfigError(origin + what);
  }
  void run(const char* sql) const {
    const int status = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
    if (status != SQLITE_OK) fail(status & 0xff);
  }
  std::string value(const char* sql) const {
    Statement statement(db, sql);
    const int status = statement.step();
    if (status == SQLITE_ROW) return statement.text(0);
    if (status == SQLITE_DONE) return "";
    fail(status & 0xff);
  }
  /// Hands out the rows of `sql`, two texts and the checksum of both.
  void each(const char* sql, const std::function<void(std::string&&, std::string&&)>& row) const {
    Statement all(db, sql);
    int status = all.step();
    for (; status == SQLITE_ROW; status = all.step()) {
      std::string first = all.text(0), second = all.text(1);
      if (checksum(first, second) != all.text(2)) fail(SQLITE_CORRUPT);
      row(std::move(first), std::move(second));
    }
    if (status != SQLITE_DONE) fail(status & 0xff);
  }
  void insert_row(Statement& statement, const std::string& first, const std::string& second) const {
    statement.bind(1, first);
    statement.bind(2, second);
    statement.bind(3, checksum(first, second));
    const int status = statement.step();
    statement.reset();
    if (status != SQLITE_DONE) fail(status & 0xff);
  }
  /// Views, triggers and computed columns of a stranger could run for ever.
  void check_layout() const {
    Statement all(db, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL");  // an index of a key has none
    int status = all.step();
    for (; status == SQLITE_ROW; status = all.step()) {
      const std::string sql = all.text(0);
      if (std::count(kTables.begin(), kTables.end(), sql) != 1) fail(SQLITE_NOTADB);
    }
    if (status != SQLITE_DONE) fail(status & 0xff);
  }
  /// Checks that this is a store of this version.
  void check() const {
    if (value("PRAGMA application_id") != std::to_string(kApplicationId)) fail(SQLITE_NOTADB);
    check_layout();
    const std::string version = value("SELECT value FROM about WHERE key='roofcast_version'");
    if (version != ROOFCAST_VERSION || value("PRAGMA user_version") != std::to_string(kLayout)) {
      throw ConfigError(
          fmt::format("{}'{}' was written by {}; it is left as it is: name another, or move it away", origin, path,
                      version != ROOFCAST_VERSION ? fmt::format("roofcast {}, this is {}", version, ROOFCAST_VERSION)
                                                  : "another roofcast"));
    }
    if (value("PRAGMA quick_check(1)") != "ok") fail(SQLITE_CORRUPT);
  }
  /// The same, but initializes an empty file.
  void check_or_make() const {
    if (value("SELECT count(*) FROM sqlite_master") == "0" && value("PRAGMA application_id") == "0") {
      run(fmt::format("PRAGMA application_id={}; PRAGMA user_version={};"
                      "{};INSERT INTO about VALUES('roofcast_version', '{}', '{}');",
                      kApplicationId, kLayout, fmt::join(kTables, ";"), ROOFCAST_VERSION,
                      checksum("roofcast_version", ROOFCAST_VERSION))
              .c_str());
      return;
    }
    check();
  }
};

SweepStore::SweepStore(const std::string& path) : handle_(std::make_unique<Handle>()), path_(path) {
  handle_->path = path;
  if (path.empty()) throw ConfigError("--store: names no file; ':memory:' keeps nothing");  // SQLite would not, either
  const int status = sqlite3_open_v2(path.c_str(), &handle_->db,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (status != SQLITE_OK) handle_->fail(status & 0xff);
  if (sqlite3_db_readonly(handle_->db, "main") == 1) handle_->fail(SQLITE_READONLY);
  sqlite3_busy_timeout(handle_->db, kWaitForLock);
  sqlite3_limit(handle_->db, SQLITE_LIMIT_LENGTH, kLongestText);  // what is written must be readable
  // Exclusive from the first write on: a second process gets an error, and the lock ends with the process.
  handle_->run("PRAGMA locking_mode=EXCLUSIVE");
  handle_->run("PRAGMA page_size=16384");    // of a new store: fewer reads where results take a kilobyte each
  handle_->run("PRAGMA cache_size=-65536");  // KiB: results are kept and looked up by hash, so all over the file
  handle_->run("BEGIN IMMEDIATE");
  handle_->check_or_make();
  handle_->run("COMMIT");
  handle_->run("PRAGMA journal_mode=WAL");
  handle_->run("PRAGMA synchronous=NORMAL");
  handle_->insert = std::make_unique<Statement>(handle_->db, "INSERT OR REPLACE INTO points VALUES(?, ?, ?)");
  handle_->select = std::make_unique<Statement>(handle_->db, "SELECT result FROM points WHERE hash=?");
  if (!handle_->insert->ready() || !handle_->select->ready()) handle_->fail(SQLITE_CORRUPT);
  committed_ = std::chrono::steady_clock::now();
}

SweepStore::~SweepStore() {
  if (pending_ > 0) sqlite3_exec(handle_->db, "COMMIT", nullptr, nullptr, nullptr);
}

std::unordered_set<std::string> SweepStore::hashes() const {
  std::unordered_set<std::string> out;
  handle_->each("SELECT hash, result, checksum FROM points",
                [&](std::string&& hash, std::string&&) { out.insert(std::move(hash)); });
  return out;
}

std::optional<std::string> SweepStore::find(const std::string& hash) const {
  Statement& select = *handle_->select;
  select.reset();
  select.bind(1, hash);
  const int status = select.step();
  if (status == SQLITE_ROW) return select.text(0);
  if (status == SQLITE_DONE) return std::nullopt;
  handle_->fail(status & 0xff);
}

void SweepStore::add(const std::string& hash, const std::string& result, double seconds_taken) {
  if (pending_ == 0) handle_->run("BEGIN");
  ++pending_;
  handle_->insert_row(*handle_->insert, hash, result);
  const bool due = std::chrono::steady_clock::now() - committed_ > kCommitEvery;
  if (seconds_taken > kSlowPoint || pending_ >= kPendingLimit || due) commit();
}

void SweepStore::describe(const StoredSweep& sweep, const std::vector<std::string>& hashes,
                          const std::function<std::vector<std::string>(std::size_t)>& values) {
  commit();
  handle_->run("BEGIN");
  handle_->run("DELETE FROM about WHERE key<>'roofcast_version'; DELETE FROM grid");
  Statement about(handle_->db, "INSERT INTO about VALUES(?, ?, ?)");
  handle_->insert_row(about, "name", sweep.name);
  handle_->insert_row(about, "run", sweep.run);
  handle_->insert_row(about, "keys", nlohmann::json(sweep.keys).dump(-1, ' ', false, kReplace));
  handle_->insert_row(about, "shard", sweep.shard);
  handle_->insert_row(about, "model", sweep.model);
  handle_->insert_row(about, "gpu", sweep.gpu);
  Statement grid(handle_->db, "INSERT INTO grid(hash, point_values, checksum) VALUES(?, ?, ?)");
  for (std::size_t i = 0; i < hashes.size(); ++i)
    handle_->insert_row(grid, hashes[i], nlohmann::json(values(i)).dump(-1, ' ', false, kReplace));
  handle_->run("COMMIT");
}

StoredSweep read_store(const std::string& path, const std::function<void(StoredPoint&&)>& point,
                       const std::string& origin) {
  SweepStore::Handle store;
  store.path = path;
  store.origin = origin;
  // Writable if possible, so that closing cleans up the log of a killed sweep; nothing is written.
  int opened = sqlite3_open_v2(path.c_str(), &store.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (opened != SQLITE_OK) store.fail(opened & 0xff);
  sqlite3_busy_timeout(store.db, kWaitForLock);
  // A log needs a folder that can be written. Without one, a store whose log is empty is read as it lies there.
  std::error_code no_log;
  const int first = Statement(store.db, "PRAGMA application_id").step() & 0xff;
  if (first == SQLITE_CANTOPEN || first == SQLITE_READONLY) {
    if (std::filesystem::file_size(path + "-wal", no_log) > 0 && !no_log) store.fail(SQLITE_CANTOPEN);
    sqlite3_close(std::exchange(store.db, nullptr));
    opened = sqlite3_open_v2(uri_of(path).c_str(), &store.db,
                             SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
    if (opened != SQLITE_OK) store.fail(opened & 0xff);
  }
  sqlite3_limit(store.db, SQLITE_LIMIT_LENGTH, kLongestText);
  store.run("PRAGMA cache_size=-131072");  // KiB: results are looked up by hash, so from all over the file
  store.check();
  std::map<std::string, std::string> about;
  store.each("SELECT key, value, checksum FROM about",
             [&](std::string&& key, std::string&& value) { about[key] = std::move(value); });
  if (about["keys"].empty())
    throw ConfigError(fmt::format("{}{}: the store does not say what was swept; run its sweep again", origin, path));
  StoredSweep sweep{.name = about["name"],
                    .run = about["run"],
                    .keys = {},
                    .shard = about["shard"],
                    .model = about["model"],
                    .gpu = about["gpu"]};
  const auto texts = [&](const std::string& json) {
    const nlohmann::json list = nlohmann::json::parse(json, nullptr, false);
    if (!list.is_array() || !std::all_of(list.begin(), list.end(), [](const auto& text) { return text.is_string(); }))
      store.fail(SQLITE_CORRUPT);
    return list.get<std::vector<std::string>>();
  };
  sweep.keys = texts(about["keys"]);
  // A flipped bit in a hash removes its row from the join, so unjoined rows are checked too.
  store.each("SELECT hash, result, checksum FROM points WHERE hash NOT IN (SELECT hash FROM grid)",
             [](std::string&&, std::string&&) {});
  Statement all(store.db,
                "SELECT point_values, grid.hash, grid.checksum, result, points.checksum FROM grid "
                "LEFT JOIN points ON points.hash = grid.hash ORDER BY position");
  int status = all.step();
  for (; status == SQLITE_ROW; status = all.step()) {
    const std::string values = all.text(0);
    StoredPoint p{.values = texts(values), .hash = all.text(1), .result = all.text(3)};
    if (checksum(p.hash, values) != all.text(2) || p.values.size() != sweep.keys.size()) store.fail(SQLITE_CORRUPT);
    if (all.text(4).empty()) continue;  // not finished
    if (checksum(p.hash, p.result) != all.text(4)) store.fail(SQLITE_CORRUPT);
    point(std::move(p));
  }
  if (status != SQLITE_DONE) store.fail(status & 0xff);
  return sweep;
}

void SweepStore::commit() {
  if (pending_ > 0) handle_->run("COMMIT");
  pending_ = 0;
  committed_ = std::chrono::steady_clock::now();
}

}  // namespace roofcast
