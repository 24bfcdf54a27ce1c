#include "engine/scripted_engine.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include <pthread.h>

#include "base/log.h"
#include "engine/cancellation.h"
#include "engine/inbox.h"
#include "engine/validation.h"

namespace hadal::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr float kRemovedLogprob = -9999.0F;

/// Wakes the step thread, which otherwise sleeps until the next piece is due.
class ScriptedHandle final : public Cancellation {
 public:
  ScriptedHandle(std::shared_ptr<CancellationCounter> counter, std::shared_ptr<Inbox> inbox,
                 std::optional<int64_t> prompt_tokens)
      : Cancellation(std::move(counter)), inbox_(std::move(inbox)), prompt_tokens_(prompt_tokens) {}

  void cancel() override {
    Cancellation::cancel();
    inbox_->wake();
  }
  std::optional<int64_t> counted_prompt_tokens() const override { return prompt_tokens_; }

 private:
  std::shared_ptr<Inbox> inbox_;  ///< shared: a handle may outlive the engine
  std::optional<int64_t> prompt_tokens_;
};

/// One request and how far its answer has come.
struct Recital {
  std::unique_ptr<RunningRequest> request;
  const ScriptedAnswer* answer = nullptr;
  size_t next_piece = 0;
  Clock::time_point due;
};

OutputToken certain_token(int32_t token, int64_t top_logprobs, int64_t vocab_size) {
  OutputToken result{token, 0, {}};
  if (top_logprobs > 0) {
    result.top.push_back({token, 0});
  }
  const auto wanted = static_cast<size_t>(std::max<int64_t>(0, std::min(top_logprobs, vocab_size)));
  for (int32_t other = 0; result.top.size() < wanted; ++other) {
    if (other != token) {
      result.top.push_back({other, kRemovedLogprob});
    }
  }
  return result;
}

class ScriptedEngineImpl final : public Engine {
 public:
  ScriptedEngineImpl(std::vector<ScriptedAnswer> script, int64_t vocab_size, const EngineOptions& options)
      : script_(std::move(script)),
        options_(options),
        limits_{vocab_size, options.max_model_len},
        inbox_(std::make_shared<Inbox>(options.max_num_seqs, options.max_waiting)),
        thread_([this] {
          pthread_setname_np(pthread_self(), "script-step");
          run();
        }) {}
  ScriptedEngineImpl(const ScriptedEngineImpl&) = delete;
  ScriptedEngineImpl& operator=(const ScriptedEngineImpl&) = delete;

  ~ScriptedEngineImpl() override {
    inbox_->stop();
    thread_.join();
  }

  Result<std::shared_ptr<RequestHandle>> submit(Request request, OutputSink sink) override {
    if (!sink) {
      return fail(ErrorCode::kInvalidArgument, "sink: empty, expected a function");
    }
    HADAL_CHECK(validate_request(request, limits_));
    // One after the other, so that the step thread gets requests in the order of their answers.
    const std::lock_guard lock(order_mutex_);
    const ScriptedAnswer& answer = script_[next_answer_];
    auto handle = std::make_shared<ScriptedHandle>(cancellations_, inbox_, answer.prompt_tokens);
    auto running = std::make_unique<RunningRequest>(std::move(request), std::move(sink), handle);
    if (answer.prompt_tokens) {
      running->count_prompt_as(*answer.prompt_tokens);
    }
    HADAL_CHECK(inbox_->push(std::move(running)));
    next_answer_ = (next_answer_ + 1) % script_.size();
    return handle;
  }

  EngineStats stats() const override { return inbox_->stats(); }
  const EngineOptions& options() const override { return options_; }

 private:
  void run() {
    while (true) {
      Inbox::Arrivals arrivals = inbox_->take_until(next_due());
      for (auto& request : arrivals.requests) {
        waiting_.push_back({std::move(request), &script_[num_arrived_++ % script_.size()], 0, {}});
      }
      if (arrivals.stopping) {
        break;
      }
      drop_cancelled_waiting();
      admit();
      for (Recital& recital : running_) {
        advance(recital);
      }
      std::erase_if(running_, [](const Recital& recital) { return recital.request->ended(); });
    }
    for (Recital& recital : waiting_) {
      end_waiting(*recital.request);
    }
    for (Recital& recital : running_) {
      end(*recital.request, FinishReason::kCancelled, {});
    }
  }

  Clock::time_point next_due() const {
    Clock::time_point due = Clock::time_point::max();
    for (const Recital& recital : running_) {
      due = std::min(due, recital.due);
    }
    const bool has_room = static_cast<int64_t>(running_.size()) < options_.max_num_seqs;
    return has_room && !waiting_.empty() ? Clock::time_point::min() : due;
  }

  void drop_cancelled_waiting() {
    std::erase_if(waiting_, [this](Recital& recital) {
      const bool is_cancelled = recital.request->cancel_requested();
      if (is_cancelled) {
        end_waiting(*recital.request);
      }
      return is_cancelled;
    });
  }

