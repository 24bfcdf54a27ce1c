#pragma once
// The first step of reading a tokenizer.json: JSON events, so that the large parts (vocabulary, merges)
// become vectors directly, and repeated keys and deep nesting are seen.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace hadal::tokenizer {

/// A tokenizer.json as it stands. `rest` is the whole document without model.vocab and model.merges.
struct RawTokenizerFile {
  std::vector<std::pair<std::string, uint64_t>> vocab;      ///< in file order; keys may be repeated
  std::vector<std::pair<std::string, std::string>> merges;  ///< left and right part
  bool has_vocab = false;
  bool has_merges = false;
  nlohmann::json rest;
};

/// Errors: kCorrupt for what is not JSON (with the byte offset), repeated keys, nesting deeper than 64,
/// vocabulary ids that are not unsigned integers, merges that are not two parts.
Result<RawTokenizerFile> parse_tokenizer_json(std::string_view json);

}  // namespace hadal::tokenizer
