// hadal recipe: the recipe as JSON Lines filters, without a model.

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/command.h"
#include "cli/line_filter.h"
#include "recipe/json_lines.h"
#include "recipe/parse_lines.h"

namespace hadal::cli {
namespace {

struct RecipeOptions {
  std::vector<std::string> tokenizers;
};

using Filter = std::string (*)(std::string_view line, const recipe::TokenizerSet& tokenizers);

Exit filter_recipe(const RecipeOptions& options, Filter filter) {
  recipe::TokenizerSet tokenizers;
  for (const std::string& entry : options.tokenizers) {
    const size_t equals = entry.find('=');
    const std::string version = entry.substr(0, equals);
    if (equals == std::string::npos || (version != "v4" && version != "v41")) {
      return report({ErrorCode::kInvalidArgument,
                     fmt::format("--tokenizer: '{}' is not v4=FILE or v41=FILE", printable(entry, 200))},
                    Exit::kUsage);
    }
    const auto tokenizer = tokenizer::Tokenizer::load(entry.substr(equals + 1));
    if (!tokenizer) {
      return report(tokenizer.error());
    }
    (version == "v4" ? tokenizers.v4 : tokenizers.v41) = *tokenizer;
  }
  return filter_lines([&](std::string_view line) { return filter(line, tokenizers); });
}

void add_filter(CLI::App& app, Selected& selected, const char* name, const char* help, Filter filter) {
  CLI::App* command = app.add_subcommand(name, help);
  const auto options = std::make_shared<RecipeOptions>();
  command
      ->add_option("--tokenizer", options->tokenizers,
                   "v4=FILE or v41=FILE, a tokenizer.json; may be repeated")
      ->allow_extra_args(false);
  command->callback([options, filter, &selected] {
    selected = [options, filter] { return filter_recipe(*options, filter); };
  });
}

}  // namespace

void add_recipe(CLI::App& app, Selected& selected) {
  CLI::App* command =
      app.add_subcommand("recipe", "Requests to prompts, and output to answers, as JSON lines");
  command->require_subcommand(1);
  add_filter(*command, selected, "render", "Answer each request with its prompt and settings",
             recipe::render_line);
  add_filter(*command, selected, "parse", "Answer each model output with its events and response",
             recipe::parse_line);
}

}  // namespace hadal::cli
