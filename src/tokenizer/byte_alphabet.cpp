#include "tokenizer/byte_alphabet.h"

#include <array>

#include "tokenizer/utf8.h"

namespace hadal::tokenizer {
namespace {

constexpr uint32_t kAlphabetEnd = 0x144;

struct Alphabet {
  std::array<uint16_t, 256> of_byte{};
  std::array<int16_t, kAlphabetEnd> to_byte{};
};

// Printable bytes of Latin-1 stand for themselves, the others are numbered from U+0100 on in byte order.
constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (int16_t& byte : alphabet.to_byte) {
    byte = -1;
  }
  uint16_t next = 0x100;
  for (uint16_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const uint16_t spelled = printable ? byte : next++;
    alphabet.of_byte[byte] = spelled;
    alphabet.to_byte[spelled] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

uint32_t spelling_of_byte(uint8_t byte) {
  return kAlphabet.of_byte[byte];
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (size_t at = 0; at < spelling.size();) {
    const CodePoint code_point = decode_code_point(spelling.data() + at);
    if (code_point.value >= kAlphabetEnd || kAlphabet.to_byte[code_point.value] < 0) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kAlphabet.to_byte[code_point.value]));
    at += code_point.length;
  }
  return bytes;
}

}  // namespace hadal::tokenizer
