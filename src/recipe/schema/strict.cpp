#include "recipe/schema/strict.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "recipe/json_text.h"
#include "recipe/schema/check.h"

namespace hadal::recipe {
namespace {

constexpr std::string_view kAllTypes[] = {"object",  "string", "number", "integer",
                                          "boolean", "array",  "null"};
constexpr std::string_view kScalarTypes[] = {"string", "number", "integer", "boolean", "null"};
constexpr std::string_view kFormats[] = {"email", "hostname", "ipv4", "ipv6", "uuid"};
/// Where definitions stand. The first is what the reference package understands, the others what schemas use.
constexpr std::string_view kDefinitions[] = {"$def", "$defs", "definitions"};

bool contains(std::span<const std::string_view> list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string quoted(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  }
  return text;
}

/// How an unexpected value reads in an error.
std::string found(const JsonValue& value) {
  switch (value.kind()) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return fmt::format("boolean `{}`", value.as_bool());
    case JsonValue::Kind::kInt:
    case JsonValue::Kind::kUint:
      return fmt::format("integer `{}`", json_text(value));
    case JsonValue::Kind::kDouble:
      return fmt::format("floating point `{}`", json_text(value));
    case JsonValue::Kind::kString:
      return fmt::format("string {}", json_text(value));
    case JsonValue::Kind::kArray:
      return "sequence";
    case JsonValue::Kind::kObject:
      return "map";
  }
  return "";
}

/// A schema outside the subset. The caller adds what was being read.
tl::unexpected<Error> wrong_form(std::string message) {
  return tl::make_unexpected(Error{ErrorCode::kUnsupported, std::move(message)});
}

tl::unexpected<Error> wrong_type(const JsonValue& value, std::string_view expected) {
  return wrong_form(fmt::format("invalid type: {}, expected {}", found(value), expected));
}

tl::unexpected<Error> unknown_name(std::string_view name, std::span<const std::string_view> known) {
  return wrong_form(fmt::format("unknown variant `{}`, expected one of {}", name, quoted(known)));
}

/// A rule that strict schemas break; the message stands alone.
template <class... Args>
tl::unexpected<Error> broken_rule(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

/// First pass: the form. Errors are of code kUnsupported and come in document order.
class FormChecker {
 public:
  Result<void> check(const JsonValue& schema) {
    const JsonValue* type = schema.find("type");
    if (type != nullptr && type->is_array()) {
      return within("type", check_scalar_types(*type, schema));
    }
    if (type != nullptr) {
      return check_typed(*type, schema);
    }
    if (const JsonValue* any_of = schema.find("anyOf")) {
      HADAL_CHECK(within("anyOf", check_alternatives(*any_of)));
      return check_text(schema, "description");
    }
    if (const JsonValue* reference = schema.find("$ref")) {
      if (!reference->is_string()) {
        return within("$ref", wrong_type(*reference, "a string"));
      }
      return {};
    }
    return wrong_form("one of `type`, `anyOf`, `$ref` field is required");
  }

 private:
  static Result<void> within(std::string_view field, Result<void> result) {
    if (!result && result.error().code == ErrorCode::kUnsupported) {
      result.error().message = fmt::format("field `{}`: {}", field, result.error().message);
    }
    return result;
  }

  static Result<void> check_text(const JsonValue& schema, std::string_view key) {
    const JsonValue* value = schema.find(key);
    if (value != nullptr && !value->is_null() && !value->is_string()) {
      return wrong_type(*value, "a string");
    }
    return {};
  }

  static Result<void> check_scalar_types(const JsonValue& types, const JsonValue& schema) {
    for (const JsonValue& type : types.items()) {
      if (!type.is_string()) {
        return wrong_type(type, "string or map");
      }
      if (!contains(kScalarTypes, type.as_string())) {
        return unknown_name(type.as_string(), kScalarTypes);
      }
    }
    return check_text(schema, "description");
  }

  Result<void> check_alternatives(const JsonValue& any_of) {
    if (!any_of.is_array()) {
      return wrong_type(any_of, "a sequence");
    }
    for (const JsonValue& item : any_of.items()) {
      if (!item.is_object()) {
        return wrong_type(item, "internally tagged enum JsonSchemaType");
      }
      const JsonValue* type = item.find("type");
      if (type == nullptr) {
        return wrong_form("missing field `type`");
      }
      HADAL_CHECK(check_typed(*type, item));
    }
    return {};
  }

  Result<void> check_typed(const JsonValue& type, const JsonValue& schema) {
    if (!type.is_string()) {
      return wrong_type(type, "variant identifier");
    }
    if (!contains(kAllTypes, type.as_string())) {
      return unknown_name(type.as_string(), kAllTypes);
    }
    for (const JsonMember& member : schema.members()) {
      if (!member.value.is_null()) {
        HADAL_CHECK(check_keyword(type.as_string(), member.key, member.value));
      }
    }
    if (type.as_string() == "array" && (schema.find("items") == nullptr)) {
      return wrong_form("missing field `items`");
    }
    return {};
  }

  Result<void> check_keyword(std::string_view type, std::string_view key, const JsonValue& value) {
    if (key == "description") {
      return value.is_string() ? Result<void>() : wrong_type(value, "a string");
    }
    if (type == "object") {
      return check_object_keyword(key, value);
    }
    if (type == "array") {
      return key == "items" ? check(value) : Result<void>();
    }
    if (type == "string") {
      return check_string_keyword(key, value);
    }
    if (type == "number" || type == "integer") {
      return check_number_keyword(type == "integer", key, value);
    }
    return {};
  }

  Result<void> check_object_keyword(std::string_view key, const JsonValue& value) {
    if (key == "properties" || contains(kDefinitions, key)) {
      if (!value.is_object()) {
        // Of definitions only the first spelling is part of the strict subset proper; the others may be
        // anything where nothing refers to them.
        return key == "properties" || key == kDefinitions[0] ? wrong_type(value, "a map") : Result<void>();
      }
      if (key == "properties" || key == kDefinitions[0]) {
        for (const JsonMember& member : value.members()) {
          HADAL_CHECK(check(member.value));
        }
      }
      return {};
    }
    if (key == "additionalProperties" && !value.is_bool()) {
      return wrong_type(value, "a boolean");
    }
    if (key == "required") {
      return check_names(value);
    }
    return {};
  }

  static Result<void> check_names(const JsonValue& value) {
    if (!value.is_array()) {
      return wrong_type(value, "a sequence");
    }
    for (const JsonValue& item : value.items()) {
      if (!item.is_string()) {
        return wrong_type(item, "a string");
      }
    }
    return {};
  }

  static Result<void> check_string_keyword(std::string_view key, const JsonValue& value) {
    if (key == "enum") {
      return check_names(value);
    }
    if (key == "pattern" && !value.is_string()) {
      return wrong_type(value, "a string");
    }
    if (key == "format") {
      if (!value.is_string()) {
        return wrong_type(value, "variant identifier");
      }
      if (!contains(kFormats, value.as_string())) {
        return unknown_name(value.as_string(), kFormats);
      }
    }
    return {};
  }

  static Result<void> check_number_keyword(bool integer, std::string_view key, const JsonValue& value);
};

constexpr std::string_view kNumberKeywords[] = {
    "const", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};

Result<void> FormChecker::check_number_keyword(bool integer, std::string_view key, const JsonValue& value) {
  if (!contains(kNumberKeywords, key)) {
    return {};
  }
  if (!integer) {
    return value.is_number() ? Result<void>() : wrong_type(value, "a JSON number");
  }
  if (!value.is_integer()) {
    return wrong_type(value, "i64");
  }
  if (value.kind() == JsonValue::Kind::kUint &&
      value.as_uint() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return wrong_form(fmt::format("invalid value: {}, expected i64", found(value)));
  }
  return {};
}

/// Second pass: the rules for objects, and the canonical form. Errors are of code kInvalidArgument, or of the
/// first pass for definitions that turn out to be used.
class Normalizer {
 public:
  Normalizer(JsonArena& arena, bool keep_definitions) : arena_(arena), keep_definitions_(keep_definitions) {}

  Result<JsonValue> normalize(const JsonValue& schema, bool may_be_empty) {
    const JsonValue* type = schema.find("type");
    Members out;
    if (type != nullptr && type->is_string()) {
      out.push_back({"type", *type});
      HADAL_CHECK(normalize_typed(type->as_string(), schema, may_be_empty, out));
    } else if (type != nullptr) {
      out.push_back({"type", *type});
      keep(schema, "description", out);
    } else if (const JsonValue* any_of = schema.find("anyOf")) {
      std::vector<JsonValue> alternatives;
      for (const JsonValue& item : any_of->items()) {
        HADAL_TRY(const JsonValue alternative, normalize(item, false));
        alternatives.push_back(alternative);
      }
      out.push_back({"anyOf", JsonValue::array(arena_.copy(std::span<const JsonValue>(alternatives)))});
      keep(schema, "description", out);
    } else {
      keep(schema, "$ref", out);
    }
    return JsonValue::object(arena_.copy(std::span<const JsonMember>(out)));
  }

 private:
  using Members = std::vector<JsonMember>;

  static void keep(const JsonValue& schema, std::string_view key, Members& out) {
    const JsonValue* value = schema.find(key);
    if (value != nullptr && !value->is_null()) {
      out.push_back({key, *value});
    }
  }

  Result<void> normalize_typed(std::string_view type, const JsonValue& schema, bool may_be_empty,
                               Members& out) {
    if (type == "object") {
      return normalize_object(schema, may_be_empty, out);
    }
    if (type == "array") {
      HADAL_TRY(const JsonValue items, normalize(*schema.find("items"), false));
      out.push_back({"items", items});
      keep(schema, "description", out);
      return {};
    }
    keep(schema, "description", out);
    if (type == "string") {
      keep(schema, "pattern", out);
      keep(schema, "format", out);
      keep(schema, "enum", out);
    } else if (type == "number" || type == "integer") {
      for (const std::string_view key : kNumberKeywords) {
        keep(schema, key, out);
      }
    }
    return {};
  }

  Result<JsonValue> normalize_map(const JsonValue& map) {
    Members out;
    out.reserve(map.members().size());
    for (const JsonMember& member : map.members()) {
      HADAL_TRY(const JsonValue value, normalize(member.value, false));
      out.push_back({member.key, value});
    }
    return JsonValue::object(arena_.copy(std::span<const JsonMember>(out)));
  }

  Result<void> normalize_object(const JsonValue& schema, bool may_be_empty, Members& out) {
    const JsonValue* given = schema.find("properties");
    const JsonValue properties = given != nullptr && given->is_object() ? *given : JsonValue::object({});
    if (properties.members().empty() && !may_be_empty) {
      return broken_rule("An object with no properties is not allowed.");
    }
    HADAL_TRY(const JsonValue normal, normalize_map(properties));
    HADAL_CHECK(check_required(schema, properties));
    const JsonValue* additional = schema.find("additionalProperties");
    if (additional != nullptr && additional->is_bool() && additional->as_bool()) {
      return broken_rule("additionalProperties should not be true");
    }
    std::vector<JsonValue> required;
    required.reserve(properties.members().size());
    for (const JsonMember& member : properties.members()) {
      required.push_back(JsonValue::string(member.key));
    }
    out.push_back({"properties", normal});
    out.push_back({"additionalProperties", JsonValue::boolean(false)});
    out.push_back({"required", JsonValue::array(arena_.copy(std::span<const JsonValue>(required)))});
    keep(schema, "description", out);
    return normalize_definitions(schema, out);
  }

  Result<void> normalize_definitions(const JsonValue& schema, Members& out) {
    for (const std::string_view key : kDefinitions) {
      const JsonValue* definitions = schema.find(key);
      if (definitions == nullptr || !definitions->is_object() ||
          (key != kDefinitions[0] && !keep_definitions_)) {
        continue;
      }
      if (key != kDefinitions[0]) {
        for (const JsonMember& member : definitions->members()) {
          HADAL_CHECK(FormChecker().check(member.value));
        }
      }
      HADAL_TRY(JsonValue normal, normalize_map(*definitions));
      if (key != kDefinitions[0]) {
        normal = keep_anchors(*definitions, normal);
      }
      out.push_back({key, normal});
    }
    return {};
  }

  /// Definitions that are referred to by their anchor keep it.
  JsonValue keep_anchors(const JsonValue& definitions, const JsonValue& normal) {
    Members out(normal.members().begin(), normal.members().end());
    for (size_t index = 0; index < out.size(); ++index) {
      const JsonValue* anchor = definitions.members()[index].value.find("$anchor");
      if (anchor != nullptr) {
        Members fields{{"$anchor", *anchor}};
        const auto rest = out[index].value.members();
        fields.insert(fields.end(), rest.begin(), rest.end());
        out[index].value = JsonValue::object(arena_.copy(std::span<const JsonMember>(fields)));
      }
    }
    return JsonValue::object(arena_.copy(std::span<const JsonMember>(out)));
  }

  static Result<void> check_required(const JsonValue& schema, const JsonValue& properties) {
    const JsonValue* required = schema.find("required");
    if (required == nullptr || !required->is_array()) {
      return {};
    }
    std::set<std::string_view> names;
    for (const JsonMember& member : properties.members()) {
      names.insert(member.key);
    }
    std::set<std::string_view> seen;
    for (const JsonValue& item : required->items()) {
      if (!names.contains(item.as_string())) {
        return broken_rule("Required property '{}' not found in object", item.as_string());
      }
      if (!seen.insert(item.as_string()).second) {
        return broken_rule("Duplicate required property '{}'", item.as_string());
      }
    }
    if (seen.size() != names.size()) {
      return broken_rule("Required properties must match all properties in the object");
    }
    return {};
  }

  JsonArena& arena_;
  const bool keep_definitions_;
};

/// Whether some schema is nothing but a reference to something inside the document other than its root.
bool has_local_reference(const JsonValue& value) {
  if (value.is_object()) {
    const JsonValue* reference = value.find("$ref");
    if (reference != nullptr && reference->is_string() && value.members().size() == 1 &&
        reference->as_string().size() > 1 && reference->as_string()[0] == '#') {
      return true;
    }
  }
  return std::any_of(value.items().begin(), value.items().end(), has_local_reference) ||
         std::any_of(value.members().begin(), value.members().end(),
                     [](const JsonMember& member) { return has_local_reference(member.value); });
}

Result<JsonValue> canonical(const JsonValue& schema, std::string_view prefix, std::string_view what,
                            bool may_be_empty, JsonArena& arena) {
  const auto explain = [&](Error error) {
    if (error.code == ErrorCode::kUnsupported) {
      error.message = fmt::format("{}{}", prefix, error.message);
    }
    error.code = ErrorCode::kInvalidArgument;
    return tl::make_unexpected(std::move(error));
  };
  if (auto form = FormChecker().check(schema); !form) {
    return explain(std::move(form.error()));
  }
  auto normal = Normalizer(arena, has_local_reference(schema)).normalize(schema, may_be_empty);
  if (!normal) {
    return explain(std::move(normal.error()));
  }
  const JsonValue* type = schema.find("type");
  if (type == nullptr || !type->is_string() || type->as_string() != "object") {
    return broken_rule("The top level of the {} schema must be an object.", what);
  }
  return *normal;
}

}  // namespace

Result<JsonValue> strict_tool_parameters(const JsonValue* parameters, JsonArena& arena) {
  static const JsonMember kNone[] = {{"type", JsonValue::string("object")}};
  const JsonValue schema = parameters != nullptr ? *parameters : JsonValue::object(kNone);
  return canonical(schema, "Invalid tool parameters schema : ", "function parameters", true, arena);
}

Result<JsonValue> constraint_schema(const JsonValue& schema, bool strict, JsonArena& arena) {
  if (strict) {
    return canonical(schema, "Invalid json schema: ", "json", false, arena);
  }
  if (auto checked = check_schema(schema); !checked) {
    return fail(ErrorCode::kInvalidArgument, "Invalid json schema: {}", checked.error().message);
  }
  return schema;
}

}  // namespace hadal::recipe
