// hadal generate: one answer to one prompt.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/chat_turn.h"
#include "cli/command.h"
#include "cli/loaded_model.h"
#include "cli/seed.h"
#include "cli/setting_flags.h"
#include "cli/terminal.h"
#include "cli/token_list.h"
#include "server/access.h"
#include "server/completion_text.h"

namespace hadal::cli {
namespace {

struct GenerateOptions {
  std::optional<std::string> prompt;
  std::optional<std::string> token_ids;
  std::optional<std::string> chat;
  TurnOptions sampling;
  std::vector<std::string> stop;
  std::string thinking = "off";
  bool as_json = false;
  bool with_stats = false;
};

/// How drafting went in this run.
nlohmann::ordered_json describe_drafts(const engine::EngineStats& stats) {
  const engine::DraftStats& drafts = stats.drafts;
  const auto total = drafts.total();
  nlohmann::ordered_json result;
  result["steps"] = stats.steps_total;
  result["tokens_per_step"] = stats.steps_total == 0 ? 0.0
                                                     : static_cast<double>(stats.generation_tokens_total) /
                                                           static_cast<double>(stats.steps_total);
  result["drafted"] = total.drafted;
  result["verified"] = total.verified;
  result["accepted"] = total.accepted;
  result["positions"] = nlohmann::ordered_json::array();
  for (const auto& position : drafts.positions) {
    if (position.drafted > 0) {
      result["positions"].push_back(
          {{"drafted", position.drafted}, {"verified", position.verified}, {"accepted", position.accepted}});
    }
  }
  result["calibration_error"] = drafts.calibration_error();
  return result;
}

nlohmann::ordered_json describe(const GenerationResult& generation, std::string text, std::string_view finish,
                                const engine::EngineStats* stats) {
  nlohmann::ordered_json result;
  result["token_ids"] = generation.token_ids;
  result["text"] = std::move(text);
  result["finish_reason"] = finish;
  result["usage"] = {
      {"prompt_tokens", generation.usage.prompt_tokens},
      {"completion_tokens", generation.token_ids.size()},
      {"total_tokens", generation.usage.prompt_tokens + static_cast<int64_t>(generation.token_ids.size())},
      {"cached_tokens", generation.usage.cached_tokens}};
  if (stats != nullptr) {  // depends on the machine's speed, and an answer must not
    result["drafts"] = describe_drafts(*stats);
  }
  return result;
}

void print_json(const nlohmann::ordered_json& result) {
  write_out(result.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

/// What is there was printed; the exit code still says that it is not the whole answer.
Result<void> check_complete(const GenerationResult& generation) {
  if (generation.finish == engine::FinishReason::kCancelled) {
    return fail(ErrorCode::kCancelled, "interrupted after {} tokens", generation.token_ids.size());
  }
  return {};
}

Result<void> generate_chat(const GenerateOptions& options, engine::Engine& engine,
                           const LoadedModel& loaded) {
  recipe::Json request;
  request["messages"] = {{{"role", "user"}, {"content", *options.chat}}};
  request["thinking"] = {{"type", options.thinking == "on" ? "enabled" : "disabled"}};
  if (!options.stop.empty()) {
    request["stop"] = options.stop;
  }
  TurnPrinter printer;
  HADAL_TRY(const TurnResult turn, run_turn(engine, loaded.tokenizer, std::move(request), options.sampling,
                                            [&](TurnPart part, std::string_view text) {
                                              if (!options.as_json) {
                                                printer.show(part, text);
                                              }
                                            }));
  if (!options.as_json) {
    printer.finish();
    return check_complete(turn.generation);
  }
  const engine::EngineStats stats = engine.stats();
  auto result =
      describe(turn.generation, turn.content, turn.finish_reason, options.with_stats ? &stats : nullptr);
  if (options.thinking == "on") {
    result["reasoning"] = turn.reasoning;
  }
  print_json(result);
  return check_complete(turn.generation);
}

Result<void> generate_plain(const GenerateOptions& options, engine::Engine& engine,
                            const LoadedModel& loaded) {
  engine::Request request;
  if (options.token_ids) {
    HADAL_TRY(request.prompt, parse_token_list(*options.token_ids, loaded.model->vocab_size()));
  } else {
    if (loaded.bos_token_id) {
      request.prompt.push_back(*loaded.bos_token_id);
    }
    loaded.tokenizer->encode_with_special(*options.prompt, request.prompt);
  }
  const int64_t room = engine.options().max_model_len - static_cast<int64_t>(request.prompt.size());
  const TurnOptions& wish = options.sampling;
  engine::SamplingParams& sampling = request.sampling;
  sampling.max_tokens = std::max<int64_t>(std::min(wish.max_tokens.value_or(128), room), 1);
  sampling.temperature = wish.temperature.value_or(1.0);
  sampling.top_p = wish.top_p.value_or(1.0);
  sampling.top_k = wish.top_k.value_or(-1);
  sampling.seed = wish.seed ? *wish.seed : server::random_bits();
  sampling.ignore_eos = wish.ignore_eos;

  server::CompletionText text(loaded.tokenizer, options.stop, /*skip_special_tokens=*/false);
  std::string whole;
  const auto release = [&] {
    const std::string piece = text.take_text();
    whole += piece;
    return options.as_json || write_out(piece);
  };
  HADAL_TRY(const GenerationResult generation,
            run_generation(engine, std::move(request), [&](const engine::Output& output) {
              text.push(output.tokens, output.finish == engine::FinishReason::kStop);
              return release() && !text.is_stopped();
            }));
  text.finish();
  release();
  if (options.as_json) {
    const engine::EngineStats stats = engine.stats();
    print_json(
        describe(generation, whole, finish_name(generation.finish), options.with_stats ? &stats : nullptr));
  } else {
    write_out("\n");
  }
  return check_complete(generation);
}

Exit generate(const GenerateOptions& options, const Flags& flags) {
  const int num_prompts = (options.prompt ? 1 : 0) + (options.token_ids ? 1 : 0) + (options.chat ? 1 : 0);
  if (num_prompts != 1) {
    return report({ErrorCode::kInvalidArgument, "give exactly one of --prompt, --token-ids and --chat"},
                  Exit::kUsage);
  }
  const auto settings = load_cli_settings(flags, /*quiet=*/true);
  if (!settings) {
    return report(settings.error(), Exit::kUsage);
  }
  auto loaded = load_model(settings->values);
  if (!loaded) {
    return report(loaded.error(), settings->values.model.model.empty() ? Exit::kUsage : Exit::kFailure);
  }
  const auto engine = start_engine(*loaded, settings->values, 1);
  if (!engine) {
    return report(engine.error(), Exit::kUsage);
  }
  const auto done =
      options.chat ? generate_chat(options, **engine, *loaded) : generate_plain(options, **engine, *loaded);
  return done ? Exit::kOk : report(done.error());
}

}  // namespace

void add_generate(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("generate", "Print the answer to one prompt");
  const auto options = std::make_shared<GenerateOptions>();
  command->add_option("--prompt", options->prompt, "Plain text to go on from");
  command->add_option("--token-ids", options->token_ids, "Token ids to go on from: a list, or @FILE");
  command->add_option("--chat", options->chat, "A user message to answer");
  TurnOptions& sampling = options->sampling;
  command
      ->add_option(
          "--max-tokens", sampling.max_tokens,
          "Most tokens to generate, cut to the room in the context (128; --chat: as the recipe says)")
      ->check(CLI::Range(int64_t{1}, int64_t{INT32_MAX}));
  command->add_option("--temperature", sampling.temperature, "0 is greedy (1)")->check(CLI::Range(0.0, 1e6));
  command->add_option("--top-p", sampling.top_p, "In (0, 1] (1)")->check(CLI::Range(1e-300, 1.0));
  command->add_option("--top-k", sampling.top_k, "At least 1, or -1 for all (-1)")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text == "0" ? std::string("0 is neither -1 nor at least 1") : std::string();
          },
          ""))
      ->check(CLI::Range(int64_t{-1}, int64_t{INT32_MAX}));
  command->add_option("--seed", sampling.seed, "Makes the answer reproducible (random)")->check(is_seed);
  command->add_flag("--ignore-eos", sampling.ignore_eos, "Go on after the end-of-sentence token");
  command->add_option("--stop", options->stop, "Text that ends the answer; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--thinking", options->thinking, "With --chat: think first (off)")
      ->check(CLI::IsMember({"on", "off"}));
  command->add_flag("--json", options->as_json,
                    "Print one JSON object: token_ids, text, finish_reason, usage");
  command->add_flag("--stats", options->with_stats, "With --json: also how drafting went (drafts)");
  const Flags flags = add_setting_flags(*command, {"model", "engine", "threads", "log"});
  command->callback(
      [options, flags, &selected] { selected = [options, flags] { return generate(*options, flags); }; });
}

}  // namespace hadal::cli
