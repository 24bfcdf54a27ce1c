#include "cli/generation_run.h"

#include <condition_variable>
#include <csignal>
#include <deque>
#include <iterator>
#include <mutex>

#include "cli/terminal.h"
#include "engine/output_split.h"

namespace hadal::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;
struct sigaction previous_action;

/// Outputs on their way from the step thread to the waiting thread.
struct Mailbox {
  std::mutex mutex;  ///< guards outputs
  std::condition_variable arrived;
  std::deque<engine::Output> outputs;
};

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_action, nullptr);
}

bool InterruptGuard::is_interrupted() {
  return interrupted != 0;
}

std::string_view finish_name(engine::FinishReason finish) {
  switch (finish) {
    case engine::FinishReason::kStop:
      return "stop";
    case engine::FinishReason::kLength:
      return "length";
    case engine::FinishReason::kCancelled:
      return "cancelled";
    case engine::FinishReason::kError:
      break;
  }
  return "error";
}

Result<GenerationResult> run_generation(engine::Engine& engine, engine::Request request,
                                        const std::function<bool(const engine::Output&)>& consume) {
  const InterruptGuard guard;
  const auto mailbox = std::make_shared<Mailbox>();
  const auto prompt_tokens = static_cast<double>(request.prompt.size());
  const uint64_t first_step = engine.stats().steps_total;
  HADAL_TRY(const auto handle, engine.submit(std::move(request), [mailbox](engine::Output output) {
    {
      const std::lock_guard lock(mailbox->mutex);
      mailbox->outputs.push_back(std::move(output));
    }
    mailbox->arrived.notify_one();
  }));

  GenerationResult result;
  StatusLine status;
  bool is_wanted = true;
  bool is_prefill = true;
  while (true) {
    std::deque<engine::Output> outputs;
    {
      std::unique_lock lock(mailbox->mutex);
      mailbox->arrived.wait_for(lock, std::chrono::milliseconds(100),
                                [&] { return !mailbox->outputs.empty(); });
      outputs.swap(mailbox->outputs);
    }
    if (outputs.empty()) {
      if (InterruptGuard::is_interrupted()) {
        handle->cancel();
      } else if (is_prefill) {
        const auto steps = static_cast<double>(engine.stats().steps_total - first_step);
        status.show_bar("reading the prompt",
                        steps * static_cast<double>(engine.options().max_num_batched_tokens) / prompt_tokens);
      }
      continue;
    }
    if (is_prefill) {
      is_prefill = false;
      status.clear();
    }
    std::deque<engine::Output> parts;
    for (engine::Output& output : outputs) {
      auto split = engine::split_output(std::move(output));
      std::move(split.begin(), split.end(), std::back_inserter(parts));
    }
    for (const engine::Output& output : parts) {
      if (is_wanted) {
        for (const engine::OutputToken& token : output.tokens) {
          result.token_ids.push_back(token.token);
        }
        result.usage = output.usage;
        is_wanted = consume(output);
        if (!is_wanted || InterruptGuard::is_interrupted()) {
          handle->cancel();
        }
      }
      if (output.finish == engine::FinishReason::kError) {
        return tl::make_unexpected(
            output.error.value_or(Error{ErrorCode::kInternal, "the engine gave no reason"}));
      }
      if (output.finish) {
        result.finish = is_wanted ? *output.finish : engine::FinishReason::kStop;
        return result;
      }
    }
  }
}

}  // namespace hadal::cli
