#include "fake_model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "engine/running_request.h"
#include "engine/sampler.h"

namespace hadal::engine {
namespace {

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

constexpr auto kPatience = std::chrono::seconds(60);

}  // namespace

std::unique_ptr<cache::SequenceState> FakeModel::new_state(int64_t prompt_length) const {
  EXPECT_GE(prompt_length, 1);
  cache::StateLayout layout = options_.layout;
  layout.max_rollback = std::max(layout.max_rollback, options_.draft_length);
  return std::make_unique<cache::SequenceState>(layout, replay_from(prompt_length));
}

int64_t FakeModel::replay_from(int64_t prompt_length) const {
  return options_.layout.first_replayed_layer ? std::max<int64_t>(prompt_length - options_.replay_keep, 0)
                                              : 0;
}

cache::StateLayout FakeModel::small_layout(bool has_replay) {
  cache::StateLayout layout{
      .sources = {{.ratio = 2, .entry_bytes = 8, .index_key_bytes = 8, .tail_bytes = 0},
                  {.ratio = 1, .entry_bytes = 8, .index_key_bytes = 0, .tail_bytes = 0}},
      .num_layers = 2,
      .window = 8,
      .window_row_bytes = 8,
      .max_rollback = 3,
      .first_replayed_layer = std::nullopt,
      .snapshot_reach = 128};
  if (has_replay) {
    layout.first_replayed_layer = 1;
  }
  return layout;
}

/// Rows of the state: the hash of all tokens up to their position. Checks those of positions before `start`,
/// writes those from there on.
void FakeModel::check_and_write_rows(cache::SequenceState& state, std::span<const int32_t> history,
                                     int64_t start) const {
  std::vector<uint64_t> hashes{7};
  for (const int32_t token : history) {
    hashes.push_back(mix(hashes.back() * 31 + static_cast<uint64_t>(token)));
  }
  const auto end = static_cast<int64_t>(history.size());
  const auto visit = [&](std::byte* row, int64_t after, bool is_new) {
    const uint64_t& hash = hashes[static_cast<size_t>(after)];
    if (is_new) {
      std::memcpy(row, &hash, sizeof(hash));
    } else {
      EXPECT_EQ(std::memcmp(row, &hash, sizeof(hash)), 0) << "a wrong row after " << after << " tokens";
    }
  };
  for (size_t s = 0; s < state.sources().size(); ++s) {
    const int64_t ratio = state.layout().sources[s].ratio;
    for (cache::RowStore* store : {&state.sources()[s].entries, &state.sources()[s].index_keys}) {
      EXPECT_EQ(store->size(), start / ratio);
      store->resize(end / ratio);
      for (int64_t i = 0; store->row_bytes() > 0 && i < store->size(); ++i) {
        visit(store->row(i), (i + 1) * ratio, i >= start / ratio);
      }
    }
  }
  for (int64_t layer = 0; layer < state.layout().num_layers; ++layer) {
    auto& window = state.windows()[static_cast<size_t>(layer)];
    const int64_t first = state.layout().is_kept(layer) ? 0 : state.replay_from();
    for (int64_t at = std::max(first, start - state.layout().window + 1); at < end; ++at) {
      visit(window.row(at), at + 1, at >= start);
    }
  }
}

void FakeModel::logits_after(std::span<const int32_t> history, std::span<float> row) {
  uint64_t hash = 1;
  for (const int32_t token : history) {
    hash = mix(hash * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(token) + 1);
  }
  for (size_t token = 0; token < row.size(); ++token) {
    row[token] = static_cast<float>(mix(hash + token * 0x632be59bd9b4e019) >> 40) * 0x1p-21F - 4;
  }
}

Result<void> FakeModel::forward(std::span<const model::Segment> segments) {
  if (before_) {
    HADAL_CHECK(before_(segments));
  }
  std::set<const cache::SequenceState*> states;
  std::vector<Chunk> pass;
  for (const model::Segment& segment : segments) {
    EXPECT_NE(segment.state, nullptr);
    EXPECT_TRUE(states.insert(segment.state).second) << "two segments share a state";
    EXPECT_FALSE(segment.token_ids.empty());
    std::vector<int32_t>& history = segment.state->engram_context();
    EXPECT_EQ(static_cast<int64_t>(history.size()), segment.state->length());
    pass.push_back(
        {segment.state->length(), static_cast<int64_t>(segment.token_ids.size()), !segment.logits.empty()});
    for (const int32_t token : segment.token_ids) {
      EXPECT_TRUE(token >= 0 && token < options_.vocab_size);
      history.push_back(token);
    }
    check_and_write_rows(*segment.state, history, segment.state->length());
    segment.state->advance(static_cast<int64_t>(segment.token_ids.size()));
    EXPECT_LE(segment.state->length(), options_.max_positions);
    if (!segment.logits.empty()) {
      const auto vocab = static_cast<size_t>(options_.vocab_size);
      const size_t rows = segment.logits.size() / vocab;
      EXPECT_EQ(segment.logits.size(), rows * vocab);
      EXPECT_LE(rows, segment.token_ids.size());
      for (size_t row = 0; row < rows; ++row) {
        logits_after(std::span(history).first(history.size() - rows + row + 1),
                     segment.logits.subspan(row * vocab, vocab));
      }
    }
  }
  if (after_) {
    after_(segments);
  }
  const std::lock_guard lock(mutex_);
  passes_.push_back(std::move(pass));
  return {};
}

void FakeDrafts::begin(std::span<const model::DraftSequence> sequences) {
  histories_.clear();
  next_ = 0;
  passes_.push_back(sequences.size());
  for (const auto& sequence : sequences) {
    EXPECT_GE(sequence.state->length(), 1);
    EXPECT_EQ(static_cast<int64_t>(sequence.state->engram_context().size()), sequence.state->length());
    histories_.push_back(sequence.state->engram_context());
  }
}

void FakeDrafts::guess(std::span<const int32_t> previous, std::span<float> logits,
                       std::span<float> confidences) {
  EXPECT_LT(next_++, block_length_);
  EXPECT_EQ(previous.size(), histories_.size());
  EXPECT_EQ(confidences.size(), histories_.size());
  const size_t vocab = logits.size() / histories_.size();
  for (size_t i = 0; i < histories_.size(); ++i) {
    auto& history = histories_[i];
    history.push_back(previous[i]);
    const uint64_t choice = mix(history.size() * 977 + static_cast<uint64_t>(previous[i]) * 31);
    const bool is_right = static_cast<int64_t>(choice % 100) < percent_right_;
    const auto row = logits.subspan(i * vocab, vocab);
    FakeModel::logits_after(is_right ? std::span<const int32_t>(history) : previous.subspan(i, 1), row);
    // Neither always true nor useless.
    confidences[i] = is_right == (choice / 100 % 5 != 0) ? 0.85F : 0.3F;
  }
}

std::vector<std::vector<FakeModel::Chunk>> FakeModel::passes() const {
  const std::lock_guard lock(mutex_);
  return passes_;
}

void Gate::pass() {
  std::unique_lock lock(mutex_);
  const int64_t number = arrived_++;
  changed_.notify_all();
  changed_.wait(lock, [&] { return open_ || number < allowed_; });
}

void Gate::let_through(int64_t count) {
  std::unique_lock lock(mutex_);
  allowed_ += count;
  changed_.notify_all();
  EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return arrived_ > allowed_; })) << "no pass came";
}

