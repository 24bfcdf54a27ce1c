#pragma once
// A language model without weights, and what tests need around it. Its logits are a hash of all tokens up to
// their position, kept in the sequence state: a request that runs on a wrong, stale or shared state gets
// other tokens.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/language_model.h"

namespace hadal::engine {

/// Guesses by the target's own rule or, now and then, by another one.
class FakeDrafts : public model::DraftModel {
 public:
  /// `percent_right`: of the rows of logits that are the target's own.
  FakeDrafts(int64_t block_length, int64_t percent_right)
      : block_length_(block_length), percent_right_(percent_right) {}
  int64_t block_length() const override { return block_length_; }
  void begin(std::span<const model::DraftSequence> sequences) override;
  void guess(std::span<const int32_t> previous, std::span<float> logits,
             std::span<float> confidences) override;
  /// Sequences of each pass so far. Only while the engine is at rest.
  const std::vector<size_t>& passes() const { return passes_; }

 private:
  const int64_t block_length_;
  const int64_t percent_right_;
  int64_t next_ = 0;
  std::vector<std::vector<int32_t>> histories_;
  std::vector<size_t> passes_;
};

class FakeModel : public model::LanguageModel {
 public:
  struct Options {
    int64_t vocab_size = 31;
    int64_t max_positions = 256;
    /// Rows of 8 bytes or none: each pass checks those that are there, and writes its own.
    cache::StateLayout layout = {};
    int64_t replay_keep = 0;  ///< used if the layout has bounded replay
    int64_t draft_length = 0;
    int64_t percent_right = 70;  ///< of the guesses
  };
  /// A layout with two sources and two windows; with bounded replay the second window is not kept.
  static cache::StateLayout small_layout(bool has_replay = false);
  /// Runs before each pass, on the step thread; an error is that of the pass.
  using Hook = std::function<Result<void>(std::span<const model::Segment>)>;
  /// Runs after each pass; may change the logits.
  using AfterHook = std::function<void(std::span<const model::Segment>)>;

  explicit FakeModel(Options options, Hook before = {}, AfterHook after = {})
      : options_(options), before_(std::move(before)), after_(std::move(after)) {
    if (options.draft_length > 0) {
      drafts_.emplace(options.draft_length, options.percent_right);
    }
  }
  FakeModel() : FakeModel(Options{}) {}

  int64_t vocab_size() const override { return options_.vocab_size; }
  int64_t max_positions() const override { return options_.max_positions; }
  std::unique_ptr<cache::SequenceState> new_state(int64_t prompt_length) const override;
  int64_t replay_from(int64_t prompt_length) const override;
  Result<void> forward(std::span<const model::Segment> segments) override;
  model::DraftModel* draft_model() override { return drafts_ ? &*drafts_ : nullptr; }
  int64_t max_rollback() const override { return options_.draft_length; }
  const FakeDrafts& drafts() const { return *drafts_; }

  static void logits_after(std::span<const int32_t> history, std::span<float> row);

  struct Chunk {
    int64_t start = 0;
    int64_t num_tokens = 0;
    bool wants_logits = false;
  };
  /// Every pass so far. Any thread.
  std::vector<std::vector<Chunk>> passes() const;

 private:
  void check_and_write_rows(cache::SequenceState& state, std::span<const int32_t> history,
                            int64_t start) const;
  Options options_;
  Hook before_;
  AfterHook after_;
  mutable std::mutex mutex_;  ///< guards passes_
  std::vector<std::vector<Chunk>> passes_;
  std::optional<FakeDrafts> drafts_;
};

/// Lets a test decide when each forward pass happens.
class Gate {
 public:
  /// For the hook: blocks until the test lets one more pass through.
  void pass();
  /// Lets `count` passes through, and waits until the one after them is waiting at the gate.
  void let_through(int64_t count);
  /// Waits until a pass is waiting at the gate.
  void wait_for_arrival() { let_through(0); }
  /// Blocks nobody from now on.
  void open();

 private:
  std::mutex mutex_;  ///< guards everything below
  std::condition_variable changed_;
  int64_t arrived_ = 0;
  int64_t allowed_ = 0;
  bool open_ = false;
};

/// Collects the outputs of one request.
class Answer {
 public:
  OutputSink sink();
  /// Waits for the last output (a minute at most, then it is a failure of the test).
  FinishReason finish();
  /// As finish(); the tokens of all outputs.
  std::vector<OutputToken> tokens();
  std::vector<int32_t> token_ids();
  Usage usage();
  std::optional<Error> error();
  bool finished() const;
  int64_t num_tokens() const;
  void wait_for_tokens(int64_t count);

 private:
  struct Shared {
    mutable std::mutex mutex;  ///< guards the rest
    std::condition_variable changed;
    std::vector<Output> outputs;
    int64_t num_tokens = 0;
    bool finished = false;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();  ///< sinks may outlive the test's object
};

/// An engine over the model; null, and a failure of the test, if it does not start.
std::unique_ptr<Engine> start(FakeModel& model, ThreadPool& pool, const EngineOptions& options = {});
/// Queues a request that must be accepted.
std::shared_ptr<RequestHandle> submit(Engine& engine, Request request, Answer& answer);

/// What a request must give, computed without the engine: one position after the other with a sampler.
struct Expected {
  std::vector<OutputToken> tokens;
  FinishReason finish = FinishReason::kLength;
};
Expected expected_answer(const Request& request, const FakeModel& model, const EngineOptions& options);

/// Checks tokens, log-probabilities, finish reason and usage.
void expect_answer(Answer& answer, const Expected& expected, const std::string& place);

/// A request of which everything depends on `number`.
Request numbered_request(uint32_t number, int64_t vocab_size);

}  // namespace hadal::engine
