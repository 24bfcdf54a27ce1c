#include "model/engram_hash.h"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "checkpoint/model_config.h"

namespace hadal::model {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json read_json(const std::string& name) {
  std::ifstream in(std::string(HADAL_MODEL_DATA) + "/engram/" + name);
  EXPECT_TRUE(in.is_open()) << name;
  return json::parse(in);
}

checkpoint::TextConfig release_config() {
  checkpoint::TextConfig text;
  text.vocab_size = 129280;
  text.engram_layer_ids = {1, 14};
  text.engram_num_embeddings = {384006168, 384016682};
  text.engram_max_ngram_size = 4;
  text.engram_vocab_size = 16000000;
  text.engram_n_heads = 8;
  text.engram_pad_token_id = 2;
  text.engram_compressed_vocab_size = 99092;
  return text;
}

checkpoint::TextConfig small_config(const std::string& checkpoint) {
  checkpoint::TextConfig text;
  text.vocab_size = 2048;
  text.engram_pad_token_id = 2;
  text.engram_compressed_vocab_size = 1639;
  if (checkpoint == "tiny") {
    text.engram_layer_ids = {1, 4};
    text.engram_num_embeddings = {1916, 2148};
    text.engram_max_ngram_size = 4;
    text.engram_vocab_size = 300;
    text.engram_n_heads = 2;
  } else {
    text.engram_layer_ids = {1, 2};
    text.engram_num_embeddings = {1854, 2194};
    text.engram_max_ngram_size = 3;
    text.engram_vocab_size = 200;
    text.engram_n_heads = 4;
  }
  return text;
}

/// As much of the real map as the golden sequence needs.
std::vector<int32_t> partial_release_map(const json& release) {
  std::vector<int32_t> map(129280, 0);
  for (const auto& [id, compressed] : release["token_map_sample"].items()) {
    map[std::stoul(id)] = compressed.get<int32_t>();
  }
  for (size_t position = 0; position < release["ids"].size(); ++position) {
    if (!release["image"][position].get<bool>()) {
      map[release["ids"][position].get<size_t>()] = release["windows"][position][0].get<int32_t>();
    }
  }
  return map;
}

std::vector<int32_t> compress_all(const EngramHash& hash, const json& ids, const json& image) {
  std::vector<int32_t> out;
  for (size_t position = 0; position < ids.size(); ++position) {
    const bool is_image =
        image[position].is_boolean() ? image[position].get<bool>() : image[position].get<int>() != 0;
    out.push_back(is_image ? kImagePosition : hash.compress(ids[position].get<int32_t>()));
  }
  return out;
}

std::vector<int64_t> rows_of(const EngramHash& hash, size_t slot, std::span<const int32_t> compressed,
                             size_t first = 0) {
  std::vector<int64_t> out((compressed.size() - first) * static_cast<size_t>(hash.rows_per_token()), -7);
  hash.rows(slot, compressed, first, out.data());
  return out;
}

std::vector<int64_t> flatten(const json& rows) {
  std::vector<int64_t> out;
  for (const json& row : rows) {
    for (const json& value : row) {
      out.push_back(value.get<int64_t>());
    }
  }
  return out;
}

TEST(EngramHash, GivesTheRowsOfTheRelease) {
  const json release = read_json("release.json");
  const auto hash = EngramHash::create(release_config(), partial_release_map(release));
  ASSERT_TRUE(hash) << hash.error().message;
  EXPECT_EQ(hash->rows_per_token(), 24);
  EXPECT_EQ(hash->context_length(), 3);
  ASSERT_EQ(hash->num_layers(), 2U);
  EXPECT_EQ(hash->num_rows(0), 384006168);
  EXPECT_EQ(hash->num_rows(1), 384016682);
  const auto compressed = compress_all(*hash, release["ids"], release["image"]);
  for (size_t slot = 0; slot < 2; ++slot) {
    EXPECT_EQ(rows_of(*hash, slot, compressed), flatten(release["hash_ids"][slot])) << slot;
  }
}

TEST(EngramHash, GivesTheRowsOfTheSmallCheckpoints) {
  const auto map = read_json("vocabulary_maps.json")["reference"].get<std::vector<int32_t>>();
  const json cases = read_json("hash_cases.json");
  ASSERT_EQ(cases.size(), 6U);
  for (const json& test : cases) {
    const auto text = small_config(test["checkpoint"]);
    const auto hash = EngramHash::create(text, map);
    ASSERT_TRUE(hash) << hash.error().message;
    const auto compressed = compress_all(*hash, test["ids"], test["image"]);
    for (size_t slot = 0; slot < text.engram_layer_ids.size(); ++slot) {
      EXPECT_EQ(rows_of(*hash, slot, compressed),
                flatten(test["rows"][std::to_string(text.engram_layer_ids[slot])]))
          << test["case"] << " layer " << text.engram_layer_ids[slot];
    }
  }
}

TEST(EngramHash, ChunksWithContextEqualTheWhole) {
  const auto map = read_json("vocabulary_maps.json")["reference"].get<std::vector<int32_t>>();
  for (const json& test : read_json("hash_cases.json")) {
    const auto hash = EngramHash::create(small_config(test["checkpoint"]), map);
    ASSERT_TRUE(hash);
    const auto compressed = compress_all(*hash, test["ids"], test["image"]);
    const auto whole = rows_of(*hash, 1, compressed);
    const auto context = static_cast<size_t>(hash->context_length());
    for (const size_t chunk : {size_t{1}, size_t{2}, size_t{5}, size_t{16}}) {
      std::vector<int64_t> joined;
      for (size_t begin = 0; begin < compressed.size(); begin += chunk) {
        const size_t end = std::min(compressed.size(), begin + chunk);
        const size_t seen = std::min(begin, context);
        const auto part =
            rows_of(*hash, 1, std::span(compressed).subspan(begin - seen, seen + end - begin), seen);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      EXPECT_EQ(joined, whole) << test["case"] << " in chunks of " << chunk;
    }
  }
}

TEST(EngramHash, AnImageHidesWhatIsBeforeIt) {
  const auto map = read_json("vocabulary_maps.json")["reference"].get<std::vector<int32_t>>();
  const auto hash = EngramHash::create(small_config("tiny"), map);
  ASSERT_TRUE(hash);
  const int32_t a = hash->compress(100);
  const int32_t b = hash->compress(200);
  const std::vector<int32_t> with_image = {a, kImagePosition, b, a, b};
  const std::vector<int32_t> from_start = {b, a, b};
  const auto rows = rows_of(*hash, 0, with_image);
  EXPECT_TRUE(std::all_of(rows.begin() + 6, rows.begin() + 12, [](int64_t row) { return row == -1; }));
  EXPECT_EQ(std::vector<int64_t>(rows.begin() + 12, rows.end()), rows_of(*hash, 0, from_start));
}

TEST(EngramHash, WithoutCompressionIdsAreHashedAsTheyAre) {
  auto text = small_config("tiny");
  text.engram_compressed_vocab_size = 0;
  std::vector<int32_t> identity(2048);
  for (size_t id = 0; id < identity.size(); ++id) {
    identity[id] = static_cast<int32_t>(id);
  }
  const auto plain = EngramHash::create(text, {});
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->compress(2047), 2047);
  text.engram_compressed_vocab_size = 2048;
  const auto mapped = EngramHash::create(text, identity);
  ASSERT_TRUE(mapped) << mapped.error().message;
  const std::vector<int32_t> ids = {5, 2047, 0, 17, 2};
  EXPECT_EQ(rows_of(*plain, 0, ids), rows_of(*mapped, 0, ids));
}

TEST(EngramHash, IdsOutsideTheMapCountAsPadding) {
  const auto map = read_json("vocabulary_maps.json")["reference"].get<std::vector<int32_t>>();
  const auto hash = EngramHash::create(small_config("tiny"), map);
  ASSERT_TRUE(hash);
  EXPECT_EQ(hash->compress(2048), map[2]);
  EXPECT_EQ(hash->compress(-1), map[2]);
  EXPECT_EQ(hash->compress(INT32_MAX), map[2]);
  EXPECT_EQ(hash->compress(2047), map[2047]);
}

TEST(EngramHash, EveryRowLiesInItsOwnPartOfTheTable) {
  auto text = release_config();
  std::vector<int32_t> map(129280, 99091);
  map[2] = 2;
  const auto hash = EngramHash::create(text, map);
  ASSERT_TRUE(hash);
  std::vector<int32_t> compressed;
  for (int32_t id = 0; id < 3000; ++id) {
    compressed.push_back(static_cast<int32_t>((int64_t{id} * 7919 * 104729) % 99092));
  }
  const auto rows = rows_of(*hash, 0, compressed);
  for (size_t index = 0; index < rows.size(); ++index) {
    const auto column = static_cast<int64_t>(index % 24);
    EXPECT_GE(rows[index], column * 16000057);
    EXPECT_LT(rows[index], (column + 1) * 16000463);
  }
}

TEST(EngramHash, RefusesWhatDoesNotFit) {
  const auto map = read_json("vocabulary_maps.json")["reference"].get<std::vector<int32_t>>();
  const auto expect_refused = [&](checkpoint::TextConfig text, std::span<const int32_t> vocabulary,
                                  const char* expected) {
    const auto hash = EngramHash::create(text, vocabulary);
    ASSERT_FALSE(hash) << expected;
    EXPECT_EQ(hash.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(hash.error().message, HasSubstr(expected));
  };
  auto text = small_config("tiny");
  text.engram_compressed_vocab_size = 1640;
  expect_refused(text, map, "engram_compressed_vocab_size: found 1640, expected 1639");
  expect_refused(text, {}, "engram_compressed_vocab_size: found 1640, expected 0");
  text = small_config("tiny");
  text.engram_num_embeddings = {1916, 2149};
  expect_refused(text, map, "engram_num_embeddings[1]: found 2149, expected 2148");
  text.engram_num_embeddings = {1916};
  expect_refused(text, map, "engram_num_embeddings[1]: found 0, expected 2148");
  text = small_config("tiny");
  text.engram_pad_token_id = 2048;
  expect_refused(text, map, "engram_pad_token_id: found 2048, expected an id below 2048");
}

}  // namespace
}  // namespace hadal::model