void Gate::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

OutputSink Answer::sink() {
  return [shared = shared_](Output output) {
    const std::lock_guard lock(shared->mutex);
    EXPECT_FALSE(shared->finished) << "an output after the last one";
    EXPECT_EQ(output.error.has_value(), output.finish == FinishReason::kError);
    EXPECT_TRUE(!output.tokens.empty() || output.finish) << "an output that says nothing";
    shared->finished = output.finish.has_value();
    shared->num_tokens += static_cast<int64_t>(output.tokens.size());
    EXPECT_EQ(output.usage.completion_tokens, shared->num_tokens);
    shared->outputs.push_back(std::move(output));
    shared->changed.notify_all();
  };
}

FinishReason Answer::finish() {
  std::unique_lock lock(shared_->mutex);
  EXPECT_TRUE(shared_->changed.wait_for(lock, kPatience, [&] { return shared_->finished; }))
      << "no last output";
  return shared_->finished ? *shared_->outputs.back().finish : FinishReason::kError;
}

std::vector<OutputToken> Answer::tokens() {
  finish();
  const std::lock_guard lock(shared_->mutex);
  std::vector<OutputToken> all;
  for (const Output& output : shared_->outputs) {
    all.insert(all.end(), output.tokens.begin(), output.tokens.end());
  }
  return all;
}

std::vector<int32_t> Answer::token_ids() {
  std::vector<int32_t> ids;
  for (const OutputToken& token : tokens()) {
    ids.push_back(token.token);
  }
  return ids;
}

