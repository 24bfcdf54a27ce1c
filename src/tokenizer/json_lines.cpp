#include "tokenizer/json_lines.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace hadal::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;

std::string error_line(const Json& id, const std::string& message) {
  return Json{{"id", id}, {"error", message}}.dump();
}

/// Reads one line and adds what `add` computes; `add` returns the error, empty if there is none.
template <class Add>
std::string transform_line(std::string_view line, Add&& add) {
  bool too_deep = false;
  const auto limit = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;  // what is too deep is thrown away, so that it needs no memory
  };
  Json object;
  try {
    object = Json::parse(line.begin(), line.end(), limit);
  } catch (const Json::exception& error) {
    return error_line(nullptr, "not valid JSON: " + printable(error.what()));
  }
  if (too_deep) {
    return error_line(nullptr, fmt::format("nested deeper than {} levels", kMaxDepth));
  }
  if (!object.is_object()) {
    return error_line(nullptr, fmt::format("found {}, expected an object", object.type_name()));
  }
  const auto id = object.find("id");
  const Json id_value = id == object.end() ? Json() : *id;
  const std::string message = add(object);
  return message.empty() ? object.dump() : error_line(id_value, message);
}

}  // namespace

std::string tokenize_line(const Tokenizer& tokenizer, std::string_view line, bool with_special) {
  return transform_line(line, [&](Json& object) -> std::string {
    const auto text = object.find("text");
    if (text == object.end() || !text->is_string()) {
      return "text: expected a string";
    }
    std::vector<int32_t> ids;
    if (with_special) {
      tokenizer.encode_with_special(text->get_ref<const std::string&>(), ids);
    } else {
      tokenizer.encode_plain(text->get_ref<const std::string&>(), ids);
    }
    object["ids"] = std::move(ids);
    return {};
  });
}

std::string detokenize_line(const Tokenizer& tokenizer, std::string_view line, bool skip_special_tokens) {
  return transform_line(line, [&](Json& object) -> std::string {
    const auto list = object.find("ids");
    if (list == object.end() || !list->is_array()) {
      return "ids: expected a list of integers";
    }
    std::vector<int32_t> ids;
    ids.reserve(list->size());
    for (size_t i = 0; i < list->size(); ++i) {
      const Json& id = (*list)[i];
      if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) {
        return fmt::format("ids[{}]: found {}, expected an integer from 0 to {}", i,
                           id.is_number() ? id.dump() : std::string(id.type_name()), INT32_MAX);
      }
      ids.push_back(id.get<int32_t>());
    }
    object["text"] = tokenizer.decode(ids, skip_special_tokens);
    return {};
  });
}

}  // namespace hadal::tokenizer
