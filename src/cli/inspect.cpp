// hadal inspect: what a checkpoint is and what it needs, without loading it.

#include <CLI/CLI.hpp>

#include "base/cpu_topology.h"
#include "checkpoint/memory_plan.h"
#include "cli/command.h"
#include "cli/loaded_model.h"
#include "cli/setting_flags.h"
#include "cli/terminal.h"

namespace hadal::cli {
namespace {

struct InspectOptions {
  std::string directory;
  int64_t context = 0;
  int64_t sequences = 1;
};

std::string describe_config(const checkpoint::Checkpoint& opened) {
  const checkpoint::TextConfig& text = opened.config().text;
  std::string out =
      fmt::format("{}\n  DeepSeek-V4.1, {} tensors in {} shard{}, {} in all\n", opened.directory().string(),
                  opened.num_tensors(), opened.num_shards(), opened.num_shards() == 1 ? "" : "s",
                  checkpoint::format_bytes(static_cast<double>(opened.total_bytes())));
  out += fmt::format("  {} layers, hidden size {}, {} heads of {}, window {}, vocabulary {}, positions {}\n",
                     text.num_hidden_layers, text.hidden_size, text.num_attention_heads, text.head_dim,
                     text.sliding_window, text.vocab_size, text.max_position_embeddings);
  out += fmt::format("  {} routed experts (top {}) and {} shared, Engram on {} layer{}, {} draft layer{}{}\n",
                     text.n_routed_experts, text.num_experts_per_tok, text.n_shared_experts,
                     text.engram_layer_ids.size(), text.engram_layer_ids.size() == 1 ? "" : "s",
                     text.num_nextn_predict_layers, text.num_nextn_predict_layers == 1 ? "" : "s",
                     opened.config().vision ? ", vision tower" : "");
  out += fmt::format("  tokenizer {}\n", opened.config().tokenizer_compatibility);
  return out;
}

std::string describe_machine() {
  const CpuTopology topology = read_cpu_topology();
  std::string out = fmt::format("\nthis machine\n  {} usable thread{} on {} NUMA node{}\n",
                                topology.usable_threads, topology.usable_threads == 1 ? "" : "s",
                                topology.num_nodes, topology.num_nodes == 1 ? "" : "s");
  out += fmt::format("  kernels: {} (", kernels::isa_name(kernels::detect_isa()));
  const char* separator = "";
  for (const kernels::Isa isa : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (kernels::isa_supported(isa)) {
      out += fmt::format("{}{}", separator, kernels::isa_name(isa));
      separator = ", ";
    }
  }
  out += " would run; all give the same results)\n";
  return out;
}

Result<std::string> inspect_model(const InspectOptions& options, const Settings& settings) {
  HADAL_TRY(const std::filesystem::path directory, model_directory(settings));
  HADAL_TRY(const checkpoint::Checkpoint opened, checkpoint::Checkpoint::open(directory));
  const int64_t limit = opened.config().text.max_position_embeddings;
  const int64_t context = options.context > 0 ? options.context : std::min<int64_t>(limit, 131072);
  const auto parts = opened.parts();
  HADAL_TRY(const checkpoint::MemoryPlan plan,
            checkpoint::plan_memory(opened.config(), parts, context, options.sequences));
  std::string out = describe_config(opened);
  out += fmt::format("\nmemory for {} sequence{} of {} tokens\n", options.sequences,
                     options.sequences == 1 ? "" : "s", context);
  for (const std::string& line : checkpoint::describe_plan(plan, parts)) {
    out += "  " + line + "\n";
  }
  return out + describe_machine();
}

Exit inspect(const InspectOptions& options, const Flags& flags) {
  if (!options.directory.empty()) {
    (*flags)["--model"] = options.directory;
  }
  const auto settings = load_cli_settings(flags, /*quiet=*/true);
  if (!settings) {
    return report(settings.error(), Exit::kUsage);
  }
  const auto text = inspect_model(options, settings->values);
  if (!text) {
    return report(text.error(), settings->values.model.model.empty() ? Exit::kUsage : Exit::kFailure);
  }
  write_out(*text);
  return Exit::kOk;
}

}  // namespace

void add_inspect(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("inspect", "Show what a checkpoint is and what memory it needs");
  const auto options = std::make_shared<InspectOptions>();
  command->add_option("directory", options->directory, "A checkpoint directory or a repository id");
  command
      ->add_option("--context", options->context, "Tokens of each sequence (131072, or what the model has)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_option("--sequences", options->sequences, "Sequences at once (1)")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  const Flags flags = add_setting_flags(*command, {"model", "log"});
  command->callback(
      [options, flags, &selected] { selected = [options, flags] { return inspect(*options, flags); }; });
}

}  // namespace hadal::cli
