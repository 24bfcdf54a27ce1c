#pragma once
// Reads a Hugging Face tokenizer.json of the DeepSeek family into plain data, refusing by name what hadal's
// tokenizer does not do. What only belongs to other uses of the file (the post-processor's special tokens) is
// checked and left out.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pretokenizer.h"

namespace hadal::tokenizer {

/// A longer added token is refused: matching looks at this many bytes per byte of text at worst.
inline constexpr size_t kMaxAddedTokenBytes = 512;
/// A larger file is refused. (DeepSeek-V4: 6.4 MB.)
inline constexpr size_t kMaxTokenizerFileBytes = size_t{256} << 20;

struct TokenizerFile {
  std::vector<std::string> spellings;  ///< by id, from model.vocab; empty for unused ids
  std::vector<Bpe::Merge> merges;      ///< in order of rank
  bool ignore_merges = false;
  std::vector<AddedToken>
      added_tokens;                    ///< unique ids and contents; an id in the vocabulary has that spelling
  std::vector<SplitStep> split_steps;  ///< of the pre-tokenizer, without its final ByteLevel
};

/// `source_name` stands in front of every message. Errors: kCorrupt where the file contradicts itself or the
/// format, kUnsupported for what other tokenizers use.
Result<TokenizerFile> read_tokenizer_json(std::string_view json, std::string_view source_name);

}  // namespace hadal::tokenizer