Usage Answer::usage() {
  finish();
  const std::lock_guard lock(shared_->mutex);
  return shared_->outputs.empty() ? Usage{} : shared_->outputs.back().usage;
}

std::optional<Error> Answer::error() {
  finish();
  const std::lock_guard lock(shared_->mutex);
  return shared_->outputs.empty() ? std::nullopt : shared_->outputs.back().error;
}

bool Answer::finished() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->finished;
}

int64_t Answer::num_tokens() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->num_tokens;
}

void Answer::wait_for_tokens(int64_t count) {
  std::unique_lock lock(shared_->mutex);
  EXPECT_TRUE(shared_->changed.wait_for(lock, kPatience, [&] {
    return shared_->num_tokens >= count || shared_->finished;
  })) << "no tokens";
}

std::unique_ptr<Engine> start(FakeModel& model, ThreadPool& pool, const EngineOptions& options) {
  Result<std::unique_ptr<Engine>> engine = Engine::start(model, pool, options);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

std::shared_ptr<RequestHandle> submit(Engine& engine, Request request, Answer& answer) {
  Result<std::shared_ptr<RequestHandle>> handle = engine.submit(std::move(request), answer.sink());
  EXPECT_TRUE(handle) << handle.error().message;
  return handle ? *handle : nullptr;
}

Expected expected_answer(const Request& request, const FakeModel& model, const EngineOptions& options) {
  Expected expected;
  std::vector<int32_t> history = request.prompt;
  std::vector<float> row(static_cast<size_t>(model.vocab_size()));
  const auto& stops = request.sampling.stop_token_ids;
  const int64_t limit = options.max_model_len == 0 ? model.max_positions() : options.max_model_len;
  Sampler sampler;
  while (true) {
    FakeModel::logits_after(history, row);
    const Result<OutputToken> next =
        sampler.sample(row, request.sampling, static_cast<int64_t>(history.size()));
    EXPECT_TRUE(next);
    history.push_back(next->token);
    expected.tokens.push_back(*next);
    const bool eos = next->token == options.eos_token_id && !request.sampling.ignore_eos;
    if (eos || std::find(stops.begin(), stops.end(), next->token) != stops.end()) {
      expected.finish = FinishReason::kStop;
      return expected;
    }
    if (static_cast<int64_t>(history.size()) == limit ||
        static_cast<int64_t>(expected.tokens.size()) == request.sampling.max_tokens) {
      return expected;
    }
  }
}

void expect_answer(Answer& answer, const Expected& expected, const std::string& place) {
  EXPECT_EQ(answer.finish(), expected.finish) << place;
  const std::vector<OutputToken> tokens = answer.tokens();
  ASSERT_EQ(tokens.size(), expected.tokens.size()) << place;
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].token, expected.tokens[i].token) << place << ", token " << i;
    EXPECT_EQ(tokens[i].logprob, expected.tokens[i].logprob) << place << ", token " << i;
    ASSERT_EQ(tokens[i].top.size(), expected.tokens[i].top.size()) << place;
    for (size_t k = 0; k < tokens[i].top.size(); ++k) {
      EXPECT_EQ(tokens[i].top[k].token, expected.tokens[i].top[k].token) << place;
      EXPECT_EQ(tokens[i].top[k].logprob, expected.tokens[i].top[k].logprob) << place;
    }
  }
  EXPECT_EQ(answer.usage().completion_tokens, static_cast<int64_t>(tokens.size())) << place;
}

Request numbered_request(uint32_t number, int64_t vocab_size) {
  std::mt19937 random(number);
  Request request;
  request.label = "request " + std::to_string(number);
  const size_t length = number % 7 == 0 ? 1 : 1 + random() % 40;
  for (size_t i = 0; i < length; ++i) {
    request.prompt.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_size)));
  }
  SamplingParams& sampling = request.sampling;
  sampling.temperature = number % 4 == 0 ? 0 : 0.5 + 0.25 * (number % 5);
  sampling.top_p = number % 3 == 0 ? 0.8 : 1;
  sampling.top_k = number % 5 == 0 ? 6 : -1;
  sampling.seed = number / 2;  // pairs share a seed
  sampling.max_tokens = 1 + static_cast<int64_t>(random() % 40);
  sampling.ignore_eos = number % 3 == 1;
  if (number % 6 == 5) {
    sampling.stop_token_ids = {9, 4};
  }
  sampling.top_logprobs = static_cast<int64_t>(number % 4) - 1;
  return request;
}

}  // namespace hadal::engine
