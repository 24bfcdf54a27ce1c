#pragma once
// What a protocol request becomes: the prompt with its special-token ranges, the settings of the run, and
// what is needed to parse the output and to answer in the same protocol. No engine type appears here.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "recipe/special_tokens.h"

namespace hadal::recipe {

/// JSON whose objects keep their key order; the order is visible in prompts and responses.
using Json = nlohmann::ordered_json;

enum class Protocol { kChat, kMessages, kResponses };
enum class ModelVersion { kV4, kV41 };

/// A refusal with the HTTP answer of the protocol: `body` is the JSON text to send.
/// `stage_parse` marks bodies that could not even be read (the reference raises those without a status).
struct RequestError {
  int status_code = 400;
  std::string body;
  bool stage_parse = false;
  std::string message;
};

template <class T>
using RequestResult = tl::expected<T, RequestError>;

/// Where the output starts: which part of the answer the first token belongs to.
enum class ThinkingStage { kOff, kReasoningStart, kReasoningContinuation, kContentContinuation };

struct ParsingOptions {
  bool parse_tool_calls = false;
  bool starts_in_tool_calls = false;
  bool parse_json_output = false;
  ThinkingStage thinking_initial_stage = ThinkingStage::kOff;
  std::vector<std::string> stop_sequences;
};

struct InferenceParams {
  std::optional<uint64_t> max_tokens;
  float temperature = 1.0F;
  float top_p = 1.0F;
  std::optional<uint64_t> top_k;  ///< Messages; at least 1
  bool logprobs = false;
  std::optional<uint32_t> top_logprobs;
  std::optional<uint64_t> seed;
};

struct OutputConstraint {
  enum class Kind { kJson, kRegex, kToolCall, kToolCallRequired };
  Kind kind = Kind::kJson;
  /// kJson: a JSON Schema, or empty for any object; kRegex: the expression; kToolCall and kToolCallRequired:
  /// the list of callable tools, each {"type":"function","function":{...},"defer_loading"?}. A required call
  /// comes at once where ParsingOptions::starts_in_tool_calls is set, else after the reasoning.
  std::string schema;
  bool at_most_one_call = false;
};

enum class ImageDetail { kLow, kHigh, kOriginal, kAuto };

struct ImageSource {
  enum class Kind { kUrl, kDataUrl };
  Kind kind = Kind::kUrl;
  ImageDetail detail = ImageDetail::kHigh;
  std::string path;  ///< where in the request, for errors
  std::string url;   ///< the http(s) or data URL
};

/// A rendered prompt. `special_ranges` are [begin, end) in BYTES of `text`; each is the spelling of one
/// special token. The text between them is encoded without the added vocabulary.
struct Prompt {
  std::string text;
  std::vector<std::pair<size_t, size_t>> special_ranges;
  /// One for each image placeholder, in prompt order. A placeholder is one id of the encoded prompt, but an
  /// image takes more tokens: prompt tokens = ids + the sum over the images of (its tokens - 1).
  std::vector<ImageSource> images;
};

struct PreparedRequest {
  Protocol protocol = Protocol::kChat;
  ModelVersion model_version = ModelVersion::kV41;
  std::string model;  ///< as the request spelled it
  Prompt prompt;
  /// Fields of the body that have no effect here, known to the protocol or not; for the log.
  std::vector<std::string> ignored_fields;
  /// What was left out or replaced, as sentences for the client or the log.
  std::vector<std::string> notices;
  bool stream = false;
  bool include_usage = false;  ///< Chat: stream_options.include_usage
  bool thinking = false;
  InferenceParams inference;
  std::optional<OutputConstraint> constraint;
  ParsingOptions parsing;
  /// What max_tokens is where the request leaves it open (before it is cut to the context).
  uint64_t default_max_tokens = 0;
  /// The reading of the request, in the shape of the goldens (for inspection); null unless
  /// ConversionOptions::describe_conversation.
  Json conversation;
  /// Responses: tool name in the prompt -> (namespace, local name); also for tools in `found_tools`.
  std::map<std::string, std::pair<std::string, std::string>> namespace_tool_map;
  /// Responses: names (in the prompt) of tools that were not declared but found by a tool search in the
  /// history.
  std::set<std::string> found_tools;
  /// Responses: names (in the prompt) of tools whose calls are answered as custom_tool_call; such a call has
  /// the one argument `input`, the custom tool's free text.
  std::set<std::string> custom_tools;
  bool tool_search = false;  ///< Responses: calls of `tool_search` are answered as tool_search_call
  Json echo;                 ///< Responses: request fields that response objects repeat; null otherwise
  /// Responses with ConversionOptions::keep_input: the request's own input as the JSON text of a list of
  /// items.
  std::string input_items;
};

/// Server options that change how requests are read (names as in the goldens' `options`).
struct ConversionOptions {
  enum class ReasoningContent { kFillEmpty, kReject };
  enum class WebSearch { kDrop, kReject };
  bool default_thinking_mode = true;
  ReasoningContent reasoning_content_behavior = ReasoningContent::kFillEmpty;
  WebSearch responses_web_search = WebSearch::kDrop;
  WebSearch messages_web_search = WebSearch::kReject;
  uint64_t thinking_max_tokens_upper_bound = 393216;
  uint64_t non_thinking_max_tokens_upper_bound = 393216;
  std::map<std::string, ModelVersion> model_aliases;
  /// The prompt format to take instead of the one that goes with the model's name (which must be known
  /// still).
  std::optional<ModelVersion> model_version;
  SpecialTokens special_tokens;
  /// Takes a required or named tool choice while thinking: the call comes after the reasoning, by constraint.
  /// The reference refuses it (but for `any` of Messages, which is always taken so).
  bool required_call_while_thinking = false;
  bool describe_conversation = false;  ///< fill PreparedRequest::conversation
  /// Responses: what `previous_response_id` stands for, as the JSON text of a list of items that go in front
  /// of the input. Without it a request that has the field is refused.
  std::optional<std::string> previous_items;
  bool keep_input = false;  ///< Responses: fill PreparedRequest::input_items
};

/// Reads a request body of `protocol` and renders its prompt.
RequestResult<PreparedRequest> prepare_request(Protocol protocol, std::string_view body,
                                               const ConversionOptions& options);

/// The number of tokens to generate at most: the request's own, else the default of its mode, cut to the
/// context. An overflow is a RequestError in the protocol's shape that holds both numbers. `prompt_tokens`
/// counts what the model reads, with all tokens of the images (see Prompt::images).
RequestResult<uint64_t> resolve_max_tokens(const PreparedRequest& request, uint64_t prompt_tokens,
                                           uint64_t context_limit);

}  // namespace hadal::recipe
