#include "engine/engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <pthread.h>

#include "base/log.h"
#include "engine/cancellation.h"
#include "engine/inbox.h"
#include "engine/step_costs.h"
#include "engine/step_loop.h"
#include "engine/validation.h"

namespace hadal::engine {
namespace {

class EngineImpl final : public Engine {
 public:
  EngineImpl(model::LanguageModel& model, ThreadPool& pool, const EngineOptions& options)
      : options_(options),
        limits_{model.vocab_size(), options.max_model_len, options.eos_token_id},
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

Result<void> check_drafts(model::LanguageModel& model) {
  if (model::DraftModel* drafts = model.draft_model(); drafts != nullptr) {
    const int64_t most = std::min(kMaxDraftLength, model.max_rollback());
    if (drafts->block_length() < 1 || drafts->block_length() > most) {
      return fail(ErrorCode::kUnsupported, "model: blocks of {} guesses, expected 1 to {}",
                  drafts->block_length(), most);
    }
  }
  return {};
}

Result<StepCosts> measure_costs(model::LanguageModel& model, ThreadPool& pool, const EngineOptions& options) {
  BatchSampler sampler(pool);
  const int64_t rows_per_sequence = 1 + model.draft_model()->block_length();
  StepCostLimits limits;
  limits.max_rows = std::min(options.max_num_seqs * rows_per_sequence, options.max_num_batched_tokens);
  limits.rows_per_sequence = rows_per_sequence;
  limits.min_rows = rows_per_sequence;
  StepCosts costs;
  HADAL_TRY(costs.pass, measure_step_costs(model, sampler, limits));
  limits.max_rows = options.max_num_seqs;
  limits.min_rows = 2;
  HADAL_TRY(costs.drafts, measure_draft_costs(model, sampler, limits));
  for (const CostCurve::Point& point : costs.pass.points()) {
    spdlog::debug("pass of {} rows: {:.6f} s", point.rows, point.seconds);
  }
  for (const CostCurve::Point& point : costs.drafts.points()) {
    spdlog::debug("drafts of {} sequences: {:.6f} s", point.rows, point.seconds);
  }
  return costs;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(model::LanguageModel& model, ThreadPool& pool,
                                              EngineOptions options) {
  HADAL_TRY(EngineOptions in_force, resolve_options(options, model));
  HADAL_CHECK(check_drafts(model));
  if (model.draft_model() == nullptr || !in_force.schedule_guesses) {
    in_force.step_costs = StepCosts();
  } else if (!in_force.step_costs) {
    HADAL_TRY(in_force.step_costs, measure_costs(model, pool, in_force));
  }
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
