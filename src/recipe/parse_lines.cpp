#include "recipe/parse_lines.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "recipe/json_text.h"
#include "recipe/response_generator.h"

namespace hadal::recipe {

namespace {

// A line is read by the shape it has; a value of another type counts as absent.

const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) {
    return kNothing;
  }
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string text_of(const Json& value, std::string otherwise = {}) {
  return value.is_string() ? value.get<std::string>() : std::move(otherwise);
}

uint64_t count_of(const Json& value, uint64_t otherwise = 0) {
  return value.is_number_unsigned() ? value.get<uint64_t>() : otherwise;
}

bool is_true(const Json& value) {
  return value.is_boolean() && value.get<bool>();
}
bool is_false(const Json& value) {
  return value.is_boolean() && !value.get<bool>();
}

Protocol protocol_of(const Json& value) {
  const std::string name = text_of(value);
  return name == "messages"    ? Protocol::kMessages
         : name == "responses" ? Protocol::kResponses
                               : Protocol::kChat;
}

ParsingOptions parsing_of(const Json& value) {
  ParsingOptions parsing;
  parsing.parse_tool_calls = is_true(member(value, "parse_tool_calls"));
  parsing.starts_in_tool_calls = is_true(member(value, "starts_in_tool_calls"));
  parsing.parse_json_output = is_true(member(value, "parse_json_output"));
  const std::string stage = text_of(member(value, "thinking_initial_stage"));
  parsing.thinking_initial_stage = stage == "reasoning_start"          ? ThinkingStage::kReasoningStart
                                   : stage == "reasoning_continuation" ? ThinkingStage::kReasoningContinuation
                                   : stage == "content_continuation"   ? ThinkingStage::kContentContinuation
                                                                       : ThinkingStage::kOff;
  for (const Json& sequence : member(value, "stop_sequences")) {
    parsing.stop_sequences.push_back(text_of(sequence));
  }
  return parsing;
}

OutputFinish finish_of(std::string_view name) {
  return name == "stop"             ? OutputFinish::kStop
         : name == "length"         ? OutputFinish::kLength
         : name == "content_filter" ? OutputFinish::kContentFilter
                                    : OutputFinish::kUnknown;
}

GeneratorOptions options_of(const Json& line) {
  constexpr int64_t kCreated = 1700000000;  // recorded cases have a fixed clock
  GeneratorOptions options;
  options.response_id = text_of(member(line, "response_id"));
  options.response_model = text_of(member(line, "response_model"));
  options.created_unix_seconds = kCreated;
  if (!is_false(member(line, "ready"))) {
    options.system_fingerprint = text_of(member(line, "system_fingerprint"));
    options.prompt_tokens = count_of(member(member(line, "usage"), "prompt_tokens"));
    options.cached_tokens = count_of(member(member(line, "usage"), "prompt_cache_hit_tokens"));
  }
  if (member(line, "signature").is_string()) {
    options.signature = text_of(member(line, "signature"));
  }
  const Json& special = member(line, "special_tokens");
  SpecialTokens& spellings = options.special_tokens;
  spellings[SpecialToken::kThinkEnd] =
      text_of(member(special, "thinking_end"), spellings[SpecialToken::kThinkEnd]);
  spellings[SpecialToken::kDsml] = text_of(member(special, "dsml"), spellings[SpecialToken::kDsml]);
  if (member(line, "parsing").is_object()) {
    options.parsing = parsing_of(member(line, "parsing"));
  }
  options.as_reference = !is_true(member(line, "lossless"));
  return options;
}

/// Recorded runs that abbreviate their deltas do not tell which of them had these two fields, and the
/// comparison takes all of them to have had them.
void complete_delta(Json& event) {
  if (!member(event, "choices").empty() && !event.contains("usage")) {
    event["usage"] = nullptr;
  }
  if (text_of(member(event, "type")).ends_with(".delta") && member(event, "item_id").is_string() &&
      !event.contains("content_index")) {
    event["content_index"] = 0;
  }
}

/// Feeds a generator and gathers what comes out.
class Run {
 public:
  Run(const PreparedRequest& request, const GeneratorOptions& options,
      std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
      : generator_(ResponseGenerator::create(request, options, std::move(tokenizer))) {}

  void start() { gather(generator_->start()); }

  void push_text(std::string_view text, uint64_t num_tokens) {
    gather(generator_->push_text(text, num_tokens));
  }

  void push_code_points(std::string_view text) {
    while (!text.empty()) {
      size_t size = 1;
      while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) {
        ++size;
      }
      push_text(text.substr(0, size), 1);
      text.remove_prefix(size);
    }
  }

