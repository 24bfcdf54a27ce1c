#pragma once
// One turn of a conversation through the recipe: a Chat request in, events out.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/generation_run.h"
#include "recipe/prepared_request.h"
#include "tokenizer/tokenizer.h"

namespace hadal::cli {

/// How a turn is sampled; what is not set follows the recipe.
struct TurnOptions {
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  std::optional<uint64_t> seed;
  bool ignore_eos = false;
};

struct TurnResult {
  std::string reasoning;
  std::string content;
  std::string finish_reason;  ///< as the Chat protocol says it
  GenerationResult generation;
};

/// Which part of the answer a piece of text belongs to.
enum class TurnPart { kReasoning, kContent };

/// Answers a Chat request (without model and stream, which are filled in). `show` gets the text as it comes.
/// `seed` without a value means a random one.
Result<TurnResult> run_turn(engine::Engine& engine, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                            recipe::Json request, const TurnOptions& options,
                            const std::function<void(TurnPart, std::string_view)>& show);

/// Writes pieces of an answer to standard output: reasoning dimmed on a terminal, between <think> marks
/// elsewhere.
class TurnPrinter {
 public:
  void show(TurnPart part, std::string_view text);
  /// Ends what is open and the line.
  void finish();

 private:
  void leave_reasoning();
  bool in_reasoning_ = false;
};

}  // namespace hadal::cli
