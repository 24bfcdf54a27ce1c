#include "engine/step_costs.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace hadal::engine {
namespace {

using Clock = std::chrono::steady_clock;

/// Seconds from which on a step is long enough for noise to matter little.
constexpr double kLongStep = 0.1;

/// Token ids without meaning but unlike each other, so that rows choose different experts.
int32_t arbitrary_token(int64_t index, int64_t vocab_size) {
  const uint64_t mixed = (static_cast<uint64_t>(index) + 1) * 0x9e3779b97f4a7c15ULL;
  return static_cast<int32_t>((mixed >> 20) % static_cast<uint64_t>(vocab_size));
}

/// Steps of one size.
class SampleStep {
 public:
  SampleStep(model::LanguageModel& model, BatchSampler& sampler, int64_t rows, int64_t rows_per_sequence)
      : model_(model),
        sampler_(sampler),
        rows_(rows),
        rows_per_sequence_(std::min(rows_per_sequence, model.max_positions())),
        logits_(static_cast<size_t>(rows * model.vocab_size())),
        sampled_(static_cast<size_t>(rows)) {
    for (int64_t row = 0; row < rows; ++row) {
      tokens_.push_back(arbitrary_token(row, model.vocab_size()));
    }
  }

  Result<double> seconds() {
    std::vector<std::unique_ptr<cache::SequenceState>> states;
    std::vector<model::Segment> segments;
    const auto vocab = static_cast<size_t>(model_.vocab_size());
    std::vector<SampleRow> rows;
    for (int64_t begin = 0; begin < rows_; begin += rows_per_sequence_) {
      const auto first = static_cast<size_t>(begin);
      const auto count = static_cast<size_t>(std::min(rows_per_sequence_, rows_ - begin));
      states.push_back(model_.new_state(1));
      segments.push_back({states.back().get(), std::span(tokens_).subspan(first, count),
                          std::span(logits_).subspan(first * vocab, count * vocab)});
    }
    const SamplingParams sampling;
    for (int64_t row = 0; row < rows_; ++row) {
      rows.push_back(
          {std::span(logits_).subspan(static_cast<size_t>(row) * vocab, vocab), &sampling, row + 1});
    }
    const auto begin = Clock::now();
    HADAL_CHECK(model_.forward(segments));
    sampler_.sample(rows, sampled_);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  model::LanguageModel& model_;
  BatchSampler& sampler_;
  const int64_t rows_;
  const int64_t rows_per_sequence_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  std::vector<Result<OutputToken>> sampled_;
};

/// Blocks of guesses of some sequences of one token each.
class SampleDrafts {
 public:
  SampleDrafts(model::LanguageModel& model, BatchSampler& sampler, int64_t sequences)
      : model_(model),
        sampler_(sampler),
        logits_(static_cast<size_t>(sequences * model.vocab_size())),
        confidences_(static_cast<size_t>(sequences)),
        sampled_(static_cast<size_t>(sequences)) {
    for (int64_t i = 0; i < sequences; ++i) {
      tokens_.push_back(arbitrary_token(i, model.vocab_size()));
    }
  }

  Result<double> seconds() {
    if (states_.empty()) {
      HADAL_CHECK(compute_states());
    }
    std::vector<model::DraftSequence> sequences;
    std::vector<SampleRow> rows;
    const SamplingParams sampling;
    const auto vocab = static_cast<size_t>(model_.vocab_size());
    for (size_t i = 0; i < states_.size(); ++i) {
      sequences.push_back({states_[i].get(), tokens_[i]});
      rows.push_back({std::span(logits_).subspan(i * vocab, vocab), &sampling, 2});
    }
    const auto begin = Clock::now();
    model::DraftModel& drafts = *model_.draft_model();
    drafts.begin(sequences);
    for (int64_t i = 0; i < drafts.block_length(); ++i) {
      drafts.guess(tokens_, logits_, confidences_);
      sampler_.sample(rows, sampled_);
    }
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  Result<void> compute_states() {
    std::vector<model::Segment> segments;
    for (const int32_t& token : tokens_) {
      states_.push_back(model_.new_state(1));
      segments.push_back({states_.back().get(), {&token, 1}, {}});
    }
    return model_.forward(segments);
  }

  model::LanguageModel& model_;
  BatchSampler& sampler_;
  std::vector<int32_t> tokens_;
  std::vector<std::unique_ptr<cache::SequenceState>> states_;
  std::vector<float> logits_;
  std::vector<float> confidences_;
  std::vector<Result<OutputToken>> sampled_;
};

}  // namespace

std::vector<int64_t> measured_sizes(int64_t max_rows) {
  std::vector<int64_t> sizes;
  for (int64_t power = 1; power < max_rows; power *= 2) {
    sizes.push_back(power);
    if (power >= 2 && power / 2 * 3 < max_rows) {
      sizes.push_back(power / 2 * 3);
    }
  }
  sizes.push_back(max_rows);
  return sizes;
}

namespace {

/// Times `make(size)`, something with seconds(), for each size.
template <class Make>
Result<CostCurve> measure(const StepCostLimits& limits, Make&& make) {
  std::vector<CostCurve::Point> points;
  const auto begin = Clock::now();
  for (const int64_t size : measured_sizes(limits.max_rows)) {
    if (size > limits.min_rows && Clock::now() - begin > limits.time) {
      break;
    }
    auto step = make(size);
    HADAL_TRY(const double first, step.seconds());  // pages and buffers come into memory
    std::vector<double> times(first < kLongStep ? 3 : 1);
    for (double& time : times) {
      HADAL_TRY(time, step.seconds());
    }
    std::sort(times.begin(), times.end());
    points.push_back({size, times[times.size() / 2]});
  }
  return CostCurve(std::move(points));
}

}  // namespace

Result<CostCurve> measure_step_costs(model::LanguageModel& model, BatchSampler& sampler,
                                     const StepCostLimits& limits) {
  return measure(limits,
                 [&](int64_t rows) { return SampleStep(model, sampler, rows, limits.rows_per_sequence); });
}

Result<CostCurve> measure_draft_costs(model::LanguageModel& model, BatchSampler& sampler,
                                      const StepCostLimits& limits) {
  return measure(limits, [&](int64_t sequences) { return SampleDrafts(model, sampler, sequences); });
}

}  // namespace hadal::engine
