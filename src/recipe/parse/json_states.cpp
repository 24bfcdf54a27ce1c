// JSON output mode: only the JSON of the answer is shown, with its fence and the text around it blanked.

#include <algorithm>

#include "recipe/parse/machine.h"

namespace hadal::recipe {

namespace {

// The order of around_json_markers_.
constexpr size_t kCalls = 0;
constexpr size_t kEndOfReasoning = 1;
constexpr size_t kJsonFence = 2;
constexpr size_t kPlainFence = 3;

// Behind the stop sequences in json_markers_.
constexpr size_t kCallsInJson = 0;

}  // namespace

void OutputParser::Machine::run_around_json() {
  MarkerSet& markers = around_json_markers_;
  while (!queue_.at_end()) {
    const char byte = queue_.byte();
    const auto found = markers.step(byte, queue_.origin());
    queue_.advance();
    if (found) {
      // Once there was JSON only another fence begins more of it: brackets in the text behind it mean
      // nothing.
      const bool fence = *found == kJsonFence || *found == kPlainFence;
      const bool begins_json = *found >= kJsonFence;
      if (!begins_json || !json_seen_ || (fence && !settings_.as_reference)) {
        around_json_marker(*found);
        return;
      }
      markers.pass_over();
    }
    if (drops_leading_newline(byte)) {
      markers.reset();
      continue;
    }
    count_newlines(byte, markers.matched(kCalls));
    at_start_ = at_start_ && queue_.num_pending() <= markers.longest_match();
  }
  if (!json_seen_ && !settings_.as_reference) {
    return;  // shown after all if no JSON follows
  }
  const size_t with_newlines = settings_.options.parse_tool_calls ? newlines_ + markers.matched(kCalls) : 0;
  const size_t waiting = std::min(std::max(markers.longest_match(), with_newlines), queue_.num_pending());
  blank(queue_.num_pending() - waiting);
}

void OutputParser::Machine::around_json_marker(size_t index) {
  const size_t size = around_json_markers_.marker(index).size();
  const size_t before = queue_.num_pending() - size;
  switch (index) {
    case kCalls: {
      const size_t taken = size + std::min(newlines_, before);
      settle_around_json(queue_.num_pending() - taken);
      begin_calls(taken);
      return;
    }
    case kEndOfReasoning:
      settle_around_json(before);
      queue_.drop(size);
      queue_.cut();
      enter_content(false);
      return;
    default:
      break;
  }
  blank(before);
  queue_.cut();
  json_ = JsonScanner();
  if (index == kJsonFence || index == kPlainFence) {
    queue_.drop(size);
  } else {
    json_.feed(queue_.pending().front());
    queue_.settle(size, PieceKind::kContent);
  }
  queue_.cut();
  json_seen_ = true;
  json_markers_.reset();
  newlines_ = 0;
  trailing_newlines_ = 0;
  state_ = State::kJson;
}

/// Text that turned out to stand beside a call, or to be all there is.
void OutputParser::Machine::settle_around_json(size_t count) {
  if (settings_.as_reference || json_seen_) {
    blank(count);
  } else {
    queue_.settle(count, PieceKind::kContent);
  }
}

void OutputParser::Machine::blank(size_t count) {
  if (settings_.as_reference) {
    queue_.settle(count, PieceKind::kContent, PieceQueue::Form::kBlank);
    return;
  }
  if (count > 0 && !blanked_) {
    queue_.settle(1, PieceKind::kContent, PieceQueue::Form::kBlank);
    blanked_ = true;
    --count;
  }
  queue_.drop(count);
}

void OutputParser::Machine::run_json() {
  MarkerSet& markers = json_markers_;
  const size_t calls = num_stops_ + kCallsInJson;
  while (!queue_.at_end()) {
    const char byte = queue_.byte();
    const auto found = markers.step(byte, queue_.origin());
    queue_.advance();
    json_.feed(byte);
    if (found) {
      const size_t size = markers.marker(*found).size();
      if (*found < num_stops_) {
        stop(*found, size);
        return;
      }
      if (*found == calls && json_.whole()) {
        const size_t taken = size + std::min(newlines_, queue_.num_pending() - size);
        queue_.settle(queue_.num_pending() - taken, PieceKind::kContent);
        state_ = State::kAroundJson;
        begin_calls(taken);
        return;
      }
      if (*found != calls && !json_.in_string()) {
        queue_.settle(queue_.num_pending() - size, PieceKind::kContent);
        queue_.drop(size);
        queue_.cut();
        enter_content(false);
        return;
      }
      markers.pass_over();
    }
    count_newlines(byte, markers.matched(calls));
  }
  const size_t with_newlines = json_.whole() ? newlines_ + markers.matched(calls) : 0;
  const size_t waiting = std::min(std::max(markers.longest_match(), with_newlines), queue_.num_pending());
  queue_.settle(queue_.num_pending() - waiting, PieceKind::kContent);
}

}  // namespace hadal::recipe
