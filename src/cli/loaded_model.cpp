#include "cli/loaded_model.h"

#include <algorithm>
#include <chrono>

#include "base/available_memory.h"
#include "base/log.h"
#include "cli/model_identity.h"
#include "cli/terminal.h"

namespace hadal::cli {
namespace {

Result<kernels::Isa> choose_isa(std::string_view name) {
  if (name == "auto") {
    return kernels::detect_isa();
  }
  const kernels::Isa isa = name == "avx512" ? kernels::Isa::kAvx512
                           : name == "avx2" ? kernels::Isa::kAvx2
                                            : kernels::Isa::kScalar;
  if (!kernels::isa_supported(isa)) {
    return fail(ErrorCode::kUnsupported, "this CPU does not have {}; its best is {}", name,
                kernels::isa_name(kernels::detect_isa()));
  }
  return isa;
}

/// Whether drafts pay is measured by some passes at start. Over more than this that takes too long to be done
/// unasked: each pass reads a good part of the weights.
constexpr uint64_t kMostBytesToMeasure = uint64_t{2} << 30;

/// The setting's -1 stands for the checkpoint's own number: none without draft layers, and none where the
/// start would wait for measurements.
int64_t choose_draft_length(int64_t wish, const checkpoint::Checkpoint& checkpoint) {
  const checkpoint::TextConfig& config = checkpoint.config().text;
  if (wish >= 0 || config.num_nextn_predict_layers == 0) {
    return std::max<int64_t>(wish, 0);
  }
  if (checkpoint.total_bytes() > kMostBytesToMeasure) {
    spdlog::info(
        "no drafts: measuring whether they pay would hold up the start; --draft-length {} asks for it",
        config.dspark_block_size);
    return 0;
  }
  return std::min(config.dspark_block_size, engine::kMaxDraftLength);
}

/// BOS in front of plain text belongs to the release tokenizer; the tiny checkpoints' one has none.
std::optional<int32_t> choose_bos(std::string_view wish, const checkpoint::ModelConfig& config) {
  const bool has_bos = wish == "on" || (wish == "auto" && config.tokenizer_compatibility == "release");
  return has_bos ? std::optional(static_cast<int32_t>(config.bos_token_id)) : std::nullopt;
}

}  // namespace

std::string model_name(std::string_view model) {
  while (model.size() > 1 && model.ends_with('/')) {
    model.remove_suffix(1);
  }
  const std::string name = std::filesystem::path(model).filename().string();
  return name.empty() || name == "." || name == ".." ? "hadal" : name;
}

Result<std::filesystem::path> model_directory(const Settings& settings) {
  if (settings.model.model.empty()) {
    return fail(
        ErrorCode::kInvalidArgument,
        "no model is named; give --model with a checkpoint directory or a Hugging Face repository id, or set "
        "HADAL_MODEL");
  }
  return checkpoint::find_model_directory(settings.model.model, settings.model.hub_cache,
                                          settings.model.revision);
}

Result<LoadedModel> load_model(const Settings& settings) {
  const auto begin = std::chrono::steady_clock::now();
  StatusLine status;
  LoadedModel loaded;
  HADAL_TRY(const std::filesystem::path directory, model_directory(settings));
  loaded.name = model_name(settings.model.model);

  status.show_bar(fmt::format("{}: reading the checkpoint", loaded.name), 0);
  HADAL_TRY(checkpoint::Checkpoint opened, checkpoint::Checkpoint::open(directory));
  loaded.checkpoint = std::make_shared<const checkpoint::Checkpoint>(std::move(opened));
  const checkpoint::ModelConfig& config = loaded.checkpoint->config();
  loaded.bos_token_id = choose_bos(settings.model.bos, config);

  status.show_bar(fmt::format("{}: reading the tokenizer", loaded.name), 0.3);
  HADAL_TRY(loaded.tokenizer, tokenizer::Tokenizer::load(directory / "tokenizer.json"));

  status.show_bar(fmt::format("{}: preparing the model", loaded.name), 0.6);
  model::ModelOptions options;
  HADAL_TRY(options.precision.mode, model::parse_precision(settings.model.precision));
  HADAL_TRY(options.replay, model::parse_replay_mode(settings.model.replay));
  HADAL_TRY(options.isa, choose_isa(settings.model.isa));
  options.replay_keep = settings.model.replay_keep;
  options.keeps_snapshots = settings.engine.prefix_cache;
  options.draft_length = choose_draft_length(settings.model.draft_length, *loaded.checkpoint);
  options.max_rollback = std::max(options.max_rollback, options.draft_length);
  loaded.pool =
      std::make_unique<ThreadPool>(static_cast<int>(settings.threads.compute), settings.threads.pin);
  HADAL_TRY(loaded.model,
            model::Model::load(loaded.checkpoint, loaded.tokenizer.get(), *loaded.pool, options));
  spdlog::info("{}: {} layers, {} drafts, vocabulary {}, {} threads, {} kernels, ready after {:.2f} s",
               loaded.name, config.text.num_hidden_layers,
               options.draft_length > 0 ? std::to_string(options.draft_length) : "no", config.text.vocab_size,
               loaded.pool->num_threads(), kernels::isa_name(options.isa),
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return loaded;
}

Result<std::unique_ptr<engine::Engine>> start_engine(LoadedModel& loaded, const Settings& settings,
                                                     int64_t most_requests) {
  if (settings.engine.max_num_batched_tokens < settings.engine.max_num_seqs) {
    return fail(ErrorCode::kInvalidArgument,
                "max_num_batched_tokens: {}, expected at least max_num_seqs ({})",
                settings.engine.max_num_batched_tokens, settings.engine.max_num_seqs);
  }
  engine::EngineOptions options;
  // What can never run needs no measured costs.
  options.max_num_seqs = std::min(settings.engine.max_num_seqs, most_requests);
  options.max_num_batched_tokens = settings.engine.max_num_batched_tokens;
  options.max_model_len = settings.engine.max_model_len;
  options.max_waiting = settings.engine.max_waiting;
  options.schedule_guesses = settings.engine.draft_schedule;
  options.eos_token_id = static_cast<int32_t>(loaded.checkpoint->config().eos_token_id);
  options.prefix_cache = settings.engine.prefix_cache;
  options.cache_memory = settings.engine.cache_memory_bytes;
  if (options.cache_memory == 0) {
    constexpr uint64_t kLeast = uint64_t{256} << 20;
    options.cache_memory = std::max(available_memory() / 4, kLeast);
  }
  options.cache_dir = settings.engine.cache_dir;
  options.cache_disk = settings.engine.cache_disk_bytes;
  if (options.prefix_cache && !options.cache_dir.empty()) {
    HADAL_TRY(options.cache_identity, model_identity(*loaded.checkpoint, settings.model));
  }
  return engine::Engine::start(*loaded.model, *loaded.pool, options);
}

}  // namespace hadal::cli
