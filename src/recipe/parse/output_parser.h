#pragma once
// The streaming parser of model output: reasoning, content, tool calls (DSML of V4 and V4.1), JSON output
// mode, stop sequences. docs/protocol-compatibility-output.md says what it accepts and what becomes of the
// rest.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/parse/piece.h"
#include "recipe/prepared_request.h"
#include "recipe/special_tokens.h"
#include "tokenizer/tokenizer.h"

namespace hadal::recipe {

/// How much the parser found that a well-behaved model would not write; for metrics and logs.
struct OutputFaults {
  uint64_t stray_markers = 0;       ///< calls markers without a call behind them, shown as text
  uint64_t repaired_values = 0;     ///< arguments that were not JSON, or lacked the string attribute
  uint64_t repeated_keys = 0;       ///< parameters given twice; the first counts
  uint64_t cut_calls = 0;           ///< calls that the end of the output cut off
  uint64_t calls_in_reasoning = 0;  ///< calls blocks that began before the reasoning was closed
  uint64_t dropped_text_bytes = 0;  ///< text behind calls where the protocol has no place for it
};

struct ParserSettings {
  ParsingOptions options;
  SpecialTokens special_tokens;
  /// Loses what deepseek-recipe 0.2.0 loses, for comparison with it: text in calls blocks outside of calls,
  /// and the text (not the length) of what is not JSON in JSON output mode, one space for each piece of
  /// input.
  bool as_reference = false;
};

/// Turns output, fed as text or as token ids cut anywhere, into pieces. However the output is cut, the pieces
/// of one kind concatenate to the same text (but see ParserSettings::as_reference). Linear time in the length
/// of the output; memory for the text that is not decided yet, which is a few bytes but for
///   - a calls marker: until the tool's name is complete or it is clear that no call follows (512 bytes at
///   most),
///   - a parameter's name, and a value of which it is unknown whether it is a string,
///   - JSON output mode: text in front of the JSON.
class OutputParser {
 public:
  /// Without a tokenizer only text can be fed.
  OutputParser(ParserSettings settings, std::shared_ptr<const tokenizer::Tokenizer> tokenizer);
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;

  /// Input behind a stop sequence or behind finish() is ignored.
  void push_text(std::string_view text);
  /// The tokens are one unit, as one call of push_text() is. End-of-sentence at the end of the output is
  /// dropped.
  void push_tokens(std::span<const int32_t> ids);
  void finish();

  /// Pieces that were completed since the last call, in order.
  std::vector<Piece> take();

  /// The stop sequence that ended the output, if one did.
  const std::optional<std::string>& stop_sequence() const;
  /// Behind finish(): the output ended inside a call.
  bool call_cut_off() const;
  /// Tokens whose text is in pieces of reasoning; token input only.
  uint64_t num_reasoning_tokens() const;
  const OutputFaults& faults() const;

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace hadal::recipe
