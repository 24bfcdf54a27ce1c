#pragma once
// The states of the output parser: machine.cpp holds what they share, text_states.cpp reasoning and content,
// json_states.cpp JSON output mode, call_states.cpp tool calls, parameter_states.cpp their arguments.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "recipe/parse/json_scanner.h"
#include "recipe/parse/marker.h"
#include "recipe/parse/output_parser.h"
#include "recipe/parse/output_unit.h"
#include "recipe/parse/piece_queue.h"
#include "recipe/parse/raw_value.h"

namespace hadal::recipe {

class OutputParser::Machine {
 public:
  Machine(ParserSettings settings, std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

  void push_text(std::string_view text);
  void push_tokens(std::span<const int32_t> ids);
  void finish();

  PieceQueue& queue() { return queue_; }
  const std::optional<std::string>& stop_sequence() const { return stop_sequence_; }
  bool call_cut_off() const { return call_cut_off_; }
  const OutputFaults& faults() const { return faults_; }

 private:
  enum class State : uint8_t {
    kReasoning,
    kContent,
    kAroundJson,  ///< JSON output mode: text in front of the JSON and behind its fence
    kJson,
    kCallsTag,  ///< from `<#` to the name of a tool; also between calls and where the output starts in calls
    kFindCall,  ///< the same as the reference does it: anything up to a call is skipped
    kFindName,
    kCall,  ///< in a call, outside of parameters
    kKey,
    kKeyEnd,      ///< behind a quote that may end the key
    kAttributes,  ///< between key and value
    kString,      ///< values, by what the string attribute says
    kRaw,
    kUnknown,
    kCloseTag,     ///< behind `</#`
    kBehindCalls,  ///< space behind a block of calls
    kStopped,
  };
  /// The parts of `<# calls>` gap `<# invoke name="NAME"`, behind the first `<#`.
  enum class TagPart : uint8_t { kWord, kTagEnd, kGap, kAttribute, kName };
  /// What a closing tag closes.
  enum class Closing : uint8_t { kValue, kCall, kBlock };

  void add_token(int32_t id);
  void add_held_eos();
  void take_unit();
  void run();

  // text_states.cpp
  void enter_text(State state, bool at_start);
  void enter_content(bool at_start);
  void run_text();
  void text_marker(size_t index);
  void count_newlines(char byte, size_t matched);
  bool drops_leading_newline(char byte);
  void stop(size_t index, size_t marker_size);
  PieceKind text_kind(State state) const {
    return state == State::kReasoning ? PieceKind::kReasoning : PieceKind::kContent;
  }

  // json_states.cpp
  void run_around_json();
  void around_json_marker(size_t index);
  void settle_around_json(size_t count);
  void blank(size_t count);
  void run_json();

  // call_states.cpp
  void begin_calls(size_t num_marker_bytes);
  void enter_calls_tag(TagPart part, size_t num_marker_bytes);
  void enter_find_call();
  void run_calls_tag();
  bool calls_tag_takes(char byte, Origin origin);
  bool gap_takes(char byte, Origin origin);
  bool attribute_takes(char byte);
  void no_call_here();
  void run_find_call();
  void run_find_name();
  void begin_call();
  void run_call();
  void end_call();
  void run_close_tag();
  void end_close_tag();
  void leave_block();
  void run_behind_calls();
  void finish_call();

  // parameter_states.cpp
  void run_key();
  void run_key_end();
  bool key_end_takes(char byte);
  void end_key();
  void run_attributes();
  void begin_value();
  void run_value();
  void settle_value(size_t count);
  void end_value(size_t count);
  void finish_parameter();
  void finish_key();

  ParserSettings settings_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::optional<int32_t> eos_id_;
  size_t num_eos_held_ = 0;  ///< dropped unless more output follows
  UnitBuilder builder_;
  PieceQueue queue_;
  bool finished_ = false;
  std::optional<std::string> stop_sequence_;
  bool call_cut_off_ = false;
  OutputFaults faults_;
  State state_ = State::kContent;

  // Markers. The first num_stops_ of content_markers_ and json_markers_ are the stop sequences.
  Marker open_;   ///< `<#`
  Marker close_;  ///< `</#`
  size_t num_stops_ = 0;
  MarkerSet reasoning_markers_;
  MarkerSet content_markers_;
  MarkerSet around_json_markers_;
  MarkerSet json_markers_;
  MarkerSet call_markers_;
  MarkerSet find_call_markers_;

  // Text
  bool at_start_ = false;         ///< newlines are dropped
  size_t newlines_ = 0;           ///< directly in front of what may become `<#` or the end of reasoning
  size_t trailing_newlines_ = 0;  ///< directly in front of the cursor
  bool json_seen_ = false;
  bool blanked_ = false;  ///< the space for this run of text outside of JSON has been given
  JsonScanner json_;

  // Calls
  State text_state_ = State::kContent;  ///< where the block began
  TagPart tag_part_ = TagPart::kGap;
  size_t marker_bytes_ = 0;  ///< pending bytes of newlines and `<#` in front of the tag
  std::string word_;         ///< a tag's word, a tool's name, attributes
  size_t gap_matched_ = 0;   ///< bytes of `<#` or `</#` in a gap
  bool may_open_ = false;
  bool may_close_ = false;
  size_t matched_ = 0;  ///< of `name="` in a tag, of `</#` in a value
  bool calls_in_block_ = false;
  bool in_call_ = false;
  bool arguments_begun_ = false;
  std::unordered_set<std::string> keys_;  ///< parameters of this call
  bool key_quoted_ = false;
  size_t key_bytes_ = 0;  ///< pending bytes of the key with its quotes
  bool skip_parameter_ = false;
  std::optional<RawValue> raw_;
  Closing closing_ = Closing::kBlock;
};

}  // namespace hadal::recipe
