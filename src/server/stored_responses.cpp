#include "server/stored_responses.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/log.h"
#include "base/sha256.h"
#include "server/access.h"
#include "server/api_errors.h"
#include "server/json_body.h"

namespace hadal::server {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "/v1/responses/";

HttpResponse refusal(const ApiError& error) {
  return error_response(ErrorStyle::kOpenAi, error);
}

ApiError unavailable() {
  return {503, "the stored responses cannot be read now; try again later", {}, {}};
}

/// What a conversation that cannot be gone on from means to the client.
ApiError previous_error(const StoreError& error, const ChainLimits& limits) {
  switch (error.kind) {
    case StoreError::Kind::kNotFound:
      return {400, fmt::format("Previous response with id '{}' not found.", printable(error.id, 100)),
              "previous_response_not_found", "previous_response_id"};
    case StoreError::Kind::kTooLong:
      return {
          400,
          fmt::format("previous_response_id: the conversation has more than {} responses; send its items as "
                      "input instead",
                      limits.max_responses),
          "conversation_too_long", "previous_response_id"};
    case StoreError::Kind::kTooLarge:
      return {
          400,
          fmt::format("previous_response_id: the conversation takes more than {} bytes", limits.max_bytes),
          "conversation_too_long", "previous_response_id"};
    case StoreError::Kind::kUnavailable:
      break;
  }
  return unavailable();
}

OrderedJson parse_stored(const std::string& text) {
  return OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// Appends the elements of a JSON list, given as its text.
void append_elements(std::string& out, std::string_view list) {
  if (list.size() < 2 || list.front() != '[' || list == "[]") {
    return;
  }
  out += out.back() == '[' ? "" : ",";
  out += list.substr(1, list.size() - 2);
}

/// The text of a response's output items.
std::string output_items(const StoredResponse& stored) {
  const OrderedJson response = parse_stored(stored.response);
  const auto output = response.is_object() ? response.find("output") : response.end();
  return response.is_object() && output != response.end() ? output->dump() : "[]";
}

std::string items_of(const std::vector<StoredResponse>& chain) {
  std::string items = "[";
  for (const StoredResponse& stored : chain) {
    append_elements(items, stored.input);
    append_elements(items, output_items(stored));
  }
  items += ']';
  return items;
}

ChainLimits chain_limits(const RequestPolicy& policy) {
  return {policy.max_chain_responses, policy.max_chain_bytes};
}

/// The value of a query parameter; the last one counts.
std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  std::optional<std::string> found;
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    const size_t equals = pair.find('=');
    if (pair.substr(0, equals) == name) {
      std::string value;
      const bool has_value = equals != std::string_view::npos;
      found = has_value && percent_decode(pair.substr(equals + 1), value) ? value : std::string();
    }
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
  }
  return found;
}

ApiError wrong_parameter(std::string_view name, std::string_view value, std::string_view expected) {
  return {
      400, fmt::format("{}: \"{}\" is not {}", name, printable(value, 40), expected), {}, std::string(name)};
}

HttpResponse not_found(std::string_view id) {
  return refusal(
      {404, fmt::format("Response with id '{}' not found.", printable(id, 100)), {}, "response_id"});
}

HttpResponse store_refusal(const StoreError& error) {
  return error.kind == StoreError::Kind::kNotFound ? not_found(error.id) : refusal(unavailable());
}

/// Which part of a list is asked for.
struct Page {
  size_t limit = 20;
  bool newest_first = true;
  std::string after;
};

