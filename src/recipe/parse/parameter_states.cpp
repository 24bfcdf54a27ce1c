// Parameters of tool calls: keys, attributes and values, as the JSON text of the arguments.

#include <algorithm>
#include <string>
#include <string_view>

#include "recipe/parse/dsml_bytes.h"
#include "recipe/parse/machine.h"

namespace hadal::recipe {

namespace {

constexpr size_t kMaxAttributeBytes = 256;

}  // namespace

void OutputParser::Machine::run_key() {
  while (!queue_.at_end()) {
    const char byte = queue_.byte();
    if (queue_.num_pending() == 0) {
      key_quoted_ = byte == '"';
      queue_.advance();
      continue;
    }
    if (!key_quoted_ && (byte == ' ' || byte == '>')) {
      key_bytes_ = queue_.num_pending();
      end_key();
      return;
    }
    queue_.advance();
    if (key_quoted_ && byte == '"') {
      key_bytes_ = queue_.num_pending();
      word_.clear();
      state_ = State::kKeyEnd;
      return;
    }
  }
}

/// A quote ends the key if `>` or another attribute is behind it; else it is part of the key.
void OutputParser::Machine::run_key_end() {
  while (!queue_.at_end()) {
    const char byte = queue_.byte();
    queue_.advance();
    word_.push_back(byte);
    const bool attribute = word_.size() > 3 && word_.ends_with("=\"");
    if (byte == '>' || attribute) {
      end_key();
      return;
    }
    if (!key_end_takes(byte)) {
      queue_.go_back_to(key_bytes_);
      state_ = State::kKey;
      return;
    }
  }
}

/// Whether word_, up to `byte`, may become ` ATTRIBUTE="` or ` >`.
bool OutputParser::Machine::key_end_takes(char byte) {
  const std::string_view before = std::string_view(word_).substr(0, word_.size() - 1);
  if (word_.size() > kMaxWordBytes) {
    return false;
  }
  if (before.empty() || before.back() == ' ') {
    return byte == ' ' || (!before.empty() && is_tag_word(byte));
  }
  return before.back() != '=' && (is_tag_word(byte) || byte == '=');
}

void OutputParser::Machine::end_key() {
  queue_.go_back_to(key_bytes_);
  const size_t quotes = key_quoted_ ? 1 : 0;
  const std::string key(queue_.pending().substr(quotes, key_bytes_ - 2 * quotes));
  skip_parameter_ = !keys_.insert(key).second;
  if (skip_parameter_) {
    ++faults_.repeated_keys;
    queue_.drop(key_bytes_);
  } else {
    queue_.insert(PieceKind::kArguments, arguments_begun_ ? ", " : "{");
    arguments_begun_ = true;
    if (!key_quoted_) {
      queue_.insert(PieceKind::kArguments, "\"");
    }
    queue_.settle(quotes, PieceKind::kArguments);
    queue_.settle(key.size(), PieceKind::kArguments, PieceQueue::Form::kEscaped);
    queue_.settle(quotes, PieceKind::kArguments);
    queue_.insert(PieceKind::kArguments, key_quoted_ ? ": " : "\": ");
  }
  word_.clear();
  state_ = State::kAttributes;
}

void OutputParser::Machine::run_attributes() {
  while (!queue_.at_end()) {
    const char byte = queue_.byte();
    const bool broken = byte == '<' || byte == '\n' || word_.size() == kMaxAttributeBytes;
    if (broken) {  // no end of the tag: the value begins here
      begin_value();
      return;
    }
    queue_.advance();
    if (byte == '>') {
      queue_.drop_all();
      begin_value();
      return;
    }
    word_.push_back(byte);
  }
  queue_.drop_all();
}

/// word_ holds the attributes behind the key.
void OutputParser::Machine::begin_value() {
  queue_.drop_all();
  matched_ = 0;
  if (word_.find("string=\"true\"") != std::string::npos) {
    state_ = State::kString;
    if (!skip_parameter_) {
      queue_.insert(PieceKind::kArguments, "\"");
    }
  } else if (word_.find("string=\"false\"") != std::string::npos) {
    state_ = State::kRaw;
    raw_.emplace(queue_);
  } else {
    state_ = State::kUnknown;
    ++faults_.repaired_values;
  }
}

void OutputParser::Machine::run_value() {
  const char first = close_.bytes().front();
  while (!queue_.at_end()) {
    if (matched_ == 0) {
      queue_.advance(std::min(queue_.ahead().find(first), queue_.ahead().size()));
      if (queue_.at_end()) {
        break;
      }
    }
    matched_ = close_.step(matched_, queue_.byte(), queue_.origin());
    queue_.advance();
    if (matched_ == close_.size()) {
      end_value(queue_.num_pending() - matched_);
      queue_.drop(matched_);
      word_.clear();
      closing_ = Closing::kValue;
      state_ = State::kCloseTag;
      return;
    }
  }
  settle_value(queue_.num_pending() - matched_);
}

/// The first `count` pending bytes are part of the value.
void OutputParser::Machine::settle_value(size_t count) {
  if (skip_parameter_) {
    queue_.drop(count);
  } else if (state_ == State::kString) {
    queue_.settle(count, PieceKind::kArguments, PieceQueue::Form::kEscaped);
  } else if (state_ == State::kRaw) {
    const size_t rest = queue_.num_pending() - count;
    while (queue_.num_pending() - raw_->num_held() > rest) {
      raw_->feed(queue_.pending()[raw_->num_held()]);
    }
  }
}

/// The first `count` pending bytes are the rest of the value.
void OutputParser::Machine::end_value(size_t count) {
  if (state_ == State::kUnknown && !skip_parameter_) {
    if (Json::accept(queue_.pending().substr(0, count))) {
      state_ = State::kRaw;
      raw_.emplace(queue_);
    } else {
      state_ = State::kString;
      queue_.insert(PieceKind::kArguments, "\"");
    }
  }
  settle_value(count);
  if (skip_parameter_) {
    queue_.drop(queue_.num_pending() - matched_);
  } else if (state_ == State::kString) {
    queue_.insert(PieceKind::kArguments, "\"");
  } else {
    raw_->finish();
    faults_.repaired_values += raw_->repaired() ? 1 : 0;
  }
}

/// The output ends: what there is of a parameter is passed on as it is.
void OutputParser::Machine::finish_parameter() {
  if (state_ == State::kKey || state_ == State::kKeyEnd) {
    finish_key();
    return;
  }
  if (skip_parameter_) {
    return;
  }
  if (state_ == State::kUnknown) {
    queue_.insert(PieceKind::kArguments, "\"");
  }
  if (state_ == State::kString || state_ == State::kUnknown) {
    queue_.settle_all(PieceKind::kArguments, PieceQueue::Form::kEscaped);
  } else if (state_ == State::kRaw) {
    raw_->abandon();
    queue_.settle_all(PieceKind::kArguments);
  }
}

void OutputParser::Machine::finish_key() {
  const bool ended = state_ == State::kKeyEnd;
  const size_t key_bytes = ended ? key_bytes_ : queue_.num_pending();
  const size_t quote = key_quoted_ && key_bytes > 0 ? 1 : 0;
  const size_t end_quote = ended ? 1 : 0;
  const bool behind_key = queue_.num_pending() > key_bytes;
  queue_.insert(PieceKind::kArguments, arguments_begun_ ? ", " : "{");
  arguments_begun_ = true;
  queue_.settle(quote, PieceKind::kArguments);
  queue_.settle(key_bytes - quote - end_quote, PieceKind::kArguments, PieceQueue::Form::kEscaped);
  queue_.settle(end_quote, PieceKind::kArguments);
  if (behind_key) {
    queue_.insert(PieceKind::kArguments, ": ");
  }
}

}  // namespace hadal::recipe
