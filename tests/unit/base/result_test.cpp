#include "base/result.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace hadal {
namespace {

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') {
    return fail(ErrorCode::kInvalidArgument, "digit '{}': expected {} to {}", c, 0, 9);
  }
  return c - '0';
}

Result<int> add_digits(std::string_view text) {
  HADAL_TRY(const int first, parse_digit(text[0]));
  HADAL_TRY(const auto second, parse_digit(text[1]));
  return first + second;
}

Result<void> check_digits(std::string_view text, int& checked) {
  for (const char c : text) {
    HADAL_CHECK(add_digits(std::string(2, c)));
    ++checked;
  }
  return {};
}

TEST(Result, FailFormatsTheMessage) {
  const auto result = parse_digit('x');
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().message, "digit 'x': expected 0 to 9");
}

TEST(Result, TryDeclaresTheValue) {
  EXPECT_EQ(add_digits("45").value(), 9);
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(add_digits("a5").error().message, "digit 'a': expected 0 to 9");
  EXPECT_EQ(add_digits("4b").error().message, "digit 'b': expected 0 to 9");
}

TEST(Result, TryAssignsToWhatExists) {
  const auto assign = [](int& target) -> Result<void> {
    HADAL_TRY(target, parse_digit('7'));
    return {};
  };
  int target = 0;
  EXPECT_TRUE(assign(target).has_value());
  EXPECT_EQ(target, 7);
}

TEST(Result, TryMovesWhatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(3); };
  const auto take = [&]() -> Result<std::unique_ptr<int>> {
    HADAL_TRY(auto owned, make());
    return owned;
  };
  EXPECT_EQ(**take(), 3);
}

TEST(Result, TryEvaluatesItsExpressionOnce) {
  int calls = 0;
  const auto count = [&]() -> Result<int> { return ++calls; };
  const auto run = [&]() -> Result<int> {
    HADAL_TRY(const int value, count());
    return value;
  };
  EXPECT_EQ(run().value(), 1);
  EXPECT_EQ(calls, 1);
}

TEST(Result, CheckStopsAtTheFirstError) {
  int checked = 0;
  const auto result = check_digits("12x4", checked);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "digit 'x': expected 0 to 9");
  EXPECT_EQ(checked, 2);
  EXPECT_TRUE(check_digits("123", checked).has_value());
  EXPECT_EQ(checked, 5);
}

TEST(Result, FailWithinPutsThePlaceInFront) {
  const auto outer = []() -> Result<int> {
    if (auto inner = parse_digit('?'); !inner) {
      return fail_within("config.json", inner.error());
    }
    return 0;
  };
  EXPECT_EQ(outer().error().message, "config.json: digit '?': expected 0 to 9");
  EXPECT_EQ(outer().error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace hadal
