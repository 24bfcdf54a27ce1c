#pragma once
// The text of one completion as it grows, with log-probabilities that keep step with it.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/request.h"
#include "recipe/parse/stop_matcher.h"
#include "tokenizer/tokenizer.h"

namespace hadal::server {

class CompletionText {
 public:
  CompletionText(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, const std::vector<std::string>& stop,
                 bool skip_special_tokens);

  /// Takes the tokens of one output. With `ends_by_token` the last of them ended the answer and has no text.
  void push(const std::vector<engine::OutputToken>& tokens, bool ends_by_token);
  /// No more tokens: releases what was held back.
  void finish();
  /// A stop sequence was found; further tokens are ignored.
  bool is_stopped() const { return is_stopped_; }
  int64_t num_tokens() const { return num_tokens_; }

  /// Moves out the text that was released since the last call.
  std::string take_text();
  /// Appends the log-probabilities of the tokens whose text was released, in OpenAI's shape, or null if there
  /// are none.
  void append_logprobs(std::string& out);

 private:
  struct TokenRecord {
    uint64_t begin = 0;  ///< where its text begins, in bytes of the decoded text
    engine::OutputToken token;
  };
  std::string token_text(int32_t token) const;
  /// Takes what the stop matcher let out.
  void release(std::string_view text);

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  tokenizer::IncrementalDecoder decoder_;
  recipe::StopMatcher stop_;
  bool is_stopped_ = false;
  bool is_finished_ = false;
  int64_t num_tokens_ = 0;
  uint64_t decoded_bytes_ = 0;
  uint64_t released_bytes_ = 0;
  std::string ready_;
  std::deque<TokenRecord> records_;  ///< tokens not reported yet, empty unless they carry log-probabilities
  int64_t text_offset_ = 0;          ///< code points of the tokens reported so far
  static constexpr float kNoLogprob = -9999.0F;
};

}  // namespace hadal::server
