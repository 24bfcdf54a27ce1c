#pragma once
// Stored responses in an SQLite database. One thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/response_store.h"

namespace hadal::server {

/// What a database may hold.
struct DatabaseLimits {
  int64_t max_responses = 0;
  uint64_t max_bytes = 0;  ///< of the texts of all responses
  int64_t max_age_us = 0;  ///< since the last use; 0: any
};

/// Times are microseconds of the system's clock. Errors: kCorrupt where the file's content is at fault
/// (broken, or not ours), kIo for everything else that SQLite reports (no space, no permission, another
/// process).
class ResponseDatabase {
 public:
  /// Opens or makes the file, readable by its owner only, and its directory. An empty path: in memory.
  static Result<std::unique_ptr<ResponseDatabase>> open(const std::string& path);
  virtual ~ResponseDatabase() = default;

  /// Adds a response, and drops the longest unused ones until the limits hold; how many. All or nothing.
  virtual Result<uint64_t> put(const StoredResponse& response, const DatabaseLimits& limits,
                               int64_t now_us) = 0;
  /// Nothing if it is not there, not that owner's, or was last used before `oldest_us`.
  virtual Result<std::optional<StoredResponse>> get(std::string_view owner, std::string_view id,
                                                    int64_t oldest_us) = 0;
  virtual Result<void> mark_used(const std::vector<StoredResponse>& responses, int64_t now_us) = 0;
  /// Whether there was one to remove.
  virtual Result<bool> remove(std::string_view owner, std::string_view id) = 0;

  struct Size {
    int64_t responses = 0;
    uint64_t bytes = 0;
  };
  virtual Result<Size> size() = 0;
  /// The latest time of use; 0 if it is empty.
  virtual Result<int64_t> last_used_us() = 0;
};

}  // namespace hadal::server
