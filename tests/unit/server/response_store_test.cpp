// The store of responses on its own: what it finds, what it drops, and that no fault of its file is more than
// a response that is not kept.

#include "server/response_store.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/response_database.h"
#include "server/sqlite_response_store.h"

namespace hadal::server {
namespace {

namespace fs = std::filesystem;
using Kind = StoreError::Kind;

class ResponseStoreTest : public ::testing::Test {
 protected:
  ResponseStoreTest() {
    static int number = 0;
    directory_ = fs::temp_directory_path() / fmt::format("hadal-store-test-{}-{}", ::getpid(), ++number);
    fs::create_directory(directory_);
    options.path = directory_ / "state" / "responses.db";
  }
  ~ResponseStoreTest() override {
    store.reset();
    fs::remove_all(directory_);
  }

  void open() {
    store.reset();
    store = open_response_store(options);
  }
  void put(const std::string& id, const std::string& previous = "", const std::string& owner = "me",
           size_t num_bytes = 0) const {
    store->put(
        {id, owner, previous, "[\"" + id + "\"]", "{\"id\":\"" + id + "\"}" + std::string(num_bytes, ' ')});
  }
  bool has(const std::string& id, const std::string& owner = "me") const {
    return store->get(owner, id).has_value();
  }
  std::vector<std::string> ids_of_chain(const std::string& id, ChainLimits limits = {100, 1 << 20}) const {
    std::vector<std::string> ids;
    const auto chain = store->chain("me", id, limits);
    if (chain) {
      for (const StoredResponse& link : *chain) {
        ids.push_back(link.id);
      }
    }
    return ids;
  }
  Kind chain_error(const std::string& id, ChainLimits limits) const {
    const auto chain = store->chain("me", id, limits);
    EXPECT_FALSE(chain);
    return chain ? Kind::kUnavailable : chain.error().kind;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(fs::path(options.path).parent_path())) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  void write_file(const std::string& content) const {
    fs::create_directories(fs::path(options.path).parent_path());
    std::ofstream(options.path, std::ios::binary) << content;
  }

