#include "recipe/schema/check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "recipe/json_text.h"
#include "recipe/schema/keywords.h"
#include "recipe/schema/references.h"
#include "recipe/schema/regex_syntax.h"

namespace hadal::recipe {
namespace {

constexpr std::string_view kTypes[] = {"array", "boolean", "integer", "null", "number", "object", "string"};

template <class... Args>
tl::unexpected<Error> fault(const JsonValue& value, fmt::format_string<Args...> format, Args&&... args) {
  std::string message;
  append_json(message, value, JsonStyle::kCompact);
  message += ' ';
  message += fmt::format(format, std::forward<Args>(args)...);
  return tl::make_unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
}

Result<void> expect_kind(const JsonValue& value, bool is_it, std::string_view kind) {
  if (!is_it) {
    return fault(value, "is not of type \"{}\"", kind);
  }
  return {};
}

/// Draws the keys or values of a list into sorted order and looks for equal neighbours.
bool all_different(std::span<const JsonValue> items) {
  std::vector<std::string> texts;
  texts.reserve(items.size());
  for (const JsonValue& item : items) {
    texts.push_back(json_text(item));
  }
  std::sort(texts.begin(), texts.end());
  return std::adjacent_find(texts.begin(), texts.end()) == texts.end();
}

Result<void> check_different(const JsonValue& value) {
  if (!all_different(value.items())) {
    return fault(value, "has non-unique elements");
  }
  return {};
}

bool is_names(const JsonValue& value) {
  return value.is_array() &&
         std::all_of(value.items().begin(), value.items().end(),
                     [](const JsonValue& item) { return item.is_string(); }) &&
         all_different(value.items());
}

Result<void> check_names(const JsonValue& value) {
  HADAL_CHECK(expect_kind(value, value.is_array(), "array"));
  for (const JsonValue& item : value.items()) {
    HADAL_CHECK(expect_kind(item, item.is_string(), "string"));
  }
  return check_different(value);
}

Result<void> check_not_empty(const JsonValue& value) {
  if (value.items().empty()) {
    return fault(value, "has less than 1 item");
  }
  return {};
}

Result<void> check_type(const JsonValue& value) {
  const auto is_type = [](const JsonValue& item) {
    return item.is_string() &&
           std::find(std::begin(kTypes), std::end(kTypes), item.as_string()) != std::end(kTypes);
  };
  const bool is_types = value.is_array() && !value.items().empty() &&
                        std::all_of(value.items().begin(), value.items().end(), is_type) &&
                        all_different(value.items());
  if (!is_type(value) && !is_types) {
    return fault(value, "is not valid under any of the schemas listed in the 'anyOf' keyword");
  }
  return {};
}

Result<void> check_count(const JsonValue& value) {
  const bool whole =
      value.is_integer() || (value.is_number() && std::floor(value.as_double()) == value.as_double());
  HADAL_CHECK(expect_kind(value, whole, "integer"));
  if (value.as_double() < 0) {
    return fault(value, "is less than the minimum of 0");
  }
  return {};
}

Result<void> check_pattern(const JsonValue& value) {
  HADAL_CHECK(expect_kind(value, value.is_string(), "string"));
  if (!is_regex(value.as_string())) {
    return fault(value, "is not a \"regex\"");
  }
  return {};
}

Result<void> check_anchor(const JsonValue& value) {
  HADAL_CHECK(expect_kind(value, value.is_string(), "string"));
  const std::string_view name = value.as_string();
  const auto starts = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool valid = !name.empty() && starts(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return starts(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  if (!valid) {
    return fault(value, "does not match \"^[A-Za-z_][-A-Za-z0-9._]*$\"");
  }
  return {};
}

class SchemaChecker {
 public:
  explicit SchemaChecker(Draft draft) : draft_(draft) {}

  /// Recursive; JSON that was read is bounded in depth.
  Result<void> check(const JsonValue& schema) {
    if (schema.is_bool() && draft_ != Draft::k4) {
      return {};
    }
    if (!schema.is_object()) {
      if (draft_ == Draft::k4) {
        return fault(schema, "is not of type \"object\"");
      }
      return fault(schema, "is not of types \"boolean\", \"object\"");
    }
    for (const JsonMember& member : schema.members()) {
      if (const auto rule = keyword_rule(member.key, draft_)) {
        HADAL_CHECK(check_value(member.value, *rule));
        Result<void> nested;
        for_each_subschema(member.value, *rule, [&](const JsonValue& subschema) {
          if (nested && !(*rule == KeywordRule::kSchemaOrBool && subschema.is_bool())) {
            nested = check(subschema);
          }
        });
        HADAL_CHECK(nested);
      }
    }
    return {};
  }

 private:
  /// What a keyword says about its own value; subschemas are checked by the caller.
  Result<void> check_value(const JsonValue& value, KeywordRule rule) {
    switch (rule) {
      case KeywordRule::kSchema:
      case KeywordRule::kSchemaOrBool:
      case KeywordRule::kSchemaOrList:
        return {};
      case KeywordRule::kSchemaList:
        HADAL_CHECK(expect_kind(value, value.is_array(), "array"));
        return check_not_empty(value);
      case KeywordRule::kSchemaMap:
        return expect_kind(value, value.is_object(), "object");
      case KeywordRule::kPatternMap:
        HADAL_CHECK(expect_kind(value, value.is_object(), "object"));
        for (const JsonMember& member : value.members()) {
          HADAL_CHECK(check_pattern(JsonValue::string(member.key)));
        }
        return {};
      case KeywordRule::kDependencies:
        HADAL_CHECK(expect_kind(value, value.is_object(), "object"));
        for (const JsonMember& member : value.members()) {
          if (!member.value.is_object() && !member.value.is_bool() && !is_names(member.value)) {
            return fault(member.value, "is not valid under any of the schemas listed in the 'anyOf' keyword");
          }
        }
        return {};
      case KeywordRule::kString:
        return expect_kind(value, value.is_string(), "string");
      case KeywordRule::kReference:
        HADAL_CHECK(expect_kind(value, value.is_string(), "string"));
        return check_uri_reference(value.as_string());
      case KeywordRule::kId:
        HADAL_CHECK(expect_kind(value, value.is_string(), "string"));
        if (const size_t hash = value.as_string().find('#'); hash < value.as_string().size() - 1) {
          return fault(value, "does not match \"^[^#]*#?$\"");
        }
        return check_uri_reference(value.as_string());
      case KeywordRule::kAnchor:
        return check_anchor(value);
      case KeywordRule::kPattern:
        return check_pattern(value);
      case KeywordRule::kBoolean:
        return expect_kind(value, value.is_bool(), "boolean");
      case KeywordRule::kBooleanMap:
        HADAL_CHECK(expect_kind(value, value.is_object(), "object"));
        for (const JsonMember& member : value.members()) {
          HADAL_CHECK(expect_kind(member.value, member.value.is_bool(), "boolean"));
        }
        return {};
      case KeywordRule::kNumber:
        return expect_kind(value, value.is_number(), "number");
      case KeywordRule::kPositive:
        HADAL_CHECK(expect_kind(value, value.is_number(), "number"));
        if (!(value.as_double() > 0)) {
          return fault(value, "is less than or equal to the minimum of 0");
        }
        return {};
      case KeywordRule::kCount:
        return check_count(value);
      case KeywordRule::kList:
        return expect_kind(value, value.is_array(), "array");
      case KeywordRule::kNonEmptySet:
        HADAL_CHECK(expect_kind(value, value.is_array(), "array"));
        HADAL_CHECK(check_not_empty(value));
        return check_different(value);
      case KeywordRule::kNames:
        return check_names(value);
      case KeywordRule::kSomeNames:
        HADAL_CHECK(expect_kind(value, value.is_array(), "array"));
        HADAL_CHECK(check_not_empty(value));
        return check_names(value);
      case KeywordRule::kNamesMap:
        HADAL_CHECK(expect_kind(value, value.is_object(), "object"));
        for (const JsonMember& member : value.members()) {
          HADAL_CHECK(check_names(member.value));
        }
        return {};
      case KeywordRule::kType:
        return check_type(value);
    }
    return {};
  }

  Draft draft_;
};

/// `$schema` without an empty fragment and without its scheme.
Result<Draft> select_draft(const JsonValue& schema) {
  const JsonValue* named = schema.find("$schema");
  if (named == nullptr || !named->is_string() || named->as_string().empty()) {
    return Draft::k2020;
  }
  HADAL_CHECK(check_uri_reference(named->as_string()));
  std::string_view uri = named->as_string();
  if (uri.ends_with('#')) {
    uri.remove_suffix(1);
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (uri.starts_with(scheme)) {
      uri.remove_prefix(scheme.size());
      constexpr std::pair<std::string_view, Draft> kDrafts[] = {
          {"json-schema.org/draft-04/schema", Draft::k4},
          {"json-schema.org/draft-06/schema", Draft::k6},
          {"json-schema.org/draft-07/schema", Draft::k7},
          {"json-schema.org/draft/2019-09/schema", Draft::k2019},
          {"json-schema.org/draft/2020-12/schema", Draft::k2020},
          {"json-schema.org/schema", Draft::k2020},
      };
      for (const auto& [known, draft] : kDrafts) {
        if (uri == known) {
          return draft;
        }
      }
      break;
    }
  }
  return fail(ErrorCode::kInvalidArgument,
              "Unknown meta-schema: '{}'. Custom meta-schemas must be registered in the registry before use",
              named->as_string());
}

}  // namespace

Result<void> check_schema(const JsonValue& schema) {
  HADAL_TRY(const Draft draft, select_draft(schema));
  HADAL_CHECK(SchemaChecker(draft).check(schema));
  return check_references(schema, draft);
}

Result<void> check_tool_schema(const JsonValue& schema) {
  HADAL_CHECK(check_schema(schema));
  const JsonValue* type = schema.find("type");
  if (type == nullptr || !type->is_string() || type->as_string() != "object") {
    return fail(ErrorCode::kInvalidArgument,
                "schema must be a JSON Schema of 'type: \"object\"', got 'type: {}'.",
                type != nullptr ? json_text(*type) : "null");
  }
  return {};
}

}  // namespace hadal::recipe
