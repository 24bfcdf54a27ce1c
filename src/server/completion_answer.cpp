#include "server/completion_answer.h"

#include "server/access.h"
#include "server/completion_text.h"
#include "server/generation.h"
#include "server/generation_failure.h"
#include "server/json_text.h"

namespace hadal::server {
namespace {

using engine::FinishReason;

/// All choices of one request while the engine works on them.
class CompletionRun {
 public:
  struct Choice {
    CompletionText text;
    bool is_started = false;  ///< something of it was sent
    std::optional<std::string_view> finish;
    int64_t cached_tokens = 0;
  };

  CompletionRun(std::shared_ptr<const ModelService> model, Metrics& metrics, const RequestPolicy& policy,
                CompletionRequest asked, std::unique_ptr<Generation> generation)
      : request(std::move(asked)),
        model_(std::move(model)),
        metrics_(metrics),
        generation_(std::move(generation)),
        limit_{policy.request_timeout_seconds, false},
        id_(random_id("cmpl-")) {
    const auto num_choices = static_cast<int64_t>(request.prompts.size()) * request.n;
    for (int64_t i = 0; i < num_choices; ++i) {
      choices.push_back({{model_->tokenizer, request.stop, request.skip_special_tokens}, false, {}, 0});
    }
    num_open_ = choices.size();
  }
  ~CompletionRun() {
    const Finish unfinished = limit_.is_over ? Finish::kTimeout
                              : failure      ? Finish::kError
                                             : Finish::kDisconnected;
    for (const Choice& choice : choices) {
      if (!choice.finish) {
        metrics_.count_finish(Route::kCompletions, unfinished);
      }
    }
    metrics_.count_tokens(usage());
  }
  CompletionRun(const CompletionRun&) = delete;
  CompletionRun& operator=(const CompletionRun&) = delete;

  void attach(Waker& waker) { generation_->attach(waker); }
  void expire() {
    limit_.is_over = true;
    generation_->cancel_all();
  }

  /// Takes one waiting output, if there is one; the number of its choice, or nothing.
  std::optional<size_t> step() {
    if (next_item_ == items_.size()) {
      items_.clear();
      next_item_ = 0;
      generation_->take(items_);
    }
    if (next_item_ == items_.size() || failure) {
      return std::nullopt;
    }
    const Generation::Item& item = items_[next_item_++];
    take(item.number, item.output);
    return item.number;
  }
  bool has_more() const { return next_item_ < items_.size(); }
  bool is_done() const { return num_open_ == 0 || failure; }

  engine::Usage usage() const {
    engine::Usage usage;
    for (size_t i = 0; i < choices.size(); ++i) {
      usage.completion_tokens += choices[i].text.num_tokens();
      if (static_cast<int64_t>(i) % request.n == 0) {  // each prompt counts once
        const auto& prompt = request.prompts[i / static_cast<size_t>(request.n)];
        usage.prompt_tokens +=
            generation_->counted_prompt_tokens(i).value_or(static_cast<int64_t>(prompt.ids.size()));
        usage.cached_tokens += choices[i].cached_tokens;
      }
    }
    return usage;
  }

  /// The prompt in front of a choice's first text, if it is to be repeated.
  std::string take_text(size_t number) {
    Choice& choice = choices[number];
    std::string text;
    if (request.echo && !choice.is_started) {
      text = request.prompts[number / static_cast<size_t>(request.n)].text;
    }
    choice.is_started = true;
    text += choice.text.take_text();
    return text;
  }

  /// `{"id":...,"choices":[`
  void append_lead(std::string& out) const {
    out += "{\"id\":";
    append_json_string(out, id_);
    out += ",\"object\":\"text_completion\",\"created\":";
    append_json_integer(out, created_);
    out += ",\"model\":";
    append_json_string(out, request.model);
    out += ",\"system_fingerprint\":";
    append_json_string(out, model_->fingerprint);
    out += ",\"choices\":[";
  }
  void append_choice(std::string& out, size_t number) {
    Choice& choice = choices[number];
    out += "{\"index\":";
    append_json_integer(out, static_cast<int64_t>(number));
    out += ",\"text\":";
    append_json_string(out, take_text(number));
    out += ",\"logprobs\":";
    if (request.sampling.top_logprobs >= 0) {
      choice.text.append_logprobs(out);
    } else {
      out += "null";
    }
    out += ",\"finish_reason\":";
    if (choice.finish) {
      append_json_string(out, *choice.finish);
    } else {
      out += "null";
    }
    out += '}';
  }
  void append_usage(std::string& out) const {
    const engine::Usage total = usage();
    out += "{\"prompt_tokens\":";
    append_json_integer(out, total.prompt_tokens);
    out += ",\"completion_tokens\":";
    append_json_integer(out, total.completion_tokens);
    out += ",\"total_tokens\":";
    append_json_integer(out, total.prompt_tokens + total.completion_tokens);
    out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
    append_json_integer(out, total.cached_tokens);
    out += "}}";
  }

  const CompletionRequest request;
  std::vector<Choice> choices;
  std::optional<ApiError> failure;

