#pragma once
// Gives requests their states, from the prefix cache where it can, keeps what they have computed, and holds
// all of it to the memory budget. Step thread only.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/disk_tier.h"
#include "cache/memory_budget.h"
#include "cache/prefix_tree.h"
#include "engine/engine.h"
#include "engine/running_request.h"
#include "model/language_model.h"

namespace hadal::engine {

/// Segments that came from the disk, for the requests of one tenant and salt.
struct LoadedSegments {
  uint64_t ticket = 0;
  std::vector<cache::PrefixSegment> segments;
};

class StateStore {
 public:
  using OnLoaded = std::function<void(LoadedSegments)>;

  /// `loaded` is called on another thread when the disk has been read; its value goes to finish_load() on
  /// the step thread. Everything passed by reference must outlive the store.
  StateStore(const model::LanguageModel& model, const EngineOptions& options, OnLoaded loaded);

  enum class Start {
    kStarted,
    kNoRoom,   ///< not now: the states of running requests leave too little
    kLoading,  ///< not yet: a part of its prefix is being read
  };
  /// Gives a waiting request its state. `running`: those that have one. Never refuses for want of room if
  /// nothing runs.
  Start start(RunningRequest& request, std::span<const std::unique_ptr<RunningRequest>> running);

  void finish_load(LoadedSegments loaded,
                   const std::function<RunningRequest*(uint64_t ticket)>& find_request);

  /// Makes room for the passes to come by dropping what is kept; false if that is not enough.
  bool make_room(uint64_t bytes);

  /// After a pass: takes the snapshots that were waited for.
  void keep_checkpoints(RunningRequest& request);
  /// Before the state of an ending request goes: keeps its last border.
  void keep_end(RunningRequest& request);

  /// Drops everything that is kept in memory.
  void clear() { tree_.clear(); }
  uint64_t used_bytes() const { return budget_->used(); }
  EngineStats::Cache stats() const;
  /// The part of stats() that other threads change. Any thread.
  void refresh(EngineStats::Cache& stats) const;

  /// Tokens of one sequence that fit in `memory` with this layout.
  static int64_t capacity(const cache::StateLayout& layout, uint64_t memory);

 private:
  int64_t usable_limit(const RunningRequest& request) const;
  void plan_checkpoints(RunningRequest& request, int64_t start, int64_t branch) const;
  bool start_load(RunningRequest& request, const cache::PrefixTree::Match& match, int64_t limit);
  uint64_t expected_growth(std::span<const std::unique_ptr<RunningRequest>> running) const;
  uint64_t state_bytes(int64_t num_tokens) const;
  void keep(RunningRequest& request, int64_t position);

  const model::LanguageModel& model_;
  const EngineOptions& options_;
  const cache::StateLayout layout_;
  const size_t block_bytes_;
  const std::string identity_;
  const bool is_caching_;
  const std::shared_ptr<cache::MemoryBudget> budget_;  ///< shared with every state and block
  cache::PrefixTree tree_;
  OnLoaded loaded_;
  EngineStats::Cache stats_;
  uint64_t next_ticket_ = 1;
  std::unique_ptr<cache::DiskTier> disk_;  ///< last: its threads call loaded_
};

}  // namespace hadal::engine
