#include "server/completion_text.h"

#include <algorithm>
#include <array>

#include "server/json_text.h"

namespace hadal::server {
namespace {

int64_t count_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; });
}

}  // namespace

CompletionText::CompletionText(std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                               const std::vector<std::string>& stop, bool skip_special_tokens)
    : tokenizer_(tokenizer), decoder_(std::move(tokenizer), skip_special_tokens), stop_(stop) {}

void CompletionText::push(const std::vector<engine::OutputToken>& tokens, bool ends_by_token) {
  for (size_t i = 0; i < tokens.size() && !is_stopped_; ++i) {
    ++num_tokens_;
    if (ends_by_token && i + 1 == tokens.size()) {
      break;
    }
    const engine::OutputToken& token = tokens[i];
    records_.push_back({decoded_bytes_, token});
    const std::string text = decoder_.push(token.token);
    decoded_bytes_ += text.size();
    release(stop_.push(text));
  }
}

void CompletionText::finish() {
  if (is_finished_) {
    return;
  }
  is_finished_ = true;
  if (!is_stopped_) {
    const std::string rest = decoder_.finish();
    decoded_bytes_ += rest.size();
    release(stop_.push(rest));
    release(stop_.finish());
  }
}

void CompletionText::release(std::string_view text) {
  ready_ += text;
  released_bytes_ += text.size();
  is_stopped_ = stop_.stopped();
}

std::string CompletionText::take_text() {
  return std::exchange(ready_, std::string());
}

std::string CompletionText::token_text(int32_t token) const {
  return tokenizer_->decode(std::array{token});
}

void CompletionText::append_logprobs(std::string& out) {
  // A token belongs to what was sent once its text begins there; a token without text of its own (the end of
  // a code point that others began) follows its neighbours. After a stop sequence the rest is never sent.
  size_t count = 0;
  while (count < records_.size() &&
         (records_[count].begin < released_bytes_ || (is_finished_ && !is_stopped_))) {
    ++count;
  }
  if (count == 0) {
    out += "null";
    return;
  }
  const auto end = records_.begin() + static_cast<std::ptrdiff_t>(count);
  std::string offsets;
  std::string logprobs;
  std::string tops;
  out += "{\"tokens\":[";
  for (auto record = records_.begin(); record != end; ++record) {
    const char* comma = record == records_.begin() ? "" : ",";
    const std::string text = token_text(record->token.token);
    out += comma;
    append_json_string(out, text);
    logprobs += comma;
    append_json_number(logprobs, record->token.logprob);
    tops += comma;
    tops += '{';
    bool is_first = true;
    for (const engine::TokenLogprob& top : record->token.top) {
      tops += is_first ? "" : ",";
      is_first = false;
      append_json_string(tops, token_text(top.token));
      tops += ':';
      append_json_number(tops, top.logprob);
    }
    tops += '}';
    offsets += comma;
    append_json_integer(offsets, text_offset_);
    text_offset_ += count_code_points(text);
  }
  records_.erase(records_.begin(), end);
  out += "],\"token_logprobs\":[";
  out += logprobs;
  out += "],\"top_logprobs\":[";
  out += tops;
  out += "],\"text_offset\":[";
  out += offsets;
  out += "]}";
}

}  // namespace hadal::server
