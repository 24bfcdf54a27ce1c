#include "server/json_body.h"

#include <algorithm>

#include "base/log.h"

namespace hadal::server {
namespace {

constexpr int kMaxDepth = 127;  ///< as the recipe's reader, so that both read the same bodies

/// Whether brackets outside of strings nest deeper than kMaxDepth. Valid for malformed text too.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) {
        return true;
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

const Json* find(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

}  // namespace

Result<Json> parse_json_object(std::string_view body) {
  if (is_too_deep(body)) {
    return fail(ErrorCode::kInvalidArgument, "the JSON body nests deeper than {} levels", kMaxDepth);
  }
  Json parsed;
  try {
    parsed = Json::parse(body);
  } catch (const Json::exception& fault) {
    return fail(ErrorCode::kInvalidArgument, "the body is not JSON: {}", printable(fault.what(), 200));
  }
  if (!parsed.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "the body is {}; expected a JSON object", describe(parsed));
  }
  return parsed;
}

Json pick_members(std::string_view body, const std::vector<std::string_view>& names) {
  // A name may also be spelled with escapes, those of ASCII all beginning alike.
  const bool may_have_one = body.find("\\u00") != std::string_view::npos ||
                            std::any_of(names.begin(), names.end(), [&](std::string_view name) {
                              return body.find(name) != std::string_view::npos;
                            });
  if (!may_have_one || is_too_deep(body)) {
    return Json::object();
  }
  const Json::parser_callback_t keep = [&names](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth != 1 || event != Json::parse_event_t::key) {
      return true;
    }
    const auto& key = parsed.get_ref<const std::string&>();
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  Json picked;
  try {
    picked = Json::parse(body, keep, /*allow_exceptions=*/false);
  } catch (const Json::exception&) {
    return Json::object();
  }
  return picked.is_object() ? picked : Json::object();
}

Result<std::optional<int64_t>> integer_member(const Json& object, const char* name, int64_t lowest,
                                              int64_t highest) {
  const Json* value = find(object, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<uint64_t>() <= uint64_t{INT64_MAX});
  if (!fits || value->get<int64_t>() < lowest || value->get<int64_t>() > highest) {
    return fail(ErrorCode::kInvalidArgument, "{}: {} is not an integer from {} to {}", name, describe(*value),
                lowest, highest);
  }
  return value->get<int64_t>();
}

Result<std::optional<double>> number_member(const Json& object, const char* name, double lowest,
                                            double highest, bool excludes_lowest) {
  const Json* value = find(object, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const double number = value->is_number() ? value->get<double>() : -1e300;
  if (!value->is_number() || number < lowest || number > highest || (excludes_lowest && number <= lowest)) {
    return fail(ErrorCode::kInvalidArgument, "{}: {} is not a number in {}{}, {}]", name, describe(*value),
                excludes_lowest ? '(' : '[', lowest, highest);
  }
  return number;
}

Result<std::optional<bool>> bool_member(const Json& object, const char* name) {
  const Json* value = find(object, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_boolean()) {
    return fail(ErrorCode::kInvalidArgument, "{}: {} is not true or false", name, describe(*value));
  }
  return value->get<bool>();
}

Result<std::optional<std::string>> string_member(const Json& object, const char* name) {
  const Json* value = find(object, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    return fail(ErrorCode::kInvalidArgument, "{}: {} is not a string", name, describe(*value));
  }
  return value->get<std::string>();
}

Result<std::vector<int32_t>> token_ids(const Json& array, std::string_view name, int64_t vocab_size) {
  if (!array.is_array()) {
    return fail(ErrorCode::kInvalidArgument, "{}: {} is not an array of token ids", name, describe(array));
  }
  std::vector<int32_t> ids;
  ids.reserve(array.size());
  for (const Json& value : array) {
    const bool is_id = value.is_number_integer() &&
                       (!value.is_number_unsigned() || value.get<uint64_t>() < (1U << 31U)) &&
                       value.get<int64_t>() >= 0 && value.get<int64_t>() < vocab_size;
    if (!is_id) {
      return fail(ErrorCode::kInvalidArgument, "{}[{}]: {} is not a token id from 0 to {}", name, ids.size(),
                  describe(value), vocab_size - 1);
    }
    ids.push_back(value.get<int32_t>());
  }
  return ids;
}

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return fmt::format("the string \"{}\"", printable(value.get_ref<const std::string&>(), 40));
    default:
      return value.dump();
  }
}

}  // namespace hadal::server
