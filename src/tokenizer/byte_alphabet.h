#pragma once
// The byte-level alphabet of GPT-2: a printable character for each of the 256 bytes, in which vocabularies
// and merges are spelled.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hadal::tokenizer {

/// The code point that spells `byte`; below U+0144.
uint32_t spelling_of_byte(uint8_t byte);

/// The bytes that valid UTF-8 `spelling` stands for, or nothing if a character outside of the alphabet is in
/// it.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace hadal::tokenizer
