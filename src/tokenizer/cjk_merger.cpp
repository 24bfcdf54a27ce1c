#include "tokenizer/cjk_merger.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace hadal::tokenizer {
namespace {

bool is_continuation(char c) {
  return (static_cast<uint8_t>(c) & 0xC0) == 0x80;
}
bool is_cjk_lead(char c) {
  return static_cast<uint8_t>(c) >= 0xE3 && static_cast<uint8_t>(c) <= 0xE9;
}
bool all_continuation(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), is_continuation);
}

}  // namespace

// The first merge across a border that takes a part of a character has the part alone on one side: up to two
// bytes from the end of a character before the border, or from the start of one after it.
void CjkMerger::sort_merges(std::span<const MergeBytes> merges) {
  std::vector<size_t> whole;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view left = merges[rank].left;
    const std::string_view right = merges[rank].right;
    if (left.empty() || right.empty() || !is_continuation(left.back()) || !is_cjk_lead(right.front())) {
      continue;
    }
    const bool part_before = left.size() <= 2 && all_continuation(left);
    const bool part_after = right.size() <= 2 && all_continuation(right.substr(1));
    if (part_before || part_after) {
      border_merges_.push_back(
          {left.substr(left.size() - std::min<size_t>(left.size(), 3)), right.substr(0, 3)});
    } else if (is_cjk_lead(left.front())) {
      whole.push_back(rank);
    }
  }
  pair_ranks_ = PairRanks(whole.size());
  for (const size_t rank : whole) {
    pair_ranks_.insert(merges[rank].left_token, merges[rank].right_token, static_cast<int32_t>(rank));
  }
}

CjkMerger::Character CjkMerger::make_character(std::string_view bytes, std::span<const int32_t> ids) {
  Character character{};
  if (ids.size() == 1) {
    character.symbol = ids[0] & kMaxVocabSize;
  } else {
    character.symbol = ~static_cast<int32_t>(parts_.size() & 0xFFFF);
    Parts& parts = parts_.emplace_back(Parts{-1, -1, -1});
    std::copy_n(ids.begin(), std::min(ids.size(), parts.size()), parts.begin());
  }
  for (const BorderMerge& merge : border_merges_) {
    character.begins_border_merge = character.begins_border_merge || bytes.ends_with(merge.before);
    character.ends_border_merge = character.ends_border_merge || bytes.starts_with(merge.after);
  }
  return character;
}

bool CjkMerger::border_merge_at(const char* border) const {
  const std::string_view before(border - 3, 3);
  const std::string_view after(border, 3);
  return std::any_of(border_merges_.begin(), border_merges_.end(), [&](const BorderMerge& merge) {
    return before.ends_with(merge.before) && after.starts_with(merge.after);
  });
}

bool CjkMerger::is_run(std::string_view text) {
  return text.size() % 3 == 0 && !text.empty() && is_cjk_lead(text.front()) &&
         is_cjk_lead(text[text.size() - 3]);
}

bool CjkMerger::start(std::string_view word, SmallMerge& row) const {
  const size_t count = word.size() / 3;
  if (characters_.empty() || count > SmallMerge::kMaxSymbols || !is_run(word)) {
    return false;
  }
  row.start(count, pair_ranks_);
  bool begins_border_merge = false;
  for (size_t i = 0; i < count; ++i) {
    const char* const at = word.data() + 3 * i;
    // A lead byte of three-byte characters; the text is valid, so the other two bytes are what they have to
    // be.
    if (!is_cjk_lead(*at)) {
      return false;
    }
    const uint32_t code_point = decode_code_point(at).value;
    if (code_point < kFirst) {
      return false;
    }
    const Character character = characters_[code_point - kFirst];
    if (begins_border_merge && character.ends_border_merge && border_merge_at(at)) {
      return false;
    }
    begins_border_merge = character.begins_border_merge;
    row.symbol(i) = character.symbol;
  }
  row.prefetch_ranks();
  return true;
}

}  // namespace hadal::tokenizer
