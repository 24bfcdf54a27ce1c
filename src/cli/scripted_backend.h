#pragma once
// What `hadal serve --script` runs in place of a model.

#include <memory>
#include <string>

#include "base/settings.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

namespace hadal::cli {

struct ScriptedBackend {
  std::string name;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<engine::Engine> engine;
};

/// Reads the script and the tokenizer: that of --model (no other file of it is needed), else that of
/// models/tiny in a folder above the program or in the working directory.
Result<ScriptedBackend> load_scripted_backend(const Settings& settings);

}  // namespace hadal::cli
