#include "cli/scripted_backend.h"

#include <filesystem>

#include "cli/loaded_model.h"
#include "cli/script_file.h"
#include "recipe/special_tokens.h"

namespace hadal::cli {
namespace {

namespace fs = std::filesystem;

/// The embedded model of the source tree that the program was built in, or that it is started in.
Result<fs::path> find_tiny_model() {
  std::error_code ignored;
  const fs::path model = fs::path("models") / "tiny";
  for (fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
       folder != folder.parent_path(); folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / model / "tokenizer.json", ignored)) {
      return folder / model;
    }
  }
  if (fs::is_regular_file(model / "tokenizer.json", ignored)) {
    return model;
  }
  return fail(ErrorCode::kNotFound,
              "--script: there is no tokenizer; give --model with a directory that has a tokenizer.json");
}

}  // namespace

Result<ScriptedBackend> load_scripted_backend(const Settings& settings) {
  fs::path directory;
  if (settings.model.model.empty()) {
    HADAL_TRY(directory, find_tiny_model());
  } else {
    HADAL_TRY(directory, model_directory(settings));
  }
  ScriptedBackend backend;
  backend.name = model_name(settings.model.model.empty() ? directory.string() : settings.model.model);
  HADAL_TRY(backend.tokenizer, tokenizer::Tokenizer::load(directory / "tokenizer.json"));
  const recipe::SpecialTokens special;
  const auto eos = backend.tokenizer->token_id(special[recipe::SpecialToken::kEos]);
  if (!eos) {
    return fail(ErrorCode::kUnsupported, "{}: no token {}", (directory / "tokenizer.json").string(),
                special[recipe::SpecialToken::kEos]);
  }
  HADAL_TRY(auto script, read_script(settings.server.script, *backend.tokenizer));
  engine::EngineOptions options;
  options.max_num_seqs = settings.engine.max_num_seqs;
  options.max_waiting = settings.engine.max_waiting;
  options.max_model_len = settings.engine.max_model_len;
  options.eos_token_id = *eos;
  HADAL_TRY(backend.engine,
            engine::ScriptedEngine::start(std::move(script), backend.tokenizer->vocab_size(), options));
  return backend;
}

}  // namespace hadal::cli
