#include "engine/engine.h"

#include <thread>
#include <utility>

#include <pthread.h>

#include "base/log.h"
#include "engine/cancellation.h"
#include "engine/inbox.h"
#include "engine/step_loop.h"
#include "engine/validation.h"

namespace hadal::engine {
namespace {

class EngineImpl final : public Engine {
 public:
  EngineImpl(model::LanguageModel& model, ThreadPool& pool, const EngineOptions& options)
      : options_(options),
        limits_{model.vocab_size(), options.max_model_len},
        inbox_(options.max_num_seqs, options.max_waiting),
        loop_(model, pool, options_, inbox_, *cancellations_),
        thread_([this] {
          pthread_setname_np(pthread_self(), "engine-step");
          loop_.run();
        }) {}

  EngineImpl(const EngineImpl&) = delete;
  EngineImpl& operator=(const EngineImpl&) = delete;

  ~EngineImpl() override {
    inbox_.stop();
    thread_.join();
  }

  Result<std::shared_ptr<RequestHandle>> submit(Request request, OutputSink sink) override {
    if (!sink) {
      return fail(ErrorCode::kInvalidArgument, "sink: empty, expected a function");
    }
    HADAL_CHECK(validate_request(request, limits_));
    // Shared: the caller may keep the handle longer than the request lives, or drop it at once.
    auto handle = std::make_shared<Cancellation>(cancellations_);
    HADAL_CHECK(inbox_.push(std::make_unique<RunningRequest>(std::move(request), std::move(sink), handle)));
    return handle;
  }

  EngineStats stats() const override {
    EngineStats stats = inbox_.stats();
    loop_.refresh(stats.cache);
    return stats;
  }
  const EngineOptions& options() const override { return options_; }

 private:
  const EngineOptions options_;
  const RequestLimits limits_;
  const std::shared_ptr<CancellationCounter> cancellations_ = std::make_shared<CancellationCounter>(0);
  Inbox inbox_;
  StepLoop loop_;
  std::thread thread_;  ///< last: starts when the rest is there
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(model::LanguageModel& model, ThreadPool& pool,
                                              EngineOptions options) {
  HADAL_TRY(const EngineOptions in_force, resolve_options(options, model));
  spdlog::info("engine: {} sequences at once, {} tokens a step, {} waiting, sequences of up to {} tokens",
               in_force.max_num_seqs, in_force.max_num_batched_tokens, in_force.max_waiting,
               in_force.max_model_len);
  if (options.max_model_len == 0 ? in_force.max_model_len < model.max_positions()
                                 : in_force.max_model_len < options.max_model_len) {
    spdlog::warn("engine: a longer sequence than {} tokens does not fit in cache-memory ({} bytes)",
                 in_force.max_model_len, in_force.cache_memory);
  }
  return std::make_unique<EngineImpl>(model, pool, in_force);
}

}  // namespace hadal::engine
