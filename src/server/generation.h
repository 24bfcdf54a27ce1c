#pragma once
// One or several engine requests that make one answer, and the hand-over of their outputs from the engine's
// step thread to the answer.

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "server/http_message.h"
#include "server/metrics.h"

namespace hadal::server {

struct GenerationOptions {
  /// Outputs that may wait for the reader; beyond it the waker's abort() is called and outputs are dropped.
  uint64_t max_buffered_bytes = 0;
  /// Wake the reader once per so many outputs, and at the end of each request; 1 for streams.
  size_t outputs_per_wake = 1;
  /// One token an output, for readers that may end the answer at any of them; else as the steps gave them.
  bool splits_outputs = true;
  std::chrono::steady_clock::time_point arrival{};  ///< of the request, for the time to the first token
};

/// Requests are numbered in the order in which they were submitted. Destroying it cancels what still runs.
class Generation {
 public:
  struct Item {
    size_t number = 0;
    engine::Output output;
  };

  Generation(engine::Engine& engine, Metrics& metrics, const GenerationOptions& options);
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  /// Queues a request. On an error those before it go on: the caller destroys the Generation.
  Result<void> submit(engine::Request request);
  size_t size() const { return handles_.size(); }
  /// What usage says of this request's prompt, if that is not its length (see engine::RequestHandle).
  std::optional<int64_t> counted_prompt_tokens(size_t number) const {
    return handles_[number]->counted_prompt_tokens();
  }

  /// From now on, and until destruction, `waker` is told of outputs.
  void attach(Waker& waker);
  /// Moves what has arrived to the end of `items`.
  void take(std::vector<Item>& items);
  /// No more of this request is needed; its last output still comes.
  void cancel(size_t number) { handles_[number]->cancel(); }
  void cancel_all();

 private:
  class Queue;
  engine::Engine& engine_;
  std::shared_ptr<Queue> queue_;  ///< shared with the sinks that the engine holds
  std::vector<std::shared_ptr<engine::RequestHandle>> handles_;
};

}  // namespace hadal::server
