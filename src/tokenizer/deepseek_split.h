#pragma once
// The pre-tokenizer of DeepSeek V3, V4 and V4.1 by hand: three Split steps (regexes, Isolated) in one pass.
//
//   1. \p{N}{1,3}
//   2. [一-龥぀-ゟ゠-ヿ]+
//   3. [ASCII punctuation][A-Za-z]+ | [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ | ?[\p{P}\p{S}]+[\r\n]*
//      | \s*[\r\n]+ | \s+(?!\S) | \s+
//
// Steps 1 and 2 run first, so for step 3 a number or a CJK character is the same as the end of the text:
// these are the terminators below. What step 3 does not match stays together as one piece.

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace hadal::tokenizer {

/// The exact texts of the three regexes.
std::span<const std::string_view, 3> deepseek_split_patterns();

/// Counts nothing; tests pass a probe that counts how many characters are looked at.
struct NoProbe {
  void look() {}
};

/// Splits valid UTF-8 into pieces that cover it, in order: `sink(begin, end)` for each, never an empty one.
/// Looks at each character a bounded number of times.
template <class Sink, class Probe = NoProbe>
class DeepseekSplitter {
 public:
  DeepseekSplitter(std::string_view text, Sink& sink, Probe probe = {})
      : end_(text.data() + text.size()), sink_(sink), probe_(probe) {}

  void run(const char* at) {
    while (at != end_) {
      const char* const next = match(at);
      sink_(at, next);
      at = next;
    }
  }

 private:
  static constexpr uint8_t kLetterOrMark = kLetter | kMark;
  static constexpr uint8_t kTerminator = kNumber | kCjkRun;
  static constexpr uint8_t kAnyClass = 0x7F;

  struct Character {
    uint8_t classes;
    uint32_t length;
  };

  /// The end of the text looks like a terminator of no length.
  Character look(const char* at) {
    probe_.look();
    if (at == end_) {
      return {kTerminator, 0};
    }
    const auto byte = static_cast<uint8_t>(*at);
    if (byte < 0x80) {
      return {kAsciiClasses[byte], 1};
    }
    const CodePoint code_point = decode_code_point(at);
    return {unicode_classes(code_point.value), code_point.length};
  }

  /// End of the longest run of ASCII letters, eight bytes a step.
  const char* ascii_letters_end(const char* at) {
    while (end_ - at >= 8) {
      probe_.look();
      uint64_t chunk;
      std::memcpy(&chunk, at, 8);
      // In each byte: the high bit says whether its low seven bits, as lower case, are at least 'a' / above
      // 'z'.
      constexpr uint64_t kEach = 0x0101010101010101U;
      const uint64_t lower = (chunk | 0x20 * kEach) & 0x7F * kEach;
      const uint64_t at_least_a = lower + (0x80 - 'a') * kEach;
      const uint64_t above_z = lower + (0x7F - 'z') * kEach;
      const uint64_t others = ~(at_least_a & ~above_z & ~chunk) & 0x80 * kEach;
      if (others != 0) {
        return at + std::countr_zero(others) / 8;
      }
      at += 8;
    }
    while (at != end_ && is_ascii_letter(*at)) {
      probe_.look();
      ++at;
    }
    return at;
  }

  /// End of the longest run of letters and marks.
  const char* word_end(const char* at) {
    while (true) {
      at = ascii_letters_end(at);
      if (at == end_ || static_cast<uint8_t>(*at) < 0x80) {
        return at;
      }
      const Character character = look(at);
      if ((character.classes & kLetterOrMark) == 0) {
        return at;
      }
      at += character.length;
    }
  }

  /// End of the longest run of characters of the classes.
  const char* run_end(const char* at, uint8_t classes) {
    while (true) {
      while (at != end_ && (kAsciiClasses[static_cast<uint8_t>(*at)] & classes) != 0) {
        probe_.look();
        ++at;
      }
      if (at == end_ || static_cast<uint8_t>(*at) < 0x80) {
        return at;
      }
      const Character character = look(at);
      if ((character.classes & classes) == 0) {
        return at;
      }
      at += character.length;
    }
  }

  static bool is_ascii_letter(char c) { return static_cast<uint8_t>((c | 0x20) - 'a') < 26; }

  const char* match(const char* at) {
    // The most frequent piece first: a space and a word in ASCII letters.
    if (*at == ' ' && at + 1 != end_ && is_ascii_letter(at[1])) {
      return word_end(at + 2);
    }
    const Character first = look(at);
    const char* const second = at + first.length;
    switch (first.classes & kAnyClass) {
      case kLetter:
      case kMark:
        return word_end(second);
      case kSpace:
        return match_space(at, second);
      case kPunctuationOrSymbol:
        if (first.length == 1 && second != end_ && is_ascii_letter(*second)) {
          return ascii_letters_end(second + 1);
        }
        return run_end(run_end(second, kPunctuationOrSymbol), kNewline);
      case kNumber:
        return match_number(second);
      case kCjkRun:
        return run_end(second, kCjkRun);
      case kNewline:
        return match_white_space(at);
      default:
        return match_other(second);
    }
  }

  const char* match_number(const char* at) {
    for (int more = 0; more < 2; ++more) {
      const Character character = look(at);
      if ((character.classes & kNumber) == 0 || character.length == 0) {
        break;
      }
      at += character.length;
    }
    return at;
  }

  const char* match_space(const char* at, const char* second) {
    const Character next = look(second);
    if ((next.classes & kLetterOrMark) != 0) {
      return word_end(second + next.length);
    }
    if (*at == ' ' && (next.classes & kPunctuationOrSymbol) != 0) {
      return run_end(run_end(second + next.length, kPunctuationOrSymbol), kNewline);
    }
    return match_white_space(at);
  }

  /// The last three alternatives: up to the last newline of the run of white space; without one the whole run
  /// if step 3 ends there; else all of it but the last character, which may belong to the next word.
  const char* match_white_space(const char* at) {
    const char* after_newline = nullptr;
    const char* last = at;
    const char* stop = at;
    Character character = look(stop);
    while ((character.classes & (kSpace | kNewline)) != 0) {
      last = stop;
      stop += character.length;
      if ((character.classes & kNewline) != 0) {
        after_newline = stop;
      }
      character = look(stop);
    }
    if (after_newline != nullptr) {
      return after_newline;
    }
    return (character.classes & kTerminator) != 0 || last == at ? stop : last;
  }

  /// A character of no class goes with letters that follow it; else it waits, with others, for the next
  /// match.
  const char* match_other(const char* at) {
    Character character = look(at);
    if ((character.classes & kLetterOrMark) != 0) {
      return word_end(at + character.length);
    }
    while ((character.classes & kAnyClass) == 0) {
      const char* const following = at + character.length;
      const Character next = look(following);
      if ((next.classes & kLetterOrMark) != 0) {
        break;
      }
      at = following;
      character = next;
    }
    return at;
  }

  const char* end_;
  Sink& sink_;
  Probe probe_;
};

}  // namespace hadal::tokenizer
