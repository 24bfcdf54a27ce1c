// Reasoning and content: text up to a marker.

#include <algorithm>

#include "recipe/parse/machine.h"

namespace hadal::recipe {

namespace {

// Behind the stop sequences, in the order of Machine's marker sets.
constexpr size_t kCalls = 0;
constexpr size_t kEndOfReasoning = 1;

}  // namespace

void OutputParser::Machine::enter_text(State state, bool at_start) {
  state_ = state;
  at_start_ = at_start;
  newlines_ = 0;
  trailing_newlines_ = 0;
  reasoning_markers_.reset();
  content_markers_.reset();
  around_json_markers_.reset();
}

void OutputParser::Machine::enter_content(bool at_start) {
  blanked_ = false;
  enter_text(settings_.options.parse_json_output ? State::kAroundJson : State::kContent, at_start);
}

void OutputParser::Machine::run_text() {
  const bool reasoning = state_ == State::kReasoning;
  MarkerSet& markers = reasoning ? reasoning_markers_ : content_markers_;
  const size_t calls = kCalls + (reasoning ? 0 : num_stops_);
  // Newlines go with the marker behind them; where there is none they need not wait.
  const bool newlines_wait = reasoning || settings_.options.parse_tool_calls;
  const auto matched = [&] {
    return std::max(markers.matched(calls), reasoning ? markers.matched(kEndOfReasoning) : 0);
  };
  while (!queue_.at_end()) {
    if (!at_start_ && trailing_newlines_ == 0 && markers.longest_match() == 0) {
      const std::string_view ahead = queue_.ahead();
      size_t plain = 0;
      while (plain < ahead.size() && ahead[plain] != '\n' && !markers.may_start_with(ahead[plain])) {
        ++plain;
      }
      queue_.advance(plain);
      if (queue_.at_end()) {
        break;
      }
    }
    const char byte = queue_.byte();
    const auto found = markers.step(byte, queue_.origin());
    queue_.advance();
    if (found) {
      text_marker(*found);
      return;
    }
    if (drops_leading_newline(byte)) {
      markers.reset();
      continue;
    }
    count_newlines(byte, matched());
    at_start_ = at_start_ && queue_.num_pending() <= markers.longest_match();
  }
  const size_t waiting = std::max(markers.longest_match(), newlines_wait ? newlines_ + matched() : 0);
  queue_.settle(queue_.num_pending() - std::min(waiting, queue_.num_pending()), text_kind(state_));
}

bool OutputParser::Machine::drops_leading_newline(char byte) {
  if (!at_start_ || byte != '\n' || queue_.num_pending() != 1) {
    return false;
  }
  queue_.drop(1);
  return true;
}

/// `matched` bytes up to this one may become a marker that newlines in front go with.
void OutputParser::Machine::count_newlines(char byte, size_t matched) {
  if (matched == 1) {
    newlines_ = trailing_newlines_;
  }
  trailing_newlines_ = byte == '\n' ? trailing_newlines_ + 1 : 0;
  if (matched == 0) {
    newlines_ = trailing_newlines_;
  }
}

void OutputParser::Machine::text_marker(size_t index) {
  const bool reasoning = state_ == State::kReasoning;
  const MarkerSet& markers = reasoning ? reasoning_markers_ : content_markers_;
  const size_t size = markers.marker(index).size();
  if (!reasoning && index < num_stops_) {
    stop(index, size);
    return;
  }
  const size_t kind = index - (reasoning ? 0 : num_stops_);
  const bool takes_newlines = reasoning || kind == kCalls;
  const size_t taken = size + (takes_newlines ? std::min(newlines_, queue_.num_pending() - size) : 0);
  queue_.settle(queue_.num_pending() - taken, text_kind(state_));
  if (kind == kCalls) {
    faults_.calls_in_reasoning += reasoning ? 1 : 0;
    begin_calls(taken);
    return;
  }
  queue_.drop(taken);
  queue_.cut();
  if (reasoning) {
    enter_content(true);
  } else {
    enter_text(State::kContent, false);  // an end of reasoning where there is none
  }
}

void OutputParser::Machine::stop(size_t index, size_t marker_size) {
  queue_.settle(queue_.num_pending() - marker_size, PieceKind::kContent);
  queue_.drop_all();
  queue_.cut();
  stop_sequence_ = settings_.options.stop_sequences[index];
  state_ = State::kStopped;
}

}  // namespace hadal::recipe
