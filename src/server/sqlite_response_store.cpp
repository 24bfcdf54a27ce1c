#include "server/sqlite_response_store.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <unordered_set>

#include <pthread.h>

#include "base/log.h"
#include "server/response_database.h"

namespace hadal::server {
namespace {

using Clock = std::chrono::steady_clock;

/// Between attempts to open a database that could not be opened.
constexpr std::chrono::seconds kReopenInterval{10};

int64_t system_time_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

tl::unexpected<StoreError> store_error(StoreError::Kind kind, std::string_view id) {
  return tl::make_unexpected(StoreError{kind, std::string(id)});
}

/// Renames a database and its journals, so that a new one can take its place. False if that is not possible.
bool move_aside(const std::string& path) {
  for (int number = 1; number <= 1000; ++number) {
    const std::string aside = fmt::format("{}.unusable-{}", path, number);
    std::error_code error;
    if (std::filesystem::exists(aside, error)) {
      continue;
    }
    std::filesystem::rename(path, aside, error);
    if (error) {
      spdlog::error("cannot move {} aside: {}", path, error.message());
      return false;
    }
    for (const char* journal : {"-wal", "-shm", "-journal"}) {
      std::filesystem::rename(path + journal, aside + journal, error);  // most are not there
    }
    spdlog::error("{} was moved to {}; responses are kept in a new database", path, aside);
    return true;
  }
  spdlog::error("cannot move {} aside: there are a thousand such files already", path);
  return false;
}

class SqliteResponseStore final : public ResponseStore {
 public:
  explicit SqliteResponseStore(const ResponseStoreOptions& options) : options_(options) {
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "hadal-store");
    static_cast<void>(enqueue([this] { prepare(); }, 0));
  }
  ~SqliteResponseStore() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  SqliteResponseStore(const SqliteResponseStore&) = delete;
  SqliteResponseStore& operator=(const SqliteResponseStore&) = delete;

  void put(StoredResponse response) override {
    const uint64_t bytes = response.input.size() + response.response.size();
    auto shared = std::make_shared<const StoredResponse>(std::move(response));  // std::function copies
    if (!enqueue([this, shared] { write(*shared); }, bytes)) {
      failures_total_.fetch_add(1);
    }
  }

  StoreResult<StoredResponse> get(std::string_view owner, std::string_view id) override {
    return ask<StoredResponse>(
        id, [this, owner = std::string(owner), id = std::string(id)] { return read(owner, id); });
  }
  StoreResult<std::vector<StoredResponse>> chain(std::string_view owner, std::string_view id,
                                                 const ChainLimits& limits) override {
    return ask<std::vector<StoredResponse>>(id, [this, owner = std::string(owner), id = std::string(id),
                                                 limits] { return read_chain(owner, id, limits); });
  }
  StoreResult<void> remove(std::string_view owner, std::string_view id) override {
    return ask<void>(id, [this, owner = std::string(owner), id = std::string(id)]() -> StoreResult<void> {
      const auto removed =
          with_database([&](ResponseDatabase& database) { return database.remove(owner, id); });
      measure();
      if (!removed) {
        return store_error(StoreError::Kind::kUnavailable, id);
      }
      if (!*removed) {
        return store_error(StoreError::Kind::kNotFound, id);
      }
      return {};
    });
  }

  ResponseStoreStats stats() const override {
    return {responses_.load(), bytes_.load(), stored_total_.load(), evicted_total_.load(),
            failures_total_.load()};
  }

 private:
  struct Task {
    std::function<void()> work;
    uint64_t bytes = 0;
  };

  // Any thread.

  /// False if too much is waiting.
  bool enqueue(std::function<void()> work, uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (bytes > 0 && queued_bytes_ + bytes > options_.max_queued_bytes) {
        return false;
      }
      queued_bytes_ += bytes;
      tasks_.push_back({std::move(work), bytes});
    }
    changed_.notify_one();
    return true;
  }

  /// Has the store's thread do it, and waits for what it gives.
  template <class T, class Work>
  StoreResult<T> ask(std::string_view id, Work work) {
    auto answer = std::make_shared<std::promise<StoreResult<T>>>();  // outlives a caller that gave up
    std::future<StoreResult<T>> result = answer->get_future();
    static_cast<void>(enqueue([answer, work = std::move(work)] { answer->set_value(work()); }, 0));
    if (result.wait_for(options_.patience) != std::future_status::ready) {
      failures_total_.fetch_add(1);
      return store_error(StoreError::Kind::kUnavailable, id);
    }
    return result.get();
  }

