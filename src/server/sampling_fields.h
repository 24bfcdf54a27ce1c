#pragma once
// Members of a request body that shape how tokens are drawn and that the protocols' own descriptions do not
// have: what OpenAI's legacy API and the servers that extend it (vLLM, SGLang) offer.

#include <string_view>
#include <vector>

#include "engine/request.h"
#include "server/json_body.h"
#include "server/model_service.h"

namespace hadal::server {

/// The names that read_sampling_fields() reads.
const std::vector<std::string_view>& sampling_field_names();

/// Sets what `members` have of: top_k (0 and -1: off), min_p, presence_penalty, frequency_penalty,
/// repetition_penalty, logit_bias {"ID": bias}, allowed_token_ids, min_tokens, ignore_eos, stop_token_ids.
/// Absent and null members change nothing. kInvalidArgument names the member.
Result<void> read_sampling_fields(const Json& members, const ModelService& model,
                                  engine::SamplingParams& sampling);

/// The budget for thinking in tokens, if there is one: `thinking_budget` or `thinking.budget_tokens`, at
/// least 0. kInvalidArgument: both, another type, or out of range.
Result<std::optional<int64_t>> read_thinking_budget(const Json& members);

}  // namespace hadal::server
