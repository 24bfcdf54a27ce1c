#include "base/mapped_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::HasSubstr;

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hadal-test-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~MappedFileTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  std::filesystem::path write(const std::string& name, std::string_view text) const {
    const auto path = directory_ / name;
    std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
    return path;
  }
  std::filesystem::path directory_;
};

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(MappedFileTest, ShowsTheBytesOfTheFile) {
  std::string text(100'000, 'x');
  text[0] = '\0';
  text.back() = '\n';
  const auto file = MappedFile::open(write("a", text));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(text_of(*file), text);
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptySpan) {
  const auto file = MappedFile::open(write("empty", ""));
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->bytes().empty());
  file->advise(0, 100, MappedFile::Advice::kWillNeed);
}

TEST_F(MappedFileTest, AMissingFileIsNotFound) {
  const auto path = directory_ / "missing";
  const auto file = MappedFile::open(path);
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(file.error().message, HasSubstr(path.string()));
  // A file in place of a folder is the same to the caller.
  EXPECT_EQ(MappedFile::open(write("file", "x") / "below").error().code, ErrorCode::kNotFound);
}

TEST_F(MappedFileTest, AFolderIsRefused) {
  const auto file = MappedFile::open(directory_);
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(file.error().message, HasSubstr("not a regular file"));
}

TEST_F(MappedFileTest, BytesStayWhereTheyAreAfterAMove) {
  auto first = MappedFile::open(write("a", "first")).value();
  const auto* data = first.bytes().data();
  MappedFile moved = std::move(first);
  EXPECT_EQ(moved.bytes().data(), data);
  EXPECT_EQ(text_of(moved), "first");
  EXPECT_TRUE(first.bytes().empty());  // NOLINT(bugprone-use-after-move): what the move leaves is defined

  auto second = MappedFile::open(write("b", "second")).value();
  moved = std::move(second);
  EXPECT_EQ(text_of(moved), "second");
  auto& self = moved;
  moved = std::move(self);
  EXPECT_EQ(text_of(moved), "second");
}

TEST_F(MappedFileTest, TheMappingOutlivesTheName) {
  const auto path = write("a", "still here");
  const auto file = MappedFile::open(path).value();
  std::filesystem::remove(path);
  EXPECT_EQ(text_of(file), "still here");
}

TEST_F(MappedFileTest, AdviceOnAnyRangeIsHarmless) {
  const std::string text(10'000, 'y');
  const auto file = MappedFile::open(write("a", text)).value();
  for (const auto advice : {MappedFile::Advice::kRandom, MappedFile::Advice::kWillNeed}) {
    for (const size_t offset :
         {size_t{0}, size_t{1}, size_t{4097}, size_t{9'999}, size_t{10'000}, SIZE_MAX}) {
      for (const size_t length : {size_t{0}, size_t{1}, size_t{20'000}}) {
        file.advise(offset, length, advice);
      }
    }
  }
  EXPECT_EQ(text_of(file), text);
}

TEST_F(MappedFileTest, ReadsSmallTextFiles) {
  EXPECT_EQ(read_text_file(write("a", "some\ntext\0!"), 100).value(), "some\ntext");
  EXPECT_EQ(read_text_file(write("empty", ""), 0).value(), "");
  EXPECT_EQ(read_text_file(write("exact", "12345"), 5).value(), "12345");
}

TEST_F(MappedFileTest, ATextFileAboveTheLimitNamesBothSizes) {
  const auto path = write("big", std::string(1234, 'z'));
  const auto text = read_text_file(path, 1000);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(text.error().message, HasSubstr(path.string()));
  EXPECT_THAT(text.error().message, HasSubstr("1234"));
  EXPECT_THAT(text.error().message, HasSubstr("1000"));
}

TEST_F(MappedFileTest, ReadingAMissingTextFileOrAFolderFails) {
  EXPECT_EQ(read_text_file(directory_ / "missing", 10).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_text_file(directory_, 10).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace hadal
