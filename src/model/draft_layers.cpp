#include "model/draft_layers.h"

#include <algorithm>
#include <cassert>

#include "base/thread_pool.h"
#include "model/reproducible_math.h"

namespace hadal::model {

DraftLayers::DraftLayers(const checkpoint::TextConfig& config, const ModelWeights& backbone,
                         const DraftWeights& weights, kernels::RowFormat window_format, int64_t block_length,
                         Operators& operators)
    : config_(config),
      backbone_(backbone),
      weights_(weights),
      block_length_(block_length),
      operators_(operators),
      attention_(config, window_format, operators),
      moe_(config, operators) {}

std::span<const float> DraftLayers::hidden() const {
  return {hidden_.data(), static_cast<size_t>(block_length_ * num_sequences_ * config_.hidden_size)};
}

std::span<const float> DraftLayers::base_logits() const {
  return {base_logits_.data(), static_cast<size_t>(block_length_ * num_sequences_ * config_.vocab_size)};
}

void DraftLayers::begin(std::span<const DraftSequence> sequences) {
  const FlushDenormals guard;
  const DraftBlocks blocks{sequences, block_length_};
  const int64_t rows = blocks.num_rows();
  num_sequences_ = blocks.num_sequences();
  next_guess_ = 0;
  if (rows == 0) {
    return;
  }
  attention_.set_blocks(blocks);
  embed(blocks);
  for (int64_t layer = 0; layer < static_cast<int64_t>(weights_.layers.size()); ++layer) {
    run_layer(layer, blocks);
  }
  float* hidden = hidden_.reserve(rows * config_.hidden_size);
  collapse_trunk(operators_, config_, streams_.data(), ffn_mixes_.pre.data(), rows, hidden);
  operators_.norm(hidden, weights_.norm, rows, static_cast<float>(config_.rms_norm_eps), x_.data());
  operators_.linear(backbone_.head, x_.data(), rows, base_logits_.reserve(rows * config_.vocab_size),
                    OutputKind::kWide);
}

/// The known token, then noise.
void DraftLayers::embed(const DraftBlocks& blocks) {
  const int64_t rows = blocks.num_rows();
  const int64_t hidden = config_.hidden_size;
  const int64_t m = config_.hc_mult;
  float* streams = streams_.reserve(rows * m * hidden);
  float* pre = ffn_mixes_.pre.reserve(rows * m);
  x_.reserve(rows * hidden);
  y_.reserve(rows * hidden);
  operators_.each_row(rows, m * hidden, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row < blocks.num_sequences() ? blocks.sequences[static_cast<size_t>(row)].token
                                                         : config_.dspark_noise_token_id;
      start_trunk(operators_, config_, backbone_.embedding.data + token * hidden * 2,
                  streams + row * m * hidden, pre + row * m);
    }
  });
}

void DraftLayers::run_layer(int64_t layer, const DraftBlocks& blocks) {
  const auto& weights = weights_.layers[static_cast<size_t>(layer)];
  const int64_t rows = blocks.num_rows();
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  float* x = x_.data();
  // The input of a sub-layer is collapsed with the previous sub-layer's `pre`.
  collapse_trunk(operators_, config_, streams_.data(), ffn_mixes_.pre.data(), rows, x);
  operators_.norm(x, weights.attn_norm, rows, eps, x);
  hyper_connection_mixes(operators_, weights.hc_attn, config_, streams_.data(), rows, raw_mixes_,
                         attention_mixes_);
  attention_.forward(layer, weights.attention, blocks, x, y_.data());
  expand_trunk(operators_, config_, y_.data(), attention_mixes_, rows, streams_.data());

  hyper_connection_mixes(operators_, weights.hc_ffn, config_, streams_.data(), rows, raw_mixes_, ffn_mixes_);
  collapse_trunk(operators_, config_, streams_.data(), attention_mixes_.pre.data(), rows, x);
  operators_.norm(x, weights.ffn_norm, rows, eps, x);
  moe_.forward(weights.moe, x, rows, config_.dspark_num_experts_per_tok, y_.data());
  expand_trunk(operators_, config_, y_.data(), ffn_mixes_, rows, streams_.data());
}

void DraftLayers::guess(std::span<const int32_t> previous, std::span<float> logits,
                        std::span<float> confidences) {
  const FlushDenormals guard;
  const int64_t rank = config_.dspark_markov_rank;
  const int64_t vocab = config_.vocab_size;
  assert(next_guess_ < block_length_ && static_cast<int64_t>(previous.size()) == num_sequences_);
  if (num_sequences_ == 0) {
    return;
  }
  float* embeddings = embeddings_.reserve(num_sequences_ * rank);
  for (int64_t s = 0; s < num_sequences_; ++s) {
    operators_.kernels().decode_bf16(
        weights_.markov_embedding.data + static_cast<int64_t>(previous[static_cast<size_t>(s)]) * rank * 2,
        rank, embeddings + s * rank);
  }
  operators_.linear(weights_.markov_head, embeddings, num_sequences_, logits.data(), OutputKind::kWide);
  operators_.each_row(num_sequences_, vocab, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      operators_.kernels().add(base_logits_.data() + (next_guess_ * num_sequences_ + s) * vocab, vocab,
                               logits.data() + s * vocab);
    }
  });
  write_confidences(embeddings, confidences);
  ++next_guess_;
}

void DraftLayers::write_confidences(const float* embeddings, std::span<float> confidences) {
  const int64_t hidden = config_.hidden_size;
  const int64_t rank = config_.dspark_markov_rank;
  float* input = confidence_input_.reserve(num_sequences_ * (hidden + rank));
  for (int64_t s = 0; s < num_sequences_; ++s) {
    float* row = input + s * (hidden + rank);
    std::copy_n(hidden_.data() + (next_guess_ * num_sequences_ + s) * hidden, hidden, row);
    std::copy_n(embeddings + s * rank, rank, row + hidden);
  }
  operators_.linear(weights_.confidence, input, num_sequences_, confidences.data(), OutputKind::kWide);
  for (float& confidence : confidences) {
    confidence =
        static_cast<float>(reproducible_sigmoid(std::clamp(static_cast<double>(confidence), -60.0, 60.0)));
  }
}

}  // namespace hadal::model
