// The small parts of the server on their own.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "server/access.h"
#include "server/api_errors.h"
#include "server/http_message.h"
#include "server/json_body.h"
#include "server/json_text.h"
#include "server/metrics.h"

namespace hadal::server {
namespace {

TEST(JsonText, RoundTripsEveryByte) {
  std::string text;
  for (int byte = 0; byte < 128; ++byte) {
    text += static_cast<char>(byte);
  }
  text += "é世👍\u2028";
  std::string out;
  append_json_string(out, text);
  EXPECT_EQ(nlohmann::json::parse(out), text);
}

TEST(JsonText, ReplacesInvalidUtf8) {
  for (const std::string& bad :
       std::vector<std::string>{"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe4\xb8", "a\x80z",
                                "\xf0\x80\x80\x80"}) {
    std::string out;
    append_json_string(out, bad);
    const auto parsed = nlohmann::json::parse(out, nullptr, false);
    ASSERT_TRUE(parsed.is_string()) << out;
    EXPECT_NE(parsed.get<std::string>().find("\xEF\xBF\xBD"), std::string::npos);
  }
}

TEST(JsonText, WritesNumbers) {
  std::string out;
  append_json_number(out, -0.5);
  append_json_number(out, 1.0 / 0.0);
  append_json_integer(out, INT64_MIN);
  EXPECT_EQ(out, "-0.5null-9223372036854775808");
}

TEST(JsonBody, PicksTopLevelMembersOnly) {
  const Json picked = pick_members(R"({"a":{"model":1,"b":2},"model":"x","c":[{"model":3}],"b":{"model":4}})",
                                   {"model", "b"});
  EXPECT_EQ(picked, Json::parse(R"({"model":"x","b":{"model":4}})"));
  for (const char* odd : {"", "[", "{\"model\":", "[\"model\"]", "{\"model\"}", "nul"}) {
    EXPECT_EQ(pick_members(odd, {"model"}), Json::object()) << odd;
  }
  EXPECT_EQ(pick_members(std::string(1'000'000, '[') + "model", {"model"}), Json::object());
}

TEST(Metrics, EscapesLabels) {
  EXPECT_EQ(escape_label("a\"b\\c\nd\x01"), "a\\\"b\\\\c\\nd?");
}

TEST(Metrics, HistogramsCountAtTheirBounds) {
  Histogram histogram({0.1, 1});
  histogram.observe(0.1);
  histogram.observe(0.5, 3);
  histogram.observe(7);
  std::string out;
  histogram.print(out, "x", "Help.");
  EXPECT_EQ(out,
            "# HELP x Help.\n# TYPE x histogram\nx_bucket{le=\"0.1\"} 1\nx_bucket{le=\"1\"} "
            "4\nx_bucket{le=\"+Inf\"} 5\n"
            "x_sum 8.6\nx_count 5\n");
}

TEST(HttpMessage, SplitsTargets) {
  std::string path;
  std::string query;
  EXPECT_TRUE(split_target("/a?b?c", path, query));
  EXPECT_EQ(path, "/a");
  EXPECT_EQ(query, "b?c");
  EXPECT_TRUE(split_target("HTTP://host:1/p?q", path, query));
  EXPECT_EQ(path, "/p");
  EXPECT_FALSE(split_target("http://", path, query));
  EXPECT_FALSE(split_target("http:///x", path, query));
  EXPECT_FALSE(split_target("*", path, query));
  EXPECT_FALSE(split_target("/a b", path, query));
}

TEST(HttpMessage, WritesDates) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(ApiErrors, HideOurOwnFaults) {
  EXPECT_EQ(public_error({ErrorCode::kCorrupt, "/path"}).status, 500);
  EXPECT_EQ(public_error({ErrorCode::kCorrupt, "/path"}).message.find("path"), std::string::npos);
  EXPECT_EQ(public_error({ErrorCode::kInvalidArgument, "top_k: 5"}).message, "top_k: 5");
}

}  // namespace
}  // namespace hadal::server
