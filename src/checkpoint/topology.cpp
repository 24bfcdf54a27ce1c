#include "checkpoint/topology.h"

#include <algorithm>

namespace hadal::checkpoint {
namespace {

bool contains(const std::vector<int64_t>& sorted, int64_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

/// The largest id not above `layer`, or -1.
int64_t source_at(const std::vector<int64_t>& sorted, int64_t layer) {
  const auto next = std::upper_bound(sorted.begin(), sorted.end(), layer);
  return next == sorted.begin() ? -1 : *std::prev(next);
}

Result<std::vector<int64_t>> sources_of_layers(const TextConfig& text, const std::vector<int64_t>& sources,
                                               std::string_view field) {
  const auto ratio = [&](int64_t layer) { return text.compress_ratios[static_cast<size_t>(layer)]; };
  for (const int64_t source : sources) {
    if (ratio(source) == 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "text_config.{}: found layer {}, expected only layers with a compress ratio above 0 "
                  "(text_config.compress_ratios[{}] is 0)",
                  field, source, source);
    }
  }
  std::vector<int64_t> out(static_cast<size_t>(text.num_hidden_layers), -1);
  for (int64_t layer = 0; layer < text.num_hidden_layers; ++layer) {
    if (ratio(layer) == 0) {
      continue;
    }
    const int64_t source = source_at(sources, layer);
    if (source < 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "text_config.{}: found no entry at or below layer {}, expected one since "
                  "text_config.compress_ratios[{}] is {}",
                  field, layer, layer, ratio(layer));
    }
    if (ratio(source) != ratio(layer)) {
      return fail(ErrorCode::kInvalidArgument,
                  "text_config.compress_ratios[{}]: found {}, expected {} as in layer {}, its source in "
                  "text_config.{}",
                  layer, ratio(layer), ratio(source), source, field);
    }
    out[static_cast<size_t>(layer)] = source;
  }
  return out;
}

Result<void> check_subset(const std::vector<int64_t>& part, std::string_view part_field,
                          const std::vector<int64_t>& whole, std::string_view whole_field) {
  for (const int64_t layer : part) {
    if (!contains(whole, layer)) {
      return fail(ErrorCode::kInvalidArgument,
                  "text_config.{}: layer {} missing, expected every layer of text_config.{}", whole_field,
                  layer, part_field);
    }
  }
  return {};
}

Result<void> check_candidates(const TextConfig& text) {
  if (!text.candidate_source_layer_id) {
    return {};
  }
  const int64_t source = *text.candidate_source_layer_id;
  if (!contains(text.index_source_layer_ids, source)) {
    return fail(ErrorCode::kInvalidArgument,
                "text_config.candidate_source_layer_id: found {}, expected a layer of "
                "text_config.index_source_layer_ids",
                source);
  }
  const int64_t ratio = text.compress_ratios[static_cast<size_t>(source)];
  for (const int64_t layer : text.index_source_layer_ids) {
    const int64_t found = text.compress_ratios[static_cast<size_t>(layer)];
    if (layer > source && found != ratio) {
      return fail(
          ErrorCode::kInvalidArgument,
          "text_config.compress_ratios[{}]: found {}, expected {} as in the candidate source (layer {})",
          layer, found, ratio, source);
    }
  }
  if (text.candidate_topk_blocks * text.candidate_block_size < text.index_topk) {
    return fail(ErrorCode::kInvalidArgument,
                "text_config.candidate_topk_blocks: found {} blocks of {}, expected room for "
                "text_config.index_topk = {} groups",
                text.candidate_topk_blocks, text.candidate_block_size, text.index_topk);
  }
  return {};
}

}  // namespace

Result<void> resolve_topology(TextConfig& text) {
  HADAL_CHECK(check_subset(text.kv_source_layer_ids, "kv_source_layer_ids", text.index_k_source_layer_ids,
                           "index_k_source_layer_ids"));
  HADAL_CHECK(check_subset(text.index_k_source_layer_ids, "index_k_source_layer_ids",
                           text.index_source_layer_ids, "index_source_layer_ids"));
  HADAL_TRY(text.kv_source_of, sources_of_layers(text, text.kv_source_layer_ids, "kv_source_layer_ids"));
  HADAL_TRY(text.index_k_source_of,
            sources_of_layers(text, text.index_k_source_layer_ids, "index_k_source_layer_ids"));
  HADAL_TRY(text.index_source_of,
            sources_of_layers(text, text.index_source_layer_ids, "index_source_layer_ids"));
  HADAL_CHECK(check_candidates(text));

  const auto backbone_end = text.compress_ratios.begin() + text.num_hidden_layers;
  text.first_consumer_layer =
      std::find(text.compress_ratios.begin(), backbone_end, 1) - text.compress_ratios.begin();
  // What such a layer would compress (its own input or that of the first consumer) is not settled by any
  // release, so guessing would give silently different answers.
  if (!text.kv_source_layer_ids.empty() && text.kv_source_layer_ids.back() > text.first_consumer_layer) {
    return fail(
        ErrorCode::kUnsupported,
        "text_config.kv_source_layer_ids: found layer {}, expected none behind layer {}, the first with "
        "compress ratio 1",
        text.kv_source_layer_ids.back(), text.first_consumer_layer);
  }
  return {};
}

}  // namespace hadal::checkpoint
