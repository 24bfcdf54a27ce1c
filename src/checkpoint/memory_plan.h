#pragma once
// What a machine needs to run a checkpoint: weights in memory, weights that may stay on disk, and the state
// of sequences. Pure arithmetic over the configuration; `hadal inspect` prints it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_config.h"

namespace hadal::checkpoint {

/// Bytes of one sequence's state in the caches' own formats (model.md section 11), without page rounding.
struct StateSizes {
  uint64_t compressed_entry =
      0;                        ///< one compressed key: FP4 with a scale byte per 16 channels, or FP8 per 32
  uint64_t index_key = 0;       ///< one index key: FP4 with a scale byte per 32 channels
  double per_token = 0;         ///< entries and index keys of all sources, averaged over a group
  uint64_t window_key = 0;      ///< one key of one sliding window: FP8 with a scale byte per 32 channels
  uint64_t windows = 0;         ///< windows of all layers, draft layers included, with room for rollback
  uint64_t open_groups = 0;     ///< float32 rows of groups that are not complete yet
  uint64_t engram_context = 0;  ///< compressed ids of the last tokens
  uint64_t per_sequence() const { return windows + open_groups + engram_context; }
};

/// `rollback` positions of the newest tokens can be taken back (rejected drafts).
StateSizes state_sizes(const TextConfig& text, int64_t rollback);

/// Entries and index keys of a sequence of `num_tokens` tokens: only complete groups count.
uint64_t compressed_state_bytes(const TextConfig& text, int64_t num_tokens);

struct MemoryPlan {
  int64_t context_length = 0;
  int64_t num_sequences = 0;
  uint64_t resident_weights = 0;  ///< everything that each token may touch
  uint64_t disk_weights = 0;      ///< Engram tables: a few rows a token, read on demand
  StateSizes state;
  uint64_t state_bytes = 0;  ///< of num_sequences sequences of context_length tokens
  uint64_t memory_bytes() const { return resident_weights + state_bytes; }
};

/// The plan for `num_sequences` sequences of `context_length` tokens each. `parts` come from
/// Checkpoint::parts(). kInvalidArgument if the context is not in [1, max_position_embeddings] or the number
/// of sequences not in [1, 1000000].
Result<MemoryPlan> plan_memory(const ModelConfig& config, std::span<const Checkpoint::Part> parts,
                               int64_t context_length, int64_t num_sequences);

/// The plan as lines of text, parts first.
std::vector<std::string> describe_plan(const MemoryPlan& plan, std::span<const Checkpoint::Part> parts);

/// "1.42 MB", "510.3 GB": three significant digits or more, decimal units.
std::string format_bytes(double bytes);

}  // namespace hadal::checkpoint
