#include "recipe/parse/piece_queue.h"

#include <algorithm>
#include <utility>

#include "recipe/json_text.h"

namespace hadal::recipe {

void PieceQueue::add(OutputUnit unit) {
  forget_settled_bytes();
  buffer_ += unit.bytes;
  origins_ += unit.origins;
  const uint64_t first_token = num_tokens_;
  num_tokens_ += unit.tokens.size();
  const bool empty_text = unit.bytes.empty() && unit.tokens.empty();
  if (empty_text && text_kind_ && units_.empty()) {
    // Empty text inside a text is passed on as it came: some engines send it to keep a stream alive.
    ready_.push_back(Piece{.kind = *text_kind_});
    return;
  }
  units_.push_back(
      {.bytes = unit.bytes.size(), .tokens = std::move(unit.tokens), .first_token = first_token});
  close_settled_units();
}

void PieceQueue::settle(size_t count, PieceKind kind, Form form) {
  while (count > 0) {
    Unit& unit = units_.front();
    const size_t part = std::min(count, unit.bytes);
    settle_in_unit(unit, part, kind, form);
    settled_ += part;
    count -= part;
    close_settled_units();
  }
}

void PieceQueue::drop(size_t count) {
  while (count > 0) {
    Unit& unit = units_.front();
    const size_t part = std::min(count, unit.bytes);
    unit.bytes -= part;
    unit.settled += part;
    skip_tokens(unit, unit.settled);
    settled_ += part;
    count -= part;
    close_settled_units();
  }
}

void PieceQueue::close_open() {
  if (open_) {
    ready_.push_back(std::move(*open_));
    open_.reset();
  }
}

void PieceQueue::insert(Piece piece) {
  cut();
  ready_.push_back(std::move(piece));
}

void PieceQueue::settle_in_unit(Unit& unit, size_t count, PieceKind kind, Form form) {
  const bool blank = form == Form::kBlank;
  if (!open_ || open_->kind != kind || open_is_blank_ != blank) {
    close_open();
    open_.emplace(Piece{.kind = kind});
    open_is_blank_ = blank;
    if (blank) {
      open_->text = " ";
    }
  }
  text_kind_ = kind;
  const std::string_view bytes = std::string_view(buffer_).substr(settled_, count);
  if (form == Form::kPlain) {
    open_->text += bytes;
  } else if (form == Form::kEscaped) {
    append_json_escaped(open_->text, bytes);
  }
  unit.bytes -= count;
  unit.settled += count;
  if (kind == PieceKind::kArguments) {
    skip_tokens(unit, unit.settled);
  } else {
    attach_tokens(unit, unit.settled - count, unit.settled);
  }
}

void PieceQueue::attach_tokens(Unit& unit, size_t begin, size_t end) {
  for (; unit.next_token < unit.tokens.size(); ++unit.next_token) {
    const TokenSpan span = unit.tokens[unit.next_token];
    const bool last_bytes = unit.bytes == 0 && span.begin == end;  // a token without text at the unit's end
    if (span.begin >= end && !last_bytes) {
      break;
    }
    if (span.end <= begin && span.begin < begin) {
      continue;
    }
    const uint64_t token = unit.first_token + unit.next_token;
    if (open_->token_begin == open_->token_end) {
      open_->token_begin = token;
    }
    open_->token_end = token + 1;
    num_reasoning_tokens_ += open_->kind == PieceKind::kReasoning ? 1 : 0;
  }
}

void PieceQueue::skip_tokens(Unit& unit, size_t end) {
  while (unit.next_token < unit.tokens.size() && unit.tokens[unit.next_token].end <= end &&
         unit.tokens[unit.next_token].begin < end) {
    ++unit.next_token;
  }
}

void PieceQueue::close_settled_units() {
  while (!units_.empty() && units_.front().bytes == 0) {
    if (units_.front().settled > 0) {
      close_open();
    }
    units_.pop_front();
  }
}

void PieceQueue::forget_settled_bytes() {
  constexpr size_t kKeep = 4096;  // moving what is left must stay cheap against what was settled
  if (settled_ > kKeep && settled_ > buffer_.size() / 2) {
    buffer_.erase(0, settled_);
    origins_.erase(0, settled_);
    cursor_ -= settled_;
    settled_ = 0;
  }
}

}  // namespace hadal::recipe
