#pragma once
// Responses: response objects and their output items.

#include <cstdint>
#include <string>
#include <string_view>

#include "recipe/answer.h"

namespace hadal::recipe {

enum class ResponseStatus { kInProgress, kCompleted, kIncomplete };
std::string_view response_status_name(ResponseStatus status);

/// How the call of a tool is shown.
enum class ResponseCallKind { kFunction, kCustom, kToolSearch };
ResponseCallKind response_call_kind(const PreparedRequest& request, const std::string& name);

/// The id of output item `index`: by what it is, `rs_`, `msg_`, `fc_`, `ctc_` or `tsc_`.
std::string response_item_id(std::string_view prefix, const GeneratorOptions& options, uint64_t index);

Json response_reasoning_part(std::string_view text);
/// `logprobs` is a list.
Json response_text_part(std::string_view text, Json logprobs);

/// A reasoning item or a message; without the part while it is in progress.
Json response_reasoning_item(const GeneratorOptions& options, uint64_t index, ResponseStatus status,
                             const Json* part);
Json response_message_item(const GeneratorOptions& options, uint64_t index, ResponseStatus status,
                           std::string_view phase, const Json* part);
/// A call. `input` is the text of a custom tool's input; the arguments of others are those of `item`, nothing
/// of them while in progress.
Json response_call_item(const PreparedRequest& request, const GeneratorOptions& options, uint64_t index,
                        ResponseStatus status, const AnswerItem& item, std::string_view input);

/// The `response` object. Fields of the request are those of `request.echo`: instructions, max_output_tokens,
/// reasoning, temperature, text, tool_choice, tools, top_logprobs, top_p, user; what is null or missing there
/// is shown as the default.
Json response_object(const PreparedRequest& request, const GeneratorOptions& options, const Answer& answer,
                     Json output);

}  // namespace hadal::recipe
