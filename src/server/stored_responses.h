#pragma once
// The part of the Responses API that concerns stored responses: what a request says about them, and the
// routes under /v1/responses/.

#include <optional>
#include <string>
#include <string_view>

#include "server/conversation_request.h"
#include "server/http_message.h"
#include "server/response_store.h"

namespace hadal::server {

/// Who asks: a digest of the key that the request carries, so that what is stored under one key is not found
/// under another; empty without a key.
std::string response_owner(const HttpRequest& request);

/// What a request for an answer says about storing. `store` may be null: nothing is stored.
struct StorageFields {
  std::string owner;
  bool is_stored = false;                     ///< the answer is to be kept
  std::string previous_id;                    ///< empty: none
  std::optional<std::string> previous_items;  ///< JSON text: items of the responses before, the oldest first
};
ResponseOr<StorageFields> read_storage_fields(const HttpRequest& request, ResponseStore* store,
                                              const RequestPolicy& policy);

/// A path under /v1/responses/.
struct StoredResponsePath {
  enum class Part { kResponse, kInputItems, kCancel };
  Part part = Part::kResponse;
  std::string_view id;
};
std::optional<StoredResponsePath> split_stored_response_path(std::string_view path);

/// Reads, lists or deletes. Waits for the store: not for network threads.
HttpResponse answer_stored_response(const HttpRequest& request, const StoredResponsePath& path,
                                    ResponseStore* store, const RequestPolicy& policy);

}  // namespace hadal::server