  fs::path directory_;
  ResponseStoreOptions options;
  std::unique_ptr<ResponseStore> store;
};

TEST_F(ResponseStoreTest, GivesBackWhatItGot) {
  open();
  const std::string odd("\0\xff \"'; DROP TABLE responses", 28);
  store->put({"a", "me", "b", odd, odd + odd});
  const auto found = store->get("me", "a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id, "a");
  EXPECT_EQ(found->owner, "me");
  EXPECT_EQ(found->previous_id, "b");
  EXPECT_EQ(found->input, odd);
  EXPECT_EQ(found->response, odd + odd);
  EXPECT_EQ(store->stats().responses, 1);
  EXPECT_EQ(store->stats().stored_total, 1U);
  EXPECT_GT(store->stats().bytes, 3 * odd.size());
}

TEST_F(ResponseStoreTest, OwnersDoNotSeeEachOther) {
  open();
  put("a");
  EXPECT_FALSE(has("a", "you"));
  EXPECT_FALSE(has("a", ""));
  EXPECT_FALSE(store->remove("you", "a"));
  EXPECT_FALSE(store->chain("you", "a", {100, 1 << 20}));
  EXPECT_TRUE(has("a"));
}

TEST_F(ResponseStoreTest, RemovesForGood) {
  open();
  put("a");
  EXPECT_TRUE(store->remove("me", "a"));
  EXPECT_FALSE(has("a"));
  const auto again = store->remove("me", "a");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, Kind::kNotFound);
  EXPECT_EQ(store->stats().responses, 0);
}

TEST_F(ResponseStoreTest, SurvivesARestartAndIsPrivate) {
  open();
  put("a");
  open();
  EXPECT_TRUE(has("a"));
  EXPECT_EQ(store->stats().responses, 1);
  struct stat status{};
  ASSERT_EQ(::stat(options.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(::stat(fs::path(options.path).parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(ResponseStoreTest, InMemoryItTouchesNoFile) {
  options.path.clear();
  open();
  put("a");
  EXPECT_TRUE(has("a"));
  EXPECT_TRUE(fs::is_empty(directory_));
  open();
  EXPECT_FALSE(has("a"));
}

TEST_F(ResponseStoreTest, TheLongestUnusedGoesFirst) {
  options.max_responses = 3;
  open();
  put("a");
  put("b", "a");
  put("c");
  EXPECT_EQ(ids_of_chain("b"), (std::vector<std::string>{"a", "b"}));  // both are used now
  put("d");
  EXPECT_FALSE(has("c"));
  EXPECT_EQ(ids_of_chain("b"), (std::vector<std::string>{"a", "b"}));
  put("e");
  EXPECT_FALSE(has("d"));
  EXPECT_EQ(store->stats().responses, 3);
  EXPECT_EQ(store->stats().evicted_total, 2U);
}

TEST_F(ResponseStoreTest, BytesAreBounded) {
  options.max_bytes = 10'000;
  open();
  for (int i = 0; i < 20; ++i) {
    put("r" + std::to_string(i), "", "me", 3000);
  }
  EXPECT_TRUE(has("r19"));
  EXPECT_TRUE(has("r18"));
  EXPECT_FALSE(has("r1"));
  EXPECT_LE(store->stats().bytes, options.max_bytes);
  put("large", "", "me", 20'000);  // would leave room for nothing else, and not fit
  EXPECT_FALSE(has("large"));
  EXPECT_TRUE(has("r19"));
  EXPECT_EQ(store->stats().failures_total, 1U);
}

TEST_F(ResponseStoreTest, TheFileShrinksWithWhatItHolds) {
  open();
  for (int i = 0; i < 50; ++i) {
    put("r" + std::to_string(i), "", "me", 100'000);
  }
  options.max_responses = 1;
  open();
  put("last");
  EXPECT_FALSE(has("r49"));
  store.reset();  // also ends the journal
  EXPECT_LT(fs::file_size(options.path), 500'000U);
}

TEST_F(ResponseStoreTest, OldOnesAreDropped) {
  auto database = ResponseDatabase::open(options.path);
  ASSERT_TRUE(database) << database.error().message;
  DatabaseLimits limits{100, 1 << 20, 1000};
  ASSERT_TRUE((*database)->put({"a", "", "", "1", "2"}, limits, 5000));
  ASSERT_TRUE((*database)->put({"b", "", "", "1", "2"}, limits, 6000));
  EXPECT_EQ((*database)->size()->responses, 2);
  EXPECT_TRUE((*database)->get("", "a", 5000)->has_value());
  EXPECT_FALSE((*database)->get("", "a", 5001)->has_value());
  EXPECT_EQ(*(*database)->put({"c", "", "", "1", "2"}, limits, 6001), 1U);
  EXPECT_FALSE((*database)->get("", "a", 0)->has_value());
  EXPECT_TRUE((*database)->get("", "b", 0)->has_value());
}

TEST_F(ResponseStoreTest, ChainsAreBounded) {
  open();
  put("a");
  put("b", "a", "me", 1000);
  put("c", "b");
  EXPECT_EQ(ids_of_chain("c"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(chain_error("c", {2, 1 << 20}), Kind::kTooLong);
  EXPECT_EQ(chain_error("c", {3, 1000}), Kind::kTooLarge);
  EXPECT_TRUE(store->remove("me", "a"));
  const auto broken = store->chain("me", "c", {100, 1 << 20});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().kind, Kind::kNotFound);
  EXPECT_EQ(broken.error().id, "a");
}

TEST_F(ResponseStoreTest, ACircleEnds) {
  open();
  put("a", "b");
  put("b", "a");
  EXPECT_EQ(chain_error("a", {1000, 1 << 20}), Kind::kTooLong);
}

TEST_F(ResponseStoreTest, AFileThatIsNoDatabaseIsMovedAside) {
  write_file("These are my notes, and not a database at all. " + std::string(5000, 'x'));
  open();
  put("a");
  EXPECT_TRUE(has("a"));
  EXPECT_TRUE(fs::exists(options.path + ".unusable-1"));
  EXPECT_EQ(fs::file_size(options.path + ".unusable-1"), 5047U);
}

TEST_F(ResponseStoreTest, AnotherProgramsDatabaseIsMovedAside) {
  fs::create_directories(fs::path(options.path).parent_path());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(options.path.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "CREATE TABLE responses (x); INSERT INTO responses VALUES (7)", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(other);
  open();
  put("a");
  EXPECT_TRUE(has("a"));
  EXPECT_TRUE(fs::exists(options.path + ".unusable-1"));
}

TEST_F(ResponseStoreTest, ALaterFormatIsMovedAside) {
  open();
  put("a");
  store.reset();
  sqlite3* later = nullptr;
  ASSERT_EQ(sqlite3_open(options.path.c_str(), &later), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(later, "PRAGMA user_version=999", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(later);
  open();
  EXPECT_FALSE(has("a"));
  put("b");
  EXPECT_TRUE(has("b"));
  EXPECT_TRUE(fs::exists(options.path + ".unusable-1"));
}

TEST_F(ResponseStoreTest, ADamagedDatabaseIsReplaced) {
  open();
  for (int i = 0; i < 40; ++i) {
    put("r" + std::to_string(i), "", "me", 5000);
  }
  store.reset();
  {
    std::fstream file(options.path, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(fs::file_size(options.path));
    file.seekp(4096);  // behind the page that says whose it is
    file << std::string(static_cast<size_t>(size - 4096), '\x5a');
  }
  open();
  EXPECT_FALSE(has("r3"));
  put("new");
  put("newer");  // the one before may have been what found the damage
  EXPECT_TRUE(has("newer"));
  EXPECT_TRUE(fs::exists(options.path + ".unusable-1"));
}

TEST_F(ResponseStoreTest, ATruncatedDatabaseIsNoTrouble) {
  open();
  for (int i = 0; i < 40; ++i) {
    put("r" + std::to_string(i), "", "me", 5000);
  }
  store.reset();
  const auto whole = fs::file_size(options.path);
  for (const uintmax_t size : {whole / 2, uintmax_t{5000}, uintmax_t{100}, uintmax_t{1}, uintmax_t{0}}) {
    fs::resize_file(options.path, size);
    open();
    put("new");
    put("newer");
    EXPECT_TRUE(has("newer")) << size;
    store.reset();
  }
}

TEST_F(ResponseStoreTest, APlaceThatCannotBeWrittenStoresNothing) {
  options.path = "/proc/no-such-place/responses.db";
  open();
  put("a");
  const auto found = store->get("me", "a");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, Kind::kUnavailable);
  EXPECT_GE(store->stats().failures_total, 2U);
  EXPECT_EQ(store->stats().responses, 0);
}

TEST_F(ResponseStoreTest, AFullDiskStoresNothingUntilThereIsRoom) {
  open();
  put("a");
  EXPECT_TRUE(has("a"));
  // No file may grow beyond this: what a full disk is to SQLite.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 200'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  put("b", "", "me", 1'000'000);
  EXPECT_FALSE(has("b"));
  EXPECT_TRUE(has("a"));
  EXPECT_GE(store->stats().failures_total, 1U);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  put("c", "", "me", 1'000'000);
  EXPECT_TRUE(has("c"));
  EXPECT_FALSE(fs::exists(options.path + ".unusable-1"));
}

TEST_F(ResponseStoreTest, WhatWaitsToBeWrittenIsBounded) {
  options.max_queued_bytes = 1000;
  open();
  put("a", "", "me", 2000);
  EXPECT_FALSE(has("a"));
  EXPECT_EQ(store->stats().failures_total, 1U);
  put("b", "", "me", 500);
  EXPECT_TRUE(has("b"));
}

TEST_F(ResponseStoreTest, ManyThreadsMayUseIt) {
  options.max_responses = 50;
  open();
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([this, number] {
      std::string previous;
      for (int i = 0; i < 40; ++i) {
        const std::string id = fmt::format("t{}-{}", number, i);
        put(id, previous);
        EXPECT_TRUE(has(id));
        previous = i % 5 == 4 ? "" : id;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(store->stats().stored_total, 160U);
  EXPECT_EQ(store->stats().responses, 50);
  EXPECT_EQ(store->stats().failures_total, 0U);
}

TEST_F(ResponseStoreTest, TwoStoresMayShareAFile) {
  open();
  put("a");
  EXPECT_TRUE(has("a"));  // it is written
  const auto second = open_response_store(options);
  EXPECT_TRUE(second->get("me", "a"));
  second->put({"b", "me", "a", "[]", "{}"});
  EXPECT_TRUE(second->get("me", "b"));
  EXPECT_EQ(ids_of_chain("b"), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace hadal::server
