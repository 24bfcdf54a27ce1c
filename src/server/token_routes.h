#pragma once
// /tokenize, /detokenize and /v1/messages/count_tokens.

#include <string_view>

#include "server/http_message.h"
#include "server/model_service.h"

namespace hadal::server {

/// {"prompt": text, "add_special_tokens"?: bool, "return_token_strs"?: bool} or a chat body with "messages"
/// -> {"count", "max_model_len", "tokens", "token_strs"?}.
HttpResponse tokenize(std::string_view body, const ModelService& model, const RequestPolicy& policy);

/// {"tokens": ids, "skip_special_tokens"?: bool} -> {"prompt": text}.
HttpResponse detokenize(std::string_view body, const ModelService& model);

/// A Messages body -> {"input_tokens"}, the same number that the answer to it reports.
HttpResponse count_tokens(std::string_view body, const ModelService& model, const RequestPolicy& policy);

}  // namespace hadal::server
