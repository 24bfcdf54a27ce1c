#include "tokenizer/bpe.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace hadal::tokenizer {
namespace {

size_t index(int32_t token) {
  return static_cast<size_t>(token);
}

size_t byte_pair(char first, char second) {
  return static_cast<size_t>(static_cast<uint8_t>(first)) << 8 | static_cast<uint8_t>(second);
}

/// Whether each merge has a higher rank than all merges that make one of its two parts.
bool do_parts_come_first(std::span<const Bpe::Merge> merges, size_t num_tokens) {
  std::vector<int64_t> last_made(num_tokens, -1);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    last_made[index(merges[rank].token)] = static_cast<int64_t>(rank);
  }
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    if (std::max(last_made[index(merges[rank].left)], last_made[index(merges[rank].right)]) >=
        static_cast<int64_t>(rank)) {
      return false;
    }
  }
  return true;
}

/// How a long word is cut into windows, by the number of failed attempts at a position.
struct Attempt {
  size_t window;     ///< bytes
  size_t margin;     ///< tokens that end in this many last bytes are not trusted
  size_t step_back;  ///< bytes of tokens that are taken back before
};
constexpr std::array<Attempt, 3> kAttempts = {{{64, 16, 0}, {512, 128, 32}, {4096, 1024, 256}}};
// Beyond the table: the whole word.
constexpr size_t kLastAttempt = kAttempts.size();
/// In one window of CJK characters, all three bytes long.
constexpr size_t kCjkWindow = SmallMerge::kMaxSymbols * 3;

}  // namespace

Result<Bpe> Bpe::create(std::span<const std::string_view> token_bytes, std::span<const Merge> merges,
                        bool ignore_merges) {
  Bpe bpe;
  bpe.merges_ = MergeTable(merges.size());
  bpe.produced_.assign(token_bytes.size(), false);
  std::vector<CjkMerger::MergeBytes> merge_bytes;
  merge_bytes.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    if (!bpe.merges_.add(merge.left, merge.right, merge.token)) {
      return fail(ErrorCode::kCorrupt, "model.merges[{}]: its pair was already merged by an earlier one",
                  rank);
    }
    bpe.produced_[index(merge.token)] = !token_bytes[index(merge.token)].empty();
    merge_bytes.push_back(
        {merge.left, merge.right, token_bytes[index(merge.left)], token_bytes[index(merge.right)]});
  }
  bpe.parts_come_first_ = do_parts_come_first(merges, token_bytes.size());
  bpe.set_bytes(token_bytes);
  BpeScratch scratch;
  bpe.cjk_ = CjkMerger(merge_bytes, [&](std::string_view character, std::vector<int32_t>& ids) {
    bpe.encode_by_definition(character, scratch, ids);
  });
  bpe.set_whole_words(token_bytes, ignore_merges);
  return bpe;
}

void Bpe::set_bytes(std::span<const std::string_view> token_bytes) {
  std::fill(std::begin(byte_tokens_), std::end(byte_tokens_), -1);
  lengths_.resize(token_bytes.size());
  for (size_t token = 0; token < token_bytes.size(); ++token) {
    const std::string_view bytes = token_bytes[token];
    lengths_[token] = static_cast<uint32_t>(bytes.size());
    longest_token_ = std::max(longest_token_, bytes.size());
    if (bytes.size() == 1) {
      byte_tokens_[static_cast<uint8_t>(bytes[0])] = static_cast<int32_t>(token);
      produced_[token] = true;
    }
  }
  byte_pair_ranks_.resize(size_t{1} << 16);
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      byte_pair_ranks_[byte_pair(static_cast<char>(first), static_cast<char>(second))] =
          merges_.rank(byte_tokens_[first], byte_tokens_[second]);
    }
  }
}

