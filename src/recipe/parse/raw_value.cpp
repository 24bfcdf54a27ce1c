#include "recipe/parse/raw_value.h"

namespace hadal::recipe {

namespace {

constexpr size_t kUnicodeEscape = 6;  // bytes of \uXXXX

bool is_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}
bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

/// The value of a hexadecimal digit, or -1.
int hex_value(char byte) {
  if (is_digit(byte)) {
    return byte - '0';
  }
  const char lower = static_cast<char>(byte | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

void RawValue::feed(char byte) {
  ++held_;
  switch (state_) {
    case State::kGarbage:
      emit_escaped(1);
      return;
    case State::kString:
    case State::kEscape:
      feed_string(byte);
      return;
    case State::kHexDigits:
      feed_hex_digit(byte);
      return;
    case State::kLiteral:
      if (byte != literal_.front()) {
        begin_garbage();
        return;
      }
      literal_.remove_prefix(1);
      if (literal_.empty()) {
        end_value();
      }
      return;
    case State::kNumber:
      if (number_takes(byte)) {
        return;
      }
      if (!number_complete()) {
        begin_garbage();
        return;
      }
      --held_;  // the byte is not part of the number
      end_value();
      ++held_;
      break;
    default:
      break;
  }
  if (is_space(byte)) {
    feed_space();
  } else {
    feed_structure(byte);
  }
}

void RawValue::feed_space() {
  const bool waits = state_ == State::kDone || behind_comma_ || depth_ == 0;
  if (!waits) {
    emit(held_);
  }
}

void RawValue::feed_structure(char byte) {
  const bool closes = depth_ > 0 && byte == (in_object() ? '}' : ']');
  if (behind_comma_ && closes) {  // a comma too many: it goes, the bracket stays
    queue_.drop(held_ - 1);
    held_ = 1;
    repaired_ = true;
    behind_comma_ = false;
    close_container();
    return;
  }
  switch (state_) {
    case State::kFirstItem:
    case State::kFirstKey:
      empty_container_ = closes;
      if (closes) {
        close_container();
        return;
      }
      if (state_ == State::kFirstItem) {
        begin_value(byte);
        return;
      }
      break;
    case State::kValue:
      begin_value(byte);
      return;
    case State::kColon:
      if (byte == ':') {
        emit(held_);
        state_ = State::kValue;
        return;
      }
      break;
    case State::kAfterValue:
      if (closes) {
        empty_container_ = false;
        close_container();
        return;
      }
      if (byte == ',') {
        behind_comma_ = true;
        state_ = in_object() ? State::kKey : State::kValue;
        return;
      }
      break;
    default:
      break;
  }
  if (byte == '"' && (state_ == State::kKey || state_ == State::kFirstKey)) {
    behind_comma_ = false;
    in_key_ = true;
    state_ = State::kString;
    emit(held_);
    return;
  }
  begin_garbage();
}

void RawValue::begin_value(char byte) {
  const bool container = byte == '{' || byte == '[';
  const bool number = byte == '-' || is_digit(byte);
  const bool literal = byte == 't' || byte == 'f' || byte == 'n';
  if ((!container && !number && !literal && byte != '"') || (container && depth_ == kMaxDepth)) {
    begin_garbage();
    return;
  }
  behind_comma_ = false;
  if (container) {
    objects_[depth_++] = byte == '{';
    state_ = byte == '{' ? State::kFirstKey : State::kFirstItem;
    emit(held_);
    return;
  }
  if (byte == '"') {
    top_string_ = depth_ == 0;
    in_key_ = false;
    state_ = State::kString;
    emit(held_);
    return;
  }
  if (depth_ > 0) {
    emit(held_ - 1);
  }
  if (number) {
    state_ = State::kNumber;
    number_ = byte == '-' ? NumberPart::kMinus : byte == '0' ? NumberPart::kZero : NumberPart::kInteger;
  } else {
    state_ = State::kLiteral;
    literal_ = byte == 't' ? "rue" : byte == 'f' ? "alse" : "ull";
  }
}

void RawValue::end_value() {
  if (depth_ == 0) {
    state_ = State::kDone;
    return;
  }
  state_ = State::kAfterValue;
  emit(held_);
}

void RawValue::close_container() {
  if (depth_ == 1) {
    state_ = State::kDone;  // still depth 1: more text would have to go in front of the bracket
    return;
  }
  --depth_;
  end_value();
}

void RawValue::feed_string(char byte) {
  if (state_ == State::kEscape) {
    if (byte == 'u') {
      state_ = State::kHexDigits;
      hex_left_ = 4;
      code_ = 0;
      return;
    }
    if (high_held_) {
      emit_escaped(kUnicodeEscape);
      high_held_ = false;
    }
    state_ = State::kString;
    if (std::string_view("\"\\/bfnrt").find(byte) != std::string_view::npos) {
      emit(held_);
      return;
    }
    emit_escaped(1);  // the backslash stands for itself
  }
  if (byte == '\\') {
    state_ = State::kEscape;
    return;
  }
  if (high_held_) {
    emit_escaped(kUnicodeEscape);
    high_held_ = false;
  }
  if (byte != '"') {
    if (static_cast<unsigned char>(byte) < 0x20) {
      emit_escaped(held_);
    } else {
      emit(held_);
    }
    return;
  }
  if (in_key_) {
    emit(held_);
    state_ = State::kColon;
  } else {
    end_value();
  }
}

void RawValue::feed_hex_digit(char byte) {
  const int digit = hex_value(byte);
  if (digit < 0) {
    emit_escaped(held_ - 1);
    high_held_ = false;
    state_ = State::kString;
    feed_string(byte);
    return;
  }
  code_ = code_ * 16 + static_cast<uint32_t>(digit);
  if (--hex_left_ > 0) {
    return;
  }
  state_ = State::kString;
  const bool high = code_ >= 0xD800 && code_ < 0xDC00;
  const bool low = code_ >= 0xDC00 && code_ < 0xE000;
  if (high_held_ && !low) {
    emit_escaped(kUnicodeEscape);
  }
  if (high) {
    high_held_ = true;
    return;
  }
  if (low && !high_held_) {
    emit_escaped(held_);
  } else {
    emit(held_);
  }
  high_held_ = false;
}

bool RawValue::number_takes(char byte) {
  const auto go = [&](NumberPart part) {
    number_ = part;
    return true;
  };
  const bool exponent = byte == 'e' || byte == 'E';
  switch (number_) {
    case NumberPart::kMinus:
      return is_digit(byte) && go(byte == '0' ? NumberPart::kZero : NumberPart::kInteger);
    case NumberPart::kZero:
      return (byte == '.' && go(NumberPart::kPoint)) || (exponent && go(NumberPart::kE));
    case NumberPart::kInteger:
      return is_digit(byte) || (byte == '.' && go(NumberPart::kPoint)) || (exponent && go(NumberPart::kE));
    case NumberPart::kPoint:
      return is_digit(byte) && go(NumberPart::kFraction);
    case NumberPart::kFraction:
      return is_digit(byte) || (exponent && go(NumberPart::kE));
    case NumberPart::kE:
      if (byte == '+' || byte == '-') {
        return go(NumberPart::kESign);
      }
      return is_digit(byte) && go(NumberPart::kExponent);
    case NumberPart::kESign:
    case NumberPart::kExponent:
      return is_digit(byte) && go(NumberPart::kExponent);
  }
  return false;
}

bool RawValue::number_complete() const {
  return number_ == NumberPart::kZero || number_ == NumberPart::kInteger ||
         number_ == NumberPart::kFraction || number_ == NumberPart::kExponent;
}

void RawValue::emit(size_t count) {
  queue_.settle(count, PieceKind::kArguments);
  held_ -= count;
}

void RawValue::emit_escaped(size_t count) {
  queue_.settle(count, PieceKind::kArguments, PieceQueue::Form::kEscaped);
  held_ -= count;
  repaired_ = true;
}

void RawValue::insert(std::string_view text) {
  queue_.insert(PieceKind::kArguments, text);
  repaired_ = true;
}

void RawValue::begin_garbage() {
  garbage_end_ = "\"";
  const State before = state_;
  state_ = State::kGarbage;
  if (behind_comma_) {
    emit(held_ - 1);
    behind_comma_ = false;
  }
  const bool next_item = before == State::kAfterValue || (before == State::kDone && depth_ > 0);
  const bool as_key = in_object() && (next_item || before == State::kFirstKey || before == State::kKey);
  if (before == State::kColon) {
    insert(": \"");
  } else if (next_item && !(before == State::kDone && empty_container_)) {
    insert(", \"");
  } else if (!top_string_) {
    insert("\"");
  }
  emit_escaped(held_);
  if (as_key) {
    garbage_end_ += ": null";
  }
}

void RawValue::finish() {
  switch (state_) {
    case State::kDone:
      emit(held_);
      return;
    case State::kNumber:
      if (number_complete()) {
        end_value();
        if (depth_ == 0) {
          emit(held_);
          return;
        }
      } else {
        begin_garbage();
        insert(garbage_end_);
      }
      break;
    case State::kLiteral:
      begin_garbage();
      insert(garbage_end_);
      break;
    case State::kGarbage:
      insert(garbage_end_);
      break;
    case State::kString:
    case State::kEscape:
    case State::kHexDigits:
      emit_escaped(held_);
      insert(in_key_ ? "\": null" : "\"");
      break;
    case State::kColon:
      insert(": null");
      break;
    case State::kValue:
    case State::kKey:
      queue_.drop(held_);
      held_ = 0;
      if (!behind_comma_) {
        insert("null");
      }
      break;
    default:
      break;
  }
  close_containers();
}

void RawValue::close_containers() {
  std::string ends;
  while (depth_ > 0) {
    ends += in_object() ? '}' : ']';
    --depth_;
  }
  if (!ends.empty()) {
    insert(ends);
  }
}

}  // namespace hadal::recipe
