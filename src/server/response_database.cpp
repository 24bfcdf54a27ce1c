// The file has one table and says whose it is: `application_id` is "HDLR" and `user_version` the version of
// the table. It is in write-ahead mode with synchronous=NORMAL: a crash of the machine may lose the last
// responses, never the database. Deleted text is overwritten, and its pages are given back.
#include "server/response_database.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/log.h"

namespace hadal::server {
namespace {

constexpr int32_t kApplicationId = 0x48444c52;  // "HDLR"
constexpr int32_t kSchemaVersion = 1;
constexpr int kBusyMilliseconds = 1000;  ///< patience with another process on the same file
constexpr uint64_t kRowBytes = 256;      ///< counted for each response besides its texts

constexpr const char* kSchema = R"(
  CREATE TABLE responses (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    previous_id TEXT NOT NULL,
    used_us INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    input BLOB NOT NULL,
    response BLOB NOT NULL);
  CREATE INDEX responses_by_use ON responses (used_us, bytes);
)";

struct CloseConnection {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};
using Connection = std::unique_ptr<sqlite3, CloseConnection>;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

tl::unexpected<Error> failure(sqlite3* connection, std::string_view doing) {
  const int code = sqlite3_errcode(connection) & 0xff;
  // A statement that does not fit the schema means that the tables are another program's.
  const bool is_content = code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR ||
                          code == SQLITE_FORMAT || code == SQLITE_SCHEMA;
  return fail(is_content ? ErrorCode::kCorrupt : ErrorCode::kIo, "{}: {}", doing, sqlite3_errmsg(connection));
}

Result<void> execute(sqlite3* connection, const char* sql) {
  if (sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failure(connection, "SQL");
  }
  return {};
}

/// A prepared statement. Texts given to bind() must live until the next reset.
class Statement {
 public:
  Statement() = default;
  static Result<Statement> prepare(sqlite3* connection, std::string_view sql) {
    Statement statement;
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v3(connection, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    statement.handle_.reset(raw);
    if (code != SQLITE_OK) {
      return failure(connection, "prepare");
    }
    return statement;
  }

  /// Sets all parameters in order: texts and whole numbers.
  template <class... Values>
  void bind(const Values&... values) {
    reset();
    int index = 0;
    (bind_one(++index, values), ...);
  }
  void bind_blob(int index, std::string_view bytes) {
    sqlite3_bind_blob64(handle_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC);
  }
  /// Whether there is a row.
  Result<bool> step() {
    const int code = sqlite3_step(handle_.get());
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
      auto error = failure(sqlite3_db_handle(handle_.get()), "step");
      reset();
      return error;
    }
    return code == SQLITE_ROW;
  }
  Result<void> run() {
    HADAL_CHECK(step());
    reset();
    return {};
  }
  int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  std::string text(int column) const {
    const void* bytes = sqlite3_column_blob(handle_.get(), column);
    const auto size = static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column));
    return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
  }
  /// Ends the reading of rows, and with it the read transaction.
  void reset() { sqlite3_reset(handle_.get()); }

 private:
  void bind_one(int index, int64_t value) { sqlite3_bind_int64(handle_.get(), index, value); }
  void bind_one(int index, std::string_view text) {
    sqlite3_bind_text64(handle_.get(), index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

Result<int64_t> read_integer(sqlite3* connection, std::string_view sql) {
  HADAL_TRY(Statement statement, Statement::prepare(connection, sql));
  HADAL_TRY(const bool has_row, statement.step());
  return has_row ? statement.integer(0) : 0;
}

/// Rolls back unless it was committed.
class Transaction {
 public:
  static Result<Transaction> begin(sqlite3* connection) {
    HADAL_CHECK(execute(connection, "BEGIN IMMEDIATE"));
    return Transaction(connection);
  }
  Transaction(Transaction&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction() {
    if (connection_ != nullptr) {
      sqlite3_exec(connection_, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }
  Result<void> commit() {
    HADAL_CHECK(execute(connection_, "COMMIT"));
    connection_ = nullptr;
    return {};
  }

 private:
  explicit Transaction(sqlite3* connection) : connection_(connection) {}
  sqlite3* connection_;
};

/// Makes the directory and the file, which only the user of the server may read.
Result<void> make_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return fail(ErrorCode::kIo, "{} is not a regular file",
                path);  // SQLite would leave a journal beside a device
  }
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (!directory.empty() && std::filesystem::create_directories(directory, error)) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  } else if (error) {
    return fail(ErrorCode::kIo, "cannot make the directory {}: {}", directory.string(), error.message());
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return fail(ErrorCode::kIo, "cannot open {}: {}", path, std::strerror(errno));
  }
  ::close(file);
  return {};
}

/// Checks that the database is ours, or empty and made ours.
Result<void> claim(sqlite3* connection) {
  HADAL_CHECK(execute(connection, "PRAGMA auto_vacuum=INCREMENTAL"));  // only before the first table
  HADAL_TRY(Transaction transaction, Transaction::begin(connection));
  HADAL_TRY(const int64_t application, read_integer(connection, "PRAGMA application_id"));
  HADAL_TRY(const int64_t num_objects, read_integer(connection, "SELECT count(*) FROM sqlite_master"));
  if (application == 0 && num_objects == 0) {
    HADAL_CHECK(execute(connection, kSchema));
    HADAL_CHECK(execute(connection, fmt::format("PRAGMA application_id={}", kApplicationId).c_str()));
    HADAL_CHECK(execute(connection, fmt::format("PRAGMA user_version={}", kSchemaVersion).c_str()));
  } else if (application != kApplicationId) {
    return fail(ErrorCode::kCorrupt, "the database is another program's");
  } else {
    HADAL_TRY(const int64_t version, read_integer(connection, "PRAGMA user_version"));
    if (version != kSchemaVersion) {
      return fail(ErrorCode::kCorrupt, "its format is version {}, not {}", version, kSchemaVersion);
    }
  }
  return transaction.commit();
}

class SqliteDatabase final : public ResponseDatabase {
 public:
  Result<void> open_file(const std::string& path);

  Result<uint64_t> put(const StoredResponse& response, const DatabaseLimits& limits, int64_t now_us) override;
  Result<std::optional<StoredResponse>> get(std::string_view owner, std::string_view id,
                                            int64_t oldest_us) override;
  Result<void> mark_used(const std::vector<StoredResponse>& responses, int64_t now_us) override;
  Result<bool> remove(std::string_view owner, std::string_view id) override;
  Result<Size> size() override;
  Result<int64_t> last_used_us() override {
    return read_integer(connection_.get(), "SELECT coalesce(max(used_us), 0) FROM responses");
  }

 private:
  Result<uint64_t> evict(const DatabaseLimits& limits, int64_t now_us);
  Result<uint64_t> drop_oldest(Size excess);

  Connection connection_;  // before the statements, which end first
  Statement insert_;
  Statement select_;
  Statement touch_;
  Statement delete_;
  Statement measure_;
  Statement oldest_;
  Statement delete_until_;
};

Result<void> SqliteDatabase::open_file(const std::string& path) {
  if (!path.empty()) {
    HADAL_CHECK(make_file(path));
  }
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.empty() ? ":memory:" : path.c_str(), &raw,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  connection_.reset(raw);
  if (raw == nullptr) {
    return fail(ErrorCode::kIo, "SQLite: out of memory");
  }
  if (code != SQLITE_OK) {
    return failure(raw, "open");
  }
  sqlite3_busy_timeout(raw, kBusyMilliseconds);
  HADAL_CHECK(claim(raw));
  HADAL_CHECK(execute(raw,
                      "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON; "
                      "PRAGMA journal_size_limit=8388608; PRAGMA trusted_schema=OFF"));
  const auto prepare = [raw](Statement& statement, std::string_view sql) -> Result<void> {
    HADAL_TRY(statement, Statement::prepare(raw, sql));
    return {};
  };
  HADAL_CHECK(
      prepare(insert_,
              "INSERT OR REPLACE INTO responses (id, owner, previous_id, used_us, bytes, input, response) "
              "VALUES (?, ?, ?, ?, ?, ?, ?)"));
  HADAL_CHECK(prepare(select_,
                      "SELECT previous_id, input, response FROM responses "
                      "WHERE id = ? AND owner = ? AND used_us >= ?"));
  HADAL_CHECK(prepare(touch_, "UPDATE responses SET used_us = ? WHERE id = ? AND owner = ?"));
  HADAL_CHECK(prepare(delete_, "DELETE FROM responses WHERE id = ? AND owner = ?"));
  HADAL_CHECK(prepare(measure_, "SELECT count(*), coalesce(sum(bytes), 0) FROM responses"));
  HADAL_CHECK(prepare(oldest_, "SELECT used_us, bytes FROM responses ORDER BY used_us, bytes"));
  return prepare(delete_until_, "DELETE FROM responses WHERE used_us <= ?");
}

Result<uint64_t> SqliteDatabase::put(const StoredResponse& response, const DatabaseLimits& limits,
                                     int64_t now_us) {
  const uint64_t bytes = response.input.size() + response.response.size() + kRowBytes;
  if (bytes > limits.max_bytes) {
    return fail(ErrorCode::kResourceExhausted,
                "a response of {} bytes is larger than the whole store may be ({})", bytes, limits.max_bytes);
  }
  HADAL_TRY(Transaction transaction, Transaction::begin(connection_.get()));
  insert_.bind(response.id, response.owner, response.previous_id, now_us, static_cast<int64_t>(bytes));
  insert_.bind_blob(6, response.input);
  insert_.bind_blob(7, response.response);
  HADAL_CHECK(insert_.run());
  HADAL_TRY(const uint64_t num_evicted, evict(limits, now_us));
  HADAL_CHECK(transaction.commit());
  if (num_evicted > 0) {
    HADAL_CHECK(execute(connection_.get(), "PRAGMA incremental_vacuum"));
  }
  return num_evicted;
}

Result<uint64_t> SqliteDatabase::evict(const DatabaseLimits& limits, int64_t now_us) {
  uint64_t num_evicted = 0;
  if (limits.max_age_us > 0) {
    delete_until_.bind(now_us - limits.max_age_us - 1);
    HADAL_CHECK(delete_until_.run());
    num_evicted += static_cast<uint64_t>(sqlite3_changes64(connection_.get()));
  }
  HADAL_TRY(const Size now, size());
  Size excess;
  excess.responses = std::max<int64_t>(now.responses - limits.max_responses, 0);
  excess.bytes = now.bytes > limits.max_bytes ? now.bytes - limits.max_bytes : 0;
  HADAL_TRY(const uint64_t num_dropped, drop_oldest(excess));
  return num_evicted + num_dropped;
}

/// Drops the longest unused responses until `excess` is gone, and those that were used last at the same time.
Result<uint64_t> SqliteDatabase::drop_oldest(Size excess) {
  int64_t until_us = -1;
  oldest_.reset();
  while (excess.responses > 0 || excess.bytes > 0) {
    HADAL_TRY(const bool has_row, oldest_.step());
    if (!has_row) {
      break;
    }
    until_us = oldest_.integer(0);
    const auto bytes = static_cast<uint64_t>(oldest_.integer(1));
    excess.responses = std::max<int64_t>(excess.responses - 1, 0);
    excess.bytes -= std::min(excess.bytes, bytes);
  }
  oldest_.reset();
  if (until_us < 0) {
    return 0;
  }
  delete_until_.bind(until_us);
  HADAL_CHECK(delete_until_.run());
  return static_cast<uint64_t>(sqlite3_changes64(connection_.get()));
}

Result<std::optional<StoredResponse>> SqliteDatabase::get(std::string_view owner, std::string_view id,
                                                          int64_t oldest_us) {
  select_.bind(id, owner, oldest_us);
  HADAL_TRY(const bool has_row, select_.step());
  std::optional<StoredResponse> found;
  if (has_row) {
    found = StoredResponse{std::string(id), std::string(owner), select_.text(0), select_.text(1),
                           select_.text(2)};
  }
  select_.reset();
  return found;
}

Result<void> SqliteDatabase::mark_used(const std::vector<StoredResponse>& responses, int64_t now_us) {
  HADAL_TRY(Transaction transaction, Transaction::begin(connection_.get()));
  int64_t time_us = now_us - static_cast<int64_t>(responses.size());
  for (const StoredResponse& response : responses) {  // keeps their order
    touch_.bind(++time_us, response.id, response.owner);
    HADAL_CHECK(touch_.run());
  }
  return transaction.commit();
}

Result<bool> SqliteDatabase::remove(std::string_view owner, std::string_view id) {
  delete_.bind(id, owner);
  HADAL_CHECK(delete_.run());
  const bool was_there = sqlite3_changes64(connection_.get()) > 0;
  if (was_there) {
    HADAL_CHECK(execute(connection_.get(), "PRAGMA incremental_vacuum"));
  }
  return was_there;
}

Result<ResponseDatabase::Size> SqliteDatabase::size() {
  measure_.reset();
  HADAL_CHECK(measure_.step());
  const Size now{measure_.integer(0), static_cast<uint64_t>(measure_.integer(1))};
  measure_.reset();
  return now;
}

}  // namespace

Result<std::unique_ptr<ResponseDatabase>> ResponseDatabase::open(const std::string& path) {
  auto database = std::make_unique<SqliteDatabase>();
  HADAL_CHECK(database->open_file(path));
  return database;
}

}  // namespace hadal::server
