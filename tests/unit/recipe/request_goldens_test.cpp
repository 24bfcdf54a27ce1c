// Requests of all three protocols against recorded answers of the reference package (tests/data/recipe).

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "recipe/json_lines.h"

namespace hadal::recipe {
namespace {

using nlohmann::json;

bool is_input(const std::string& key) {
  static const std::vector<std::string> inputs = {
      "id",        "protocol", "version",       "request",       "request_text",
      "options",   "schema",   "messages",      "settings",      "special_tokens",
      "format",    "detail",   "prompt_tokens", "context_limit", "oracle_quirk",
      "quirk_note"};
  return std::find(inputs.begin(), inputs.end(), key) != inputs.end();
}

/// Equal but for the width of floats: the reference keeps temperature and top_p in float32.
bool same(const json& want, const json& have) {
  if (want.is_number() && have.is_number()) {
    return want == have || want.get<float>() == have.get<float>();
  }
  if (want.type() != have.type()) {
    return false;
  }
  if (want.is_object()) {
    return want.size() == have.size() &&
           std::all_of(want.items().begin(), want.items().end(), [&](const auto& item) {
             return have.contains(item.key()) && same(item.value(), have[item.key()]);
           });
  }
  if (want.is_array()) {
    return std::equal(want.begin(), want.end(), have.begin(), have.end(), same);
  }
  return want == have;
}

/// Refusals of unreadable bodies agree in being refusals; others in status and message.
bool same_error(const json& want, const json& have) {
  if (!want.is_object() || !have.is_object()) {
    return same(want, have);
  }
  if (want.value("stage", "") == "parse") {
    return have.value("stage", "parse") == "parse";
  }
  if (!want.contains("body")) {
    return same(want, have);
  }
  const auto message = [](const json& error) {
    return json::parse(error["body"].get<std::string>())["error"]["message"];
  };
  return want["status_code"] == have["status_code"] && message(want) == message(have);
}

void expect_case(const json& want, const json& have) {
  for (const auto& [key, value] : want.items()) {
    if (is_input(key)) {
      continue;
    }
    ASSERT_TRUE(have.contains(key)) << want["id"] << ": no " << key << " in " << have.dump().substr(0, 400);
    if (key == "error") {
      EXPECT_TRUE(same_error(value, have[key])) << want["id"] << ": want " << value << " have " << have[key];
    } else if (key == "result") {
      for (const auto& [name, field] : value.items()) {
        EXPECT_TRUE(same(field, have[key].value(name, json())))
            << want["id"] << " " << name << ": want " << field << " have " << have[key].value(name, json());
      }
    } else if (value.is_object() && value.contains("error")) {
      EXPECT_TRUE(have[key].contains("error")) << want["id"] << " " << key;
    } else {
      EXPECT_TRUE(same(value, have[key]))
          << want["id"] << " " << key << ": want " << value << " have " << have[key];
    }
  }
}

class RequestGoldens : public testing::TestWithParam<const char*> {};

TEST_P(RequestGoldens, AreReproduced) {
  std::ifstream file(std::string(HADAL_TEST_DATA) + "/recipe/" + GetParam() + ".jsonl");
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    expect_case(json::parse(line), json::parse(render_line(line, TokenizerSet{})));
  }
  EXPECT_GT(count, 40);
}

INSTANTIATE_TEST_SUITE_P(Files, RequestGoldens,
                         testing::Values("render_chat", "render_messages", "render_responses", "direct",
                                         "schema", "limits"),
                         [](const auto& file) { return std::string(file.param); });

}  // namespace
}  // namespace hadal::recipe
