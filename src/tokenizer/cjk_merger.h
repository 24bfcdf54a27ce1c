#pragma once
// Byte-pair encoding of runs of CJK characters, character by character.
//
// In such a run nearly all merges are between whole characters: a merge of a part of a character with
// something beyond that character's border exists for a few pairs only. Where none of these pairs meets, each
// character first comes together on its own (or stays in the same parts always), whatever is beside it, and
// merging can start from whole characters, a third of the symbols.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/merge_table.h"
#include "tokenizer/small_merge.h"

namespace hadal::tokenizer {

class CjkMerger {
 public:
  struct MergeBytes {
    int32_t left_token;
    int32_t right_token;
    std::string_view left;
    std::string_view right;
  };

  CjkMerger() = default;
  /// All merges in order of rank; the views must outlive the object. `encode_character(bytes, ids)` gives the
  /// tokens of one character's bytes on their own, one to three.
  template <class EncodeCharacter>
  CjkMerger(std::span<const MergeBytes> merges, EncodeCharacter&& encode_character) {
    sort_merges(merges);
    if (border_merges_.size() > kMaxBorderMerges) {
      return;
    }
    characters_.resize(kLast - kFirst + 1);
    std::vector<int32_t> ids;
    for (uint32_t code_point = kFirst; code_point <= kLast; ++code_point) {
      const std::array<char, 3> bytes = utf8_of(code_point);
      ids.clear();
      encode_character(std::string_view(bytes.data(), bytes.size()), ids);
      characters_[code_point - kFirst] = make_character(std::string_view(bytes.data(), bytes.size()), ids);
    }
  }

  /// Whether text starts and ends like a run of CJK characters. (start() looks at all of it.)
  static bool is_run(std::string_view text);

  /// Sets up `row` for a word and returns true; or returns false if this way does not do for it: other
  /// characters are in it, more than 64, or a merge of a part may matter. `row` must then be merged to its
  /// end.
  bool start(std::string_view word, SmallMerge& row) const;

  /// Appends the token of a symbol in such a row, or the tokens of what merges with nothing.
  void append(int32_t symbol, std::vector<int32_t>& ids) const {
    if (symbol >= 0) {
      ids.push_back(symbol);
      return;
    }
    for (const int32_t part : parts_[static_cast<size_t>(~symbol)]) {
      if (part >= 0) {
        ids.push_back(part);
      }
    }
  }

 private:
  static constexpr uint32_t kFirst = 0x3040;
  static constexpr uint32_t kLast = 0x9FFF;
  static constexpr size_t kMaxBorderMerges = 64;

  struct Character {
    int32_t symbol : 30;  ///< its token; or ~index into parts_
    bool ends_border_merge : 1;
    bool begins_border_merge : 1;
  };
  static_assert(sizeof(Character) == 4);
  /// Tokens of a character that is not one token, -1 after them.
  using Parts = std::array<int32_t, 3>;

  /// What must meet at a border between characters for a merge of a part: the last bytes before it (at most a
  /// character) and the first bytes after it.
  struct BorderMerge {
    std::string_view before;
    std::string_view after;
  };

  static std::array<char, 3> utf8_of(uint32_t code_point) {
    return {static_cast<char>(0xE0 | code_point >> 12), static_cast<char>(0x80 | (code_point >> 6 & 0x3F)),
            static_cast<char>(0x80 | (code_point & 0x3F))};
  }
  void sort_merges(std::span<const MergeBytes> merges);
  Character make_character(std::string_view bytes, std::span<const int32_t> ids);
  bool border_merge_at(const char* border) const;

  /// Of all merges of what starts and ends with a CJK character: a small table, which stays near while such
  /// text is encoded.
  PairRanks pair_ranks_;
  std::vector<Character> characters_;  ///< from kFirst on; empty if there are too many border merges
  std::vector<Parts> parts_;
  std::vector<BorderMerge> border_merges_;
};

}  // namespace hadal::tokenizer
