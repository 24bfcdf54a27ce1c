#include "model/moe.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/reproducible_math.h"
#include "model/top_k.h"

namespace hadal::model {
namespace {

/// Products that make a task worth handing to another thread.
constexpr int64_t kTaskProducts = int64_t{1} << 18;

double softplus(double x) {
  if (x > 20.0) {
    return x;
  }
  const double e = reproducible_exp(std::max(x, -700.0));
  // log(1 + e) loses the digits of a small e; the series does not.
  return e < 1e-8 ? e - e * e * 0.5 : reproducible_log(1.0 + e);
}

}  // namespace

void Moe::forward(const MoeWeights& weights, const float* x, int64_t rows, int64_t top_k, float* y) {
  route(weights, x, rows, top_k);
  make_jobs(weights, rows, top_k);
  gate_and_up(x, rows);
  down();
  combine(rows, y);
}

void Moe::route(const MoeWeights& weights, const float* x, int64_t rows, int64_t top_k) {
  const int64_t experts = weights.gate.rows;
  float* logits = logits_.reserve(rows * experts);
  operators_.linear(weights.gate, x, rows, logits, OutputKind::kWide);
  routing_.experts.resize(static_cast<size_t>(rows * top_k));
  routing_.weights.resize(static_cast<size_t>(rows * top_k));
  operators_.each_row(rows, experts * 64, [&](int64_t begin, int64_t end) {
    std::vector<float> scores(static_cast<size_t>(experts));
    std::vector<float> ranks(static_cast<size_t>(experts));
    std::vector<uint64_t> order;
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t e = 0; e < experts; ++e) {
        const double logit = static_cast<double>(logits[row * experts + e]) / config_.gate_temp;
        scores[e] = static_cast<float>(std::sqrt(softplus(logit)));
        ranks[e] = scores[e] + weights.bias[e];
      }
      int32_t* chosen = routing_.experts.data() + row * top_k;
      rank_top(ranks, top_k, order, chosen);
      double total = 1e-20;
      for (int64_t i = 0; i < top_k; ++i) {
        total += static_cast<double>(scores[chosen[i]]);
      }
      for (int64_t i = 0; i < top_k; ++i) {
        routing_.weights[row * top_k + i] = static_cast<float>(static_cast<double>(scores[chosen[i]]) /
                                                               total * config_.routed_scaling_factor);
      }
    }
  });
}

/// Groups (row, choice) pairs by expert: slots of one expert are consecutive, experts ascending.
void Moe::make_jobs(const MoeWeights& weights, int64_t rows, int64_t top_k) {
  const auto num_experts = static_cast<int64_t>(weights.experts.size());
  const int64_t per_row = top_k + (weights.shared ? 1 : 0);
  std::vector<int64_t> next(static_cast<size_t>(num_experts) + 1, 0);
  for (const int32_t expert : routing_.experts) {
    ++next[static_cast<size_t>(expert) + 1];
  }
  jobs_.clear();
  int64_t act_offset = 0;
  const auto add_job = [&](const ExpertWeights& expert, int64_t first_slot, int64_t num_slots) {
    jobs_.push_back({&expert, first_slot, num_slots, expert.w1.rows, act_offset});
    act_offset += num_slots * expert.w1.rows;
  };
  for (int64_t e = 0; e < num_experts; ++e) {
    const int64_t count = next[static_cast<size_t>(e) + 1];
    next[static_cast<size_t>(e) + 1] += next[static_cast<size_t>(e)];
    if (count > 0) {
      add_job(weights.experts[static_cast<size_t>(e)], next[static_cast<size_t>(e)], count);
    }
  }
  const int64_t routed = rows * top_k;
  slot_rows_.resize(static_cast<size_t>(rows * per_row));
  slot_weights_.assign(static_cast<size_t>(rows * per_row), 1.0F);
  slots_of_row_.resize(static_cast<size_t>(rows * per_row));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < top_k; ++i) {
      const int32_t expert = routing_.experts[row * top_k + i];
      const int64_t slot = next[static_cast<size_t>(expert)]++;
      slot_rows_[slot] = static_cast<int32_t>(row);
      slot_weights_[slot] = routing_.weights[row * top_k + i];
      slots_of_row_[row * per_row + i] = slot;
    }
    // Slots grow with the expert id, so their order is the order of addition.
    std::sort(slots_of_row_.begin() + row * per_row, slots_of_row_.begin() + row * per_row + top_k);
    if (weights.shared) {
      slot_rows_[routed + row] = static_cast<int32_t>(row);
      slots_of_row_[row * per_row + top_k] = routed + row;
    }
  }
  if (weights.shared) {
    add_job(*weights.shared, routed, rows);
  }
}

template <class RowsOf>
void Moe::cut_tasks(RowsOf&& rows_of_job) {
  tasks_.clear();
  for (size_t j = 0; j < jobs_.size(); ++j) {
    const auto [num_rows, row_products] = rows_of_job(jobs_[j]);
    const int64_t step = std::max<int64_t>(kTaskProducts / std::max<int64_t>(row_products, 1) / 4 * 4, 16);
    for (int64_t begin = 0; begin < num_rows; begin += step) {
      tasks_.push_back({static_cast<int32_t>(j), begin, std::min(begin + step, num_rows)});
    }
  }
}

