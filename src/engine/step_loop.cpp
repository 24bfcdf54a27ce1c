#include "engine/step_loop.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "base/log.h"
#include "engine/queue_order.h"

namespace hadal::engine {
namespace {

std::string_view reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "unknown";
}

bool is_loading(RunningRequest& request) {
  return request.cache_place() && request.cache_place()->is_loading;
}

}  // namespace

StepLoop::StepLoop(model::LanguageModel& model, ThreadPool& pool, const EngineOptions& options, Inbox& inbox,
                   const CancellationCounter& cancellations)
    : model_(model),
      options_(options),
      inbox_(inbox),
      cancellations_(cancellations),
      limits_{options.eos_token_id, options.max_model_len},
      sampler_(pool),
      policy_(options.step_costs.value_or(StepCosts())),
      store_(model, options, [&inbox](LoadedSegments loaded) { inbox.push(std::move(loaded)); }) {
  if (model::DraftModel* drafts = model.draft_model(); drafts != nullptr) {
    proposer_.emplace(*drafts, sampler_, model.vocab_size());
  }
}

void StepLoop::run() {
  while (true) {
    Inbox::Arrivals arrivals = inbox_.take(/*wait=*/running_.empty() && !has_ready());
    accept(arrivals);
    if (arrivals.stopping) {
      break;
    }
    step();
    publish();
  }
  for (const auto& request : waiting_) {
    ++record_.ended_while_waiting;
    end(*request, FinishReason::kCancelled);
  }
  for (const auto& request : running_) {
    end(*request, FinishReason::kCancelled);
  }
  publish();
}

void StepLoop::accept(Inbox::Arrivals& arrivals) {
  for (auto& request : arrivals.requests) {
    if (request->cancel_requested()) {
      // end_cancelled() may have looked at this cancellation's count already, before the request was here.
      seen_cancellations_ = ~cancellations_.load(std::memory_order_acquire);
    }
    request->set_number(next_number_++);
    request->set_admitted_before(admitted_);
    waiting_.push_back(std::move(request));
  }
  for (LoadedSegments& loaded : arrivals.loaded) {
    store_.finish_load(std::move(loaded), [&](uint64_t ticket) -> RunningRequest* {
      const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const RequestPointer& request) {
        return is_loading(*request) && request->cache_place()->ticket == ticket;
      });
      return found == waiting_.end() ? nullptr : found->get();
    });
  }
}

/// Whether a waiting request could start if there is a place.
bool StepLoop::has_ready() const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [](const RequestPointer& request) { return !is_loading(*request); });
}

