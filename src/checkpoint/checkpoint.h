#pragma once
// A checkpoint directory in the official Hugging Face layout, memory-mapped.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/model_config.h"
#include "checkpoint/safetensors.h"

namespace hadal::checkpoint {

/// config.json plus all shards. Opening checks every header, that the index and the shards agree, that every
/// tensor which the configuration calls for is present with its dtype and shape (model.md section 2), and
/// that its elements are aligned; no tensor data is read. Views stay valid as long as the object lives, also
/// after a move. Pages of the Engram tables are marked for random reads.
class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  const ModelConfig& config() const { return config_; }

  /// A tensor by its name without the optional "model." prefix; kNotFound names directory and tensor.
  Result<TensorView> tensor(std::string_view name) const;
  bool has(std::string_view name) const;

  struct Part {
    std::string name;  ///< "routed experts", "engram tables", ...
    uint64_t bytes = 0;
    uint64_t tensors = 0;
  };
  /// Bytes by part of the model, empty parts left out, for `hadal inspect` and the memory plan.
  std::vector<Part> parts() const;
  uint64_t total_bytes() const;
  size_t num_tensors() const { return views_.size(); }
  size_t num_shards() const { return shards_.size(); }

 private:
  Checkpoint() = default;
  void advise_random_tables() const;
  std::filesystem::path directory_;
  ModelConfig config_;
  std::vector<SafetensorsFile> shards_;
  std::map<std::string, TensorView, std::less<>> views_;
};

/// Resolves what `--model` names: a directory as it is, else a Hugging Face repo id ("org/name") in the hub
/// cache at `cache_root` (refs/main, or `revision`). kNotFound says the exact `hf download` command.
Result<std::filesystem::path> find_model_directory(std::string_view model,
                                                   const std::filesystem::path& cache_root,
                                                   std::string_view revision = "main");

}  // namespace hadal::checkpoint
