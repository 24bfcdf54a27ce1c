#include "server/conversation_answer.h"

#include "recipe/response_generator.h"
#include "server/access.h"
#include "server/generation.h"
#include "server/generation_failure.h"
#include "server/json_text.h"

namespace hadal::server {
namespace {

using engine::FinishReason;
using recipe::Event;
using recipe::Protocol;

struct ProtocolFacts {
  Route route;
  ErrorStyle style;
  std::string_view id_prefix;
  std::string_view keep_alive;
};

const ProtocolFacts& facts_of(Protocol protocol) {
  static constexpr std::string_view kComment = ": keep-alive\n\n";
  static constexpr ProtocolFacts kChat{Route::kChat, ErrorStyle::kOpenAi, "chatcmpl-", kComment};
  static constexpr ProtocolFacts kMessages{Route::kMessages, ErrorStyle::kAnthropic, "msg_",
                                           "event: ping\ndata: {\"type\":\"ping\"}\n\n"};
  static constexpr ProtocolFacts kResponses{Route::kResponses, ErrorStyle::kOpenAi, "resp_", kComment};
  switch (protocol) {
    case Protocol::kChat:
      return kChat;
    case Protocol::kMessages:
      return kMessages;
    case Protocol::kResponses:
      break;
  }
  return kResponses;
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// One answer while the engine works on it.
class ConversationRun {
 public:
  ConversationRun(const ModelService& model, Metrics& metrics, const RequestPolicy& policy,
                  const recipe::PreparedRequest& prepared, int64_t prompt_tokens, bool wants_logprobs,
                  std::unique_ptr<Generation> generation, std::optional<AnswerStorage> storage)
      : facts(facts_of(prepared.protocol)),
        protocol(prepared.protocol),
        metrics_(metrics),
        wants_logprobs_(wants_logprobs),
        generation_(std::move(generation)),
        limit_{policy.request_timeout_seconds, false},
        storage_(std::move(storage)),
        input_items_(storage_ ? prepared.input_items : std::string()),
        id_(random_id(facts.id_prefix)) {
    usage_.prompt_tokens = prompt_tokens;
    recipe::GeneratorOptions options;
    options.response_id = id_;
    options.response_model = prepared.model;
    options.system_fingerprint = model.fingerprint;
    options.created_unix_seconds = unix_seconds();
    options.clock = unix_seconds;
    options.prompt_tokens = static_cast<uint64_t>(prompt_tokens);
    options.call_id_seed = random_bits();
    generator_ = recipe::ResponseGenerator::create(prepared, std::move(options), model.tokenizer);
  }
  ~ConversationRun() {
    if (!finish_) {
      finish_ = limit_.is_over ? Finish::kTimeout : failure ? Finish::kError : Finish::kDisconnected;
    }
    metrics_.count_finish(facts.route, *finish_);
    metrics_.count_tokens(usage_);
    metrics_.count_faults(generator_->faults());
  }
  ConversationRun(const ConversationRun&) = delete;
  ConversationRun& operator=(const ConversationRun&) = delete;

  void attach(Waker& waker) { generation_->attach(waker); }
  void expire() {
    limit_.is_over = true;
    generation_->cancel_all();
  }

  std::vector<Event> start() { return generator_->start(); }
  /// Takes one waiting output, if there is one, and appends what it makes.
  bool step(std::vector<Event>& events) {
    if (next_item_ == items_.size()) {
      items_.clear();
      next_item_ = 0;
      generation_->take(items_);
    }
    if (next_item_ == items_.size() || is_done()) {
      return false;
    }
    take(items_[next_item_++].output, events);
    if (finish_ && storage_) {
      store();
    }
    return true;
  }
  bool is_done() const { return finish_ || failure; }
  /// The JSON text of the whole answer, once it is done without a failure.
  std::string response_text() const {
    return generator_->response().dump(-1, ' ', false, recipe::Json::error_handler_t::replace);
  }

  const ProtocolFacts& facts;
  const Protocol protocol;
  std::optional<ApiError> failure;

 private:
  void take(const engine::Output& output, std::vector<Event>& events) {
    usage_.cached_tokens = output.usage.cached_tokens;
    generator_->set_cached_tokens(static_cast<uint64_t>(output.usage.cached_tokens));
    if (!output.tokens.empty()) {
      tokens_.clear();
      for (const engine::OutputToken& token : output.tokens) {
        append_token(token);
      }
      usage_.completion_tokens += static_cast<int64_t>(tokens_.size());
      append(events, generator_->push_tokens(tokens_));
    }
    if (generator_->finished()) {
      generation_->cancel_all();
      finish_ = Finish::kStop;
    } else if (output.finish == FinishReason::kStop) {
      append(events, generator_->finish(recipe::OutputFinish::kStop));
      finish_ = Finish::kStop;
    } else if (output.finish == FinishReason::kLength) {
      append(events, generator_->finish(recipe::OutputFinish::kLength));
      finish_ = Finish::kLength;
    } else {
      failure = generation_failure(output, limit_);
    }
  }
  void append_token(const engine::OutputToken& token);
  /// Before the client sees the end, so that it finds the response with its next request.
  void store() {
    storage_->store->put({id_, std::move(storage_->owner), std::move(storage_->previous_id),
                          std::move(input_items_), response_text()});
    storage_.reset();
  }
  static void append(std::vector<Event>& events, std::vector<Event> more) {
    if (events.empty()) {
      events = std::move(more);
    } else {
      std::move(more.begin(), more.end(), std::back_inserter(events));
    }
  }

  Metrics& metrics_;
  const bool wants_logprobs_;
  std::unique_ptr<Generation> generation_;
  std::unique_ptr<recipe::ResponseGenerator> generator_;
  TimeLimit limit_;
  std::optional<AnswerStorage> storage_;  ///< until it is stored
  std::string input_items_;
  const std::string id_;
  engine::Usage usage_;
  std::optional<Finish> finish_;
  std::vector<recipe::OutputTokenInfo> tokens_;  ///< of the output in hand; a member to keep its memory
  std::vector<Generation::Item> items_;
  size_t next_item_ = 0;
};

void ConversationRun::append_token(const engine::OutputToken& token) {
  recipe::OutputTokenInfo& info = tokens_.emplace_back();
  info.token = token.token;
  if (wants_logprobs_) {
    info.logprob = token.logprob;
    for (const engine::TokenLogprob& top : token.top) {
      info.top.push_back({top.token, top.logprob});
    }
  }
}

class ConversationStream final : public StreamingResponse {
 public:
  explicit ConversationStream(std::unique_ptr<ConversationRun> run) : run_(std::move(run)) {}

  void start(Waker& waker) override { run_->attach(waker); }
  void expire() override { run_->expire(); }
  std::string_view keep_alive() const override { return run_->facts.keep_alive; }

  State pull(std::string& out, size_t max_bytes, bool& more_ready) override {
    if (!is_started_) {
      is_started_ = true;
      write(run_->start(), out);
    }
    std::vector<Event> events;
    while (run_->step(events)) {
      write(events, out);
      events.clear();
      if (out.size() >= max_bytes && !run_->is_done()) {
        more_ready = true;
        return State::kMore;
      }
    }
    if (!run_->is_done()) {
      return State::kMore;
    }
    if (run_->failure) {
      write_failure(out);
    } else if (run_->protocol == Protocol::kChat) {
      append_event(out, {}, "[DONE]");
    }
    return State::kEnd;
  }

 private:
  void write(const std::vector<Event>& events, std::string& out) {
    for (const Event& event : events) {
      append_event(out, event.name, event.data);
    }
    num_events_ += static_cast<int64_t>(events.size());
  }
  void write_failure(std::string& out) const {
    const ApiError& failure = *run_->failure;
    if (run_->protocol != Protocol::kResponses) {
      const bool has_name = run_->protocol == Protocol::kMessages;
      append_event(out, has_name ? "error" : "", error_body(run_->facts.style, failure));
      return;
    }
    std::string data = R"({"type":"error","code":"server_error","message":)";
    append_json_string(data, failure.message);
    data += R"(,"param":null,"sequence_number":)";
    append_json_integer(data, num_events_);
    data += '}';
    append_event(out, "error", data);
  }

  std::unique_ptr<ConversationRun> run_;
  bool is_started_ = false;
  int64_t num_events_ = 0;
};

class ConversationLater final : public LaterResponse {
 public:
  explicit ConversationLater(std::unique_ptr<ConversationRun> run) : run_(std::move(run)) { run_->start(); }

  void start(Waker& waker) override { run_->attach(waker); }
  void expire() override { run_->expire(); }

  std::optional<HttpResponse> poll() override {
    std::vector<Event> events;
    while (run_->step(events)) {
      events.clear();
    }
    if (!run_->is_done()) {
      return std::nullopt;
    }
    if (run_->failure) {
      return error_response(run_->facts.style, *run_->failure);
    }
    HttpResponse response;
    response.body = run_->response_text();
    return response;
  }

 private:
  std::unique_ptr<ConversationRun> run_;
};

}  // namespace

Answer answer_conversation(std::shared_ptr<const ModelService> model, Metrics& metrics,
                           const RequestPolicy& policy, ConversationRequest request,
                           std::chrono::steady_clock::time_point arrival,
                           std::optional<AnswerStorage> storage) {
  const recipe::PreparedRequest& prepared = request.prepared;
  GenerationOptions options;
  options.arrival = arrival;
  options.max_buffered_bytes = prepared.stream ? policy.max_stream_buffer_bytes : UINT64_MAX;
  options.outputs_per_wake = prepared.stream || !prepared.parsing.stop_sequences.empty() ? 1 : 32;
  options.splits_outputs = !prepared.parsing.stop_sequences.empty();
  const bool wants_logprobs = request.request.sampling.top_logprobs >= 0;
  const auto prompt_length = static_cast<int64_t>(request.request.prompt.size());
  auto generation = std::make_unique<Generation>(*model->engine, metrics, options);
  if (auto queued = generation->submit(std::move(request.request)); !queued) {
    return error_response(facts_of(prepared.protocol).style, public_error(queued.error()));
  }
  const int64_t prompt_tokens = generation->counted_prompt_tokens(0).value_or(prompt_length);
  auto run = std::make_unique<ConversationRun>(*model, metrics, policy, prepared, prompt_tokens,
                                               wants_logprobs, std::move(generation), std::move(storage));
  if (!prepared.stream) {
    return std::make_unique<ConversationLater>(std::move(run));
  }
  return StreamingAnswer{event_stream_head(), std::make_unique<ConversationStream>(std::move(run))};
}

}  // namespace hadal::server
