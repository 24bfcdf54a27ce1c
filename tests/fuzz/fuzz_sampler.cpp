// Arbitrary rows of logits and parameters: every instruction set gives the same, a refused row is one that
// must be refused, and token and filters are those of the definition (sampler.h) by a full sort.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "engine/philox.h"
#include "engine/sampler.h"

namespace {

using namespace hadal::engine;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

struct Reader {
  const uint8_t* data;
  size_t size;

  template <class T>
  T take() {
    T value{};
    const size_t count = std::min(size, sizeof(T));
    std::memcpy(&value, data, count);
    data += count;
    size -= count;
    return value;
  }
};

int32_t defined_token(const std::vector<float>& logits, const SamplingParams& params, int64_t position) {
  const hadal::FlushDenormals denormals_are_zero;
  std::vector<TokenRank> order;
  for (size_t token = 0; token < logits.size(); ++token) {
    order.push_back(token_rank(logits[token], static_cast<int32_t>(token)));
  }
  std::sort(order.begin(), order.end());
  if (is_greedy(params)) {
    return rank_token(order[0]);
  }
  const double scale = 1 / params.temperature;
  const double best_score = static_cast<double>(rank_logit(order[0])) * scale;
  uint64_t total = 0;
  for (const TokenRank rank : order) {
    total += row_weight(rank_logit(rank), scale, best_score);
  }
  const auto limit = static_cast<uint64_t>(params.top_p * static_cast<double>(total));
  uint64_t better = 0;
  int32_t chosen = -1;
  double greatest = -std::numeric_limits<double>::infinity();
  for (size_t place = 0; place < order.size(); ++place) {
    if ((params.top_p < 1 && better > limit) ||
        (params.top_k > 0 && place >= static_cast<uint64_t>(params.top_k))) {
      break;
    }
    better += row_weight(rank_logit(order[place]), scale, best_score);
    const int32_t token = rank_token(order[place]);
    const double score =
        static_cast<double>(rank_logit(order[place])) * scale + gumbel(params.seed, position, token);
    if (score > greatest || (score == greatest && token < chosen)) {
      greatest = score;
      chosen = token;
    }
  }
  return chosen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Reader reader{data, size};
  SamplingParams params;
  const auto kind = reader.take<uint8_t>();
  params.temperature = std::fabs(reader.take<double>());
  params.temperature = params.temperature <= kMaxTemperature ? params.temperature : 1;
  params.top_p = kind % 2 == 0 ? 1 : static_cast<double>(reader.take<uint16_t>() + 1) * 0x1p-16;
  params.top_k = kind % 3 == 0 ? 1 + reader.take<uint8_t>() : -1;
  params.seed = reader.take<uint64_t>();
  params.top_logprobs = kind % 5 == 0 ? reader.take<uint8_t>() : -1;
  const int64_t position = reader.take<uint32_t>();
  std::vector<float> logits;
  while (reader.size > 0) {
    // Whole floats for strange values, or bytes for rows with many ties.
    logits.push_back(kind < 128 ? reader.take<float>() : static_cast<float>(reader.take<int8_t>()) / 8);
  }

  bool usable = false;
  bool bad = false;
  for (const float logit : logits) {
    bad = bad || std::isnan(logit) || logit == std::numeric_limits<float>::infinity();
    usable = usable || logit > -std::numeric_limits<float>::infinity();
  }
  const int32_t expected = usable && !bad ? defined_token(logits, params, position) : -1;
  hadal::Result<OutputToken> first;
  for (const RowKernels* kernels : available_row_kernels()) {
    Sampler sampler(*kernels);
    hadal::Result<OutputToken> sampled = sampler.sample(logits, params, position);
    require(sampled.has_value() == (usable && !bad));
    if (!sampled) {
      continue;
    }
    require(sampled->token == expected);
    require(sampled->logprob <= 1e-6F && sampled->logprob >= kLowestLogprob);
    require(params.top_logprobs < 0 ||
            sampled->top.size() == std::min(logits.size(), static_cast<size_t>(params.top_logprobs)));
    if (kernels == available_row_kernels().front()) {
      first = std::move(sampled);
      continue;
    }
    require(sampled->logprob == first->logprob && sampled->top.size() == first->top.size());
    for (size_t i = 0; i < first->top.size(); ++i) {
      require(sampled->top[i].token == first->top[i].token &&
              sampled->top[i].logprob == first->top[i].logprob);
    }
  }
  return 0;
}
