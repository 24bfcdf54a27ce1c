#include "checkpoint/memory_plan.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/tensor_catalog.h"

namespace hadal::checkpoint {
namespace {

constexpr uint64_t kFp8Block = 32;
constexpr uint64_t kFp4IndexBlock = 32;
constexpr uint64_t kFp4KvBlock = 16;

uint64_t fp8_bytes(uint64_t channels) {
  return channels + channels / kFp8Block;
}

uint64_t fp4_bytes(uint64_t channels, uint64_t block) {
  return channels / 2 + channels / block;
}

int64_t ratio_of(const TextConfig& text, int64_t layer) {
  return text.compress_ratios[static_cast<size_t>(layer)];
}

}  // namespace

StateSizes state_sizes(const TextConfig& text, int64_t rollback) {
  StateSizes out;
  const auto head_dim = static_cast<uint64_t>(text.head_dim);
  out.compressed_entry = text.use_fp4_sparse_kv ? fp4_bytes(head_dim, kFp4KvBlock) : fp8_bytes(head_dim);
  out.index_key = fp4_bytes(static_cast<uint64_t>(text.index_head_dim), kFp4IndexBlock);
  for (const int64_t layer : text.kv_source_layer_ids) {
    out.per_token += static_cast<double>(out.compressed_entry) / static_cast<double>(ratio_of(text, layer));
    if (ratio_of(text, layer) > 1) {
      // A value and a gate vector for each token that may still be the newest after a rollback.
      out.open_groups += static_cast<uint64_t>(rollback + 1) * 2 * head_dim * sizeof(float);
    }
  }
  for (const int64_t layer : text.index_k_source_layer_ids) {
    out.per_token += static_cast<double>(out.index_key) / static_cast<double>(ratio_of(text, layer));
  }
  out.window_key = fp8_bytes(head_dim);
  out.windows = static_cast<uint64_t>(text.num_hidden_layers + text.num_nextn_predict_layers) *
                static_cast<uint64_t>(text.sliding_window + rollback) * out.window_key;
  if (!text.engram_layer_ids.empty()) {
    out.engram_context = static_cast<uint64_t>(text.engram_max_ngram_size - 1) * sizeof(int32_t);
  }
  return out;
}

uint64_t compressed_state_bytes(const TextConfig& text, int64_t num_tokens) {
  const StateSizes sizes = state_sizes(text, 0);
  uint64_t bytes = 0;
  for (const int64_t layer : text.kv_source_layer_ids) {
    bytes += static_cast<uint64_t>(num_tokens / ratio_of(text, layer)) * sizes.compressed_entry;
  }
  for (const int64_t layer : text.index_k_source_layer_ids) {
    bytes += static_cast<uint64_t>(num_tokens / ratio_of(text, layer)) * sizes.index_key;
  }
  return bytes;
}

Result<MemoryPlan> plan_memory(const ModelConfig& config, std::span<const Checkpoint::Part> parts,
                               int64_t context_length, int64_t num_sequences) {
  if (context_length < 1 || context_length > config.text.max_position_embeddings) {
    return fail(ErrorCode::kInvalidArgument,
                "context length: found {}, expected 1 to {} (max_position_embeddings)", context_length,
                config.text.max_position_embeddings);
  }
  if (num_sequences < 1 || num_sequences > 1'000'000) {
    return fail(ErrorCode::kInvalidArgument, "number of sequences: found {}, expected 1 to 1000000",
                num_sequences);
  }
  MemoryPlan out;
  out.context_length = context_length;
  out.num_sequences = num_sequences;
  for (const Checkpoint::Part& part : parts) {
    (part.name == part_name(PartKind::kEngramTables) ? out.disk_weights : out.resident_weights) += part.bytes;
  }
  // One step verifies the last sampled token and a block of drafts; all of them may have to go.
  const int64_t rollback = config.text.num_nextn_predict_layers > 0 ? config.text.dspark_block_size + 1 : 0;
  out.state = state_sizes(config.text, rollback);
  out.state_bytes = static_cast<uint64_t>(num_sequences) *
                    (compressed_state_bytes(config.text, context_length) + out.state.per_sequence());
  return out;
}

std::string format_bytes(double bytes) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < std::size(kUnits)) {
    bytes /= 1000;
    ++unit;
  }
  const bool is_whole = unit == 0 && bytes == std::floor(bytes);
  const int decimals = is_whole ? 0 : bytes < 10 ? 2 : 1;
  return fmt::format("{:.{}f} {}", bytes, decimals, kUnits[unit]);
}

std::vector<std::string> describe_plan(const MemoryPlan& plan, std::span<const Checkpoint::Part> parts) {
  std::vector<std::string> lines;
  const auto line = [&](std::string_view what, double bytes, std::string_view note) {
    lines.push_back(
        fmt::format("{:<28}{:>10}{}{}", what, format_bytes(bytes), note.empty() ? "" : "  ", note));
  };
  uint64_t total = 0;
  for (const Checkpoint::Part& part : parts) {
    line(part.name, static_cast<double>(part.bytes), fmt::format("{} tensors", part.tensors));
    total += part.bytes;
  }
  line("all weights", static_cast<double>(total), "");
  line("weights in memory", static_cast<double>(plan.resident_weights), "");
  line("weights left on disk", static_cast<double>(plan.disk_weights),
       plan.disk_weights == 0 ? "" : "engram tables");
  line("state per token", plan.state.per_token, "compressed keys and index keys");
  line("state per sequence", static_cast<double>(plan.state.per_sequence()), "windows, open groups");
  line("state in all", static_cast<double>(plan.state_bytes),
       fmt::format("{} sequence{} of {} tokens", plan.num_sequences, plan.num_sequences == 1 ? "" : "s",
                   plan.context_length));
  line("memory in all", static_cast<double>(plan.memory_bytes()),
       "weights in memory and state, without work buffers");
  return lines;
}

}  // namespace hadal::checkpoint
