#include "recipe/responses/tools.h"

#include "recipe/json_text.h"
#include "recipe/responses/apply_patch.h"

namespace hadal::recipe::responses {
namespace {

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

/// The description of a custom tool with the grammar that its input must follow.
std::string custom_description(const ToolField& tool) {
  std::string text(tool.function.description.value_or(""));
  const JsonValue* syntax = tool.format != nullptr ? tool.format->find("syntax") : nullptr;
  const JsonValue* definition = tool.format != nullptr ? tool.format->find("definition") : nullptr;
  if (definition != nullptr && definition->is_string()) {
    text += text.empty() ? "" : "\n\n";
    text += fmt::format(
        "The input must follow this {}:\n{}",
        syntax != nullptr && syntax->is_string() ? fmt::format("{} grammar", syntax->as_string()) : "grammar",
        definition->as_string());
  }
  return text;
}

/// {"type":"object","additionalProperties":false,"properties":{"input":{...}},"required":["input"]}
JsonValue free_text_parameters(std::string_view description, JsonArena& arena) {
  const JsonMember input[] = {{"type", JsonValue::string("string")},
                              {"description", JsonValue::string(description)}};
  const JsonMember properties[] = {{"input", JsonValue::object(arena.copy(std::span(input)))}};
  const JsonValue required[] = {JsonValue::string("input")};
  const JsonMember schema[] = {
      {"type", JsonValue::string("object")},
      {"additionalProperties", JsonValue::boolean(false)},
      {"properties", JsonValue::object(arena.copy(std::span(properties)))},
      {"required", JsonValue::array(arena.copy(std::span(required)))},
  };
  return JsonValue::object(arena.copy(std::span(schema)));
}

}  // namespace

Result<void> ToolTable::check_all(std::span<const ToolField> tools, const std::string& place) const {
  for (size_t index = 0; index < tools.size(); ++index) {
    HADAL_CHECK(check(tools[index], fmt::format("{}[{}]", place, index)));
  }
  return {};
}

Result<void> ToolTable::declare(std::span<const ToolField> tools) {
  HADAL_CHECK(check_all(tools, "tools"));
  add_all(tools, "tools", false);
  return {};
}

std::vector<std::string> ToolTable::add_found(std::span<const ToolField> tools, const std::string& place) {
  return add_all(tools, place, true);
}

std::vector<std::string> ToolTable::add_all(std::span<const ToolField> tools, const std::string& place,
                                            bool is_found) {
  reserve_names(tools);
  std::vector<std::string> names;
  for (size_t index = 0; index < tools.size(); ++index) {
    add(tools[index], fmt::format("{}[{}]", place, index), is_found, names);
  }
  return names;
}

Result<void> ToolTable::check(const ToolField& tool, const std::string& place) const {
  switch (tool.kind) {
    case ToolField::Kind::kFunction:
    case ToolField::Kind::kCustom:
      return check_tool_name(tool.function.name, place + ".name");
    case ToolField::Kind::kNamespace:
      return check_namespace(tool, place);
    case ToolField::Kind::kWebSearch:
      if (options_.responses_web_search == ConversionOptions::WebSearch::kReject) {
        return refuse("Server tools are not supported");
      }
      return {};
    case ToolField::Kind::kToolSearch:
    case ToolField::Kind::kUnsupported:
      return {};
  }
  return {};
}

Result<void> ToolTable::check_namespace(const ToolField& tool, const std::string& place) const {
  HADAL_CHECK(check_tool_name(tool.function.name, place + ".name"));
  std::set<std::string_view> names;
  for (size_t index = 0; index < tool.tools.size(); ++index) {
    const ToolField& inner = tool.tools[index];
    if (inner.kind == ToolField::Kind::kCustom) {
      return refuse(
          "Currently custom tools are not allowed inside a namespace. Found custom tool '{}' in "
          "{}.tools[{}].",
          inner.function.name, place, index);
    }
    HADAL_CHECK(check_tool_name(inner.function.name, fmt::format("{}.tools[{}].name", place, index)));
    if (!names.insert(inner.function.name).second) {
      return refuse("Tool names within a namespace must be unique.");
    }
  }
  return {};
}

/// Plain names go first, so that a namespaced one gives way to them wherever they stand.
void ToolTable::reserve_names(std::span<const ToolField> tools) {
  for (const ToolField& tool : tools) {
    if (tool.kind == ToolField::Kind::kFunction || tool.kind == ToolField::Kind::kCustom) {
      taken_.emplace(tool.function.name);
    }
  }
}

void ToolTable::add(const ToolField& tool, const std::string& place, bool is_found,
                    std::vector<std::string>& names) {
  const size_t first = tools_.size();
  switch (tool.kind) {
    case ToolField::Kind::kFunction:
      add_function(tool.function, std::string(tool.function.name), "", is_found);
      break;
    case ToolField::Kind::kCustom:
      add_custom(tool, is_found);
      break;
    case ToolField::Kind::kToolSearch:
      if (tool.execution != "client") {
        notices.add(
            fmt::format("{}: a tool search that the server executes is not supported; left out", place));
      } else if (version_ != ModelVersion::kV4) {
        has_tool_search = true;
        add_function(tool.function, std::string(tool.function.name), "", is_found);
      }
      break;
    case ToolField::Kind::kNamespace:
      for (const ToolField& inner : tool.tools) {
        std::string name = new_name(tool.function.name, inner.function.name);
        namespaces.emplace(name,
                           std::pair(std::string(tool.function.name), std::string(inner.function.name)));
        // V4 knows no namespaces: their descriptions are not part of a tool's.
        const std::string_view description =
            version_ == ModelVersion::kV4 ? "" : tool.function.description.value_or("");
        add_function(inner.function, std::move(name), description, is_found);
      }
      break;
    case ToolField::Kind::kWebSearch:
    case ToolField::Kind::kUnsupported:
      notices.add(fmt::format("{}: tools of type `{}` are not supported; left out", place, tool.type));
      break;
  }
  for (size_t index = first; index < tools_.size(); ++index) {
    names.push_back(tools_[index].name);
    if (is_found) {
      found.insert(tools_[index].name);
    }
  }
}

void ToolTable::add_function(const FunctionField& function, std::string name,
                             std::string_view name_space_description, bool is_found) {
  RequestedTool tool;
  tool.name = std::move(name);
  if (!name_space_description.empty()) {
    tool.description = fmt::format("{}\n{}", name_space_description, function.description.value_or(""));
  } else if (function.description) {
    tool.description.emplace(*function.description);
  }
  tool.parameters = function.parameters;
  tool.strict = function.strict;
  tool.defer_loading = is_found;
  tools_.push_back(std::move(tool));
}

void ToolTable::add_custom(const ToolField& field, bool is_found) {
  RequestedTool tool;
  tool.name = field.function.name;
  std::string_view input = "The entire input of the tool, as free text.";
  if (field.function.name == kApplyPatchName) {
    tool.description = kApplyPatchHead;
    *tool.description += version_ == ModelVersion::kV4 ? "" : "\n";
    *tool.description += kApplyPatchRest;
    input = kApplyPatchInput;
  } else {
    tool.description = custom_description(field);
  }
  const JsonValue parameters = free_text_parameters(input, arena_);
  tool.parameters = arena_.copy(std::span(&parameters, 1)).data();
  tool.defer_loading = is_found;
  tool.fixed = true;
  custom.insert(tool.name);
  tools_.push_back(std::move(tool));
}

std::string ToolTable::joined(std::string_view name_space, std::string_view name) const {
  return fmt::format("{}{}{}", name_space, version_ == ModelVersion::kV4 ? "__" : "::", name);
}

std::string ToolTable::new_name(std::string_view name_space, std::string_view name) {
  const std::string wanted = joined(name_space, name);
  std::string shown = wanted;
  while (!taken_.insert(shown).second) {
    shown = fmt::format("{}_{}", wanted, ++next_suffix_[wanted]);
  }
  names_.emplace(std::pair(std::string(name_space), std::string(name)), shown);
  return shown;
}

std::string ToolTable::shown_name(std::string_view name, std::optional<std::string_view> name_space) const {
  if (!name_space) {
    return std::string(name);
  }
  const auto known = names_.find(std::pair(std::string(*name_space), std::string(name)));
  return known != names_.end() ? known->second : joined(*name_space, name);
}

}  // namespace hadal::recipe::responses
