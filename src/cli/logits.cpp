// hadal logits: what a forward pass computes, as a safetensors file. For comparison with other
// implementations.

#include <algorithm>
#include <span>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/loaded_model.h"
#include "cli/setting_flags.h"
#include "cli/terminal.h"
#include "cli/token_list.h"

namespace hadal::cli {
namespace {

using checkpoint::DType;

struct LogitsOptions {
  std::string token_ids;
  std::string out;
  int64_t chunk = 0;
  std::vector<std::string> capture;
};

template <class Value>
checkpoint::TensorToWrite as_tensor(DType dtype, std::vector<int64_t> shape,
                                    const std::vector<Value>& values) {
  return {dtype, std::move(shape), std::as_bytes(std::span(values))};
}

Result<void> compute(const LogitsOptions& options, LoadedModel& loaded) {
  model::Model& model = *loaded.model;
  HADAL_TRY(const std::vector<int32_t> ids, parse_token_list(options.token_ids, model.vocab_size()));
  const auto count = static_cast<int64_t>(ids.size());
  if (count > model.max_positions()) {
    return fail(ErrorCode::kInvalidArgument, "{} token ids; the model has {} positions", count,
                model.max_positions());
  }
  model::Capture capture;
  capture.num_positions = count;
  const auto wants = [&](const char* what) {
    return std::find(options.capture.begin(), options.capture.end(), what) != options.capture.end();
  };
  capture.hidden = wants("hidden");
  capture.router = wants("router");
  capture.index = wants("index");
  capture.engram = wants("engram");
  if (!options.capture.empty()) {
    model.set_capture(&capture);
  }

  const int64_t vocab = model.vocab_size();
  std::vector<float> logits(static_cast<size_t>(count * vocab));
  const auto state = model.new_state(count);
  const int64_t chunk = options.chunk > 0 ? options.chunk : count;
  StatusLine status;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t length = std::min(chunk, count - begin);
    model::Segment segment;
    segment.state = state.get();
    segment.token_ids = std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(length));
    segment.logits =
        std::span(logits).subspan(static_cast<size_t>(begin * vocab), static_cast<size_t>(length * vocab));
    HADAL_CHECK(model.forward(std::span(&segment, 1)));
    status.show_bar("computing", static_cast<double>(begin + length) / static_cast<double>(count));
  }
  model.set_capture(nullptr);

  std::map<std::string, checkpoint::TensorToWrite> tensors;
  tensors.emplace("logits", as_tensor(DType::kF32, {count, vocab}, logits));
  for (const auto& [name, array] : capture.floats) {
    tensors.emplace(name, as_tensor(DType::kF32, array.shape, array.values));
  }
  for (const auto& [name, array] : capture.ids) {
    tensors.emplace(name, as_tensor(DType::kI64, array.shape, array.values));
  }
  return checkpoint::write_safetensors(options.out, tensors);
}

Exit logits(const LogitsOptions& options, const Flags& flags) {
  auto settings = load_cli_settings(flags, /*quiet=*/true);
  if (!settings) {
    return report(settings.error(), Exit::kUsage);
  }
  // Every position is asked for; bounded replay, which leaves out most of a prompt, only if it is named.
  for (const LoadedSettings::Entry& entry : settings->entries) {
    if (entry.info.name == "model.replay" && entry.source == "default") {
      settings->values.model.replay = "off";
    }
  }
  auto loaded = load_model(settings->values);
  if (!loaded) {
    return report(loaded.error(), settings->values.model.model.empty() ? Exit::kUsage : Exit::kFailure);
  }
  const auto done = compute(options, *loaded);
  return done ? Exit::kOk : report(done.error());
}

}  // namespace

void add_logits(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("logits", "Write the logits of token ids to a safetensors file");
  const auto options = std::make_shared<LogitsOptions>();
  command->add_option("--token-ids", options->token_ids, "A list of ids, or @FILE")->required();
  command
      ->add_option("--out", options->out,
                   "The file to write: logits [T, vocabulary] and what --capture names")
      ->required();
  command->add_option("--chunk", options->chunk, "Tokens of one forward pass; 0 for all at once (0)")
      ->check(CLI::Range(int64_t{0}, int64_t{INT32_MAX}));
  command->add_option("--capture", options->capture, "Also write hidden, router, index, engram")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"hidden", "router", "index", "engram"}));
  const Flags flags = add_setting_flags(*command, {"model", "threads", "log"});
  command->callback(
      [options, flags, &selected] { selected = [options, flags] { return logits(*options, flags); }; });
}

}  // namespace hadal::cli
