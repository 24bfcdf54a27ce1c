#pragma once
// What the output parser tells about an answer.

#include <cstdint>
#include <string>

namespace hadal::recipe {

enum class PieceKind : uint8_t {
  kReasoning,  ///< a piece of the reasoning text
  kContent,    ///< a piece of the answer's text
  kCallStart,  ///< `text` is the tool's name
  kArguments,  ///< a piece of the JSON text of the call's arguments
  kCallEnd,    ///< `complete` is false for a call that the end of the output cut off
};

struct Piece {
  PieceKind kind = PieceKind::kContent;
  std::string text = {};
  /// The tokens [token_begin, token_end) of the input, counted from 0, whose text this piece shows (reasoning
  /// and content of token input only). No token belongs to two pieces.
  uint64_t token_begin = 0;
  uint64_t token_end = 0;
  bool complete = true;
};

}  // namespace hadal::recipe
