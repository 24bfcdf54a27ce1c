#pragma once
// The response store over SQLite, on a thread of its own.

#include <chrono>
#include <memory>
#include <string>

#include "server/response_store.h"

namespace hadal::server {

struct ResponseStoreOptions {
  std::string path;  ///< of the database; empty: in memory, gone with the process
  int64_t max_responses = 10'000;
  uint64_t max_bytes = 256 << 20;            ///< of the texts
  std::chrono::milliseconds max_age{};       ///< since the last use; zero: any
  uint64_t max_queued_bytes = 64 << 20;      ///< of responses that wait to be written; more are not kept
  std::chrono::milliseconds patience{5000};  ///< of callers that wait for the storage
};

/// Never fails: a file whose content is of no use is moved aside, and while the storage cannot be opened or
/// written nothing is kept, which is logged once and counted. It is tried again with later calls.
std::unique_ptr<ResponseStore> open_response_store(const ResponseStoreOptions& options);

}  // namespace hadal::server
