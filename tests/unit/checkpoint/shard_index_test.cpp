#include "checkpoint/shard_index.h"

#include <gmock/gmock.h>

namespace hadal::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(ShardIndex, NamesShardsOnceAndInOrder) {
  const auto index = parse_shard_index(
      R"({"metadata":{"total_size":510286023000,"deep":[{"weight_map":{"x":1}},null,1.5,true,-1]},"other":[1],)"
      R"("weight_map":{"a":"2.safetensors","b":"1.safetensors","metadata":"2.safetensors","total_size":"1.safetensors"}})",
      "index");
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->shards, (std::vector<std::string>{"1.safetensors", "2.safetensors"}));
  EXPECT_EQ(index->tensors.at("a"), 1U);
  EXPECT_EQ(index->tensors.at("b"), 0U);
  EXPECT_EQ(index->tensors.at("metadata"), 1U);
  EXPECT_EQ(index->tensors.size(), 4U);
  EXPECT_EQ(index->total_size, 510286023000U);
}

TEST(ShardIndex, RefusesHostileText) {
  const struct {
    std::string json;
    const char* expected;
  } cases[] = {
      {"", "not valid JSON"},
      {"[]", "found an array, expected an object"},
      {"3", "found 3, expected an object"},
      {"{}", "weight_map: missing or empty"},
      {R"({"weight_map":{}})", "weight_map: missing or empty"},
      {R"({"weight_map":null})", "found null, expected an object"},
      {R"({"weight_map":["a"]})", "found an array, expected an object"},
      {R"({"weight_map":{"a":null}})", "tensor \"a\": found null, expected a file name"},
      {R"({"weight_map":{"a":7}})", "tensor \"a\": found 7"},
      {R"({"weight_map":{"a":["x.safetensors"]}})", "tensor \"a\": found an array"},
      {R"({"weight_map":{"a":{"b":"x.safetensors"}}})", "tensor \"a\": found an object"},
      {R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})", "tensor \"a\": appears twice"},
      {R"({"weight_map":{"a":"x.safetensors"},"weight_map":{"b":"x.safetensors"}})",
       "weight_map appears twice"},
      {R"({"weight_map":{"a":"../x.safetensors"}})",
       "tensor \"a\": found file \"../x.safetensors\", expected a plain name"},
      {R"({"weight_map":{"a":"/etc/x.safetensors"}})", "expected a plain name"},
      {R"({"weight_map":{"a":"sub/x.safetensors"}})", "expected a plain name"},
      {R"({"weight_map":{"a":"sub\\x.safetensors"}})", "expected a plain name"},
      {R"({"weight_map":{"a":"x\u0000.safetensors"}})", "expected a plain name"},
      {R"({"weight_map":{"a":"..safetensors"}})", "expected a plain name"},
      {R"({"weight_map":{"a":".safetensors"}})", "expected a plain name"},
      {R"({"weight_map":{"a":"x.bin"}})", "expected a plain name"},
      {R"({"weight_map":{"a":""}})", "expected a plain name"},
      {R"({"metadata":)" + std::string(100, '['), "nested deeper than 32 levels"},
      {R"({"metadata":)" + std::string(1000000, '['), "nested deeper than 32 levels"},
  };
  for (const auto& test : cases) {
    const auto index = parse_shard_index(test.json, "index");
    ASSERT_FALSE(index) << test.json.substr(0, 100);
    EXPECT_EQ(index.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(index.error().message, HasSubstr(test.expected)) << test.json.substr(0, 100);
  }
}

}  // namespace
}  // namespace hadal::checkpoint
