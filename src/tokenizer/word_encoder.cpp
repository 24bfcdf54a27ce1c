#include "tokenizer/word_encoder.h"

#include <algorithm>

namespace hadal::tokenizer {

void WordEncoder::flush() {
  batch_.many.clear();
  look_up();
  encode_unknown();
  append_words();
  size_ = 0;
}

void WordEncoder::look_up() {
  num_unknown_ = 0;
  for (size_t i = 0; i < size_; ++i) {
    WordBatch::Word& word = batch_.words[i];
    if (word.size <= WordKey::kMaxBytes) {
      if (const WordCache::Entry* const entry = cache_.find(word.place, word.key)) {
        word.ids = entry->ids;
        word.count = entry->count;
        continue;
      }
      bpe_.prefetch_whole_word(word.key);
    }
    batch_.unknown[num_unknown_++] = static_cast<uint32_t>(i);
  }
}

void WordEncoder::encode_unknown() {
  for (const uint32_t i : std::span(batch_.unknown).first(num_unknown_)) {
    WordBatch::Word& word = batch_.words[i];
    const std::string_view text(word.begin, word.size);
    if (word.size <= WordKey::kMaxBytes) {
      // The same word may have come before in this batch.
      if (const WordCache::Entry* const entry = cache_.find(word.place, word.key)) {
        word.ids = entry->ids;
        word.count = entry->count;
        continue;
      }
      const int32_t token = bpe_.whole_word(word.key);
      if (token != Bpe::kNoToken) {
        word.ids[0] = token;
        word.count = 1;
        cache_.insert(word.place, word.key, std::span(word.ids).first(1));
        continue;
      }
    } else if (const int32_t token = bpe_.whole_long_word(text); token != Bpe::kNoToken) {
      word.ids[0] = token;
      word.count = 1;
      continue;
    }
    if (bpe_.start_row(text, batch_.rows[num_rows_])) {
      batch_.row_words[num_rows_] = i;
      if (++num_rows_ == kMaxRowsAtOnce) {
        merge_started_rows();
      }
      continue;
    }
    const size_t first = batch_.many.size();
    bpe_.encode_long(text, scratch_, batch_.many);
    set_ids(word, first);
  }
  merge_started_rows();
}

void WordEncoder::merge_started_rows() {
  merge_rows(std::span(batch_.rows).first(num_rows_), bpe_.merges());
  for (size_t row = 0; row < num_rows_; ++row) {
    const size_t first = batch_.many.size();
    batch_.rows[row].for_each([this](int32_t symbol) { bpe_.append_symbol(symbol, batch_.many); });
    set_ids(batch_.words[batch_.row_words[row]], first);
  }
  num_rows_ = 0;
}

// The ids of the word are those from `first` on in `many`; few go into the word and the cache.
void WordEncoder::set_ids(WordBatch::Word& word, size_t first) {
  const auto ids = std::span<const int32_t>(batch_.many).subspan(first);
  if (ids.size() > WordCache::kMaxTokens) {
    word.ids[0] = static_cast<int32_t>(first);
    word.count = WordBatch::kMany + static_cast<uint32_t>(ids.size());
    return;
  }
  std::copy(ids.begin(), ids.end(), word.ids.begin());
  word.count = static_cast<uint32_t>(ids.size());
  if (word.size <= WordKey::kMaxBytes) {
    cache_.insert(word.place, word.key, ids);
  }
  batch_.many.resize(first);
}

void WordEncoder::append_words() {
  for (const WordBatch::Word& word : std::span(batch_.words).first(size_)) {
    if (word.count == 1) {
      ids_.push_back(word.ids[0]);
    } else if (word.count < WordBatch::kMany) {
      ids_.insert(ids_.end(), word.ids.begin(), word.ids.begin() + word.count);
    } else {
      const auto first = batch_.many.begin() + word.ids[0];
      ids_.insert(ids_.end(), first, first + (word.count - WordBatch::kMany));
    }
  }
}

}  // namespace hadal::tokenizer
