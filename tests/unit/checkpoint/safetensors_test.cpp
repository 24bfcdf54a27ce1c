#include "checkpoint/safetensors.h"

#include <cstring>

#include <gmock/gmock.h>

#include "test_support.h"

namespace hadal::checkpoint {
namespace {

using ::testing::HasSubstr;

Result<SafetensorsHeader> parse(const std::string& bytes, uint64_t file_size) {
  return parse_safetensors_header(std::as_bytes(std::span(bytes)), file_size, "shard");
}

/// The file "length, header, data_bytes zeros", of which only the front is handed over.
Result<SafetensorsHeader> parse_header(const std::string& header, uint64_t data_bytes) {
  return parse(length_prefix(header.size()) + header, 8 + header.size() + data_bytes);
}

TEST(SafetensorsHeader, ReadsTensorsInAnyOrder) {
  const auto header = parse_header(
      R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},"__metadata__":{"format":"pt"},)"
      R"("a":{"data_offsets":[0,8],"shape":[],"dtype":"F64"},"zero":{"dtype":"I8","shape":[0,7],"data_offsets":[20,20]}}  )",
      20);
  ASSERT_TRUE(header) << header.error().message;
  ASSERT_EQ(header->tensors.size(), 3U);
  const TensorInfo& b = header->tensors.at("b");
  EXPECT_EQ(b.dtype, DType::kBF16);
  EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(b.begin, 8U);
  EXPECT_EQ(b.end, 20U);
  EXPECT_TRUE(header->tensors.at("a").shape.empty());
  EXPECT_EQ(header->tensors.at("zero").shape, (std::vector<int64_t>{0, 7}));
}

TEST(SafetensorsHeader, KeepsOddNames) {
  const auto header = parse_header(R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                   R"("a\u0000\n\"\\../x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                                   R"("张量 😀":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                                   3);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_TRUE(header->tensors.contains(""));
  EXPECT_TRUE(header->tensors.contains(std::string("a\0\n\"\\../x", 9)));
  EXPECT_TRUE(header->tensors.contains("张量 😀"));
}

TEST(SafetensorsHeader, OffsetsBeyondFourGigabytesAreExact) {
  const auto header =
      parse_header(R"({"table":{"dtype":"F8_E4M3","shape":[384006168,256],"data_offsets":[3,98305579011]},)"
                   R"("small":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
                   98305579011);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->tensors.at("table").end, 98305579011U);
}

