#include "fake_engine.h"

#include <ctime>

namespace hadal::server::testing {

using Clock = std::chrono::steady_clock;
using engine::FinishReason;

class FakeEngine::Handle final : public engine::RequestHandle {
 public:
  void cancel() override { is_cancelled.store(true); }
  std::atomic<bool> is_cancelled{false};
};

FakeEngine::FakeEngine(Writer writer, engine::EngineOptions options)
    : writer_(std::move(writer)), options_(options), thread_([this] { run(); }) {}

FakeEngine::~FakeEngine() {
  stopping_.store(true);
  thread_.join();
}

Result<std::shared_ptr<engine::RequestHandle>> FakeEngine::submit(engine::Request request,
                                                                  engine::OutputSink sink) {
  const std::lock_guard lock(mutex_);
  if (stats_.waiting + stats_.running >= options_.max_waiting) {
    return fail(ErrorCode::kResourceExhausted, "the queue is full: {} requests wait", options_.max_waiting);
  }
  auto handle = std::make_shared<Handle>();
  requests_.push_back(request);
  ++stats_.running;
  ++stats_.requests_total;
  stats_.prompt_tokens_total += request.prompt.size();
  Script script = writer_(request);
  const auto first = Clock::now() + script.prefill;
  arrived_.push_back({std::move(request), std::move(sink), std::move(script), handle, first, 0});
  return handle;
}

engine::EngineStats FakeEngine::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::vector<engine::Request> FakeEngine::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

/// One output; false when it was the last.
bool FakeEngine::step(Running& running, Clock::time_point now) {
  engine::Output output;
  const bool is_cancelled = running.handle->is_cancelled.load() || stopping_.load();
  if (!is_cancelled && now < running.next) {
    return true;
  }
  const auto max_tokens = static_cast<size_t>(running.request.sampling.max_tokens);
  const std::vector<int32_t>& tokens = running.script.tokens;
  if (is_cancelled) {
    output.finish = FinishReason::kCancelled;
  }
  for (size_t i = 0; i < running.script.tokens_per_step && !output.finish; ++i) {
    if (running.position < tokens.size() || (running.script.repeats && !tokens.empty())) {
      engine::OutputToken token{tokens[running.position % tokens.size()], -0.5F, {}};
      for (int64_t top = 0; top < running.request.sampling.top_logprobs; ++top) {
        token.top.push_back({token.token + static_cast<int32_t>(top), -0.5F - static_cast<float>(top)});
      }
      output.tokens.push_back(std::move(token));
      ++running.position;
    }
    if (!running.script.repeats && running.position >= tokens.size()) {
      output.finish = running.script.finish;
      output.error = running.script.error;
    } else if (running.position >= max_tokens) {
      output.finish = FinishReason::kLength;
    }
  }
  output.usage = {static_cast<int64_t>(running.request.prompt.size()), running.script.cached_tokens,
                  static_cast<int64_t>(running.position)};
  running.next = now + running.script.step;
  const bool is_last = output.finish.has_value();
  {
    const std::lock_guard lock(mutex_);
    ++stats_.steps_total;
    stats_.generation_tokens_total += output.tokens.size();
    if (is_last) {
      --stats_.running;
      stats_.finished_cancelled_total += is_cancelled ? 1 : 0;
    }
  }
  running.sink(std::move(output));
  return !is_last;
}

void FakeEngine::run() {
  std::list<Running> running;
  while (!stopping_.load() || !running.empty()) {
    {
      const std::lock_guard lock(mutex_);
      running.splice(running.end(), arrived_);
    }
    const Clock::time_point begin = Clock::now();
    Clock::time_point next = begin + std::chrono::microseconds(500);
    for (auto entry = running.begin(); entry != running.end();) {
      if (step(*entry, Clock::now())) {
        next = std::min(next, entry->next);
        ++entry;
      } else {
        entry = running.erase(entry);
      }
    }
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count();
    slowest_step_us_.store(std::max<int64_t>(slowest_step_us_.load(), took));
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    cpu_seconds_.store(static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec));
    if (next > Clock::now()) {
      std::this_thread::sleep_until(next);
    }
  }
}

}  // namespace hadal::server::testing
