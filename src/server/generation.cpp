#include "server/generation.h"

#include "engine/output_split.h"

namespace hadal::server {

using Clock = std::chrono::steady_clock;

/// Filled on the step thread, emptied on the connection's thread.
class Generation::Queue {
 public:
  Queue(Metrics& metrics, const GenerationOptions& options) : metrics_(metrics), options_(options) {}

  void add_request() {
    const std::lock_guard lock(mutex_);
    last_token_.push_back(Clock::time_point::min());
  }

  void deliver(size_t number, engine::Output output) {
    const std::lock_guard lock(mutex_);
    if (is_closed_) {
      return;
    }
    observe(number, output.tokens.size());
    buffered_bytes_ += sizeof(Item) + output.tokens.size() * sizeof(engine::OutputToken);
    for (const engine::OutputToken& token : output.tokens) {
      buffered_bytes_ += token.top.size() * sizeof(engine::TokenLogprob);
    }
    if (buffered_bytes_ > options_.max_buffered_bytes) {
      is_closed_ = true;
      items_.clear();
      if (waker_ != nullptr) {
        waker_->abort();
      }
      return;
    }
    const bool is_last = output.finish.has_value();
    if (!options_.splits_outputs) {
      items_.push_back({number, std::move(output)});
    } else {
      for (engine::Output& part : engine::split_output(std::move(output))) {
        items_.push_back({number, std::move(part)});
      }
    }
    // One wake for all that arrives until the reader comes.
    if (waker_ != nullptr && !is_woken_ && (is_last || items_.size() >= options_.outputs_per_wake)) {
      is_woken_ = true;
      waker_->wake();
    }
  }

  void attach(Waker& waker) {
    const std::lock_guard lock(mutex_);
    waker_ = &waker;
    if (is_closed_) {
      waker.abort();
    }
  }

  void take(std::vector<Item>& items) {
    const std::lock_guard lock(mutex_);
    is_woken_ = false;
    buffered_bytes_ = 0;
    if (items.empty()) {
      items.swap(items_);
    } else {
      std::move(items_.begin(), items_.end(), std::back_inserter(items));
      items_.clear();
    }
  }

  /// After this the waker is not used any more.
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    waker_ = nullptr;
    items_.clear();
  }

 private:
  void observe(size_t number, size_t num_tokens) {
    if (num_tokens == 0) {
      return;
    }
    const Clock::time_point now = Clock::now();
    Clock::time_point& last = last_token_[number];
    if (last == Clock::time_point::min()) {
      metrics_.ttft_seconds.observe(std::chrono::duration<double>(now - options_.arrival).count());
      --num_tokens;
    } else {
      const std::chrono::duration<double> gap = now - last;
      metrics_.inter_token_seconds.observe(gap.count() / static_cast<double>(num_tokens), num_tokens);
    }
    last = now;
  }

  Metrics& metrics_;
  const GenerationOptions options_;
  std::mutex mutex_;  ///< guards everything below; the waker is called under it so that close() ends its use
  Waker* waker_ = nullptr;
  bool is_closed_ = false;
  bool is_woken_ = false;
  uint64_t buffered_bytes_ = 0;
  std::vector<Item> items_;
  std::vector<Clock::time_point> last_token_;  ///< of each request; min() before the first
};

Generation::Generation(engine::Engine& engine, Metrics& metrics, const GenerationOptions& options)
    : engine_(engine), queue_(std::make_shared<Queue>(metrics, options)) {}

Generation::~Generation() {
  queue_->close();
  cancel_all();
}

Result<void> Generation::submit(engine::Request request) {
  const size_t number = handles_.size();
  queue_->add_request();
  HADAL_TRY(auto handle, engine_.submit(std::move(request), [queue = queue_, number](engine::Output output) {
    queue->deliver(number, std::move(output));
  }));
  handles_.push_back(std::move(handle));
  return {};
}

void Generation::attach(Waker& waker) {
  queue_->attach(waker);
}

void Generation::take(std::vector<Item>& items) {
  queue_->take(items);
}

void Generation::cancel_all() {
  for (const auto& handle : handles_) {
    handle->cancel();
  }
}

}  // namespace hadal::server
