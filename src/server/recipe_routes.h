#pragma once
// The demo page: what becomes of a request, and what answers become of a model's output. The page is a single
// file that asks the two routes below, which use the same functions as `hadal recipe` and the server itself.

#include <cstdint>
#include <string_view>

#include "server/http_message.h"
#include "server/model_service.h"

namespace hadal::server {

/// The page. `model` is null while it is loading; then the page offers no prompt format by name.
HttpResponse recipe_page(const ModelService* model);

/// {"protocol": "chat"|"messages"|"responses", "request_text": JSON text, "format"?: "v4"|"v41"} ->
/// {"result", "refusal"?} or {"error"}: recipe::describe_request with everything; `error` is what the server
/// answers if the request cannot be read, `refusal` what it answers if it can be read but not be served here,
/// both as {"status_code", "body"}. `format` stands in for the one that goes with the model's name.
HttpResponse render_recipe(std::string_view body, const ModelService& model, const RequestPolicy& policy);

/// {"protocol", "text", "request_text"?, "thinking"?: bool, "tool_calls"?: bool, "tokens_per_piece"?: 0 (all
/// at once) or more, "finish"?: "stop"|"length"|"content_filter"} -> {"events": [{"name", "data"}],
/// "response", "warnings"} or {"error"}. What is not given follows from the request, and that is a short
/// question if not given.
HttpResponse parse_recipe(std::string_view body, const ModelService& model, const RequestPolicy& policy);

}  // namespace hadal::server
