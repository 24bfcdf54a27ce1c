#include "recipe/schema/keywords.h"

#include <algorithm>

namespace hadal::recipe {
namespace {

constexpr uint8_t mask(std::initializer_list<Draft> drafts) {
  uint8_t bits = 0;
  for (const Draft draft : drafts) {
    bits = static_cast<uint8_t>(bits | static_cast<uint8_t>(draft));
  }
  return bits;
}

constexpr uint8_t kAll = mask({Draft::k4, Draft::k6, Draft::k7, Draft::k2019, Draft::k2020});
constexpr uint8_t kFrom6 = mask({Draft::k6, Draft::k7, Draft::k2019, Draft::k2020});
constexpr uint8_t kFrom7 = mask({Draft::k7, Draft::k2019, Draft::k2020});
constexpr uint8_t kFrom2019 = mask({Draft::k2019, Draft::k2020});
constexpr uint8_t kOnly4 = mask({Draft::k4});
constexpr uint8_t kOnly2020 = mask({Draft::k2020});
constexpr uint8_t kTo2019 = mask({Draft::k4, Draft::k6, Draft::k7, Draft::k2019});

struct Keyword {
  std::string_view name;
  KeywordRule rule;
  uint8_t drafts;
};

// Sorted by name, then by draft.
constexpr Keyword kKeywords[] = {
    {"$anchor", KeywordRule::kAnchor, kFrom2019},
    {"$comment", KeywordRule::kString, kFrom7},
    {"$defs", KeywordRule::kSchemaMap, kFrom2019},
    {"$dynamicAnchor", KeywordRule::kAnchor, kOnly2020},
    {"$dynamicRef", KeywordRule::kReference, kOnly2020},
    {"$id", KeywordRule::kReference, mask({Draft::k6, Draft::k7})},
    {"$id", KeywordRule::kId, kFrom2019},
    {"$recursiveAnchor", KeywordRule::kBoolean, mask({Draft::k2019})},
    {"$recursiveRef", KeywordRule::kReference, mask({Draft::k2019})},
    {"$ref", KeywordRule::kReference, kAll},
    {"$schema", KeywordRule::kReference, kAll},
    {"$vocabulary", KeywordRule::kBooleanMap, kFrom2019},
    {"additionalItems", KeywordRule::kSchemaOrBool, kTo2019},
    {"additionalProperties", KeywordRule::kSchemaOrBool, kAll},
    {"allOf", KeywordRule::kSchemaList, kAll},
    {"anyOf", KeywordRule::kSchemaList, kAll},
    {"contains", KeywordRule::kSchema, kFrom6},
    {"contentEncoding", KeywordRule::kString, kFrom7},
    {"contentMediaType", KeywordRule::kString, kFrom7},
    {"contentSchema", KeywordRule::kSchema, kFrom2019},
    {"definitions", KeywordRule::kSchemaMap, kAll},
    {"dependencies", KeywordRule::kDependencies, kAll},
    {"dependentRequired", KeywordRule::kNamesMap, kFrom2019},
    {"dependentSchemas", KeywordRule::kSchemaMap, kFrom2019},
    {"deprecated", KeywordRule::kBoolean, kFrom2019},
    {"description", KeywordRule::kString, kAll},
    {"else", KeywordRule::kSchema, kFrom7},
    {"enum", KeywordRule::kNonEmptySet, mask({Draft::k4, Draft::k6})},
    {"enum", KeywordRule::kList, kFrom7},
    {"examples", KeywordRule::kList, kFrom6},
    {"exclusiveMaximum", KeywordRule::kBoolean, kOnly4},
    {"exclusiveMaximum", KeywordRule::kNumber, kFrom6},
    {"exclusiveMinimum", KeywordRule::kBoolean, kOnly4},
    {"exclusiveMinimum", KeywordRule::kNumber, kFrom6},
    {"format", KeywordRule::kString, kAll},
    {"id", KeywordRule::kString, kOnly4},
    {"if", KeywordRule::kSchema, kFrom7},
    {"items", KeywordRule::kSchemaOrList, kTo2019},
    {"items", KeywordRule::kSchema, kOnly2020},
    {"maxContains", KeywordRule::kCount, kFrom2019},
    {"maxItems", KeywordRule::kCount, kAll},
    {"maxLength", KeywordRule::kCount, kAll},
    {"maxProperties", KeywordRule::kCount, kAll},
    {"maximum", KeywordRule::kNumber, kAll},
    {"minContains", KeywordRule::kCount, kFrom2019},
    {"minItems", KeywordRule::kCount, kAll},
    {"minLength", KeywordRule::kCount, kAll},
    {"minProperties", KeywordRule::kCount, kAll},
    {"minimum", KeywordRule::kNumber, kAll},
    {"multipleOf", KeywordRule::kPositive, kAll},
    {"not", KeywordRule::kSchema, kAll},
    {"oneOf", KeywordRule::kSchemaList, kAll},
    {"pattern", KeywordRule::kPattern, kAll},
    {"patternProperties", KeywordRule::kPatternMap, kAll},
    {"prefixItems", KeywordRule::kSchemaList, kOnly2020},
    {"properties", KeywordRule::kSchemaMap, kAll},
    {"propertyNames", KeywordRule::kSchema, kFrom6},
    {"readOnly", KeywordRule::kBoolean, kFrom7},
    {"required", KeywordRule::kSomeNames, kOnly4},
    {"required", KeywordRule::kNames, kFrom6},
    {"then", KeywordRule::kSchema, kFrom7},
    {"title", KeywordRule::kString, kAll},
    {"type", KeywordRule::kType, kAll},
    {"unevaluatedItems", KeywordRule::kSchema, kFrom2019},
    {"unevaluatedProperties", KeywordRule::kSchema, kFrom2019},
    {"uniqueItems", KeywordRule::kBoolean, kAll},
    {"writeOnly", KeywordRule::kBoolean, kFrom7},
};
static_assert(std::is_sorted(std::begin(kKeywords), std::end(kKeywords),
                             [](const Keyword& a, const Keyword& b) { return a.name < b.name; }));

}  // namespace

std::optional<KeywordRule> keyword_rule(std::string_view name, Draft draft) {
  const auto* at =
      std::lower_bound(std::begin(kKeywords), std::end(kKeywords), name,
                       [](const Keyword& keyword, std::string_view key) { return keyword.name < key; });
  for (; at != std::end(kKeywords) && at->name == name; ++at) {
    if ((at->drafts & static_cast<uint8_t>(draft)) != 0) {
      return at->rule;
    }
  }
  return std::nullopt;
}

}  // namespace hadal::recipe
