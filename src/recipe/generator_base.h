#pragma once
// What the generators of all protocols share: parsing, counting, call ids, and the answer that grows.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/answer.h"
#include "recipe/parse/output_parser.h"
#include "recipe/response_generator.h"

namespace hadal::recipe {

/// A protocol writes its events in on_*(), in which answer() is as far as the output has come.
class GeneratorBase : public ResponseGenerator {
 public:
  GeneratorBase(const PreparedRequest& request, GeneratorOptions options,
                std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

  std::vector<Event> start() override;
  void set_cached_tokens(uint64_t count) override { answer_.usage.cached_tokens = count; }
  std::vector<Event> push_tokens(const std::vector<OutputTokenInfo>& tokens) override;
  std::vector<Event> push_text(std::string_view text, uint64_t num_tokens) override;
  std::vector<Event> finish(OutputFinish finish) override;
  bool finished() const override { return answer_.finish.has_value(); }
  OutputFaults faults() const override;

 protected:
  /// A piece of reasoning, content or arguments; `tokens` are those with log-probabilities that it shows.
  struct Delta {
    std::string_view text;
    std::vector<OutputTokenInfo> tokens;
  };

  /// Whether text may follow a call. Where the client's next request would be refused for it, it is dropped.
  virtual bool keeps_text_behind_calls() const = 0;
  virtual void on_start() = 0;
  /// The text has been added to `item`, the last one of the answer. `begins`: it is the item's first.
  virtual void on_reasoning(const AnswerItem& item, const Delta& delta, bool begins) = 0;
  virtual void on_content(const AnswerItem& item, const Delta& delta, bool begins) = 0;
  virtual void on_call(const AnswerItem& item) = 0;
  virtual void on_arguments(const AnswerItem& item, std::string_view text) = 0;
  virtual void on_finish() = 0;

  void emit(std::string name, std::string data) { events_.push_back({std::move(name), std::move(data)}); }

  const Answer& answer() const { return answer_; }
  const GeneratorOptions& options() const { return options_; }
  const tokenizer::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  bool thinking() const { return thinking_; }
  /// Thinking, and the request did not begin the answer's content itself.
  bool begins_with_reasoning() const { return begins_with_reasoning_; }

 private:
  void begin();
  void take_pieces();
  void take_piece(Piece& piece);
  AnswerItem& item_for(AnswerItem::Kind kind, bool& begins);
  std::vector<OutputTokenInfo> take_tokens(const Piece& piece);
  std::string call_id();
  void end(AnswerFinish finish);
  void count_reasoning();
  std::vector<Event> take_events() { return std::exchange(events_, {}); }

  GeneratorOptions options_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  bool thinking_;
  bool begins_with_reasoning_;
  bool counts_reasoning_;  ///< usage has a number of reasoning tokens
  OutputParser parser_;
  Answer answer_;
  bool started_ = false;
  bool fed_text_ = false;
  bool has_reasoning_ = false;
  uint64_t num_calls_ = 0;
  uint64_t dropped_text_bytes_ = 0;
  uint64_t num_tokens_ = 0;                                  ///< pushed as ids
  std::deque<std::pair<uint64_t, OutputTokenInfo>> tokens_;  ///< with log-probabilities, not shown yet
  std::vector<Event> events_;
};

}  // namespace hadal::recipe
