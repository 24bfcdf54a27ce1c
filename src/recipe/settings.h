#pragma once
// Settings that all protocols share: model names, thinking, sampling, limits.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "recipe/conversation.h"
#include "recipe/notices.h"
#include "recipe/prepared_request.h"

namespace hadal::recipe {

/// Effort as requests spell it; kEffortNames holds the spellings in this order.
enum class AskedEffort : uint8_t { kNone, kMinimal, kLow, kMedium, kHigh, kXhigh, kUltra, kMax };
inline constexpr std::string_view kEffortNames[] = {"none", "minimal", "low",   "medium",
                                                    "high", "xhigh",   "ultra", "max"};

/// What a request converts to before its prompt is rendered.
struct ConvertedRequest {
  PreparedRequest prepared;
  Conversation conversation;
  /// What the output must match; differs from the schema in the prompt where `strict` rewrites it.
  std::optional<JsonValue> constraint_schema;
  /// Set: only these tools may be called, of all that the prompt shows.
  std::optional<std::set<std::string, std::less<>>> callable;
  Notices notices;
};

/// The version that a model name stands for. Exact spelling; the error lists all names.
Result<ModelVersion> select_model(std::string_view name, const ConversionOptions& options);

/// Thinking on or off, and the effort: an explicit choice wins, then the effort (`none` is off), then the
/// server's default.
struct Thinking {
  bool on = true;
  std::optional<Effort> effort;
};
Thinking resolve_thinking(std::optional<bool> asked, std::optional<AskedEffort> effort,
                          const ConversionOptions& options);

Result<void> check_temperature(std::optional<float> temperature);
Result<void> check_top_p(std::optional<float> top_p);
/// `Invalid max_tokens value, ...` unless 1 <= value <= bound of the mode.
Result<void> check_max_tokens(std::optional<uint64_t> max_tokens, bool thinking,
                              const ConversionOptions& options);
uint64_t max_tokens_bound(bool thinking, const ConversionOptions& options);

/// Temperature and top_p in force: each version and mode has values of its own that win over the request's.
void set_sampling(InferenceParams& inference, std::optional<float> temperature, std::optional<float> top_p,
                  ModelVersion version, bool thinking, bool tools_in_force);

/// `Invalid '<name>': empty string. ...` for the first empty one; more than 16 are refused.
Result<void> check_stop_sequences(std::span<const std::string> sequences, std::string_view name);

/// Fills in what follows from the conversation: thinking, parsing options, constraint, default limit,
/// notices. A call that is required after reasoning becomes a free choice for the prompt; the constraint
/// keeps the demand.
void finish_settings(ConvertedRequest& request);

/// The stage that the answer to a turn to be continued starts in.
ThinkingStage continued_stage(const Message& turn);

}  // namespace hadal::recipe
