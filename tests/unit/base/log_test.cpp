#include "base/log.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(Printable, OrdinaryTextStaysAsItIs) {
  EXPECT_EQ(printable("plain text, 100 %"), "plain text, 100 %");
  EXPECT_EQ(printable("grüße 深海"), "grüße 深海");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(printable("a\nb\r\t\x1b[31m\x7f"), "a\\x0ab\\x0d\\x09\\x1b[31m\\x7f");
  EXPECT_EQ(printable(std::string_view("\0end", 4)), "\\x00end");
}

TEST(Printable, ControlCharactersBeyondAsciiAreSpelledOutToo) {
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(printable("\xc2\xa0\xc2\xa9"), "\xc2\xa0\xc2\xa9");
}

TEST(Printable, WhatIsNotUtf8IsSpelledOut) {
  EXPECT_EQ(printable("a\xff\x80z"), "a\\xff\\x80z");
  EXPECT_EQ(printable("\xe6\xb7"), "\\xe6\\xb7");                    // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // past the last code point
  EXPECT_EQ(printable("\xf0\x9f\x90\x9f"), "\xf0\x9f\x90\x9f");
}

TEST(Printable, LongTextIsCutBetweenCodePoints) {
  EXPECT_EQ(printable("深海", 6), "深海");
  EXPECT_EQ(printable("深海", 5), "深...");
  EXPECT_EQ(printable("深海", 3), "深...");
  EXPECT_EQ(printable("深海", 2), "...");
}

TEST(Printable, LongTextIsCutWithAMark) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(printable(std::string(500, 'x')), std::string(400, 'x') + "...");
  EXPECT_EQ(printable("abc", 0), "...");
}

class LoggingTest : public testing::Test {
 protected:
  ~LoggingTest() override { spdlog::set_default_logger(before_); }

 private:
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(LoggingTest, AcceptsEachLevel) {
  for (const char* level : {"trace", "debug", "info", "warn", "error", "off"}) {
    EXPECT_TRUE(init_logging(level).has_value()) << level;
  }
}

TEST_F(LoggingTest, WritesLinesOfTheLevelAndAboveToStandardError) {
  ASSERT_TRUE(init_logging("warn").has_value());
  testing::internal::CaptureStderr();
  spdlog::info("a detail");
  spdlog::warn("a warning");
  spdlog::default_logger()->flush();
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, testing::HasSubstr("a warning"));
  EXPECT_THAT(lines, testing::Not(testing::HasSubstr("a detail")));
}

TEST_F(LoggingTest, AnUnknownLevelListsTheKnownOnes) {
  for (const char* level : {"loud", "", "INFO\n"}) {
    const auto result = init_logging(level);
    ASSERT_FALSE(result.has_value()) << level;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().message, testing::HasSubstr("trace, debug, info, warn, error or off"));
    EXPECT_THAT(result.error().message, testing::Not(testing::HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace hadal
