#include "recipe/generator_base.h"

#include <array>

#include <fmt/format.h>

namespace hadal::recipe {

namespace {

/// SplitMix64: the n-th number of a sequence that depends on the seed alone.
uint64_t mixed(uint64_t seed, uint64_t n) {
  uint64_t value = seed + (n + 1) * 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

ParserSettings parser_settings(const PreparedRequest& request, const GeneratorOptions& options) {
  return {.options = options.parsing.value_or(request.parsing),
          .special_tokens = options.special_tokens,
          .as_reference = options.as_reference};
}

}  // namespace

GeneratorBase::GeneratorBase(const PreparedRequest& request, GeneratorOptions options,
                             std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      thinking_(request.thinking),
      begins_with_reasoning_(request.thinking &&
                             request.parsing.thinking_initial_stage != ThinkingStage::kContentContinuation),
      counts_reasoning_(options_.parsing.value_or(request.parsing).thinking_initial_stage !=
                        ThinkingStage::kOff),
      parser_(parser_settings(request, options_), tokenizer_) {
  answer_.usage.prompt_tokens = options_.prompt_tokens;
  answer_.usage.cached_tokens = options_.cached_tokens;
}

std::vector<Event> GeneratorBase::start() {
  begin();
  return take_events();
}

void GeneratorBase::begin() {
  if (!started_) {
    started_ = true;
    on_start();
  }
}

std::vector<Event> GeneratorBase::push_tokens(const std::vector<OutputTokenInfo>& tokens) {
  if (finished()) {
    return {};
  }
  begin();
  std::vector<int32_t> ids;
  ids.reserve(tokens.size());
  for (const OutputTokenInfo& token : tokens) {
    if (token.logprob) {
      tokens_.emplace_back(num_tokens_, token);
    }
    ++num_tokens_;
    ids.push_back(token.token);
  }
  answer_.usage.output_tokens += tokens.size();
  parser_.push_tokens(ids);
  take_pieces();
  return take_events();
}

std::vector<Event> GeneratorBase::push_text(std::string_view text, uint64_t num_tokens) {
  if (finished()) {
    return {};
  }
  begin();
  fed_text_ = true;
  answer_.usage.output_tokens += num_tokens;
  parser_.push_text(text);
  take_pieces();
  return take_events();
}

std::vector<Event> GeneratorBase::finish(OutputFinish finish) {
  if (finished()) {
    return {};
  }
  begin();
  parser_.finish();
  take_pieces();
  if (finished()) {  // a stop sequence in what was held back
    return take_events();
  }
  switch (finish) {
    case OutputFinish::kLength:
      end(AnswerFinish::kLength);
      break;
    case OutputFinish::kContentFilter:
      end(AnswerFinish::kContentFilter);
      break;
    case OutputFinish::kUnknown:
      end(parser_.call_cut_off() ? AnswerFinish::kLength : AnswerFinish::kStop);
      break;
    case OutputFinish::kStop:
      // A model that stops inside a call has not made it: a client must not take it for one to run.
      end(parser_.call_cut_off() ? AnswerFinish::kLength
          : num_calls_ > 0       ? AnswerFinish::kToolCalls
                                 : AnswerFinish::kStop);
      break;
  }
  return take_events();
}

OutputFaults GeneratorBase::faults() const {
  OutputFaults faults = parser_.faults();
  faults.dropped_text_bytes = dropped_text_bytes_;
  return faults;
}

void GeneratorBase::take_pieces() {
  for (Piece& piece : parser_.take()) {
    take_piece(piece);
  }
  if (parser_.stop_sequence()) {
    answer_.stop_sequence = *parser_.stop_sequence();
    end(AnswerFinish::kStopSequence);
  }
}

void GeneratorBase::take_piece(Piece& piece) {
  const bool text = piece.kind == PieceKind::kReasoning || piece.kind == PieceKind::kContent;
  if (text && num_calls_ > 0 && !keeps_text_behind_calls()) {
    dropped_text_bytes_ += piece.text.size();
    return;
  }
  bool begins = false;
  switch (piece.kind) {
    case PieceKind::kReasoning: {
      has_reasoning_ = has_reasoning_ || !piece.text.empty();
      AnswerItem& item = item_for(AnswerItem::Kind::kReasoning, begins);
      item.text += piece.text;
      on_reasoning(item, {piece.text, take_tokens(piece)}, begins);
      return;
    }
    case PieceKind::kContent: {
      AnswerItem& item = item_for(AnswerItem::Kind::kContent, begins);
      item.text += piece.text;
      on_content(item, {piece.text, take_tokens(piece)}, begins);
      return;
    }
    case PieceKind::kCallStart:
      answer_.items.push_back(
          {.kind = AnswerItem::Kind::kCall, .name = std::move(piece.text), .call_id = call_id()});
      ++num_calls_;
      on_call(answer_.items.back());
      return;
    case PieceKind::kArguments:
      answer_.items.back().text += piece.text;
      on_arguments(answer_.items.back(), piece.text);
      return;
    case PieceKind::kCallEnd:
      answer_.items.back().complete = piece.complete;
      return;
  }
}

AnswerItem& GeneratorBase::item_for(AnswerItem::Kind kind, bool& begins) {
  begins = answer_.items.empty() || answer_.items.back().kind != kind;
  if (begins) {
    answer_.items.push_back({.kind = kind});
  }
  return answer_.items.back();
}

std::vector<OutputTokenInfo> GeneratorBase::take_tokens(const Piece& piece) {
  std::vector<OutputTokenInfo> shown;
  while (!tokens_.empty() && tokens_.front().first < piece.token_end) {
    if (tokens_.front().first >= piece.token_begin) {
      shown.push_back(std::move(tokens_.front().second));
    }
    tokens_.pop_front();
  }
  std::vector<OutputTokenInfo>& all = answer_.items.back().tokens;
  all.insert(all.end(), shown.begin(), shown.end());
  return shown;
}

/// `call_NN_`, `ET_` if the model was to think and did not, 20 letters or digits and 4 digits.
std::string GeneratorBase::call_id() {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  constexpr uint64_t kNumbers = 3;
  constexpr size_t kCharacters = 10;  // of one number of 64 bits: 62^10 < 2^60
  std::string id = fmt::format("call_{:02}_{}", num_calls_, thinking_ && !has_reasoning_ ? "ET_" : "");
  for (uint64_t part = 0; part + 1 < kNumbers; ++part) {
    uint64_t number = mixed(options_.call_id_seed, num_calls_ * kNumbers + part);
    for (size_t character = 0; character < kCharacters; ++character) {
      id.push_back(kAlphabet[number % kAlphabet.size()]);
      number /= kAlphabet.size();
    }
  }
  const uint64_t number = mixed(options_.call_id_seed, num_calls_ * kNumbers + kNumbers - 1);
  return id + fmt::format("{:04}", number % 10000);
}

void GeneratorBase::end(AnswerFinish finish) {
  answer_.finish = finish;
  tokens_.clear();
  if (counts_reasoning_) {
    count_reasoning();
  }
  on_finish();
}

void GeneratorBase::count_reasoning() {
  if (!tokenizer_) {
    return;
  }
  if (!fed_text_ && !options_.as_reference) {
    answer_.usage.reasoning_tokens = parser_.num_reasoning_tokens();
    return;
  }
  // Nobody said which tokens the text was made of.
  std::vector<int32_t> ids;
  for (const AnswerItem& item : answer_.items) {
    if (item.kind == AnswerItem::Kind::kReasoning) {
      tokenizer_->encode_with_special(item.text, ids);
    }
  }
  answer_.usage.reasoning_tokens = ids.size();
}

}  // namespace hadal::recipe
