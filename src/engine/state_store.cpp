#include "engine/state_store.h"

#include <algorithm>

#include "base/log.h"

namespace hadal::engine {
namespace {

using cache::kBlockTokens;

/// A snapshot at every so many tokens of a long prompt bounds what has to be computed again where another
/// prompt leaves it.
constexpr int64_t kCheckpointTokens = 4096;
/// Tokens that a request is expected to add soon; admitting without them would soon lead to a preemption.
constexpr int64_t kHeadroomTokens = kBlockTokens;

int64_t border_before(int64_t length) {
  return length / kBlockTokens * kBlockTokens;
}

int64_t num_blocks(int64_t tokens) {
  return (tokens + kBlockTokens - 1) / kBlockTokens;
}

/// Positions that belong to known tokens. A pass that was cut short may have left rows of guesses behind
/// them.
int64_t known_length(RunningRequest& request) {
  return std::min(request.state()->length(), static_cast<int64_t>(request.tokens().size()));
}

/// Everything besides the model's own name that the bytes of a kept state depend on.
std::string describe(const cache::StateLayout& layout, const std::string& identity) {
  std::string text =
      fmt::format("layout 1; window {} x {}; layers {}; replayed from {}; sources", layout.window,
                  layout.window_row_bytes, layout.num_layers, layout.first_replayed_layer.value_or(-1));
  for (const auto& source : layout.sources) {
    text += fmt::format(" {}:{}+{}", source.ratio, source.entry_bytes, source.index_key_bytes);
  }
  return text + "; " + identity;
}

std::unique_ptr<cache::DiskTier> open_disk(const EngineOptions& options, const cache::SegmentShape& shape,
                                           const std::shared_ptr<cache::MemoryBudget>& budget) {
  auto disk = cache::DiskTier::open(options.cache_dir, options.cache_disk, shape, budget);
  if (!disk) {
    spdlog::warn("cache: going on without the disk: {}", disk.error().message);
    return nullptr;
  }
  const cache::DiskStats stats = (*disk)->stats();
  spdlog::info("cache: {}: {} segments of this model, {} of {} bytes used", options.cache_dir.string(),
               stats.segments, stats.bytes, stats.limit_bytes);
  return std::move(*disk);
}

}  // namespace

StateStore::StateStore(const model::LanguageModel& model, const EngineOptions& options, OnLoaded loaded)
    : model_(model),
      options_(options),
      layout_(model.new_state(1)->layout()),
      block_bytes_(cache::BlockShape(layout_).bytes),
      identity_(describe(layout_, options.cache_identity)),
      is_caching_(options.prefix_cache && layout_.has_aligned_blocks()),
      budget_(std::make_shared<cache::MemoryBudget>(options.cache_memory)),
      tree_(budget_, block_bytes_),
      loaded_(std::move(loaded)) {
  if (options.prefix_cache && !is_caching_) {
    spdlog::warn("cache: off, since groups of this model's sources cross the borders of blocks");
  }
  if (is_caching_ && !options.cache_dir.empty()) {
    const cache::PrefixKey identity = cache::root_key(identity_, "", "");
    disk_ = open_disk(options, {identity, block_bytes_, layout_.snapshot_bytes()}, budget_);
  }
}

int64_t StateStore::capacity(const cache::StateLayout& layout, uint64_t memory) {
  const uint64_t rings = layout.ring_bytes();
  const size_t block = cache::BlockShape(layout).bytes;
  if (memory < rings) {
    return 0;
  }
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max() / kBlockTokens;
  return block == 0 ? std::numeric_limits<int64_t>::max()
                    : static_cast<int64_t>(std::min((memory - rings) / block, kMost)) * kBlockTokens;
}

/// Longest beginning of a request that may come from elsewhere: at least its last token has to be computed,
/// and under bounded replay everything that the upper layers see.
int64_t StateStore::usable_limit(const RunningRequest& request) const {
  const auto most = static_cast<int64_t>(request.tokens().size()) - 1;
  return layout_.first_replayed_layer ? std::min(most, model_.replay_from(request.prompt_length())) : most;
}

uint64_t StateStore::state_bytes(int64_t num_tokens) const {
  const int64_t expected = std::min(num_tokens + kHeadroomTokens, options_.max_model_len);
  return static_cast<uint64_t>(num_blocks(expected)) * block_bytes_;
}

uint64_t StateStore::expected_growth(std::span<const std::unique_ptr<RunningRequest>> running) const {
  uint64_t bytes = 0;
  for (const auto& request : running) {
    if (const cache::SequenceState* state = request->state()) {
      const int64_t expected =
          std::min(static_cast<int64_t>(request->tokens().size()) + kHeadroomTokens, options_.max_model_len);
      bytes += state->growth_bytes(std::max<int64_t>(expected - state->length(), 0));
    }
  }
  return bytes;
}

StateStore::Start StateStore::start(RunningRequest& request,
                                    std::span<const std::unique_ptr<RunningRequest>> running) {
  if (!request.cache_place()) {
    request.cache_place().emplace(RunningRequest::CachePlace{
        cache::PrefixKeys(cache::root_key(identity_, request.cache_tenant(), request.cache_salt()))});
    request.cache_place()->reach = std::max(layout_.snapshot_reach, layout_.max_rollback);
  }
  auto& place = *request.cache_place();
  const auto length = static_cast<int64_t>(request.tokens().size());
  const int64_t limit = is_caching_ ? usable_limit(request) : 0;
  const cache::PrefixTree::Match match = tree_.match(place.keys, request.tokens(), limit);
  if (disk_ && !place.asked_disk) {
    place.asked_disk = true;
    if (start_load(request, match, limit)) {
      return Start::kLoading;
    }
  }
  cache::StatePrefix prefix;
  if (match.usable > 0) {
    prefix = tree_.take(place.keys, request.tokens(), match.usable);  // from here on it is held
  }
  const uint64_t needed = state_bytes(length) -
                          static_cast<uint64_t>(num_blocks(match.usable)) * block_bytes_ +
                          layout_.ring_bytes() + expected_growth(running);
  if (!make_room(needed)) {
    if (!running.empty()) {
      return Start::kNoRoom;
    }
    // It fits by itself (max_model_len); at most the disk tier still holds some blocks for a moment.
    while (needed > budget_->free() && tree_.evict()) {
    }
  }
  auto state = model_.new_state(request.prompt_length());
  state->charge_to(budget_);
  if (match.usable > 0) {
    state->start_from(std::move(prefix));
  }
  if (is_caching_) {
    ++stats_.lookups_total;
    stats_.lookup_tokens_total += static_cast<uint64_t>(length);
    stats_.hits_total += match.usable > 0 ? 1 : 0;
    stats_.hit_tokens_total += static_cast<uint64_t>(match.usable);
    plan_checkpoints(request, match.usable, match.present);
  }
  request.start(std::move(state));
  return Start::kStarted;
}

/// Where the prompt leaves what is known (others may leave it there too), the last border that the same
/// prompt can use again, and regular ones in between.
void StateStore::plan_checkpoints(RunningRequest& request, int64_t start, int64_t branch) const {
  auto& wanted = request.cache_place()->checkpoints;
  const int64_t limit = usable_limit(request);
  wanted = {branch, border_before(limit)};
  for (int64_t at = kCheckpointTokens; at <= limit; at += kCheckpointTokens) {
    wanted.push_back(at);
  }
  std::erase_if(wanted, [&](int64_t at) { return at <= start; });
  std::sort(wanted.begin(), wanted.end(), std::greater<>());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
}

/// Looks for segments that reach further than memory does, and starts to read them.
bool StateStore::start_load(RunningRequest& request, const cache::PrefixTree::Match& match, int64_t limit) {
  auto& place = *request.cache_place();
  for (int64_t depth = limit / kBlockTokens; depth * kBlockTokens > match.usable; --depth) {
    std::vector<cache::PrefixKey> keys;
    uint64_t bytes = 0;
    int64_t at = depth;
    while (at * kBlockTokens > match.present) {
      const cache::PrefixKey& key = place.keys.after(at, request.tokens());
      const auto entry = disk_->find(key);
      if (!entry || entry->first_block + entry->num_blocks != at) {
        break;
      }
      keys.push_back(key);
      bytes += entry->memory_bytes;
      at = entry->first_block;
    }
    if (at * kBlockTokens > match.present || keys.empty()) {
      continue;
    }
    if (!make_room(bytes)) {
      return false;
    }
    std::reverse(keys.begin(), keys.end());
    place.is_loading = true;
    place.ticket = next_ticket_++;
    disk_->load(std::move(keys), [this, ticket = place.ticket](std::vector<cache::PrefixSegment> segments) {
      loaded_({ticket, std::move(segments)});
    });
    return true;
  }
  return false;
}

void StateStore::finish_load(LoadedSegments loaded,
                             const std::function<RunningRequest*(uint64_t ticket)>& find_request) {
  RunningRequest* request = find_request(loaded.ticket);
  if (request == nullptr) {
    return;  // it was cancelled meanwhile
  }
  auto& place = *request->cache_place();
  place.is_loading = false;
  bool is_hit = false;
  for (const cache::PrefixSegment& segment : loaded.segments) {
    if (!tree_.insert(segment, place.keys.root())) {
      break;  // what it follows has been dropped meanwhile
    }
    is_hit = true;
  }
  stats_.disk_hits_total += is_hit ? 1 : 0;
}

bool StateStore::make_room(uint64_t bytes) {
  if (bytes > budget_->free() && bytes > budget_->free() + tree_.evictable_bytes()) {
    return false;
  }
  while (bytes > budget_->free()) {
    if (!tree_.evict()) {
      return false;
    }
  }
  return true;
}

void StateStore::keep(RunningRequest& request, int64_t position) {
  auto& place = *request.cache_place();
  cache::SequenceState& state = *request.state();
  if (!state.has_snapshot_at(position) || tree_.has_snapshot(place.keys, request.tokens(), position)) {
    return;
  }
  if (!make_room(layout_.snapshot_bytes() + cache::PrefixTree::node_bytes(position / kBlockTokens))) {
    ++stats_.skipped_total;
    return;
  }
  cache::PrefixSegment segment = tree_.insert(place.keys, request.tokens(), position, state);
  if (disk_) {
    disk_->offer(std::move(segment));
  }
}

void StateStore::keep_checkpoints(RunningRequest& request) {
  if (!request.cache_place() || request.state() == nullptr) {
    return;
  }
  auto& wanted = request.cache_place()->checkpoints;
  while (!wanted.empty() && wanted.back() <= known_length(request)) {
    keep(request, wanted.back());
    wanted.pop_back();
  }
}

void StateStore::keep_end(RunningRequest& request) {
  if (is_caching_ && request.cache_place() && request.state() != nullptr) {
    keep_checkpoints(request);
    if (const int64_t border = border_before(known_length(request)); border > 0) {
      keep(request, border);
    }
  }
}

EngineStats::Cache StateStore::stats() const {
  EngineStats::Cache stats = stats_;
  refresh(stats);
  stats.blocks = tree_.num_blocks();
  stats.snapshots = tree_.num_snapshots();
  stats.evictions_total = tree_.evictions();
  return stats;
}

void StateStore::refresh(EngineStats::Cache& stats) const {
  stats.used_bytes = budget_->used();
  stats.limit_bytes = budget_->limit();
  if (disk_) {
    stats.disk = disk_->stats();
  }
}

}  // namespace hadal::engine