  void push_chunk(const Json& chunk, bool tokens) {
    if (tokens) {
      push_tokens(chunk.is_object() ? member(chunk, "ids") : chunk, member(chunk, "logprobs"));
    } else if (chunk.is_array() && !chunk.empty()) {
      push_text(text_of(chunk[0]), chunk.size() > 1 ? count_of(chunk[1]) : 1);
    } else {
      push_text(text_of(chunk), 1);
    }
  }

  Json finish(const Json& reason) {
    Json run;
    if (stream_error_.empty()) {
      gather(generator_->finish(finish_of(text_of(reason))));
    }
    run["events"] = std::move(events_);
    run["response"] = generator_->response();
    if (!stream_error_.empty()) {
      run["stream_error"] = stream_error_;
    }
    return run;
  }

 private:
  void push_tokens(const Json& ids, const Json& logprobs) {
    if (!stream_error_.empty()) {
      return;
    }
    if (logprobs.is_array() && logprobs.size() != ids.size()) {
      stream_error_ = "invalid log probabilities: " + std::to_string(logprobs.size()) +
                      " log probabilities for " + std::to_string(ids.size()) + " token IDs";
      return;
    }
    std::vector<OutputTokenInfo> tokens;
    for (size_t index = 0; index < ids.size(); ++index) {
      OutputTokenInfo token;
      token.token = ids[index].is_number_integer() ? ids[index].get<int32_t>() : -1;
      if (logprobs.is_array() && logprobs[index].is_array() && logprobs[index].size() == 2) {
        token.logprob = number_of(logprobs[index][0]);
        for (const Json& top : logprobs[index][1]) {
          if (top.is_array() && top.size() == 2 && top[0].is_number_integer()) {
            token.top.push_back({top[0].get<int32_t>(), number_of(top[1])});
          }
        }
      }
      tokens.push_back(std::move(token));
    }
    gather(generator_->push_tokens(tokens));
  }

  static float number_of(const Json& value) { return value.is_number() ? value.get<float>() : 0.0F; }

  void gather(const std::vector<Event>& events) {
    for (const Event& event : events) {
      events_.push_back(Json::parse(event.data, nullptr, false));
    }
  }

  std::unique_ptr<ResponseGenerator> generator_;
  Json events_ = Json::array();
  std::string stream_error_;
};

Json run_of(const Json& line, const Json& run, const PreparedRequest& request,
            const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer) {
  Run output(request, options_of(line), tokenizer);
  if (!is_false(member(line, "ready"))) {
    output.start();
  }
  const std::string chunking = text_of(member(run, "chunking"));
  const std::string text = text_of(member(line, "text"));
  if (member(run, "chunks").is_array()) {
    for (const Json& chunk : member(run, "chunks")) {
      output.push_chunk(chunk, text_of(member(run, "chunk_kind")) == "tokens");
    }
  } else if (chunking == "char") {
    output.push_code_points(text);
  } else {
    output.push_text(text, 1);
  }
  Json result = output.finish(member(line, "finish"));
  if (member(run, "events_compact").is_array()) {
    for (Json& event : result["events"]) {
      complete_delta(event);
    }
  }
  return result;
}

}  // namespace

std::string parse_line(std::string_view text, const TokenizerSet& tokenizers) {
  Json answer;
  const Json line = Json::parse(text, nullptr, false);
  answer["id"] = member(line, "id");
  const auto failed = [&](std::string message) {
    answer["error"] = std::move(message);
    return json_text(answer);
  };
  if (!line.is_object()) {
    return failed("the line is not a JSON object");
  }
  auto request =
      prepare_request(protocol_of(member(line, "protocol")), json_text(member(line, "request")), {});
  if (!request) {
    return failed("request: " + request.error().message);
  }
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  if (!is_false(member(line, "tokenizer"))) {
    tokenizer = text_of(member(line, "version")) == "v4" ? tokenizers.v4 : tokenizers.v41;
  }
  answer["runs"] = Json::array();
  for (const Json& run : member(line, "runs")) {
    answer["runs"].push_back(run_of(line, run, *request, tokenizer));
  }
  return json_text(answer);
}

}  // namespace hadal::recipe
