#include "server/recipe_routes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "recipe/json_lines.h"
#include "recipe/json_text.h"
#include "recipe/prompt/encode.h"
#include "recipe/response_generator.h"
#include "server/api_errors.h"
#include "server/conversation_request.h"
#include "server/json_body.h"
#include "server/json_text.h"
#include "server/recipe_page.h"

namespace hadal::server {
namespace {

using recipe::ModelVersion;
using recipe::Protocol;

// The page is for reading: what nobody reads is not worth the memory.
constexpr size_t kMaxBodyBytes = 2 << 20;
constexpr size_t kMaxPieces = 20'000;

constexpr std::array<std::string_view, 3> kProtocols{"chat", "messages", "responses"};
constexpr std::array<std::string_view, 2> kFormats{"v4", "v41"};
constexpr std::array<std::string_view, 3> kFinishes{"stop", "length", "content_filter"};

HttpResponse refusal(const Error& error) {
  return error_response(ErrorStyle::kOpenAi, public_error(error));
}

/// An object with no members but `names`: nothing is read over.
Result<Json> read_body(std::string_view body, std::span<const std::string_view> names) {
  HADAL_TRY(Json parsed, parse_json_object(body));
  for (const auto& member : parsed.items()) {
    if (std::find(names.begin(), names.end(), member.key()) == names.end()) {
      return fail(ErrorCode::kInvalidArgument, "{}: there is no such member; expected {}",
                  printable(member.key(), 40), fmt::join(names, ", "));
    }
  }
  return parsed;
}

Result<std::optional<size_t>> choice_member(const Json& object, const char* name,
                                            std::span<const std::string_view> words) {
  HADAL_TRY(const auto text, string_member(object, name));
  if (!text) {
    return std::nullopt;
  }
  const auto word = std::find(words.begin(), words.end(), *text);
  if (word == words.end()) {
    return fail(ErrorCode::kInvalidArgument, "{}: '{}' is not one of {}", name, printable(*text, 40),
                fmt::join(words, ", "));
  }
  return static_cast<size_t>(word - words.begin());
}

template <class T>
Result<T> required(Result<std::optional<T>> value, const char* name) {
  if (!value) {
    return tl::make_unexpected(std::move(value.error()));
  }
  if (!*value) {
    return fail(ErrorCode::kInvalidArgument, "{}: missing", name);
  }
  return std::move(**value);
}

/// Both prompt formats are encoded with the model's tokenizer, as requests for answers are.
recipe::TokenizerSet tokenizers_of(const ModelService& model) {
  return {.v4 = model.tokenizer, .v41 = model.tokenizer};
}

recipe::ConversionOptions options_of(const ModelService& model, const RequestPolicy& policy) {
  recipe::ConversionOptions options;
  options.default_thinking_mode = policy.default_thinking;
  for (const std::string& name : model.names) {
    options.model_aliases.emplace(name, ModelVersion::kV41);
  }
  return options;
}

/// A request that asks for nothing in particular.
std::string short_question(Protocol protocol, const std::string& model) {
  recipe::Json request{{"model", model}};
  if (protocol == Protocol::kResponses) {
    request["input"] = "?";
  } else {
    request["messages"] = recipe::Json::array({recipe::Json{{"role", "user"}, {"content", "?"}}});
    request["max_tokens"] = 1000;
  }
  if (protocol == Protocol::kChat) {
    request["stream"] = true;
    request["stream_options"] = recipe::Json{{"include_usage", true}};
  }
  return recipe::json_text(request);
}

/// Whether the tokenizer has what prompts of this format are made of.
bool has_format(ModelVersion version, const ModelService& model) {
  recipe::ConversionOptions options = options_of(model, {});
  options.model_version = version;
  const auto prepared =
      recipe::prepare_request(Protocol::kChat, short_question(Protocol::kChat, model.names.front()), options);
  return prepared && recipe::encode_prompt(prepared->prompt, *model.tokenizer).has_value();
}

recipe::Json describe_refusal(const HttpResponse& response) {
  return recipe::Json{{"status_code", response.status}, {"body", response.body}};
}

HttpResponse json_response(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

HttpResponse error_answer(const recipe::Json& error) {
  return json_response(recipe::json_text(recipe::Json{{"error", error}}));
}

std::optional<HttpResponse> check_size(std::string_view body) {
  if (body.size() <= kMaxBodyBytes) {
    return std::nullopt;
  }
  return error_response(
      ErrorStyle::kOpenAi,
      {413,
       fmt::format("the body has {} bytes; the recipe page takes {} at most", body.size(), kMaxBodyBytes),
       {},
       {}});
}

struct RenderQuestion {
  Protocol protocol{};
  std::string request;
  std::optional<ModelVersion> format;
};

Result<RenderQuestion> read_render_question(std::string_view body) {
  constexpr std::array<std::string_view, 3> kMembers{"protocol", "request_text", "format"};
  HADAL_TRY(const Json members, read_body(body, kMembers));
  RenderQuestion question;
  HADAL_TRY(const size_t protocol, required(choice_member(members, "protocol", kProtocols), "protocol"));
  question.protocol = static_cast<Protocol>(protocol);
  HADAL_TRY(question.request, required(string_member(members, "request_text"), "request_text"));
  HADAL_TRY(const auto format, choice_member(members, "format", kFormats));
  if (format) {
    question.format = static_cast<ModelVersion>(*format);
  }
  return question;
}

struct ParseQuestion {
  Protocol protocol{};
  std::string text;
  std::optional<std::string> request;
  std::optional<bool> thinking;
  std::optional<bool> tool_calls;
  size_t tokens_per_piece = 1;
  recipe::OutputFinish finish{};
};

Result<ParseQuestion> read_parse_question(std::string_view body) {
  constexpr std::array<std::string_view, 7> kMembers{
      "protocol", "text", "request_text", "thinking", "tool_calls", "tokens_per_piece", "finish"};
  HADAL_TRY(const Json members, read_body(body, kMembers));
  ParseQuestion question;
  HADAL_TRY(const size_t protocol, required(choice_member(members, "protocol", kProtocols), "protocol"));
  question.protocol = static_cast<Protocol>(protocol);
  HADAL_TRY(question.text, required(string_member(members, "text"), "text"));
  HADAL_TRY(question.request, string_member(members, "request_text"));
  HADAL_TRY(question.thinking, bool_member(members, "thinking"));
  HADAL_TRY(question.tool_calls, bool_member(members, "tool_calls"));
  HADAL_TRY(const auto tokens, integer_member(members, "tokens_per_piece", 0, 1'000'000));
  question.tokens_per_piece = static_cast<size_t>(tokens.value_or(1));
  HADAL_TRY(const auto finish, choice_member(members, "finish", kFinishes));
  question.finish = static_cast<recipe::OutputFinish>(finish.value_or(0));
  return question;
}

/// The output as the model would have written it, in the pieces in which it would have come.
Result<std::vector<std::vector<recipe::OutputTokenInfo>>> cut_output(const ParseQuestion& question,
                                                                     const tokenizer::Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  tokenizer.encode_with_special(question.text, ids);
  const size_t size =
      question.tokens_per_piece == 0 ? std::max<size_t>(ids.size(), 1) : question.tokens_per_piece;
  if (ids.size() / size > kMaxPieces) {
    return fail(ErrorCode::kInvalidArgument,
                "tokens_per_piece: {} tokens in pieces of {} are too many pieces; expected {} at most",
                ids.size(), size, kMaxPieces);
  }
  std::vector<std::vector<recipe::OutputTokenInfo>> pieces;
  for (size_t index = 0; index < ids.size(); ++index) {
    if (index % size == 0) {
      pieces.emplace_back();
    }
    pieces.back().push_back({.token = ids[index], .logprob = {}, .top = {}});
  }
  return pieces;
}

recipe::ParsingOptions parsing_of(const ParseQuestion& question, const recipe::PreparedRequest& request) {
  recipe::ParsingOptions parsing = request.parsing;
  if (question.thinking) {
    parsing.thinking_initial_stage =
        *question.thinking ? recipe::ThinkingStage::kReasoningStart : recipe::ThinkingStage::kOff;
  }
  parsing.parse_tool_calls = question.tool_calls.value_or(parsing.parse_tool_calls);
  return parsing;
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string response_id(Protocol protocol) {
  constexpr std::array<std::string_view, 3> kIds{"chatcmpl-example", "msg_example", "resp_example"};
  return std::string(kIds[static_cast<size_t>(protocol)]);
}

/// What was odd about the output, as sentences.
recipe::Json describe_faults(const recipe::OutputFaults& faults) {
  recipe::Json sentences = recipe::Json::array();
  const auto add = [&](uint64_t count, std::string_view what) {
    if (count > 0) {
      sentences.push_back(fmt::format("{} {}", count, what));
    }
  };
  add(faults.stray_markers, "marker(s) of calls without a call behind them, shown as text");
  add(faults.repaired_values, "argument(s) that were not JSON, or lacked the string attribute");
  add(faults.repeated_keys, "parameter(s) given twice; the first counts");
  add(faults.cut_calls, "call(s) cut off by the end of the output");
  add(faults.calls_in_reasoning, "block(s) of calls that began before the reasoning was closed");
  add(faults.dropped_text_bytes, "byte(s) of text behind calls, where the protocol has no place for it");
  return sentences;
}

/// Gathers events as JSON text; their data stays the very text that would be sent.
class EventList {
 public:
  void add(const std::vector<recipe::Event>& events) {
    for (const recipe::Event& event : events) {
      text_ += text_.size() > 1 ? ",{\"name\":" : "{\"name\":";
      append_json_string(text_, event.name);
      text_ += ",\"data\":";
      append_json_string(text_, event.data);
      text_ += '}';
    }
  }
  std::string take() { return std::move(text_) + ']'; }

 private:
  std::string text_ = "[";
};

}  // namespace

HttpResponse recipe_page(const ModelService* model) {
  std::string formats;
  for (size_t index = 0; model != nullptr && index < kFormats.size(); ++index) {
    if (has_format(static_cast<ModelVersion>(index), *model)) {
      formats += formats.empty() ? "" : " ";
      formats += kFormats[index];
    }
  }
  HttpResponse response;
  response.content_type = "text/html; charset=utf-8";
  response.body = kRecipePage;
  response.body.replace(response.body.find(kFormatsPlace), kFormatsPlace.size(), formats);
  response.headers = {{"Content-Security-Policy", std::string(kRecipePagePolicy)},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"}};
  return response;
}

HttpResponse render_recipe(std::string_view body, const ModelService& model, const RequestPolicy& policy) {
  if (auto too_large = check_size(body)) {
    return std::move(*too_large);
  }
  const auto question = read_render_question(body);
  if (!question) {
    return refusal(question.error());
  }
  recipe::ConversionOptions options = options_of(model, policy);
  options.describe_conversation = true;
  options.model_version = question->format;
  auto prepared = recipe::prepare_request(question->protocol, question->request, options);
  // What the routes for answers would say, down to what only this build cannot do.
  const auto served = read_conversation_request(question->protocol, question->request, model, policy);
  if (!prepared) {
    return error_answer(served ? recipe::describe_error(prepared.error()) : describe_refusal(served.error()));
  }
  recipe::Json answer;
  answer["result"] = recipe::describe_request(*prepared, tokenizers_of(model), recipe::Detail::kEverything);
  if (!served) {
    answer["refusal"] = describe_refusal(served.error());
  }
  return json_response(recipe::json_text(answer));
}

HttpResponse parse_recipe(std::string_view body, const ModelService& model, const RequestPolicy& policy) {
  if (auto too_large = check_size(body)) {
    return std::move(*too_large);
  }
  const auto question = read_parse_question(body);
  if (!question) {
    return refusal(question.error());
  }
  const auto pieces = cut_output(*question, *model.tokenizer);
  if (!pieces) {
    return refusal(pieces.error());
  }
  const auto prepared = recipe::prepare_request(
      question->protocol,
      question->request ? *question->request : short_question(question->protocol, model.names.front()),
      options_of(model, policy));
  if (!prepared) {
    return error_answer(recipe::describe_error(prepared.error()));
  }
  recipe::GeneratorOptions options;
  options.response_id = response_id(question->protocol);
  options.response_model = prepared->model;
  options.system_fingerprint = model.fingerprint;
  options.created_unix_seconds = unix_seconds();
  options.parsing = parsing_of(*question, *prepared);
  if (const auto ids = recipe::encode_prompt(prepared->prompt, *model.tokenizer)) {
    options.prompt_tokens = ids->size();
  }
  const auto generator = recipe::ResponseGenerator::create(*prepared, std::move(options), model.tokenizer);
  EventList events;
  events.add(generator->start());
  for (const auto& piece : *pieces) {
    events.add(generator->push_tokens(piece));
  }
  events.add(generator->finish(question->finish));
  return json_response("{\"events\":" + events.take() +
                       ",\"response\":" + recipe::json_text(generator->response()) +
                       ",\"warnings\":" + recipe::json_text(describe_faults(generator->faults())) + "}");
}

}  // namespace hadal::server
