#include "recipe/parse/stop_matcher.h"

#include <random>

#include <gtest/gtest.h>

namespace hadal::recipe {
namespace {

TEST(StopMatcher, HoldsBackWhatMayBecomeAStopString) {
  StopMatcher matcher({"STOPHERE"});
  EXPECT_EQ(matcher.push("a STO"), "a ");
  EXPECT_EQ(matcher.push("PH"), "");
  EXPECT_EQ(matcher.push("ERE and more"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.stop_string(), "STOPHERE");
  EXPECT_EQ(matcher.push("x"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, GivesBackWhatDidNotBecomeOne) {
  StopMatcher matcher({"STOPHERE"});
  EXPECT_EQ(matcher.push("STOSTOP"), "STO");
  EXPECT_EQ(matcher.push("!"), "STOP!");
  EXPECT_EQ(matcher.push("S"), "");
  EXPECT_EQ(matcher.finish(), "S");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_FALSE(matcher.stop_string());
}

TEST(StopMatcher, WithoutStopStringsAllPasses) {
  StopMatcher matcher({"", ""});
  EXPECT_EQ(matcher.push("abc"), "abc");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, AgreesWithASearchOfTheWholeText) {
  std::mt19937 random(7);
  const auto word = [&](size_t longest) {
    std::string text;
    for (size_t size = 1 + random() % longest; size > 0; --size) {
      text.push_back(static_cast<char>('a' + random() % 2));
    }
    return text;
  };
  for (int round = 0; round < 20'000; ++round) {
    const std::vector<std::string> stops = {word(4), word(4), word(6)};
    const std::string text = word(30);
    // By the definition: the smallest end, then the first of the list.
    std::string expected = text;
    std::optional<std::string> stop;
    for (size_t end = 1; end <= text.size() && !stop; ++end) {
      for (const std::string& candidate : stops) {
        if (!stop && std::string_view(text).substr(0, end).ends_with(candidate)) {
          stop = candidate;
          expected = text.substr(0, end - candidate.size());
        }
      }
    }
    StopMatcher matcher(stops);
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 5;
      shown += matcher.push(std::string_view(text).substr(at, size));
      at += size;
      ASSERT_TRUE(expected.starts_with(shown)) << "part of a stop string was shown";
    }
    shown += matcher.finish();
    ASSERT_EQ(shown, expected);
    ASSERT_EQ(matcher.stop_string().has_value(), stop.has_value());
    if (stop) {
      ASSERT_EQ(*matcher.stop_string(), *stop);
    }
  }
}

}  // namespace
}  // namespace hadal::recipe
