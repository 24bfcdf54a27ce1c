#pragma once
// An engine without a model: each request gets the tokens that a script says, at the pace that it says.

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace hadal::server::testing {

/// What a request is answered with.
struct Script {
  std::vector<int32_t> tokens;  ///< repeated until max_tokens if `repeats`
  bool repeats = false;
  engine::FinishReason finish =
      engine::FinishReason::kStop;  ///< after the tokens, unless max_tokens comes first
  std::optional<Error> error = std::nullopt;
  std::chrono::milliseconds prefill{0};  ///< before the first token
  std::chrono::microseconds step{0};     ///< between steps
  size_t tokens_per_step = 1;
  int64_t cached_tokens = 0;  ///< as usage tells it
};

class FakeEngine final : public engine::Engine {
 public:
  using Writer = std::function<Script(const engine::Request&)>;
  explicit FakeEngine(Writer writer, engine::EngineOptions options = {});
  ~FakeEngine() override;
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  Result<std::shared_ptr<engine::RequestHandle>> submit(engine::Request request,
                                                        engine::OutputSink sink) override;
  engine::EngineStats stats() const override;
  const engine::EngineOptions& options() const override { return options_; }

  int64_t running() const { return stats().running; }
  /// The longest time that one delivery of outputs to all requests took.
  std::chrono::microseconds slowest_step() const {
    return std::chrono::microseconds(slowest_step_us_.load());
  }
  /// The requests in the order in which they came.
  std::vector<engine::Request> requests() const;
  /// CPU time of the step thread.
  double cpu_seconds() const { return cpu_seconds_.load(); }

 private:
  class Handle;
  struct Running {
    engine::Request request;
    engine::OutputSink sink;
    Script script;
    std::shared_ptr<Handle> handle;
    std::chrono::steady_clock::time_point next;
    size_t position = 0;
  };
  void run();
  bool step(Running& running, std::chrono::steady_clock::time_point now);

  Writer writer_;
  engine::EngineOptions options_;
  mutable std::mutex mutex_;  ///< guards arrived_, requests_, stats_
  std::list<Running> arrived_;
  std::vector<engine::Request> requests_;
  engine::EngineStats stats_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> slowest_step_us_{0};
  std::atomic<double> cpu_seconds_{0};
  std::thread thread_;
};

}  // namespace hadal::server::testing