void StepLoop::step() {
  const auto begin = std::chrono::steady_clock::now();
  end_cancelled();
  if (!outputs_.empty()) {
    remove_ended();
    publish();  // now, not after the pass that comes
  }
  admit();
  propose();
  const std::vector<ScheduledChunk> plan = make_plan();
  if (plan.empty()) {
    return;
  }
  compute(plan);
  remove_ended();
  ++record_.steps;
  record_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void StepLoop::end_cancelled() {
  const uint64_t cancellations = cancellations_.load(std::memory_order_acquire);
  if (cancellations == seen_cancellations_) {
    return;
  }
  seen_cancellations_ = cancellations;
  for (const auto& request : waiting_) {
    if (!request->ended() && request->cancel_requested()) {
      ++record_.ended_while_waiting;
      end(*request, FinishReason::kCancelled);
    }
  }
  for (const auto& request : running_) {
    if (!request->ended() && request->cancel_requested()) {
      end(*request, FinishReason::kCancelled);
    }
  }
}

std::optional<size_t> StepLoop::next_to_admit() const {
  std::vector<WaitingPlace> waiting;
  waiting.reserve(waiting_.size());
  for (const auto& request : waiting_) {
    waiting.push_back({request->priority(), admitted_ - request->admitted_before(), request->number(),
                       request->cache_tenant(), request->user(), !is_loading(*request)});
  }
  std::vector<RunningPlace> running;
  running.reserve(running_.size());
  for (const auto& request : running_) {
    running.push_back({request->cache_tenant(), request->user()});
  }
  return next_to_start(waiting, running);
}

void StepLoop::admit() {
  while (static_cast<int64_t>(running_.size()) < options_.max_num_seqs) {
    const std::optional<size_t> next = next_to_admit();
    if (!next) {
      return;
    }
    const auto it = waiting_.begin() + static_cast<ptrdiff_t>(*next);
    RunningRequest& request = **it;
    const StateStore::Start start = store_.start(request, running_);
    if (start == StateStore::Start::kNoRoom) {
      return;  // others must not pass it by, or it might wait for ever
    }
    if (start == StateStore::Start::kLoading) {
      continue;
    }
    ++admitted_;
    ++record_.admitted;
    spdlog::debug("request {}: runs, {} prompt tokens, {} cached", printable(request.label()),
                  request.usage().prompt_tokens, request.usage().cached_tokens);
    const auto place = std::upper_bound(
        running_.begin(), running_.end(), request.number(),
        [](uint64_t number, const RequestPointer& other) { return number < other->number(); });
    running_.insert(place, std::move(*it));
    waiting_.erase(it);
  }
}

/// The next pass, for which there is memory: requests are set back if there is not.
std::vector<ScheduledChunk> StepLoop::make_plan() {
  while (true) {
    std::vector<ScheduledChunk> plan = plan_step(show_progress(), options_.max_num_batched_tokens);
    uint64_t growth = 0;
    for (const ScheduledChunk& chunk : plan) {
      growth += running_[chunk.sequence]->state()->growth_bytes(chunk.num_tokens + chunk.num_guesses);
    }
    // A single one always fits, see resolve_options().
    if (store_.make_room(growth) || running_.size() <= 1) {
      return plan;
    }
    preempt_one();
  }
}

void StepLoop::preempt_one() {
  // Of the lowest priority, the youngest.
  const auto victim = std::max_element(running_.begin(), running_.end(),
                                       [](const RequestPointer& first, const RequestPointer& second) {
                                         return std::pair(first->priority(), first->number()) <
                                                std::pair(second->priority(), second->number());
                                       });
  RequestPointer request = std::move(*victim);
  running_.erase(victim);
  spdlog::debug("request {}: set back after {} of {} tokens, no memory", printable(request->label()),
                request->progress().num_computed, request->progress().num_tokens);
  request->preempt();
  ++record_.preempted;
  const auto place =
      std::upper_bound(waiting_.begin(), waiting_.end(), request->number(),
                       [](uint64_t number, const RequestPointer& other) { return number < other->number(); });
  waiting_.insert(place, std::move(request));
}

/// Guesses for all sequences that decode, in one pass.
void StepLoop::propose() {
  if (!proposer_) {
    return;
  }
  std::vector<RunningRequest*> requests;
  std::vector<int64_t> room;
  for (const auto& request : running_) {
    if (const int64_t guesses = request->room_for_guesses(limits_); guesses > 0) {
      requests.push_back(request.get());
      room.push_back(guesses);
    }
  }
  if (!requests.empty() && policy_.wants_drafts()) {
    proposer_->propose(requests, room, record_.drafts);
  }
}

/// Where the running sequences stand, and how many of their guesses are worth a row in this step.
std::vector<SequenceProgress> StepLoop::show_progress() {
  std::vector<SequenceProgress> progress;
  std::vector<std::vector<float>> confidences;  // of the sequences that decode
  std::vector<size_t> decoding;
  for (const auto& request : running_) {
    progress.push_back(request->progress());
    if (progress.back().num_computed >= progress.back().prompt_length) {
      decoding.push_back(progress.size() - 1);
      auto& guesses = confidences.emplace_back();
      for (const Guess& guess : request->guesses()) {
        guesses.push_back(policy_.corrected(guess.confidence));
      }
    }
  }
  // One token of each sequence comes first.
  const int64_t room = options_.max_num_batched_tokens - static_cast<int64_t>(running_.size());
  const std::vector<int64_t> chosen = policy_.choose(confidences, room);
  for (size_t i = 0; i < decoding.size(); ++i) {
    progress[decoding[i]].num_guesses = chosen[i];
  }
  return progress;
}

void StepLoop::compute(const std::vector<ScheduledChunk>& plan) {
  const auto vocab_size = static_cast<size_t>(model_.vocab_size());
  size_t num_rows = 0;
  for (const ScheduledChunk& chunk : plan) {
    num_rows += chunk.num_sampled();
  }
  if (logits_.size() < num_rows * vocab_size) {
    logits_.resize(num_rows * vocab_size);
  }
  std::vector<model::Segment> segments;
  segments.reserve(plan.size());
  size_t row = 0;
  int64_t num_tokens = 0;
  for (const ScheduledChunk& chunk : plan) {
    RunningRequest& request = *running_[chunk.sequence];
    model::Segment segment{request.state(), request.next_tokens(chunk.num_tokens, chunk.num_guesses), {}};
    segment.logits = std::span(logits_).subspan(row * vocab_size, chunk.num_sampled() * vocab_size);
    row += chunk.num_sampled();
    segments.push_back(segment);
    num_tokens += chunk.num_tokens + chunk.num_guesses;
  }
  spdlog::debug("step: {} tokens of {} sequences, {} sampled; {} running, {} waiting", num_tokens,
                plan.size(), num_rows, running_.size(), waiting_.size());

  const Result<void> computed = model_.forward(segments);
  if (!computed) {
    spdlog::error("forward pass of {} sequences failed: {}", plan.size(), computed.error().message);
    for (const ScheduledChunk& chunk : plan) {
      end(*running_[chunk.sequence], FinishReason::kError, {}, computed.error());
    }
    return;
  }
  end_cancelled();  // what was cancelled meanwhile gets no more tokens
  sample(plan);
  for (const ScheduledChunk& chunk : plan) {
    if (RunningRequest& request = *running_[chunk.sequence]; !request.ended()) {
      store_.keep_checkpoints(request);
    }
  }
}

void StepLoop::sample(const std::vector<ScheduledChunk>& plan) {
  const auto vocab_size = static_cast<size_t>(model_.vocab_size());
  std::vector<SampleRow> rows;
  size_t row = 0;
  for (const ScheduledChunk& chunk : plan) {
    RunningRequest& request = *running_[chunk.sequence];
    for (size_t i = 0; i < chunk.num_sampled(); ++i, ++row) {
      if (!request.ended()) {
        const auto logits = std::span(logits_).subspan(row * vocab_size, vocab_size);
        request.adjust(logits, i, limits_);
        rows.push_back({logits, &request.sampling(), request.next_position() + static_cast<int64_t>(i),
                        request.forced_token(i)});
      }
    }
  }
  // All of them at once: a draw depends on its row and position only, whether or not the guesses before it
  // hold.
  std::vector<Result<OutputToken>> sampled(rows.size());
  sampler_.sample(rows, sampled);
  size_t first = 0;
  step_drafts_ = {};
  for (const ScheduledChunk& chunk : plan) {
    RunningRequest& request = *running_[chunk.sequence];
    if (chunk.wants_logits && !request.ended()) {
      take_tokens(request, std::span(sampled).subspan(first, chunk.num_sampled()));
      first += chunk.num_sampled();
    }
  }
  policy_.learn(step_drafts_);
  record_.drafts += step_drafts_;
}

/// Appends the target's own tokens, up to the first that differs from the guess in its place: rows after it
/// were computed from a wrong token.
void StepLoop::take_tokens(RunningRequest& request, std::span<Result<OutputToken>> sampled) {
  std::vector<OutputToken> tokens;
  std::optional<FinishReason> finish;
  std::optional<Error> error;
  const std::span<const Guess> guesses = request.guesses();
  const size_t num_verified = sampled.size() - 1;
  for (size_t i = 0; i < num_verified; ++i) {
    ++step_drafts_.positions[i].verified;
  }
  for (size_t i = 0; i < sampled.size(); ++i) {
    if (!sampled[i]) {
      error = std::move(sampled[i]).error();
      finish = FinishReason::kError;
      break;
    }
    const int32_t token = sampled[i]->token;
    const bool is_right = i < num_verified && guesses[i].token == token;
    if (i < num_verified) {
      step_drafts_.count_reached(static_cast<int64_t>(i), guesses[i].confidence, is_right);
    }
    finish = request.append(token, limits_);
    tokens.push_back(std::move(*sampled[i]));
    if (finish || !is_right) {
      break;
    }
  }
  record_.tokens += tokens.size();
  if (!request.settle_guesses() && !error) {
    error = Error{ErrorCode::kInternal, "the state could not take back rejected guesses"};
    finish = FinishReason::kError;
  }
  if (!finish || (error && !tokens.empty())) {
    outputs_.emplace_back(&request, Output{std::move(tokens), request.usage(), std::nullopt, std::nullopt});
    tokens.clear();
  }
  if (error) {
    spdlog::error("request {}: {}", printable(request.label()), error->message);
  }
  if (finish) {
    end(request, *finish, std::move(tokens), std::move(error));
  }
}

void StepLoop::end(RunningRequest& request, FinishReason reason, std::vector<OutputToken> tokens,
                   std::optional<Error> error) {
  if (reason != FinishReason::kError) {  // a failed pass leaves the state unusable
    store_.keep_end(request);
  }
  request.end();
  ++record_.finished[static_cast<size_t>(reason)];
  spdlog::debug("request {}: ends ({}) with {} output tokens", printable(request.label()),
                reason_name(reason), request.usage().completion_tokens);
  outputs_.emplace_back(&request, Output{std::move(tokens), request.usage(), reason, std::move(error)});
}

void StepLoop::remove_ended() {
  const auto keep_ended = [&](RequestPointer& request) {
    const bool ended = request->ended();
    if (ended) {
      ended_.push_back(std::move(request));
    }
    return ended;
  };
  std::erase_if(waiting_, keep_ended);
  std::erase_if(running_, keep_ended);
}

void StepLoop::publish() {
  record_.cache = store_.stats();
  inbox_.record(record_);
  record_ = {};
  for (auto& [request, output] : outputs_) {
    request->deliver(std::move(output));
  }
  outputs_.clear();
  ended_.clear();
}

}  // namespace hadal::engine
