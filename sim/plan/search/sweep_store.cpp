#include "sim/plan/search/sweep_store.h"

#include <sqlite3.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace roofcast {
namespace {

constexpr int kApplicationId = 0x726f6f66;  // "roof"
constexpr int kPendingLimit = 256;
constexpr double kSlowPoint = 0.02;  // seconds
constexpr std::chrono::milliseconds kCommitEvery{200};
constexpr int kWaitForLock = 2000;  // milliseconds: a killed process may take a while to die

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

}  // namespace

struct SweepStore::Handle {
  sqlite3* db = nullptr;
  std::unique_ptr<Statement> insert, select;
  std::string path;
  std::string origin = "--store: ";  ///< of what goes wrong

  ~Handle() {
    insert.reset(), select.reset();
    sqlite3_close(db);
  }
  [[noreturn]] void fail(int status) const {
    std::string what =
        fmt::format("'{}' cannot be used: {}", path, db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(status));
    if (status == SQLITE_BUSY || status == SQLITE_LOCKED) what = fmt::format("'{}' is in use by another process", path);
    if (status == SQLITE_NOTADB || status == SQLITE_CORRUPT) {
      what = fmt::format("'{}' is damaged or no store of a sweep; it is left as it is: name another, or move it away",
                         path);
    }
    if (status == SQLITE_IOERR) {
      what = fmt::format("'{}' cannot be written ({}); finished points are kept, run the sweep again to go on", path,
                         sqlite3_errmsg(db));
    }
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
  /// A store of ours, of this version.
  void check() const {
    if (value("PRAGMA application_id") != std::to_string(kApplicationId)) fail(SQLITE_NOTADB);
    const std::string version = value("SELECT value FROM about WHERE key='roofcast_version'");
    if (version != ROOFCAST_VERSION) {
      throw ConfigError(fmt::format(
          "{}'{}' was written by roofcast {}, this is {}; it is left as it is: name another, or move it away", origin,
          path, version, ROOFCAST_VERSION));
    }
    if (value("PRAGMA quick_check(1)") != "ok") fail(SQLITE_CORRUPT);
  }
  /// The same, and an empty file becomes one.
  void check_or_make() const {
    if (value("SELECT count(*) FROM sqlite_master") == "0" && value("PRAGMA application_id") == "0") {
      run(fmt::format("PRAGMA application_id={};"
                      "CREATE TABLE about(key TEXT PRIMARY KEY, value TEXT);"
                      "CREATE TABLE points(hash TEXT PRIMARY KEY, result TEXT NOT NULL) WITHOUT ROWID;"
                      "CREATE TABLE grid(position INTEGER PRIMARY KEY, hash TEXT NOT NULL, point_values TEXT NOT NULL);"
                      "INSERT INTO about VALUES('roofcast_version', '{}');",
                      kApplicationId, ROOFCAST_VERSION)
              .c_str());
      return;
    }
    check();
  }
};

SweepStore::SweepStore(const std::string& path) : handle_(std::make_unique<Handle>()), path_(path) {
  handle_->path = path;
  const int status = sqlite3_open_v2(path.c_str(), &handle_->db,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (status != SQLITE_OK) handle_->fail(status & 0xff);
  sqlite3_busy_timeout(handle_->db, kWaitForLock);
  // Exclusive and from the first write on: a second process is told so, and the lock goes with the process.
  handle_->run("PRAGMA locking_mode=EXCLUSIVE");
  handle_->run("BEGIN IMMEDIATE");
  handle_->check_or_make();
  handle_->run("COMMIT");
  handle_->run("PRAGMA journal_mode=WAL");
  handle_->run("PRAGMA synchronous=NORMAL");
  handle_->insert = std::make_unique<Statement>(handle_->db, "INSERT OR REPLACE INTO points VALUES(?, ?)");
  handle_->select = std::make_unique<Statement>(handle_->db, "SELECT result FROM points WHERE hash=?");
  if (!handle_->insert->ready() || !handle_->select->ready()) handle_->fail(SQLITE_CORRUPT);
  committed_ = std::chrono::steady_clock::now();
}

SweepStore::~SweepStore() {
  if (pending_ > 0) sqlite3_exec(handle_->db, "COMMIT", nullptr, nullptr, nullptr);
}

std::unordered_set<std::string> SweepStore::hashes() const {
  std::unordered_set<std::string> out;
  Statement all(handle_->db, "SELECT hash FROM points");
  int status = all.step();
  for (; status == SQLITE_ROW; status = all.step()) out.insert(all.text(0));
  if (status != SQLITE_DONE) handle_->fail(status & 0xff);
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
  Statement& insert = *handle_->insert;
  insert.bind(1, hash);
  insert.bind(2, result);
  const int status = insert.step();
  insert.reset();
  if (status != SQLITE_DONE) handle_->fail(status & 0xff);
  const bool due = std::chrono::steady_clock::now() - committed_ > kCommitEvery;
  if (seconds_taken > kSlowPoint || pending_ >= kPendingLimit || due) commit();
}

void SweepStore::describe(const StoredSweep& sweep, const std::vector<std::string>& hashes,
                          const std::function<std::vector<std::string>(std::size_t)>& values) {
  commit();
  handle_->run("BEGIN");
  handle_->run(
      "DELETE FROM about WHERE key<>'roofcast_version';"
      "CREATE TABLE IF NOT EXISTS grid(position INTEGER PRIMARY KEY, hash TEXT NOT NULL, point_values TEXT NOT NULL);"
      "DELETE FROM grid");
  Statement about(handle_->db, "INSERT INTO about VALUES(?, ?)");
  const auto say = [&](Statement& statement, const std::string& first, const std::string& second) {
    statement.bind(1, first);
    statement.bind(2, second);
    const int status = statement.step();
    statement.reset();
    if (status != SQLITE_DONE) handle_->fail(status & 0xff);
  };
  say(about, "name", sweep.name);
  say(about, "run", sweep.run);
  say(about, "keys", nlohmann::json(sweep.keys).dump());
  say(about, "shard", sweep.shard);
  Statement grid(handle_->db, "INSERT INTO grid(hash, point_values) VALUES(?, ?)");
  for (std::size_t i = 0; i < hashes.size(); ++i) say(grid, hashes[i], nlohmann::json(values(i)).dump());
  handle_->run("COMMIT");
}

StoredSweep read_store(const std::string& path, const std::function<void(StoredPoint&&)>& point,
                       const std::string& origin) {
  SweepStore::Handle store;
  store.path = path;
  store.origin = origin;
  // Writable where it may be, so that closing tidies up the log of a killed sweep; nothing is written.
  const int opened = sqlite3_open_v2(path.c_str(), &store.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (opened != SQLITE_OK) store.fail(opened & 0xff);
  sqlite3_busy_timeout(store.db, kWaitForLock);
  store.check();
  const bool tells = store.value("SELECT count(*) FROM sqlite_master WHERE name='grid'") == "1" &&
                     !store.value("SELECT value FROM about WHERE key='keys'").empty();
  if (!tells) {
    throw ConfigError(fmt::format("{}{}: the store does not say what was swept; run its sweep again", origin, path));
  }
  StoredSweep sweep{.name = store.value("SELECT value FROM about WHERE key='name'"),
                    .run = store.value("SELECT value FROM about WHERE key='run'"),
                    .keys = {},
                    .shard = store.value("SELECT value FROM about WHERE key='shard'")};
  if (sweep.shard.empty()) sweep.shard = "1/1";
  const auto texts = [&](const std::string& json) {
    const nlohmann::json list = nlohmann::json::parse(json, nullptr, false);
    if (!list.is_array()) store.fail(SQLITE_CORRUPT);
    return list.get<std::vector<std::string>>();
  };
  sweep.keys = texts(store.value("SELECT value FROM about WHERE key='keys'"));
  Statement all(store.db, "SELECT point_values, hash, result FROM grid JOIN points USING(hash) ORDER BY position");
  int status = all.step();
  for (; status == SQLITE_ROW; status = all.step()) {
    StoredPoint p{.values = texts(all.text(0)), .hash = all.text(1), .result = all.text(2)};
    if (p.values.size() != sweep.keys.size()) store.fail(SQLITE_CORRUPT);
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
