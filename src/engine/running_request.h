#pragma once
// One accepted request on its way from the queue to its last output: its tokens, its state, and when it ends.
// Belongs to the step thread (the cancellation flag apart).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/prefix_key.h"
#include "cache/sequence_state.h"
#include "engine/cancellation.h"
#include "engine/logit_adjustments.h"
#include "engine/request.h"
#include "engine/scheduler.h"

namespace hadal::engine {

/// What ends every request of an engine.
struct StopLimits {
  int32_t eos_token_id = 1;
  int64_t max_model_len = 0;
};

/// A guessed token, to be verified by the target.
struct Guess {
  int32_t token = 0;
  float confidence = 0;  ///< chance that it is right if those before it are, as the draft layers see it
};

class RunningRequest {
 public:
  RunningRequest(Request request, OutputSink sink, std::shared_ptr<const Cancellation> cancellation);

  const std::string& label() const { return label_; }
  const SamplingParams& sampling() const { return sampling_; }
  bool cancel_requested() const { return cancellation_->requested(); }

  /// Gives the request its state when it starts to run. What the state holds already counts as cached, the
  /// first time.
  void start(std::unique_ptr<cache::SequenceState> state);
  /// Takes the state away: the request has to start again, with the tokens that it has by then.
  void preempt();
  cache::SequenceState* state() { return state_.get(); }

  /// Order of arrival.
  uint64_t number() const { return number_; }
  void set_number(uint64_t number) { number_ = number; }

  std::span<const int32_t> tokens() const { return tokens_; }  ///< prompt and output; valid until append()
  int64_t prompt_length() const { return prompt_length_; }

  /// For the state store.
  struct CachePlace {
    cache::PrefixKeys keys;
    std::vector<int64_t> checkpoints = {};  ///< lengths at which a snapshot is wanted, the next one last
    int64_t reach = 0;                      ///< tokens that may be computed past a checkpoint
    bool asked_disk = false;
    bool is_loading = false;
    uint64_t ticket = 0;  ///< of the load
  };
  std::optional<CachePlace>& cache_place() { return cache_place_; }
  const std::string& cache_tenant() const { return cache_tenant_; }
  const std::string& cache_salt() const { return cache_salt_; }
  int32_t priority() const { return priority_; }
  const std::string& user() const { return user_; }
  /// Requests that had been admitted when this one arrived.
  uint64_t admitted_before() const { return admitted_before_; }
  void set_admitted_before(uint64_t count) { admitted_before_ = count; }

  SequenceProgress progress() const;
  Usage usage() const;
  /// Usage says this in place of the prompt's length.
  void count_prompt_as(int64_t num_tokens) { counted_prompt_ = num_tokens; }
  /// The next `count` tokens to compute and `num_guesses` guesses after them (then `count` reaches to the
  /// last token); valid until the next call and until append().
  std::span<const int32_t> next_tokens(int64_t count, int64_t num_guesses);
  /// The index in the whole sequence of the next token to sample.
  int64_t next_position() const { return static_cast<int64_t>(tokens_.size()); }

  /// Adjusts a row of logits [vocab_size] for the token that comes after the first `num_guesses` guesses.
  void adjust(std::span<float> logits, size_t num_guesses, const StopLimits& limits) const;
  /// The token that is to come there whatever the logits say, or kNoToken.
  int32_t forced_token(size_t num_guesses) const;

  /// Adds a sampled token and says whether the request ends with it. Looked at in this order: EOS and stop
  /// tokens, max_model_len, max_tokens.
  std::optional<FinishReason> append(int32_t token, const StopLimits& limits);

  int32_t last_token() const { return tokens_.back(); }
  /// Guesses that are worth having: beyond them the answer must have ended. 0 while the prompt is computed.
  int64_t room_for_guesses(const StopLimits& limits) const;
  /// Guesses of the tokens after the last one, in order. append() does not touch them.
  std::span<const Guess> guesses() const { return guesses_; }
  void add_guess(const Guess& guess) { guesses_.push_back(guess); }
  /// How guesses are drawn: as the tokens themselves, without log-probabilities.
  const SamplingParams& guess_sampling() const { return guess_sampling_; }
  /// After a verification: forgets the guesses and takes back from the state what is not in the tokens, and
  /// the last token. False if the state cannot.
  bool settle_guesses();

  /// Ends the request: frees the state. The last output is still to be delivered.
  void end();
  bool ended() const { return ended_; }

  void deliver(Output output) { sink_(std::move(output)); }

 private:
  std::string label_;
  uint64_t number_ = 0;
  SamplingParams sampling_;  ///< stop_token_ids sorted
  OutputSink sink_;
  std::shared_ptr<const Cancellation> cancellation_;  ///< shared with the caller's handle
  SamplingParams guess_sampling_;
  std::vector<int32_t> tokens_;  ///< prompt, then output
  LogitAdjustments adjustments_;
  std::vector<Guess> guesses_;
  std::vector<int32_t> pass_tokens_;  ///< what next_tokens() gave if it has guesses
  int64_t prompt_length_;
  int64_t counted_prompt_;
  int64_t start_length_ = 0;  ///< tokens when it last started: until then it is filling in, not decoding
  std::optional<int64_t> cached_tokens_;
  std::string cache_tenant_;
  std::string cache_salt_;
  int32_t priority_ = 0;
  std::string user_;
  uint64_t admitted_before_ = 0;
  std::optional<CachePlace> cache_place_;
  std::unique_ptr<cache::SequenceState> state_;
  bool ended_ = false;
};

}  // namespace hadal::engine