  // The store's thread.

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) {
        return;  // only after all that was put is written
      }
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task.work();
      lock.lock();
      queued_bytes_ -= task.bytes;
    }
  }

  void prepare() {
    if (database() != nullptr) {
      measure();
    }
  }

  Result<std::unique_ptr<ResponseDatabase>> open_database() {
    HADAL_TRY(auto opened, ResponseDatabase::open(options_.path));
    HADAL_TRY(last_time_us_, opened->last_used_us());
    return opened;
  }

  /// The open database; null while it cannot be opened.
  ResponseDatabase* database() {
    if (database_ != nullptr || Clock::now() < next_attempt_) {
      return database_.get();
    }
    auto opened = open_database();
    if (!opened && opened.error().code == ErrorCode::kCorrupt && !options_.path.empty()) {
      spdlog::error("{} is no usable response store: {}", options_.path, printable(opened.error().message));
      if (move_aside(options_.path)) {
        opened = open_database();
      }
    }
    if (!opened) {
      next_attempt_ = Clock::now() + kReopenInterval;
      report(opened.error());
      return nullptr;
    }
    database_ = std::move(*opened);
    return database_.get();
  }

  /// Runs `work`; nothing if the database is not there or failed.
  template <class Work>
  auto with_database(Work work)
      -> std::optional<typename decltype(work(std::declval<ResponseDatabase&>()))::value_type>
    requires(!std::is_void_v<typename decltype(work(std::declval<ResponseDatabase&>()))::value_type>)
  {
    ResponseDatabase* open = database();
    if (open == nullptr) {
      failures_total_.fetch_add(1);
      return std::nullopt;
    }
    auto result = work(*open);
    if (!result) {
      failures_total_.fetch_add(1);
      report(result.error());
      if (result.error().code == ErrorCode::kCorrupt) {
        replace_database();
      }
      return std::nullopt;
    }
    if (is_failing_) {
      is_failing_ = false;
      spdlog::info("the response store works again");
    }
    return std::move(*result);
  }

  /// The first failure in a row is logged.
  void report(const Error& error) {
    if (!is_failing_) {
      is_failing_ = true;
      spdlog::error("responses are not stored{}{}: {}", options_.path.empty() ? "" : " in ", options_.path,
                    printable(error.message));
    }
  }

  void replace_database() {
    database_.reset();
    if (!options_.path.empty() && !move_aside(options_.path)) {
      next_attempt_ = Clock::now() + kReopenInterval;
    }
  }

  /// Later than every time it gave before, whatever the system's clock does.
  int64_t now_us() {
    last_time_us_ = std::max(system_time_us(), last_time_us_ + 1);
    return last_time_us_;
  }
  DatabaseLimits limits() const {
    return {options_.max_responses, options_.max_bytes, int64_t{options_.max_age.count()} * 1000};
  }
  int64_t oldest_us() const {
    return options_.max_age.count() == 0 ? INT64_MIN
                                         : system_time_us() - int64_t{options_.max_age.count()} * 1000;
  }

  void write(const StoredResponse& response) {
    const auto num_evicted =
        with_database([&](ResponseDatabase& open) { return open.put(response, limits(), now_us()); });
    if (num_evicted) {
      stored_total_.fetch_add(1);
      evicted_total_.fetch_add(*num_evicted);
    }
    measure();
  }

  void measure() {
    if (database_ != nullptr) {
      if (const auto size = database_->size()) {
        responses_.store(size->responses);
        bytes_.store(size->bytes);
      }
    }
  }

  StoreResult<StoredResponse> read(const std::string& owner, const std::string& id) {
    auto found = with_database([&](ResponseDatabase& open) { return open.get(owner, id, oldest_us()); });
    if (!found) {
      return store_error(StoreError::Kind::kUnavailable, id);
    }
    if (!*found) {
      return store_error(StoreError::Kind::kNotFound, id);
    }
    return std::move(**found);
  }

  StoreResult<std::vector<StoredResponse>> read_chain(const std::string& owner, const std::string& id,
                                                      const ChainLimits& chain_limits) {
    std::vector<StoredResponse> links;
    std::unordered_set<std::string> seen;  // a file that was tampered with may hold a circle
    uint64_t bytes = 0;
    for (std::string next = id; !next.empty();) {
      if (static_cast<int64_t>(links.size()) >= chain_limits.max_responses || !seen.insert(next).second) {
        return store_error(StoreError::Kind::kTooLong, id);
      }
      auto link = read(owner, next);
      if (!link) {
        return tl::make_unexpected(std::move(link.error()));
      }
      bytes += link->input.size() + link->response.size();
      if (bytes > chain_limits.max_bytes) {
        return store_error(StoreError::Kind::kTooLarge, id);
      }
      next = link->previous_id;
      links.push_back(std::move(*link));
    }
    std::reverse(links.begin(), links.end());
    now_us();
    // A failure here only makes them older than they are; the read itself succeeded.
    with_database([&](ResponseDatabase& open) -> Result<bool> {
      last_time_us_ += static_cast<int64_t>(links.size());
      HADAL_CHECK(open.mark_used(links, last_time_us_));
      return true;
    });
    return links;
  }

  const ResponseStoreOptions options_;
  std::atomic<int64_t> responses_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> stored_total_{0};
  std::atomic<uint64_t> evicted_total_{0};
  std::atomic<uint64_t> failures_total_{0};

  std::mutex mutex_;  ///< guards tasks_, queued_bytes_ and stopping_
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  uint64_t queued_bytes_ = 0;
  bool stopping_ = false;

  // Of the store's thread.
  std::unique_ptr<ResponseDatabase> database_;
  Clock::time_point next_attempt_ = Clock::time_point::min();
  int64_t last_time_us_ = 0;
  bool is_failing_ = false;

  std::thread thread_;
};

}  // namespace

std::unique_ptr<ResponseStore> open_response_store(const ResponseStoreOptions& options) {
  return std::make_unique<SqliteResponseStore>(options);
}

}  // namespace hadal::server
