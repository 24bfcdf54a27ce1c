// Tool calls in DSML. With # for the special token, both versions read
//
//   <# calls> <# invoke name="NAME"> <# parameter name="KEY" string="true|false">VALUE</# parameter> ...
//   </# invoke> ... </# calls>
//
// with or without the space behind #, any word ending in `calls`, and any space between the tags.

#include "recipe/parse/dsml_bytes.h"
#include "recipe/parse/machine.h"

namespace hadal::recipe {

namespace {

constexpr std::string_view kNameAttribute = "name=\"";
constexpr std::string_view kInvoke = "invoke";
constexpr size_t kMaxTagBytes = 512;  ///< from `<#` to the end of the first tool's name

// The order of call_markers_ and find_call_markers_.
constexpr size_t kParameter = 0;
constexpr size_t kCloseCall = 1;
constexpr size_t kNextCall = 2;
constexpr size_t kFoundCall = 0;

bool is_control(char byte) {
  return static_cast<unsigned char>(byte) < 0x20;
}

bool names_block(std::string_view word) {
  return word.ends_with("calls");
}

}  // namespace

// ---- in front of a call

/// Behind the newlines and `<#`, which are the last `num_marker_bytes` pending bytes; 0 where the output
/// starts inside of a block.
void OutputParser::Machine::begin_calls(size_t num_marker_bytes) {
  text_state_ = state_;
  calls_in_block_ = false;
  if (settings_.as_reference) {
    queue_.drop_all();
    enter_find_call();
  } else {
    enter_calls_tag(num_marker_bytes == 0 ? TagPart::kGap : TagPart::kWord, num_marker_bytes);
  }
  queue_.cut();
}

void OutputParser::Machine::enter_calls_tag(TagPart part, size_t num_marker_bytes) {
  state_ = State::kCallsTag;
  tag_part_ = part;
  marker_bytes_ = num_marker_bytes;
  word_.clear();
  gap_matched_ = 0;
  matched_ = 0;
}

void OutputParser::Machine::enter_find_call() {
  state_ = State::kFindCall;
  find_call_markers_.reset();
}

void OutputParser::Machine::run_calls_tag() {
  while (!queue_.at_end()) {
    const char byte = queue_.byte();
    const Origin origin = queue_.origin();
    queue_.advance();
    if (!calls_tag_takes(byte, origin) || queue_.num_pending() > marker_bytes_ + kMaxTagBytes) {
      no_call_here();
      return;
    }
    if (state_ != State::kCallsTag) {
      return;
    }
  }
}

bool OutputParser::Machine::calls_tag_takes(char byte, Origin origin) {
  if (tag_part_ == TagPart::kGap) {
    return gap_takes(byte, origin);
  }
  if (origin == Origin::kSpecialToken) {
    return false;
  }
  switch (tag_part_) {
    case TagPart::kWord:
      if (is_tag_word(byte)) {
        word_.push_back(byte);
        return word_.size() <= kMaxWordBytes;
      }
      if (byte == ' ') {
        if (!word_.empty()) {
          tag_part_ = word_ == kInvoke ? TagPart::kAttribute : TagPart::kTagEnd;
        }
        return true;
      }
      tag_part_ = TagPart::kGap;
      return byte == '>' && names_block(word_);
    case TagPart::kTagEnd:
      if (byte == '>') {
        tag_part_ = TagPart::kGap;
      }
      return (byte == '>' && names_block(word_)) || byte == ' ';
    case TagPart::kAttribute:
      return attribute_takes(byte);
    case TagPart::kName:
      if (byte == '"') {
        begin_call();
        return true;
      }
      word_.push_back(byte);
      return byte != '<' && byte != '>' && !is_control(byte);
    case TagPart::kGap:
      break;
  }
  return false;
}

/// Space, then `<#` of a tag or `</#` of the end of the block.
bool OutputParser::Machine::gap_takes(char byte, Origin origin) {
  if (gap_matched_ == 0) {
    if (is_tag_space(byte)) {
      return true;
    }
    may_open_ = true;
    may_close_ = true;
  }
  may_open_ = may_open_ && open_.step(gap_matched_, byte, origin) == gap_matched_ + 1;
  may_close_ = may_close_ && close_.step(gap_matched_, byte, origin) == gap_matched_ + 1;
  ++gap_matched_;
  if (may_open_ && gap_matched_ == open_.size()) {
    gap_matched_ = 0;
    word_.clear();
    tag_part_ = TagPart::kWord;
    return true;
  }
  if (may_close_ && gap_matched_ == close_.size()) {
    queue_.drop_all();
    word_.clear();
    closing_ = Closing::kBlock;
    state_ = State::kCloseTag;
    return true;
  }
  return may_open_ || may_close_;
}

bool OutputParser::Machine::attribute_takes(char byte) {
  if (matched_ == 0 && byte == ' ') {
    return true;
  }
  if (byte != kNameAttribute[matched_]) {
    return false;
  }
  if (++matched_ == kNameAttribute.size()) {
    word_.clear();
    tag_part_ = TagPart::kName;
  }
  return true;
}

/// What looked like the way to a call is text. Between calls that text also ends the block.
void OutputParser::Machine::no_call_here() {
  const bool behind_call = calls_in_block_ || marker_bytes_ == 0;
  calls_in_block_ = false;
  if (behind_call) {
    queue_.go_back_to(0);
    enter_content(true);
    return;
  }
  ++faults_.stray_markers;
  // Bytes are read again once for each `<#` within kMaxTagBytes in front of them at most.
  queue_.go_back_to(marker_bytes_);
  queue_.settle_all(text_kind(text_state_));
  enter_text(text_state_, false);
}

void OutputParser::Machine::run_find_call() {
  while (!queue_.at_end()) {
    const auto found = find_call_markers_.step(queue_.byte(), queue_.origin());
    queue_.advance();
    if (found == kFoundCall) {
      queue_.drop_all();
      word_.clear();
      state_ = State::kFindName;
      return;
    }
    if (found && calls_in_block_) {
      queue_.drop_all();
      leave_block();
      return;
    }
    if (found) {
      find_call_markers_.pass_over();
    }
  }
  queue_.drop_all();
}

void OutputParser::Machine::run_find_name() {
  while (!queue_.at_end()) {
    const char byte = queue_.byte();
    queue_.advance();
    if (byte == '"') {
      begin_call();
      return;
    }
    word_.push_back(byte);
  }
  queue_.drop_all();
}

// ---- in a call

/// word_ is the tool's name.
void OutputParser::Machine::begin_call() {
  queue_.drop_all();
  queue_.insert(PieceKind::kCallStart, word_);
  in_call_ = true;
  arguments_begun_ = false;
  keys_.clear();
  call_markers_.reset();
  state_ = State::kCall;
}

void OutputParser::Machine::run_call() {
  while (!queue_.at_end()) {
    const auto found = call_markers_.step(queue_.byte(), queue_.origin());
    queue_.advance();
    if (!found) {
      continue;
    }
    queue_.drop_all();
    switch (*found) {
      case kParameter:
        state_ = State::kKey;
        return;
      case kCloseCall:
        end_call();
        word_.clear();
        closing_ = Closing::kCall;
        state_ = State::kCloseTag;
        return;
      case kNextCall:  // the end of this one is missing
        end_call();
        enter_calls_tag(TagPart::kName, 0);
        return;
      default:
        return;
    }
  }
  queue_.drop_all();
}

void OutputParser::Machine::end_call() {
  queue_.insert(PieceKind::kArguments, arguments_begun_ ? "}" : "{}");
  queue_.insert(Piece{.kind = PieceKind::kCallEnd});
  in_call_ = false;
  calls_in_block_ = true;
}

// ---- closing tags and behind them

void OutputParser::Machine::run_close_tag() {
  while (!queue_.at_end()) {
    const char byte = queue_.byte();
    const bool in_word = is_tag_word(byte) && word_.size() < kMaxWordBytes;
    if (in_word) {
      word_.push_back(byte);
    }
    if (in_word || (byte == ' ' && word_.empty())) {
      queue_.advance();
      continue;
    }
    if (byte == '>') {
      queue_.advance();
    }
    queue_.drop_all();
    end_close_tag();
    return;
  }
  queue_.drop_all();
}

void OutputParser::Machine::end_close_tag() {
  const bool ends_block = names_block(word_);
  if (closing_ == Closing::kValue) {
    // A call that ends without the end of its last parameter. The reference takes the tag for the
    // parameter's.
    const bool ends_call = !settings_.as_reference && (word_ == kInvoke || ends_block);
    if (!ends_call) {
      call_markers_.reset();
      state_ = State::kCall;
      return;
    }
    end_call();
  }
  if (ends_block) {
    leave_block();
  } else if (settings_.as_reference) {
    enter_find_call();
  } else {
    enter_calls_tag(TagPart::kGap, 0);
  }
}

void OutputParser::Machine::leave_block() {
  calls_in_block_ = false;
  state_ = State::kBehindCalls;
}

/// Space at the end of the output is nothing; in front of more text it is text.
void OutputParser::Machine::run_behind_calls() {
  while (!queue_.at_end()) {
    if (!is_tag_space(queue_.byte())) {
      queue_.go_back_to(0);
      enter_content(true);
      return;
    }
    queue_.advance();
  }
}

/// The output ends in a calls block.
void OutputParser::Machine::finish_call() {
  finish_parameter();
  queue_.drop_all();
  if (in_call_) {
    ++faults_.cut_calls;
    // The reference counts a call without any argument as whole.
    call_cut_off_ = arguments_begun_ || !settings_.as_reference;
    queue_.insert(Piece{.kind = PieceKind::kCallEnd, .complete = false});
  }
}

}  // namespace hadal::recipe
