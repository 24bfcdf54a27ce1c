// hadal tokenize, hadal detokenize: JSON Lines filters.

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/line_filter.h"
#include "tokenizer/json_lines.h"

namespace hadal::cli {
namespace {

struct TokenizeOptions {
  std::string tokenizer;
  bool special = false;
};

using Filter = std::string (*)(const tokenizer::Tokenizer& tokenizer, std::string_view line, bool special);

Exit filter_tokens(const TokenizeOptions& options, Filter filter) {
  const auto tokenizer = tokenizer::Tokenizer::load(options.tokenizer);
  if (!tokenizer) {
    return report(tokenizer.error());
  }
  return filter_lines([&](std::string_view line) { return filter(**tokenizer, line, options.special); });
}

CLI::App* add_filter(CLI::App& app, Selected& selected, const char* name, const char* help, Filter filter,
                     const char* special_flag, const char* special_help) {
  CLI::App* command = app.add_subcommand(name, help);
  const auto options = std::make_shared<TokenizeOptions>();
  command->add_option("--tokenizer", options->tokenizer, "A tokenizer.json")->required();
  command->add_flag(special_flag, options->special, special_help);
  command->callback([options, filter, &selected] {
    selected = [options, filter] { return filter_tokens(*options, filter); };
  });
  return command;
}

}  // namespace

void add_tokenize(CLI::App& app, Selected& selected) {
  add_filter(app, selected, "tokenize", "Add \"ids\" to each JSON line with a \"text\"",
             tokenizer::tokenize_line, "--special", "Spellings of added tokens become their ids");
  add_filter(app, selected, "detokenize", "Add \"text\" to each JSON line with \"ids\"",
             tokenizer::detokenize_line, "--skip-special", "Leave special tokens out of the text");
}

}  // namespace hadal::cli