 private:
  void take(size_t number, const engine::Output& output) {
    Choice& choice = choices[number];
    if (choice.finish) {
      return;  // ended by a stop sequence before the engine knew
    }
    choice.cached_tokens = output.usage.cached_tokens;
    choice.text.push(output.tokens, output.finish == FinishReason::kStop);
    if (choice.text.is_stopped()) {
      generation_->cancel(number);
      end(choice, "stop", Finish::kStop);
    } else if (output.finish == FinishReason::kStop || output.finish == FinishReason::kLength) {
      choice.text.finish();
      const bool is_stop = output.finish == FinishReason::kStop || choice.text.is_stopped();
      end(choice, is_stop ? "stop" : "length", is_stop ? Finish::kStop : Finish::kLength);
    } else if ((failure = generation_failure(output, limit_))) {
      generation_->cancel_all();
    }
  }
  void end(Choice& choice, std::string_view reason, Finish finish) {
    choice.text.finish();
    choice.finish = reason;
    --num_open_;
    metrics_.count_finish(Route::kCompletions, finish);
  }

  std::shared_ptr<const ModelService> model_;
  Metrics& metrics_;
  std::unique_ptr<Generation> generation_;
  TimeLimit limit_;
  const std::string id_;
  const int64_t created_ =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  size_t num_open_ = 0;
  std::vector<Generation::Item> items_;
  size_t next_item_ = 0;
};

class CompletionStream final : public StreamingResponse {
 public:
  explicit CompletionStream(std::unique_ptr<CompletionRun> run) : run_(std::move(run)) {
    run_->append_lead(lead_);
  }

  void start(Waker& waker) override { run_->attach(waker); }
  void expire() override { run_->expire(); }
  std::string_view keep_alive() const override { return ": keep-alive\n\n"; }

  State pull(std::string& out, size_t max_bytes, bool& more_ready) override {
    while (!run_->is_done()) {
      const auto number = run_->step();
      if (!number) {
        break;
      }
      if (!run_->failure) {
        append_chunk(out, *number);
      }
      if (out.size() >= max_bytes) {
        more_ready = true;
        return State::kMore;
      }
    }
    if (!run_->is_done()) {
      return State::kMore;
    }
    if (run_->failure) {
      append_event(out, {}, error_body(ErrorStyle::kOpenAi, *run_->failure));
      return State::kEnd;
    }
    if (run_->request.include_usage) {
      out += "data: ";
      out += lead_;
      out += "],\"usage\":";
      run_->append_usage(out);
      out += "}\n\n";
    }
    append_event(out, {}, "[DONE]");
    return State::kEnd;
  }

 private:
  void append_chunk(std::string& out, size_t number) {
    const size_t begin = out.size();
    const bool was_started = run_->choices[number].is_started;
    out += "data: ";
    out += lead_;
    const size_t text_begin = out.size();
    run_->append_choice(out, number);
    static constexpr std::string_view kNothing = "\"text\":\"\",\"logprobs\":null,\"finish_reason\":null}";
    if (was_started && std::string_view(out).substr(text_begin).ends_with(kNothing)) {
      out.resize(begin);  // held back: a stop sequence or a code point that is not complete
      return;
    }
    out += run_->request.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
  }

  std::unique_ptr<CompletionRun> run_;
  std::string lead_;
};

class CompletionLater final : public LaterResponse {
 public:
  explicit CompletionLater(std::unique_ptr<CompletionRun> run) : run_(std::move(run)) {}

  void start(Waker& waker) override { run_->attach(waker); }
  void expire() override { run_->expire(); }

  std::optional<HttpResponse> poll() override {
    while (!run_->is_done() && run_->step()) {
    }
    if (!run_->is_done()) {
      return std::nullopt;
    }
    if (run_->failure) {
      return error_response(ErrorStyle::kOpenAi, *run_->failure);
    }
    HttpResponse response;
    run_->append_lead(response.body);
    for (size_t number = 0; number < run_->choices.size(); ++number) {
      response.body += number == 0 ? "" : ",";
      run_->append_choice(response.body, number);
    }
    response.body += "],\"usage\":";
    run_->append_usage(response.body);
    response.body += '}';
    return response;
  }

 private:
  std::unique_ptr<CompletionRun> run_;
};

}  // namespace

Answer answer_completion(std::shared_ptr<const ModelService> model, Metrics& metrics,
                         const RequestPolicy& policy, CompletionRequest request,
                         std::chrono::steady_clock::time_point arrival) {
  GenerationOptions options;
  options.arrival = arrival;
  options.max_buffered_bytes = request.stream ? policy.max_stream_buffer_bytes : UINT64_MAX;
  options.outputs_per_wake = request.stream || !request.stop.empty() ? 1 : 32;
  auto generation = std::make_unique<Generation>(*model->engine, metrics, options);
  for (const auto& prompt : request.prompts) {
    for (int64_t i = 0; i < request.n; ++i) {
      engine::Request each = request.queue;
      each.prompt = prompt.ids;
      each.sampling = request.sampling;
      each.label = request.label;
      each.sampling.seed = choice_seed(request.sampling.seed, static_cast<uint64_t>(i));
      if (auto queued = generation->submit(std::move(each)); !queued) {
        return error_response(ErrorStyle::kOpenAi, public_error(queued.error()));
      }
    }
  }
  const bool stream = request.stream;
  auto run = std::make_unique<CompletionRun>(std::move(model), metrics, policy, std::move(request),
                                             std::move(generation));
  if (!stream) {
    return std::make_unique<CompletionLater>(std::move(run));
  }
  return StreamingAnswer{event_stream_head(), std::make_unique<CompletionStream>(std::move(run))};
}

}  // namespace hadal::server
