#include "server/unsupported_fields.h"

#include <fmt/format.h>

namespace hadal::server {
namespace {

/// A field, and which values of it change nothing (null and absence never do).
struct Field {
  std::string_view name;
  bool (*is_neutral)(const Json& value);
};

bool never(const Json&) {
  return false;
}
bool is_one(const Json& value) {
  return value.is_number() && value.get<double>() == 1.0;
}
bool is_empty(const Json& value) {
  return value.is_structured() && value.empty();
}
bool is_false(const Json& value) {
  return value.is_boolean() && !value.get<bool>();
}
bool is_text_only(const Json& value) {
  return value.is_array() && value.size() == 1 && value[0] == "text";
}
bool is_text_format(const Json& value) {
  return value.is_object() && value.value("type", Json()) == "text";
}

using Fields = std::vector<Field>;

/// What no sampler of this build does; the names are those of OpenAI and of the servers that extend it.
Fields with_sampling(Fields fields) {
  fields.insert(fields.end(), {{"length_penalty", is_one},
                               {"use_beam_search", is_false},
                               {"bad_words", is_empty},
                               {"prompt_logprobs", never},
                               {"guided_json", never},
                               {"guided_regex", never},
                               {"guided_choice", never},
                               {"guided_grammar", never},
                               {"structured_outputs", never},
                               {"truncate_prompt_tokens", never}});
  return fields;
}

const Fields& fields_of(UnsupportedFieldsOf protocol) {
  static const Fields kCompletions = with_sampling({{"response_format", is_text_format}});
  static const Fields kChat = with_sampling({{"functions", is_empty},
                                             {"function_call", never},
                                             {"modalities", is_text_only},
                                             {"audio", never},
                                             {"web_search_options", never}});
  static const Fields kMessages = {{"mcp_servers", is_empty}, {"container", never}};
  static const Fields kResponses = {
      {"conversation", never}, {"prompt", never}, {"background", is_false}, {"max_tool_calls", never}};
  switch (protocol) {
    case UnsupportedFieldsOf::kCompletions:
      return kCompletions;
    case UnsupportedFieldsOf::kChat:
      return kChat;
    case UnsupportedFieldsOf::kMessages:
      return kMessages;
    case UnsupportedFieldsOf::kResponses:
      break;
  }
  return kResponses;
}

}  // namespace

const std::vector<std::string_view>& unsupported_field_names(UnsupportedFieldsOf protocol) {
  static const auto build = [](UnsupportedFieldsOf which) {
    std::vector<std::string_view> names;
    for (const Field& field : fields_of(which)) {
      names.push_back(field.name);
    }
    return names;
  };
  static const std::vector<std::vector<std::string_view>> all{
      build(UnsupportedFieldsOf::kCompletions), build(UnsupportedFieldsOf::kChat),
      build(UnsupportedFieldsOf::kMessages), build(UnsupportedFieldsOf::kResponses)};
  return all[static_cast<size_t>(protocol)];
}

std::optional<ApiError> find_unsupported_field(UnsupportedFieldsOf protocol, const Json& members) {
  for (const Field& field : fields_of(protocol)) {
    const auto member = members.find(field.name);
    if (member != members.end() && !member->is_null() && !field.is_neutral(*member)) {
      return ApiError{400,
                      fmt::format("{}: {} is not supported by this server", field.name, describe(*member)),
                      "unsupported_parameter", std::string(field.name)};
    }
  }
  return std::nullopt;
}

}  // namespace hadal::server