  void admit() {
    while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < options_.max_num_seqs) {
      running_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      running_.back().due = Clock::now() + running_.back().answer->delay;
      StepRecord record;
      record.admitted = 1;
      inbox_->record(record);
    }
  }

  /// Delivers what is due of one answer.
  void advance(Recital& recital) {
    RunningRequest& request = *recital.request;
    if (request.cancel_requested()) {
      end(request, FinishReason::kCancelled, {});
      return;
    }
    const ScriptedAnswer& answer = *recital.answer;
    while (recital.next_piece < answer.pieces.size()) {
      if (Clock::now() < recital.due) {
        return;
      }
      deliver_piece(request, answer.pieces[recital.next_piece++]);
      if (request.ended()) {
        return;
      }
      if (recital.next_piece < answer.pieces.size()) {
        recital.due = Clock::now() + answer.delay;
      }
    }
    end(request, answer.finish, {});
  }

  void deliver_piece(RunningRequest& request, const std::vector<int32_t>& piece) {
    const StopLimits limits{options_.eos_token_id, options_.max_model_len};
    std::vector<OutputToken> tokens;
    std::optional<FinishReason> finish;
    for (size_t i = 0; i < piece.size() && !finish; ++i) {
      tokens.push_back(certain_token(piece[i], request.sampling().top_logprobs, limits_.vocab_size));
      finish = request.append(piece[i], limits);
    }
    if (finish) {
      end(request, *finish, std::move(tokens));
      return;
    }
    StepRecord record;
    record.steps = 1;
    record.tokens = tokens.size();
    inbox_->record(record);
    if (!tokens.empty()) {
      request.deliver({std::move(tokens), request.usage(), std::nullopt, std::nullopt});
    }
  }

  void end(RunningRequest& request, FinishReason reason, std::vector<OutputToken> tokens) {
    request.end();
    StepRecord record;
    record.finished[static_cast<size_t>(reason)] = 1;
    record.tokens = tokens.size();
    record.steps = tokens.empty() ? 0 : 1;
    inbox_->record(record);
    request.deliver({std::move(tokens), request.usage(), reason, std::nullopt});
  }

  void end_waiting(RunningRequest& request) {
    request.end();
    StepRecord record;
    record.ended_while_waiting = 1;
    record.finished[static_cast<size_t>(FinishReason::kCancelled)] = 1;
    inbox_->record(record);
    request.deliver({{}, request.usage(), FinishReason::kCancelled, std::nullopt});
  }

  const std::vector<ScriptedAnswer> script_;
  const EngineOptions options_;
  const RequestLimits limits_;
  const std::shared_ptr<CancellationCounter> cancellations_ = std::make_shared<CancellationCounter>(0);
  std::shared_ptr<Inbox> inbox_;  ///< shared with the handles
  std::mutex order_mutex_;        ///< guards next_answer_, and keeps the order of the inbox
  size_t next_answer_ = 0;
  // Of the step thread:
  std::deque<Recital> waiting_;
  std::vector<Recital> running_;
  size_t num_arrived_ = 0;
  std::thread thread_;  ///< last: starts when the rest is there
};

Result<void> check(const std::vector<ScriptedAnswer>& script, int64_t vocab_size) {
  if (script.empty()) {
    return fail(ErrorCode::kInvalidArgument, "script: no answers, expected at least 1");
  }
  for (size_t i = 0; i < script.size(); ++i) {
    const ScriptedAnswer& answer = script[i];
    if (answer.finish != FinishReason::kStop && answer.finish != FinishReason::kLength) {
      return fail(ErrorCode::kInvalidArgument, "script[{}].finish: expected stop or length", i);
    }
    for (const auto& piece : answer.pieces) {
      for (const int32_t token : piece) {
        if (token < 0 || token >= vocab_size) {
          return fail(ErrorCode::kInvalidArgument, "script[{}]: token id {}, expected 0 to {}", i, token,
                      vocab_size - 1);
        }
      }
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Engine>> ScriptedEngine::start(std::vector<ScriptedAnswer> script, int64_t vocab_size,
                                                      EngineOptions options) {
  HADAL_CHECK(check(script, vocab_size));
  if (options.max_model_len == 0) {
    options.max_model_len = kDefaultMaxModelLen;
  }
  if (options.max_num_seqs < 1 || options.max_waiting < 0 || options.max_model_len < 2) {
    return fail(ErrorCode::kInvalidArgument,
                "max_num_seqs {}, max_waiting {}, max_model_len {}: expected at least 1, 0 and 2",
                options.max_num_seqs, options.max_waiting, options.max_model_len);
  }
  spdlog::info("script: {} answers, {} at once, {} waiting, sequences of up to {} tokens", script.size(),
               options.max_num_seqs, options.max_waiting, options.max_model_len);
  return std::make_unique<ScriptedEngineImpl>(std::move(script), vocab_size, options);
}

}  // namespace hadal::engine
