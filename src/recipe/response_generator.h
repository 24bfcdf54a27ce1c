#pragma once
// From model output to protocol answers: feed pieces of output, get events (streaming) and in the end the
// whole response object. One generator per answer; not thread-safe.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/parse/output_parser.h"
#include "recipe/prepared_request.h"
#include "recipe/special_tokens.h"
#include "tokenizer/tokenizer.h"

namespace hadal::recipe {

/// One event of a stream. `name` is the SSE event name (empty for Chat); `data` its JSON text.
struct Event {
  std::string name;
  std::string data;
};

struct TokenAlternative {
  int32_t token = 0;
  float logprob = 0;
};

struct OutputTokenInfo {
  int32_t token = 0;
  std::optional<float> logprob;
  std::vector<TokenAlternative> top;
};

enum class OutputFinish {
  kStop,  ///< the model ended the output
  kLength,
  kContentFilter,
  kUnknown,  ///< the output ended and nobody said why: shown as a plain stop even where there are calls
};

struct GeneratorOptions {
  std::string response_id;  ///< without protocol prefix rules: exactly what is shown
  std::string response_model;
  std::string system_fingerprint;  ///< Chat; null if empty
  int64_t created_unix_seconds = 0;
  /// Responses: the time of completion; where there is no clock the time of creation is shown.
  std::function<int64_t()> clock;
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;
  std::optional<std::string> signature;   ///< Messages: signature of thinking blocks; default response_id
  uint64_t call_id_seed = 0;              ///< generated tool-call ids are a function of this and their index
  SpecialTokens special_tokens;           ///< spellings in the output
  std::optional<ParsingOptions> parsing;  ///< in place of the request's own
  /// For comparison with deepseek-recipe 0.2.0: loses what it loses (see ParserSettings), counts reasoning
  /// tokens by encoding the reasoning again, and shows whole Chat messages with its extra fields.
  bool as_reference = false;
};

/// Accepts output as token ids or as text in any split; the concatenation of what it emits does not depend
/// on the split. After a stop sequence `finished()` is true and further input is ignored.
///
/// push_*() and finish() return the events in order. A stop sequence ends the stream at once: the events of
/// the end come with the push, and finish() has none left.
class ResponseGenerator {
 public:
  /// `tokenizer` may be null if only text is fed; then reasoning tokens are not counted.
  static std::unique_ptr<ResponseGenerator> create(const PreparedRequest& request, GeneratorOptions options,
                                                   std::shared_ptr<const tokenizer::Tokenizer> tokenizer);
  virtual ~ResponseGenerator() = default;

  /// The first events; without this call they come with the first push.
  virtual std::vector<Event> start() = 0;
  /// Of the prompt, tokens that came from a cache, where this is known only when the answer begins. Events
  /// that were made before keep the number of the options.
  virtual void set_cached_tokens(uint64_t count) = 0;
  virtual std::vector<Event> push_tokens(const std::vector<OutputTokenInfo>& tokens) = 0;
  virtual std::vector<Event> push_text(std::string_view text, uint64_t num_tokens = 1) = 0;
  virtual std::vector<Event> finish(OutputFinish finish) = 0;
  virtual bool finished() const = 0;  ///< a stop sequence ended the answer, or finish() was called
  /// The whole response object (not streaming); valid after finish() or once finished().
  virtual Json response() const = 0;
  /// What was wrong with the output so far.
  virtual OutputFaults faults() const = 0;
};

}  // namespace hadal::recipe