void Moe::gate_and_up(const float* x, int64_t rows) {
  const int64_t hidden = config_.hidden_size;
  const auto rounding_of = [&](const Job& job) {
    return operators_.precision().input_rounding(job.weights->w1.format);
  };
  // All experts of a layer have one format; the shared expert another. Both see the same rounded input unless
  // their roundings differ.
  const auto packed = operators_.pack(packed_routed_, x, hidden, rows, hidden, rounding_of(jobs_.front()));
  const bool same = rounding_of(jobs_.front()) == rounding_of(jobs_.back());
  const auto packed_last =
      same ? packed : operators_.pack(packed_shared_, x, hidden, rows, hidden, rounding_of(jobs_.back()));
  const auto num_slots = static_cast<int64_t>(slot_rows_.size());
  const int64_t act_values = jobs_.back().act_offset + jobs_.back().num_slots * jobs_.back().inner;
  float* gathered = gathered_.reserve(num_slots * hidden);
  for (const auto& job : jobs_) {
    const auto& source = &job == &jobs_.back() ? packed_last : packed;
    operators_.each_row(job.num_slots, hidden, [&](int64_t begin, int64_t end) {
      for (int64_t slot = job.first_slot + begin; slot < job.first_slot + end; ++slot) {
        std::memcpy(gathered + slot * hidden, source.data + slot_rows_[slot] * source.stride,
                    static_cast<size_t>(hidden) * sizeof(float));
      }
    });
  }
  float* gate = gate_.reserve(act_values);
  float* up = up_.reserve(act_values);
  float* act = act_.reserve(act_values);
  cut_tasks([&](const Job& job) { return std::pair{job.inner, 2 * hidden * job.num_slots}; });
  const auto& kernels = operators_.kernels();
  const auto limit = static_cast<float>(config_.swiglu_limit);
  operators_.pool().parallel_for(static_cast<int64_t>(tasks_.size()), [&](int64_t t) {
    const Task& task = tasks_[static_cast<size_t>(t)];
    const Job& job = jobs_[static_cast<size_t>(task.job)];
    const float* input = gathered + job.first_slot * hidden;
    kernels.linear(job.weights->w1, task.begin, task.end, input, hidden, job.num_slots, gate + job.act_offset,
                   job.inner);
    kernels.linear(job.weights->w3, task.begin, task.end, input, hidden, job.num_slots, up + job.act_offset,
                   job.inner);
    const int64_t width = task.end - task.begin;
    for (int64_t slot = 0; slot < job.num_slots; ++slot) {
      const int64_t at = job.act_offset + slot * job.inner + task.begin;
      operators_.border(gate + at, width);
      operators_.border(up + at, width);
      kernels.swiglu(gate + at, up + at, width, limit, slot_weights_[job.first_slot + slot], act + at);
      operators_.border(act + at, width);
    }
  });
}

void Moe::down() {
  const int64_t hidden = config_.hidden_size;
  const int64_t act_values = jobs_.back().act_offset + jobs_.back().num_slots * jobs_.back().inner;
  float* packed = packed_act_.reserve(act_values);
  for (const auto& job : jobs_) {
    const auto rounding = operators_.precision().input_rounding(job.weights->w2.format);
    operators_.each_row(job.num_slots, job.inner, [&](int64_t begin, int64_t end) {
      const int64_t at = job.act_offset + begin * job.inner;
      operators_.kernels().pack_input(act_.data() + at, job.inner, end - begin, job.inner, rounding,
                                      packed + at);
    });
  }
  float* outputs = outputs_.reserve(static_cast<int64_t>(slot_rows_.size()) * hidden);
  cut_tasks([&](const Job& job) { return std::pair{hidden, job.inner * job.num_slots}; });
  operators_.pool().parallel_for(static_cast<int64_t>(tasks_.size()), [&](int64_t t) {
    const Task& task = tasks_[static_cast<size_t>(t)];
    const Job& job = jobs_[static_cast<size_t>(task.job)];
    float* out = outputs + job.first_slot * hidden;
    operators_.kernels().linear(job.weights->w2, task.begin, task.end, packed + job.act_offset, job.inner,
                                job.num_slots, out, hidden);
    for (int64_t slot = 0; slot < job.num_slots; ++slot) {
      operators_.border(out + slot * hidden + task.begin, task.end - task.begin);
    }
  });
}

void Moe::combine(int64_t rows, float* y) {
  const int64_t hidden = config_.hidden_size;
  const auto per_row = static_cast<int64_t>(slots_of_row_.size()) / rows;
  operators_.each_row(rows, hidden * per_row, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* out = y + row * hidden;
      const int64_t* slots = slots_of_row_.data() + row * per_row;
      std::memcpy(out, outputs_.data() + slots[0] * hidden, static_cast<size_t>(hidden) * sizeof(float));
      for (int64_t i = 1; i < per_row; ++i) {
        operators_.kernels().add(outputs_.data() + slots[i] * hidden, hidden, out);
      }
      operators_.border(out, hidden);
    }
  });
}

}  // namespace hadal::model
