#include "cli/token_list.h"

#include <fstream>

#include <gtest/gtest.h>

namespace hadal::cli {
namespace {

TEST(TokenList, TakesCommasSpacesAndBrackets) {
  const std::vector<int32_t> expected{1, 2, 30};
  for (const char* text : {"1,2,30", "1 2 30", "[1, 2, 30]", " 1,\n2\t30 ,"}) {
    EXPECT_EQ(parse_token_list(text, 100).value(), expected) << text;
  }
}

TEST(TokenList, ReadsAFile) {
  const std::string path = ::testing::TempDir() + "token_list_test.txt";
  std::ofstream(path) << "[4,\n5]\n";
  EXPECT_EQ(parse_token_list("@" + path, 100).value(), (std::vector<int32_t>{4, 5}));
  EXPECT_FALSE(parse_token_list("@/nonexistent", 100));
}

TEST(TokenList, ErrorsSayWhichAndWhat) {
  EXPECT_EQ(parse_token_list("1,x", 100).error().message,
            "token id 1: 'x' is not a whole number from 0 to 99");
  for (const char* bad : {"", "[]", "-1", "100", "1.5", "99999999999", "0x1"}) {
    EXPECT_FALSE(parse_token_list(bad, 100)) << bad;
  }
}

}  // namespace
}  // namespace hadal::cli
