#pragma once
// DeepSeek-V4.1: the forward pass of backbone and draft layers over a checkpoint.

#include <functional>
#include <memory>

#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "kernels/kernels.h"
#include "model/capture.h"
#include "model/language_model.h"
#include "model/precision.h"
#include "tokenizer/tokenizer.h"

namespace hadal::model {

/// Bounded replay of the prompt in the decoder half (model.md section 13).
enum class ReplayMode {
  kOff,      ///< every layer computes every prompt token
  kMask,     ///< all rows computed, decoder-half windows cut as in kCompact
  kCompact,  ///< the decoder half computes only the last `replay_keep` prompt tokens
};

Result<ReplayMode> parse_replay_mode(std::string_view name);  ///< "off", "mask", "compact"

struct ModelOptions {
  Precision precision;
  ReplayMode replay = ReplayMode::kOff;
  int64_t replay_keep = 140;  ///< at least sliding_window + max_rollback unless replay is off
  kernels::Isa isa = kernels::detect_isa();
  int64_t max_rollback = 6;  ///< tokens that a state can take back
  /// States keep enough window rows that a snapshot for the prefix cache can be taken at the last block
  /// border of a prompt or answer (cache::StateLayout::snapshot_reach). Changes no result.
  bool keeps_snapshots = false;
  /// Guesses of a draft block, at most max_rollback; 0: the draft layers are not used.
  int64_t draft_length = 0;
};

/// One loaded model. forward() may be called from one thread at a time; states are independent.
class Model : public LanguageModel {
 public:
  /// Binds the tensors and, if the model has Engram layers, builds the compressed vocabulary from
  /// `tokenizer` (may be null otherwise). `pool` must outlive the model.
  static Result<std::unique_ptr<Model>> load(std::shared_ptr<const checkpoint::Checkpoint> checkpoint,
                                             const tokenizer::Tokenizer* tokenizer, ThreadPool& pool,
                                             const ModelOptions& options);

  /// Records what later forward passes compute for the positions of a single sequence; null stops. The
  /// capture must outlive its use.
  virtual void set_capture(Capture* capture) = 0;

  virtual const checkpoint::ModelConfig& config() const = 0;
  virtual const ModelOptions& options() const = 0;
};

}  // namespace hadal::model
