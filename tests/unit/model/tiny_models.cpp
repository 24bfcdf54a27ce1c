#include "tiny_models.h"

#include <filesystem>
#include <map>

#include <gtest/gtest.h>

namespace hadal::model {
namespace {

std::filesystem::path directory_of(const std::string& name) {
  return name == "models/tiny" ? std::filesystem::path(HADAL_MODELS) / "tiny"
                               : std::filesystem::path(HADAL_TINY_CHECKPOINTS) / name;
}

/// A test without its data cannot go on; the message names what is missing.
template <class T>
T value_or_stop(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message;
    std::abort();
  }
  return std::move(*result);
}

}  // namespace

std::shared_ptr<const checkpoint::Checkpoint> tiny_checkpoint(const std::string& name) {
  static std::map<std::string, std::shared_ptr<const checkpoint::Checkpoint>> opened;
  auto& checkpoint = opened[name];
  if (checkpoint == nullptr) {
    checkpoint = std::make_shared<checkpoint::Checkpoint>(
        value_or_stop(checkpoint::Checkpoint::open(directory_of(name))));
  }
  return checkpoint;
}

const tokenizer::Tokenizer& tiny_tokenizer(const std::string& name) {
  static std::map<std::string, std::shared_ptr<const tokenizer::Tokenizer>> loaded;
  auto& tokenizer = loaded[name];
  if (tokenizer == nullptr) {
    tokenizer = value_or_stop(tokenizer::Tokenizer::load(directory_of(name) / "tokenizer.json"));
  }
  return *tokenizer;
}

ThreadPool& shared_pool() {
  static ThreadPool pool(2);
  return pool;
}

std::unique_ptr<Model> load_tiny(const std::string& name, const TinyChoice& choice) {
  const auto checkpoint = tiny_checkpoint(name);
  const bool has_engram = !checkpoint->config().text.engram_layer_ids.empty();
  ModelOptions options{.precision = {choice.precision},
                       .replay = choice.replay,
                       .replay_keep = choice.replay_keep,
                       .isa = choice.isa,
                       .keeps_snapshots = choice.keeps_snapshots,
                       .draft_length = choice.draft_length};
  return value_or_stop(Model::load(checkpoint, has_engram ? &tiny_tokenizer(name) : nullptr,
                                   choice.pool != nullptr ? *choice.pool : shared_pool(), options));
}

const char* precision_name(PrecisionMode mode) {
  switch (mode) {
    case PrecisionMode::kProduct:
      return "default";
    case PrecisionMode::kF32:
      return "f32";
    case PrecisionMode::kF32Kvq:
      return "f32_kvq";
    case PrecisionMode::kQat:
      return "qat";
  }
  return "";
}

int64_t Choices::below(int64_t bound) {
  // splitmix64
  uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<int64_t>((z ^ (z >> 31)) % static_cast<uint64_t>(bound));
}

std::vector<int32_t> random_ids(uint64_t seed, int64_t count) {
  Choices choices(seed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(choices.below(2000)));
  }
  return ids;
}

}  // namespace hadal::model
