#pragma once
// The draft layers and their heads (DSpark, model.md section 15).

#include <cstdint>
#include <span>

#include "checkpoint/model_config.h"
#include "model/buffer.h"
#include "model/draft_attention.h"
#include "model/draft_model.h"
#include "model/hyper_connection.h"
#include "model/moe.h"
#include "model/operators.h"
#include "model/weights.h"

namespace hadal::model {

class DraftLayers final : public DraftModel {
 public:
  /// Everything passed by reference must outlive this object.
  DraftLayers(const checkpoint::TextConfig& config, const ModelWeights& backbone, const DraftWeights& weights,
              kernels::RowFormat window_format, int64_t block_length, Operators& operators);

  int64_t block_length() const override { return block_length_; }
  void begin(std::span<const DraftSequence> sequences) override;
  void guess(std::span<const int32_t> previous, std::span<float> logits,
             std::span<float> confidences) override;

  /// After begin(): the block's end-of-stack vectors [block_length, sequences, H], and their logits without
  /// the Markov term [block_length, sequences, V]. For comparison with goldens.
  std::span<const float> hidden() const;
  std::span<const float> base_logits() const;

 private:
  void embed(const DraftBlocks& blocks);
  void run_layer(int64_t layer, const DraftBlocks& blocks);
  void write_confidences(const float* embeddings, std::span<float> confidences);

  const checkpoint::TextConfig& config_;
  const ModelWeights& backbone_;
  const DraftWeights& weights_;
  const int64_t block_length_;
  Operators& operators_;
  DraftAttention attention_;
  Moe moe_;
  int64_t num_sequences_ = 0;  ///< of the last begin()
  int64_t next_guess_ = 0;     ///< index in the block
  Buffer<float> streams_, x_, y_, raw_mixes_, hidden_, base_logits_, embeddings_, confidence_input_;
  Mixes attention_mixes_;
  Mixes ffn_mixes_;  ///< its `pre` collapses the next layer's attention input
};

}  // namespace hadal::model
