#pragma once
// From settings to a model in memory.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "engine/engine.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace hadal::cli {

/// A model with all that it runs on. Members are destroyed in reverse order, as their uses need.
struct LoadedModel {
  std::shared_ptr<const checkpoint::Checkpoint> checkpoint;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<model::Model> model;
  std::string name;                     ///< the last part of what --model named
  std::optional<int32_t> bos_token_id;  ///< set if plain text gets BOS in front
};

/// Loads what the settings name; shows progress on standard error if that is a terminal.
Result<LoadedModel> load_model(const Settings& settings);

/// The directory that --model names; an error that says how to name one if it is not set.
Result<std::filesystem::path> model_directory(const Settings& settings);

/// What a model is called: the last part of what --model named.
std::string model_name(std::string_view model);

/// An engine for a command that never has more than `most_requests` at once.
Result<std::unique_ptr<engine::Engine>> start_engine(LoadedModel& loaded, const Settings& settings,
                                                     int64_t most_requests);

}  // namespace hadal::cli
