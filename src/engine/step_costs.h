#pragma once
// Measures how long steps of this model take on this machine.

#include <chrono>
#include <cstdint>

#include "base/result.h"
#include "engine/sampler.h"
#include "engine/verification.h"
#include "model/language_model.h"

namespace hadal::engine {

struct StepCostLimits {
  int64_t max_rows = 1;           ///< the largest step that is measured
  int64_t rows_per_sequence = 1;  ///< at most so many rows of one sequence, as in verification
  /// No further size beyond `min_rows` is begun after this time; the curve then goes on as its end did.
  std::chrono::duration<double> time{0.1};
  int64_t min_rows = 2;
};

/// The time of forward passes and of sampling their rows, for 1, 2, 3, 4, 6, 8, 12, ... rows, on short states
/// of its own. After one pass to warm up, the median of three; where passes take long, one. Errors are those
/// of the forward pass.
Result<CostCurve> measure_step_costs(model::LanguageModel& model, BatchSampler& sampler,
                                     const StepCostLimits& limits);

/// The time of guessing whole blocks for 1, 2, 3, 4, 6, ... up to max_rows sequences, measured alike.
Result<CostCurve> measure_draft_costs(model::LanguageModel& model, BatchSampler& sampler,
                                      const StepCostLimits& limits);

/// The numbers of rows that are measured.
std::vector<int64_t> measured_sizes(int64_t max_rows);

}  // namespace hadal::engine
