#pragma once
// The keywords of the JSON Schema drafts: what kind of value each takes and where subschemas are.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "recipe/json_value.h"

namespace hadal::recipe {

enum class Draft : uint8_t { k4 = 1, k6 = 2, k7 = 4, k2019 = 8, k2020 = 16 };

enum class KeywordRule : uint8_t {
  kSchema,        ///< a schema
  kSchemaOrBool,  ///< draft 4: a schema or a boolean
  kSchemaList,    ///< a non-empty list of schemas
  kSchemaOrList,  ///< a schema or a list of schemas (`items` of old drafts)
  kSchemaMap,     ///< an object of schemas
  kPatternMap,    ///< an object of schemas whose keys are patterns
  kDependencies,  ///< an object of schemas or lists of names
  kString,
  kReference,  ///< a string that is a URI reference
  kId,         ///< a string that is a URI reference without a fragment
  kAnchor,     ///< a string that is a plain name
  kPattern,    ///< a string that is a regular expression
  kBoolean,
  kBooleanMap,
  kNumber,
  kPositive,  ///< a number above 0
  kCount,     ///< an integer of at least 0
  kList,
  kNonEmptySet,  ///< a list of at least one value, all different
  kNames,        ///< a list of different strings
  kSomeNames,    ///< the same, not empty
  kNamesMap,     ///< an object of lists of different strings
  kType,         ///< a type name or a list of different ones
};

/// The rule of a keyword in a draft; nullopt: the draft does not know it.
std::optional<KeywordRule> keyword_rule(std::string_view name, Draft draft);

/// Calls visit(subschema) for each schema directly inside the value of a keyword, as its rule says.
template <class Visit>
void for_each_subschema(const JsonValue& value, KeywordRule rule, Visit visit) {
  switch (rule) {
    case KeywordRule::kSchema:
    case KeywordRule::kSchemaOrBool:
      visit(value);
      break;
    case KeywordRule::kSchemaOrList:
    case KeywordRule::kSchemaList:
      if (!value.is_array()) {
        visit(value);
      }
      for (const JsonValue& item : value.items()) {
        visit(item);
      }
      break;
    case KeywordRule::kSchemaMap:
    case KeywordRule::kPatternMap:
      for (const JsonMember& member : value.members()) {
        visit(member.value);
      }
      break;
    case KeywordRule::kDependencies:
      for (const JsonMember& member : value.members()) {
        if (!member.value.is_array()) {
          visit(member.value);
        }
      }
      break;
    default:
      break;
  }
}

}  // namespace hadal::recipe
