#pragma once
// What the Responses API keeps: answers with the input that led to them, found again by their id.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace hadal::server {

struct StoredResponse {
  std::string id;
  std::string owner;        ///< whose it is; nobody else finds it
  std::string previous_id;  ///< of the response that it goes on from; empty: none
  std::string input;     ///< JSON text: the list of its own input items, without those of earlier responses
  std::string response;  ///< JSON text: the response object
};

struct ResponseStoreStats {
  int64_t responses = 0;  ///< kept now
  uint64_t bytes = 0;     ///< of their texts
  uint64_t stored_total = 0;
  uint64_t evicted_total = 0;   ///< dropped for the limits or for their age
  uint64_t failures_total = 0;  ///< responses that were not kept and reads that failed
};

struct StoreError {
  enum class Kind {
    kNotFound,     ///< `id` is not there (any more), or another owner's
    kTooLong,      ///< the conversation has more responses than allowed
    kTooLarge,     ///< or more bytes
    kUnavailable,  ///< the storage failed or is too slow
  };
  Kind kind = Kind::kNotFound;
  std::string id;
};

template <class T>
using StoreResult = tl::expected<T, StoreError>;

/// Bounds of one conversation.
struct ChainLimits {
  int64_t max_responses = 0;
  uint64_t max_bytes = 0;
};

/// Any thread may call any member. What is put is found by every call that begins afterwards.
class ResponseStore {
 public:
  virtual ~ResponseStore() = default;

  /// Keeps a response. Returns at once; what cannot be kept is counted, and the first of its kind logged.
  virtual void put(StoredResponse response) = 0;

  // These wait for the storage, seconds at most: not for network threads.

  virtual StoreResult<StoredResponse> get(std::string_view owner, std::string_view id) = 0;
  /// The response, the one that it goes on from, and so on; the oldest first. Using them makes them young
  /// again.
  virtual StoreResult<std::vector<StoredResponse>> chain(std::string_view owner, std::string_view id,
                                                         const ChainLimits& limits) = 0;
  virtual StoreResult<void> remove(std::string_view owner, std::string_view id) = 0;

  virtual ResponseStoreStats stats() const = 0;
};

}  // namespace hadal::server
