// hadal chat: a conversation at the terminal.

#include <iostream>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/chat_turn.h"
#include "cli/command.h"
#include "cli/loaded_model.h"
#include "cli/seed.h"
#include "cli/setting_flags.h"
#include "cli/terminal.h"

namespace hadal::cli {
namespace {

struct ChatOptions {
  TurnOptions sampling;
  std::string system;
  std::string thinking = "on";
};

/// A fresh conversation: the system message, if there is one.
recipe::Json first_messages(const ChatOptions& options) {
  recipe::Json messages = recipe::Json::array();
  if (!options.system.empty()) {
    messages.push_back({{"role", "system"}, {"content", options.system}});
  }
  return messages;
}

void converse(const ChatOptions& options, engine::Engine& engine, const LoadedModel& loaded) {
  const bool is_talking = is_terminal_in() && is_terminal_out();
  if (is_talking) {
    write_out("/reset starts again, /exit leaves, Ctrl-C stops an answer.\n");
  }
  recipe::Json messages = first_messages(options);
  std::string line;
  while (true) {
    if (is_talking) {
      write_out("\n> ");
    }
    if (!std::getline(std::cin, line) || line == "/exit") {
      break;
    }
    if (line == "/reset") {
      messages = first_messages(options);
      continue;
    }
    if (line.starts_with('/') && line.find(' ') == std::string::npos) {
      write_out(fmt::format("there is no command {}; there are /reset and /exit\n", printable(line, 40)));
      continue;
    }
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    messages.push_back({{"role", "user"}, {"content", line}});
    recipe::Json request;
    request["messages"] = messages;
    request["thinking"] = {{"type", options.thinking == "on" ? "enabled" : "disabled"}};
    TurnPrinter printer;
    const auto turn = run_turn(engine, loaded.tokenizer, std::move(request), options.sampling,
                               [&](TurnPart part, std::string_view text) { printer.show(part, text); });
    if (!turn) {
      report(turn.error());
      messages.erase(messages.size() - 1);
      continue;
    }
    printer.finish();
    if (turn->finish_reason != "stop") {
      write_out(fmt::format("[{}]\n", turn->finish_reason));
    }
    recipe::Json answer{{"role", "assistant"}, {"content", turn->content}};
    if (!turn->reasoning.empty()) {
      answer["reasoning_content"] = turn->reasoning;
    }
    messages.push_back(std::move(answer));
  }
}

Exit chat(const ChatOptions& options, const Flags& flags) {
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
  converse(options, **engine, *loaded);
  return Exit::kOk;
}

}  // namespace

void add_chat(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("chat", "Talk to the model at the terminal");
  const auto options = std::make_shared<ChatOptions>();
  command->add_option("--system", options->system, "System message");
  command->add_option("--thinking", options->thinking, "Think before answering (on)")
      ->check(CLI::IsMember({"on", "off"}));
  TurnOptions& sampling = options->sampling;
  command->add_option("--max-tokens", sampling.max_tokens, "Most tokens of one answer")
      ->check(CLI::Range(int64_t{1}, int64_t{INT32_MAX}));
  command->add_option("--temperature", sampling.temperature, "0 is greedy (1)")->check(CLI::Range(0.0, 1e6));
  command->add_option("--top-p", sampling.top_p, "In (0, 1]")->check(CLI::Range(1e-300, 1.0));
  command->add_option("--seed", sampling.seed, "Makes the answers reproducible (random)")->check(is_seed);
  const Flags flags = add_setting_flags(*command, {"model", "engine", "threads", "log"});
  command->callback(
      [options, flags, &selected] { selected = [options, flags] { return chat(*options, flags); }; });
}

}  // namespace hadal::cli