void Bpe::set_whole_words(std::span<const std::string_view> token_bytes, bool ignore_merges) {
  short_words_ = WholeWords(token_bytes.size());
  long_words_ = StringIndex(
      static_cast<size_t>(std::count_if(token_bytes.begin(), token_bytes.end(), [](std::string_view bytes) {
        return bytes.size() > WordKey::kMaxBytes;
      })));
  BpeScratch scratch;
  std::vector<int32_t> ids;
  for (size_t token = 0; token < token_bytes.size(); ++token) {
    const std::string_view bytes = token_bytes[token];
    if (bytes.empty()) {
      continue;
    }
    if (ignore_merges) {
      produced_[token] = true;
    } else {
      ids.clear();
      encode_window(bytes, scratch, ids);
      if (ids.size() != 1 || index(ids[0]) != token) {
        continue;
      }
    }
    if (bytes.size() > WordKey::kMaxBytes) {
      long_words_.insert(bytes, static_cast<int32_t>(token));
    } else {
      const WordWindow window(bytes.data(), bytes.data() + bytes.size());
      short_words_.insert(window.key(bytes.size()), static_cast<int32_t>(token));
    }
  }
}

bool Bpe::start_row(std::string_view word, SmallMerge& row) const {
  if (cjk_.start(word, row)) {
    return true;
  }
  if (word.size() > SmallMerge::kMaxSymbols) {
    return false;
  }
  row.start(word.size(), merges_.ranks());
  for (size_t i = 0; i < word.size(); ++i) {
    row.symbol(i) = byte_tokens_[static_cast<uint8_t>(word[i])];
  }
  for (size_t i = 0; i + 1 < word.size(); ++i) {
    row.set_rank(i, byte_pair_ranks_[byte_pair(word[i], word[i + 1])]);
  }
  return true;
}

void Bpe::encode_long(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  const size_t first_id = ids.size();
  size_t at = 0;
  size_t attempt = 0;
  while (at < word.size()) {
    const std::string_view text = window_at(word, at, attempt);
    scratch.window.clear();
    encode_window(text, scratch, scratch.window);
    size_t kept = 0;
    size_t kept_bytes = 0;
    const bool is_last = at + text.size() == word.size();
    const size_t trusted = is_last ? text.size() : text.size() - kAttempts[attempt].margin;
    while (kept < scratch.window.size() && kept_bytes + lengths_[index(scratch.window[kept])] <= trusted) {
      kept_bytes += lengths_[index(scratch.window[kept++])];
    }
    const bool joins =
        ids.size() == first_id || (kept > 0 && border_holds(word.substr(at - lengths_[index(ids.back())]),
                                                            ids.back(), scratch.window[0], scratch));
    if (kept > 0 && joins) {
      ids.insert(ids.end(), scratch.window.begin(), scratch.window.begin() + static_cast<ptrdiff_t>(kept));
      at += kept_bytes;
      attempt = 0;
      continue;
    }
    ++attempt;
    const size_t step_back = attempt == kLastAttempt ? at : std::min(at, kAttempts[attempt].step_back);
    for (const size_t target = at - step_back; at > target;) {
      at -= lengths_[index(ids.back())];
      ids.pop_back();
    }
  }
}

/// The text from `at` on that is encoded at once.
std::string_view Bpe::window_at(std::string_view word, size_t at, size_t attempt) const {
  if (attempt == kLastAttempt) {
    return word.substr(at);
  }
  // Whole characters start with E3 or more; where other ones follow, the window is merely longer than a row
  // takes.
  const bool cjk = attempt == 0 && CjkMerger::is_run(word.substr(at, kCjkWindow));
  return word.substr(at, cjk ? kCjkWindow : kAttempts[attempt].window);
}

/// Whether two tokens that `text` starts with stay apart when encoded together.
bool Bpe::border_holds(std::string_view text, int32_t left, int32_t right, BpeScratch& scratch) const {
  scratch.border.clear();
  encode_window(text.substr(0, lengths_[index(left)] + lengths_[index(right)]), scratch, scratch.border);
  return scratch.border.size() == 2 && scratch.border[0] == left && scratch.border[1] == right;
}

void Bpe::encode_window(std::string_view text, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  if (start_row(text, scratch.row)) {
    scratch.operations += text.size();
    merge_rows(std::span(&scratch.row, 1), merges_);
    scratch.row.for_each([&](int32_t symbol) { append_symbol(symbol, ids); });
    return;
  }
  if (!parts_come_first_ || !encode_in_passes(text, scratch, ids)) {
    encode_by_definition(text, scratch, ids);
  }
}

}  // namespace hadal::tokenizer