TEST(SafetensorsHeader, RefusesBadHeaderLengths) {
  const struct {
    std::string bytes;
    uint64_t file_size;
    const char* expected;
  } cases[] = {
      {"", 0, "0 bytes, expected at least the 8"},
      {"1234567", 7, "7 bytes, expected at least the 8"},
      {std::string(8, '\xff') + "{}", 10, "header length 18446744073709551615, expected at most 100000000"},
      {length_prefix(UINT64_MAX - 7) + "{}", 10, "header length 18446744073709551608"},
      {length_prefix(3) + "{}", 10, "header length 3"},
      {length_prefix(100'000'001) + "{}", 200'000'000, "header length 100000001"},
      {length_prefix(50) + "{}", 1000,
       "header length 50"},  // the file is long enough, the given bytes are not
      {length_prefix(0), 8, "header begins with \"\""},
  };
  for (const auto& test : cases) {
    const auto header = parse(test.bytes, test.file_size);
    ASSERT_FALSE(header) << test.expected;
    EXPECT_EQ(header.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(header.error().message, HasSubstr(test.expected));
    EXPECT_THAT(header.error().message, ::testing::StartsWith("shard: "));
  }
}

TEST(SafetensorsHeader, RefusesHostileHeaders) {
  const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  const struct {
    std::string header;
    const char* expected;
  } cases[] = {
      // Not the right JSON.
      {"[1]", "header begins with \"[\""},
      {" {}", "header begins with \" \""},
      {"{", "not valid JSON at byte"},
      {"{" + a + "}{}", "not valid JSON at byte"},
      {"{" + a + ",}", "not valid JSON at byte"},
      {"{" + a + "}" + std::string(3, '\0'), "NUL byte at byte 53, expected JSON text"},
      {"{\"\xff\":{}}", "not valid JSON at byte"},
      {"{" + std::string(1000, '['), "not valid JSON"},
      {R"({"a":)" + std::string(100000, '['), "tensor \"a\": found an array, expected an object"},
      {R"({"a":)" + std::string(100000, '{'), "not valid JSON"},
      {R"({"a":null})", "tensor \"a\": found null, expected an object"},
      {R"({"a":3})", "tensor \"a\": found 3"},
      {R"({"a":"x"})", "tensor \"a\": found \"x\""},
      {R"({"__metadata__":{"format":1}})", "header: found 1, expected text"},
      {R"({"__metadata__":{"format":{}}})", "header: found an object, expected text"},
      {R"({"__metadata__":null})", "header: found null"},
      {R"({"__metadata__":{},"__metadata__":{}})", "__metadata__ appears twice"},
      // Tensors that are not what they should be.
      {"{" + a + "," + a + "}", "tensor \"a\": appears twice"},
      {R"({"a":{}})", "tensor \"a\": dtype missing"},
      {R"({"a":{"dtype":"U8","data_offsets":[0,4]}})", "tensor \"a\": shape missing"},
      {R"({"a":{"dtype":"U8","shape":[4]}})", "tensor \"a\": data_offsets missing"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"dtype":"I8"}})",
       "tensor \"a\": dtype appears twice"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"more":1}})",
       "tensor \"a\": field \"more\" is unknown"},
      {R"({"a":{"dtype":"U9","shape":[4],"data_offsets":[0,4]}})", "tensor \"a\": dtype \"U9\" is unknown"},
      {R"({"a":{"dtype":"u8","shape":[4],"data_offsets":[0,4]}})", "tensor \"a\": dtype \"u8\" is unknown"},
      {R"({"a":{"dtype":["U8"],"shape":[4],"data_offsets":[0,4]}})", "tensor \"a\": found an array"},
      {R"({"a":{"dtype":8,"shape":[4],"data_offsets":[0,4]}})", "tensor \"a\": found 8"},
      {R"({"a":{"dtype":"U8","shape":4,"data_offsets":[0,4]}})", "tensor \"a\": found 4"},
      {R"({"a":{"dtype":"U8","shape":"4","data_offsets":[0,4]}})", "tensor \"a\": found \"4\""},
      {R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})",
       "tensor \"a\": found -4, expected a non-negative integer"},
      {R"({"a":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}})", "tensor \"a\": found 4.0"},
      {R"({"a":{"dtype":"U8","shape":[[4]],"data_offsets":[0,4]}})", "tensor \"a\": found an array"},
      {R"({"a":{"dtype":"U8","shape":[true],"data_offsets":[0,4]}})", "tensor \"a\": found true"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,4]}})",
       "tensor \"a\": shape: found extent 9223372036854775808"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,4]}})",
       "tensor \"a\": found 18446744073709551616"},
      {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4],"data_offsets":[0,4]}})",
       "at index 16, expected at most 16 extents"},
      // 2^32 * 2^32 * 4 bytes is 4 modulo 2^64 with the right third extent.
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
       "its size in bytes exceeds 64 bits"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})",
       "its size in bytes exceeds 64 bits"},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}})",
       "tensor \"a\": data_offsets [0, 4] hold 4 bytes, expected 16 for F32 [4]"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})",
       "tensor \"a\": data_offsets [4, 0], expected an ascending"},
      {R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", "within the 4 bytes of data"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[18446744073709551615,3]}})",
       "tensor \"a\": data_offsets [18446744073709551615, 3]"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[-1,3]}})", "tensor \"a\": found -1"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0]}})",
       "tensor \"a\": data_offsets: 1 numbers, expected two"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[]}})", "tensor \"a\": data_offsets: 0 numbers"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}})",
       "tensor \"a\": data_offsets: more than two"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":{"0":4}}})", "tensor \"a\": found an object"},
      // Tensors that do not tile the data.
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "tensor \"b\": data_offsets [2, 4] overlap tensor \"a\" [0, 3]"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       "tensor \"b\": data_offsets [0, 4] overlap tensor \"a\" [0, 4]"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
       "tensor \"b\": data_offsets [2, 2] overlap"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "tensor \"b\": data_offsets begin at 2, expected 1"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})",
       "tensor \"a\": data_offsets begin at 1, expected 0"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
       "the tensors end at byte 3 of the data, expected its end at 4"},
      {"{}", "the tensors end at byte 0 of the data, expected its end at 4"},
  };
  for (const auto& test : cases) {
    const auto header = parse_header(test.header, 4);
    ASSERT_FALSE(header) << test.header;
    EXPECT_EQ(header.error().code, ErrorCode::kCorrupt) << test.header;
    EXPECT_THAT(header.error().message, HasSubstr(test.expected)) << test.header;
    EXPECT_LT(header.error().message.size(), 700U);
  }
}

TEST(SafetensorsHeader, MessagesHoldNoControlCharacters) {
  const auto header = parse_header(R"({"a\u001b[31m\n":{"dtype":"\u0007"}})", 4);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().message.find_first_of("\x1b\n\x07"), std::string::npos) << header.error().message;
}

TEST(SafetensorsHeader, RefusesMoreTensorsThanAnyShardHas) {
  std::string header = "{";
  for (int index = 0; index <= 250'000; ++index) {
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                          index == 0 ? "" : ",", index);
  }
  const auto parsed = parse_header(header + "}", 0);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("more than 250000 tensors"));
}

