#include "checkpoint/object_reader.h"

#include <cmath>

#include "base/log.h"

namespace hadal::checkpoint {
namespace {

std::string describe_rule(IntegerRule rule) {
  const std::string range = rule.min == rule.max
                                ? fmt::format("{}", rule.min)
                                : fmt::format("an integer from {} to {}", rule.min, rule.max);
  return rule.multiple_of == 1 ? range : fmt::format("{} and a multiple of {}", range, rule.multiple_of);
}

/// True and the value if `value` is an integer that the rule allows. 5.0 is not an integer.
bool read_integer(const nlohmann::json& value, IntegerRule rule, int64_t& out) {
  if (value.is_number_unsigned()) {
    if (value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
      return false;
    }
    out = static_cast<int64_t>(value.get<uint64_t>());
  } else if (value.is_number_integer()) {
    out = value.get<int64_t>();
  } else {
    return false;
  }
  return out >= rule.min && out <= rule.max && out % rule.multiple_of == 0;
}

}  // namespace

std::string describe_json(const nlohmann::json& value) {
  const std::string text =
      printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 80);
  return value.is_string() || value.is_number_float() ? fmt::format("{} (a {})", text, value.type_name())
                                                      : text;
}

Result<ObjectReader> ObjectReader::create(const nlohmann::json& value, std::string path) {
  if (!value.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "{}: found {}, expected an object",
                path.empty() ? "document" : path, describe_json(value));
  }
  return ObjectReader(value, std::move(path));
}

std::string ObjectReader::dotted(std::string_view field) const {
  return path_.empty() ? std::string(field) : fmt::format("{}.{}", path_, field);
}

const nlohmann::json* ObjectReader::find(std::string_view field) const {
  read_.emplace(field);
  const auto found = object_->find(field);
  return found == object_->end() ? nullptr : &*found;
}

bool ObjectReader::has(std::string_view field) const {
  const nlohmann::json* value = find(field);
  return value != nullptr && !value->is_null();
}

tl::unexpected<Error> ObjectReader::wrong(std::string_view field, const nlohmann::json* found,
                                          std::string_view expected, ErrorCode code) const {
  if (found == nullptr) {
    return fail(code, "{}: missing, expected {}", dotted(field), expected);
  }
  return fail(code, "{}: found {}, expected {}", dotted(field), describe_json(*found), expected);
}

Result<int64_t> ObjectReader::integer(std::string_view field, IntegerRule rule) const {
  const nlohmann::json* value = find(field);
  int64_t out = 0;
  if (value == nullptr || !read_integer(*value, rule, out)) {
    return wrong(field, value, describe_rule(rule));
  }
  return out;
}

Result<double> ObjectReader::number(std::string_view field, NumberRule rule) const {
  const nlohmann::json* value = find(field);
  const double out = value != nullptr && value->is_number() ? value->get<double>() : std::nan("");
  if (!(out >= rule.min && out <= rule.max)) {
    return wrong(field, value, fmt::format("a number from {} to {}", rule.min, rule.max));
  }
  return out;
}

Result<bool> ObjectReader::boolean(std::string_view field) const {
  const nlohmann::json* value = find(field);
  if (value == nullptr || !value->is_boolean()) {
    return wrong(field, value, "true or false");
  }
  return value->get<bool>();
}

Result<std::string> ObjectReader::string(std::string_view field) const {
  const nlohmann::json* value = find(field);
  if (value == nullptr || !value->is_string()) {
    return wrong(field, value, "a string");
  }
  return value->get<std::string>();
}

Result<std::vector<int64_t>> ObjectReader::integers(std::string_view field, IntegerRule rule,
                                                    size_t max_count) const {
  const nlohmann::json* value = find(field);
  if (value == nullptr || !value->is_array() || value->size() > max_count) {
    return wrong(field, value, fmt::format("a list of at most {} integers", max_count));
  }
  std::vector<int64_t> out(value->size());
  for (size_t index = 0; index < out.size(); ++index) {
    if (!read_integer((*value)[index], rule, out[index])) {
      return wrong(fmt::format("{}[{}]", field, index), &(*value)[index], describe_rule(rule));
    }
  }
  return out;
}

Result<ObjectReader> ObjectReader::object(std::string_view field) const {
  const nlohmann::json* value = find(field);
  if (value == nullptr) {
    return wrong(field, value, "an object");
  }
  return create(*value, dotted(field));
}

Result<int64_t> ObjectReader::integer_if(bool needed, std::string_view field, IntegerRule rule) const {
  return needed || has(field) ? integer(field, rule) : Result<int64_t>(0);
}

Result<std::vector<int64_t>> ObjectReader::integers_or_empty(std::string_view field, IntegerRule rule,
                                                             size_t max_count) const {
  return has(field) ? integers(field, rule, max_count) : Result<std::vector<int64_t>>(std::vector<int64_t>{});
}

Result<void> ObjectReader::require(std::string_view field, std::string_view expected) const {
  return require(field, nlohmann::json(std::string(expected)), false);
}

Result<void> ObjectReader::require(std::string_view field, const nlohmann::json& expected,
                                   bool optional) const {
  const nlohmann::json* value = find(field);
  if ((value == nullptr && optional) || (value != nullptr && *value == expected)) {
    return {};
  }
  return wrong(field, value, expected.dump(),
               value == nullptr ? ErrorCode::kInvalidArgument : ErrorCode::kUnsupported);
}

std::vector<std::string> ObjectReader::unread() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : object_->items()) {
    if (!read_.contains(name)) {
      out.push_back(dotted(name));
    }
  }
  return out;
}

}  // namespace hadal::checkpoint