tl::expected<Page, ApiError> read_page(std::string_view query) {
  constexpr size_t kMostItems = 100;
  Page page;
  if (const auto limit = query_value(query, "limit")) {
    const auto [end, error] = std::from_chars(limit->data(), limit->data() + limit->size(), page.limit);
    if (error != std::errc() || end != limit->data() + limit->size() || page.limit < 1 ||
        page.limit > kMostItems) {
      return tl::make_unexpected(
          wrong_parameter("limit", *limit, fmt::format("a whole number from 1 to {}", kMostItems)));
    }
  }
  if (const auto order = query_value(query, "order")) {
    if (*order != "asc" && *order != "desc") {
      return tl::make_unexpected(wrong_parameter("order", *order, "asc or desc"));
    }
    page.newest_first = *order == "desc";
  }
  page.after = query_value(query, "after").value_or("");
  if (query_value(query, "before")) {
    return tl::make_unexpected(ApiError{400, "before: not supported; use after", {}, "before"});
  }
  return page;
}

/// An input item as the list shows it: with an id, a type, and content in parts.
void complete_item(OrderedJson& item, std::string_view response_id, size_t index) {
  if (!item.is_object()) {
    return;
  }
  if (!item.contains("type")) {
    item["type"] = "message";
  }
  const auto id = item.find("id");
  if (id == item.end() || !id->is_string()) {
    item["id"] = fmt::format("{}_in_{}", response_id, index);
  }
  const auto content = item.find("content");
  if (item["type"] == "message" && content != item.end() && content->is_string()) {
    const bool is_answer = item.value("role", OrderedJson()) == "assistant";
    OrderedJson part{{"type", is_answer ? "output_text" : "input_text"}, {"text", *content}};
    if (is_answer) {
      part["annotations"] = OrderedJson::array();
    }
    *content = OrderedJson::array({std::move(part)});
  }
}

/// All items that a response was made from, in their order.
std::vector<OrderedJson> all_input_items(const std::vector<StoredResponse>& chain) {
  std::vector<OrderedJson> items;
  for (const StoredResponse& stored : chain) {
    size_t index = 0;
    for (OrderedJson& item : parse_stored(stored.input)) {
      complete_item(item, stored.id, index++);
      items.push_back(std::move(item));
    }
    if (&stored != &chain.back()) {
      for (OrderedJson& item : parse_stored(output_items(stored))) {
        items.push_back(std::move(item));
      }
    }
  }
  return items;
}

HttpResponse list_input_items(const std::vector<StoredResponse>& chain, const Page& page) {
  std::vector<OrderedJson> items = all_input_items(chain);
  if (page.newest_first) {
    std::reverse(items.begin(), items.end());
  }
  auto begin = items.begin();
  if (!page.after.empty()) {
    begin = std::find_if(items.begin(), items.end(), [&](const OrderedJson& item) {
      return item.is_object() && item.value("id", OrderedJson()) == page.after;
    });
    if (begin == items.end()) {
      return refusal(wrong_parameter("after", page.after, "the id of an input item"));
    }
    ++begin;
  }
  OrderedJson list{{"object", "list"}, {"data", OrderedJson::array()}};
  const size_t count = std::min<size_t>(page.limit, static_cast<size_t>(items.end() - begin));
  const auto id_of = [](const OrderedJson& item) {
    return item.is_object() ? item.value("id", OrderedJson()) : OrderedJson();
  };
  list["first_id"] = count > 0 ? id_of(*begin) : OrderedJson();
  list["last_id"] = count > 0 ? id_of(*(begin + static_cast<std::ptrdiff_t>(count) - 1)) : OrderedJson();
  list["has_more"] = count < static_cast<size_t>(items.end() - begin);
  for (size_t i = 0; i < count; ++i, ++begin) {
    list["data"].push_back(std::move(*begin));
  }
  HttpResponse response;
  response.body = list.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return response;
}

HttpResponse answer_read(const HttpRequest& request, StoreResult<StoredResponse> stored) {
  const auto stream = query_value(request.query, "stream");
  if (stream && *stream != "false") {
    return refusal({400, "stream: a stored response can only be read whole", {}, "stream"});
  }
  if (query_value(request.query, "starting_after")) {
    return refusal({400, "starting_after: a stored response can only be read whole", {}, "starting_after"});
  }
  if (!stored) {
    return store_refusal(stored.error());
  }
  HttpResponse response;
  response.body = std::move(stored->response);
  return response;
}

}  // namespace

