#include "cli/chat_turn.h"

#include <chrono>

#include "cli/terminal.h"
#include "recipe/prompt/encode.h"
#include "recipe/response_generator.h"
#include "server/access.h"

namespace hadal::cli {
namespace {

using recipe::Json;

/// Hands the texts of a chunk to `show` and keeps them.
void take_chunk(std::string_view data, TurnResult& result,
                const std::function<void(TurnPart, std::string_view)>& show) {
  const Json chunk = Json::parse(data, nullptr, /*allow_exceptions=*/false);
  if (!chunk.is_object() || !chunk.contains("choices") || chunk["choices"].empty()) {
    return;
  }
  const Json& choice = chunk["choices"][0];
  const Json delta = choice.value("delta", Json::object());
  for (const auto& [name, part] :
       {std::pair<const char*, TurnPart>{"reasoning_content", TurnPart::kReasoning},
        {"content", TurnPart::kContent}}) {
    const auto text = delta.find(name);
    if (text == delta.end() || !text->is_string() || text->get_ref<const std::string&>().empty()) {
      continue;
    }
    const auto& piece = text->get_ref<const std::string&>();
    (part == TurnPart::kReasoning ? result.reasoning : result.content) += piece;
    show(part, piece);
  }
  if (const auto finish = choice.find("finish_reason"); finish != choice.end() && finish->is_string()) {
    result.finish_reason = finish->get<std::string>();
  }
}

}  // namespace

Result<TurnResult> run_turn(engine::Engine& engine, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                            Json request, const TurnOptions& options,
                            const std::function<void(TurnPart, std::string_view)>& show) {
  request["model"] = "DeepSeek-V4.1-Flash";
  request["stream"] = true;
  const std::string body = request.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto prepared = recipe::prepare_request(recipe::Protocol::kChat, body, {});
  if (!prepared) {
    return fail(ErrorCode::kInvalidArgument, "{}", prepared.error().message);
  }
  engine::Request engine_request;
  HADAL_TRY(engine_request.prompt, recipe::encode_prompt(prepared->prompt, *tokenizer));
  const auto room = engine.options().max_model_len - static_cast<int64_t>(engine_request.prompt.size());
  const auto default_tokens = recipe::resolve_max_tokens(
      *prepared, engine_request.prompt.size(), static_cast<uint64_t>(engine.options().max_model_len));
  if (!default_tokens) {
    return fail(ErrorCode::kInvalidArgument, "{}", default_tokens.error().message);
  }
  engine::SamplingParams& sampling = engine_request.sampling;
  sampling.max_tokens = options.max_tokens ? std::min(*options.max_tokens, std::max<int64_t>(room, 1))
                                           : static_cast<int64_t>(*default_tokens);
  sampling.temperature = options.temperature.value_or(static_cast<double>(prepared->inference.temperature));
  sampling.top_p = options.top_p.value_or(static_cast<double>(prepared->inference.top_p));
  sampling.top_k = options.top_k.value_or(-1);
  sampling.seed = options.seed ? *options.seed : server::random_bits();
  sampling.ignore_eos = options.ignore_eos;

  recipe::GeneratorOptions generator_options;
  generator_options.response_model = prepared->model;
  generator_options.prompt_tokens = engine_request.prompt.size();
  const auto generator =
      recipe::ResponseGenerator::create(*prepared, std::move(generator_options), tokenizer);
  TurnResult result;
  const auto take = [&](const std::vector<recipe::Event>& events) {
    for (const recipe::Event& event : events) {
      take_chunk(event.data, result, show);
    }
  };
  take(generator->start());
  HADAL_TRY(result.generation,
            run_generation(engine, std::move(engine_request), [&](const engine::Output& output) {
              std::vector<recipe::OutputTokenInfo> tokens;
              for (const engine::OutputToken& token : output.tokens) {
                tokens.push_back({token.token, std::nullopt, {}});
              }
              if (!tokens.empty()) {
                take(generator->push_tokens(tokens));
              }
              return !generator->finished();
            }));
  if (!generator->finished()) {
    const bool is_length = result.generation.finish == engine::FinishReason::kLength;
    take(generator->finish(is_length ? recipe::OutputFinish::kLength : recipe::OutputFinish::kStop));
  }
  if (result.generation.finish == engine::FinishReason::kCancelled) {
    result.finish_reason = "cancelled";
  }
  return result;
}

void TurnPrinter::show(TurnPart part, std::string_view text) {
  if (part == TurnPart::kReasoning) {
    if (!in_reasoning_) {
      in_reasoning_ = true;
      write_out(is_terminal_out() ? kDim : "<think>");
    }
  } else {
    leave_reasoning();
  }
  write_out(text);
}

void TurnPrinter::leave_reasoning() {
  if (in_reasoning_) {
    in_reasoning_ = false;
    write_out(is_terminal_out() ? kPlain : "</think>");
    write_out("\n\n");
  }
}

void TurnPrinter::finish() {
  if (in_reasoning_) {
    in_reasoning_ = false;
    write_out(is_terminal_out() ? kPlain : "</think>");
  }
  write_out("\n");
}

}  // namespace hadal::cli
