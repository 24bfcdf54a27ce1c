#include "recipe/parse/machine.h"

#include <algorithm>
#include <utility>

namespace hadal::recipe {

namespace {

/// `<#` or `</#`, where # is a special token.
Marker tag_marker(std::string_view begin, const SpecialTokens& special) {
  const std::string& dsml = special[SpecialToken::kDsml];
  return Marker(std::string(begin) + dsml, begin.size(), begin.size() + dsml.size());
}

Marker special_marker(const std::string& spelling) {
  return Marker(spelling, 0, spelling.size());
}

/// `</#WORD>`
Marker block_end_marker(std::string_view word, const SpecialTokens& special) {
  const Marker begin = tag_marker("</", special);
  return Marker(std::string(begin.bytes()) + std::string(word) + ">", 2, begin.size());
}

}  // namespace

OutputParser::Machine::Machine(ParserSettings settings, std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : settings_(std::move(settings)),
      tokenizer_(std::move(tokenizer)),
      open_(tag_marker("<", settings_.special_tokens)),
      close_(tag_marker("</", settings_.special_tokens)) {
  const SpecialTokens& special = settings_.special_tokens;
  const ParsingOptions& options = settings_.options;
  if (tokenizer_) {
    eos_id_ = tokenizer_->token_id(special[SpecialToken::kEos]);
  }
  const Marker end_of_reasoning = special_marker(special[SpecialToken::kThinkEnd]);
  // An empty marker is never found; it keeps the places of the others.
  const Marker calls = options.parse_tool_calls ? open_ : Marker("");
  std::vector<Marker> stops;
  for (const std::string& sequence : options.stop_sequences) {
    stops.emplace_back(sequence);
  }
  num_stops_ = stops.size();
  const auto behind_stops = [&](std::initializer_list<Marker> more) {
    std::vector<Marker> all = stops;
    all.insert(all.end(), more);
    return MarkerSet(std::move(all));
  };
  reasoning_markers_ = MarkerSet({calls, end_of_reasoning});
  content_markers_ = behind_stops({calls, end_of_reasoning});
  around_json_markers_ =
      MarkerSet({calls, end_of_reasoning, Marker("```json\n"), Marker("```\n"), Marker("{"), Marker("[")});
  json_markers_ = behind_stops({calls, Marker("\n```")});
  call_markers_ =
      MarkerSet({Marker("parameter name="), close_, Marker(settings_.as_reference ? "" : "invoke name=\"")});
  find_call_markers_ = MarkerSet({Marker("invoke name=\""), block_end_marker("tool_calls", special),
                                  block_end_marker(" calls", special)});

  switch (options.thinking_initial_stage) {
    case ThinkingStage::kReasoningStart:
      enter_text(State::kReasoning, true);
      break;
    case ThinkingStage::kReasoningContinuation:
      enter_text(State::kReasoning, false);
      break;
    case ThinkingStage::kContentContinuation:
      enter_content(false);
      break;
    case ThinkingStage::kOff:
      enter_content(true);
      break;
  }
  if (options.starts_in_tool_calls && options.parse_tool_calls) {
    enter_content(true);
    begin_calls(0);
  }
}

void OutputParser::Machine::push_text(std::string_view text) {
  if (finished_) {
    return;
  }
  add_held_eos();
  builder_.add_text(text);
  take_unit();
}

void OutputParser::Machine::push_tokens(std::span<const int32_t> ids) {
  if (finished_ || !tokenizer_) {
    return;
  }
  if (std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return id != eos_id_; })) {
    add_held_eos();
  }
  size_t num_eos = 0;
  for (const int32_t id : ids) {
    if (id == eos_id_) {
      ++num_eos;
      continue;
    }
    for (; num_eos > 0; --num_eos) {
      add_token(*eos_id_);
    }
    add_token(id);
  }
  num_eos_held_ += num_eos;
  if (num_eos < ids.size()) {
    take_unit();
  }
}

void OutputParser::Machine::add_token(int32_t id) {
  builder_.add_token(tokenizer_->token_bytes(id), tokenizer_->is_added_token(id));
}

/// End-of-sentence inside of the output is text like any other token, a unit of its own.
void OutputParser::Machine::add_held_eos() {
  for (; num_eos_held_ > 0; --num_eos_held_) {
    add_token(*eos_id_);
    take_unit();
  }
}

void OutputParser::Machine::take_unit() {
  // Tokens that stand for nothing wait for the text behind them.
  if (!builder_.complete() || !builder_.has_input() || state_ == State::kStopped) {
    return;
  }
  queue_.add(builder_.take());
  run();
}

void OutputParser::Machine::run() {
  while (!queue_.at_end() && state_ != State::kStopped) {
    switch (state_) {
      case State::kReasoning:
      case State::kContent:
        run_text();
        break;
      case State::kAroundJson:
        run_around_json();
        break;
      case State::kJson:
        run_json();
        break;
      case State::kCallsTag:
        run_calls_tag();
        break;
      case State::kFindCall:
        run_find_call();
        break;
      case State::kFindName:
        run_find_name();
        break;
      case State::kCall:
        run_call();
        break;
      case State::kKey:
        run_key();
        break;
      case State::kKeyEnd:
        run_key_end();
        break;
      case State::kAttributes:
        run_attributes();
        break;
      case State::kString:
      case State::kRaw:
      case State::kUnknown:
        run_value();
        break;
      case State::kCloseTag:
        run_close_tag();
        break;
      case State::kBehindCalls:
        run_behind_calls();
        break;
      case State::kStopped:
        break;
    }
  }
}

void OutputParser::Machine::finish() {
  if (finished_) {
    return;
  }
  finished_ = true;
  builder_.finish();
  if (!builder_.empty()) {
    take_unit();
  }
  switch (state_) {
    case State::kReasoning:
    case State::kContent:
    case State::kJson:
      queue_.settle_all(text_kind(state_));
      break;
    case State::kAroundJson:
      settle_around_json(queue_.num_pending());
      break;
    case State::kStopped:
      return;
    default:
      finish_call();
      break;
  }
  queue_.cut();
}

}  // namespace hadal::recipe