std::string response_owner(const HttpRequest& request) {
  const std::string_view key = presented_key(request);
  return key.empty() ? std::string() : sha256_hex(key);
}

ResponseOr<StorageFields> read_storage_fields(const HttpRequest& request, ResponseStore* store,
                                              const RequestPolicy& policy) {
  const auto refuse = [](const ApiError& error) { return tl::make_unexpected(refusal(error)); };
  const Json members = pick_members(request.body, {"store", "previous_response_id"});
  const auto asked = bool_member(members, "store");
  const auto previous = string_member(members, "previous_response_id");
  if (!asked) {
    return refuse({400, asked.error().message, {}, "store"});
  }
  if (!previous) {
    return refuse({400, previous.error().message, {}, "previous_response_id"});
  }
  StorageFields fields;
  if (store == nullptr) {
    if (asked->value_or(false) && !policy.ignore_unsupported) {
      return refuse(
          {400, "store: responses are not stored by this server", "unsupported_parameter", "store"});
    }
    if (*previous) {
      return refuse({400, "previous_response_id: responses are not stored by this server",
                     "unsupported_parameter", "previous_response_id"});
    }
    return fields;
  }
  fields.owner = response_owner(request);
  fields.is_stored = asked->value_or(true);
  if (*previous) {
    fields.previous_id = **previous;
    const ChainLimits limits = chain_limits(policy);
    const auto chain = fields.previous_id.empty()
                           ? tl::make_unexpected(StoreError{StoreError::Kind::kNotFound, {}})
                           : store->chain(fields.owner, fields.previous_id, limits);
    if (!chain) {
      return refuse(previous_error(chain.error(), limits));
    }
    fields.previous_items = items_of(*chain);
  }
  return fields;
}

std::optional<StoredResponsePath> split_stored_response_path(std::string_view path) {
  if (!path.starts_with(kPrefix)) {
    return std::nullopt;
  }
  path.remove_prefix(kPrefix.size());
  StoredResponsePath split;
  const size_t slash = path.find('/');
  split.id = path.substr(0, slash);
  const std::string_view rest = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
  if (split.id.empty() || (!rest.empty() && rest != "/input_items" && rest != "/cancel")) {
    return std::nullopt;
  }
  split.part = rest.empty()             ? StoredResponsePath::Part::kResponse
               : rest == "/input_items" ? StoredResponsePath::Part::kInputItems
                                        : StoredResponsePath::Part::kCancel;
  return split;
}

HttpResponse answer_stored_response(const HttpRequest& request, const StoredResponsePath& path,
                                    ResponseStore* store, const RequestPolicy& policy) {
  if (store == nullptr) {
    return not_found(path.id);
  }
  const std::string owner = response_owner(request);
  if (path.part == StoredResponsePath::Part::kInputItems) {
    const auto page = read_page(request.query);
    if (!page) {
      return refusal(page.error());
    }
    const auto chain = store->chain(owner, path.id, chain_limits(policy));
    if (chain) {
      return list_input_items(*chain, *page);
    }
    const bool is_itself = chain.error().kind == StoreError::Kind::kNotFound && chain.error().id == path.id;
    return is_itself ? not_found(path.id) : refusal(previous_error(chain.error(), chain_limits(policy)));
  }
  if (request.method == "DELETE") {
    const auto removed = store->remove(owner, path.id);
    if (!removed) {
      return store_refusal(removed.error());
    }
    HttpResponse response;
    response.body = OrderedJson{{"id", path.id}, {"object", "response"}, {"deleted", true}}.dump();
    return response;
  }
  auto stored = store->get(owner, path.id);
  if (path.part == StoredResponsePath::Part::kCancel) {
    return stored ? refusal({400, "Cannot cancel a synchronous response.", {}, "response_id"})
                  : store_refusal(stored.error());
  }
  return answer_read(request, std::move(stored));
}

}  // namespace hadal::server