TEST(Safetensors, WritesWhatItReads) {
  const TempDir dir;
  const std::vector<float> floats = {1.5F, -2.0F, 3.25F};
  const std::vector<int64_t> wide = {-1, 1LL << 60};
  const std::vector<uint8_t> bytes = {1, 2, 3};
  const std::map<std::string, TensorToWrite> tensors = {
      {"a", {DType::kU8, {3}, std::as_bytes(std::span(bytes))}},
      {"b \"quoted\" 张", {DType::kF32, {3, 1}, std::as_bytes(std::span(floats))}},
      {"empty", {DType::kBF16, {0}, {}}},
      {"z", {DType::kI64, {2}, std::as_bytes(std::span(wide))}},
  };
  const fs::path path = dir.path() / "x.safetensors";
  write_file(path, "what was there before");
  const auto written = write_safetensors(path, tensors);
  ASSERT_TRUE(written) << written.error().message;

  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->header().tensors.size(), 4U);
  for (const auto& [name, tensor] : tensors) {
    const auto view = file->tensor(name);
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_EQ(view->dtype, tensor.dtype);
    EXPECT_EQ(view->shape, tensor.shape);
    ASSERT_EQ(view->bytes, tensor.bytes.size());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % dtype_size(view->dtype), 0U) << name;
    if (view->bytes != 0) {
      EXPECT_EQ(std::memcmp(view->data, tensor.bytes.data(), view->bytes), 0) << name;
    }
  }
  const auto missing = file->tensor("nothing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("no tensor \"nothing\""));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
}

TEST(Safetensors, RefusesToWriteWhatDoesNotFit) {
  const TempDir dir;
  const std::vector<std::byte> four(4);
  const fs::path path = dir.path() / "x.safetensors";
  const struct {
    std::map<std::string, TensorToWrite> tensors;
    const char* expected;
  } cases[] = {
      {{{"a", {DType::kF32, {2}, four}}}, "tensor \"a\": 4 bytes, expected as many as F32 [2] takes"},
      {{{"a", {DType::kF32, {-1}, four}}}, "tensor \"a\""},
      {{{"a", {DType::kF32, {1LL << 62, 4}, four}}}, "tensor \"a\""},
      {{{"__metadata__", {DType::kF32, {1}, four}}}, "__metadata__"},
      {{{"\xff", {DType::kF32, {1}, four}}}, "not valid UTF-8"},
  };
  for (const auto& test : cases) {
    const auto written = write_safetensors(path, test.tensors);
    ASSERT_FALSE(written) << test.expected;
    EXPECT_THAT(written.error().message, HasSubstr(test.expected));
    EXPECT_FALSE(fs::exists(path));
  }
  const auto written =
      write_safetensors(dir.path() / "no" / "x.safetensors", {{"a", {DType::kF32, {1}, four}}});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
}

TEST(Safetensors, WritesThroughLinksAndNeverInPlaceOfWhatIsNoFile) {
  const TempDir dir;
  const std::vector<std::byte> four(4);
  const std::map<std::string, TensorToWrite> tensors{{"a", {DType::kF32, {1}, four}}};
  fs::create_directory(dir.path() / "folder");
  const auto refused = write_safetensors(dir.path() / "folder", tensors);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("not a regular file"));
  EXPECT_TRUE(fs::is_directory(dir.path() / "folder"));

  ASSERT_TRUE(write_safetensors(dir.path() / "real", tensors));
  fs::remove(dir.path() / "real");
  std::ofstream(dir.path() / "real") << "old";
  fs::create_symlink("real", dir.path() / "link");
  ASSERT_TRUE(write_safetensors(dir.path() / "link", tensors));
  EXPECT_TRUE(fs::is_symlink(dir.path() / "link"));
  EXPECT_GT(fs::file_size(dir.path() / "real"), 3U);
}

TEST(Safetensors, EveryDTypeHasItsNameAndSize) {
  const struct {
    const char* name;
    size_t bytes;
  } rows[] = {{"F32", 4},     {"BF16", 2}, {"F16", 2}, {"F64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
              {"F8_E8M0", 1}, {"I8", 1},   {"U8", 1},  {"I16", 2}, {"U16", 2},     {"I32", 4},
              {"U32", 4},     {"I64", 8},  {"U64", 8}, {"BOOL", 1}};
  for (const auto& row : rows) {
    const auto dtype = dtype_from_name(row.name);
    ASSERT_TRUE(dtype) << row.name;
    EXPECT_EQ(dtype_name(*dtype), row.name);
    EXPECT_EQ(dtype_size(*dtype), row.bytes);
  }
  EXPECT_FALSE(dtype_from_name("F4"));
}

TEST(Safetensors, OpensNeitherDirectoriesNorMissingFiles) {
  const TempDir dir;
  EXPECT_EQ(SafetensorsFile::open(dir.path()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(SafetensorsFile::open(dir.path() / "x").error().code, ErrorCode::kNotFound);
  write_file(dir.path() / "empty", "");
  const auto empty = SafetensorsFile::open(dir.path() / "empty");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace hadal::checkpoint
