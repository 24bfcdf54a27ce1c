#pragma once
// Encodes the words of a text in batches.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/word_cache.h"

namespace hadal::tokenizer {

/// The rooms of one batch of words.
struct WordBatch {
  static constexpr size_t kSize = 128;

  struct Word {
    WordKey key;  ///< of words of up to 15 bytes
    const char* begin;
    size_t size;
    size_t place;  ///< in the cache
    std::array<int32_t, WordCache::kMaxTokens> ids;
    uint32_t count;  ///< number of ids; kMany + number if they are in `many` from ids[0] on
  };
  static constexpr uint32_t kMany = 1U << 31;

  std::array<Word, kSize> words;
  std::array<uint32_t, kSize> unknown;  ///< indices of words that the cache does not have
  std::array<SmallMerge, kMaxRowsAtOnce> rows;
  std::array<uint32_t, kMaxRowsAtOnce> row_words;  ///< whose they are
  std::vector<int32_t> many;
};

/// A sink of words that appends their tokens. Working in batches, it asks the memory for what a word needs
/// (its place in the cache, then in the table of whole words) while others are worked on, instead of waiting
/// each time.
class WordEncoder {
 public:
  /// Bytes up to `readable_end`, which is not before the end of any word, may be read.
  WordEncoder(const Bpe& bpe, WordCache& cache, BpeScratch& scratch, WordBatch& batch,
              const char* readable_end, std::vector<int32_t>& ids)
      : bpe_(bpe), cache_(cache), scratch_(scratch), batch_(batch), readable_end_(readable_end), ids_(ids) {}

  void operator()(const char* begin, const char* end) {
    WordBatch::Word& word = batch_.words[size_];
    word.begin = begin;
    word.size = static_cast<size_t>(end - begin);
    if (word.size <= WordKey::kMaxBytes) {
      word.key = WordWindow(begin, readable_end_).key(word.size);
      word.place = WordCache::place(word.key.hash());
      cache_.prefetch(word.place);
    }
    if (++size_ == WordBatch::kSize) {
      flush();
    }
  }

  /// Appends what is still in the batch; to be called after the last word.
  void flush();

 private:
  void look_up();
  void encode_unknown();
  void merge_started_rows();
  void append_words();
  void set_ids(WordBatch::Word& word, size_t first);

  const Bpe& bpe_;
  WordCache& cache_;
  BpeScratch& scratch_;
  WordBatch& batch_;
  const char* readable_end_;
  std::vector<int32_t>& ids_;
  size_t size_ = 0;
  size_t num_unknown_ = 0;
  size_t num_rows_ = 0;
};

}  // namespace hadal::tokenizer
