// The number of threads and the instruction set change nothing.

#include <iostream>

#include <gtest/gtest.h>

#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

/// A prefill, a few decoded tokens and a short segment of two sequences at once.
std::vector<float> mixed_work(Model& model, int64_t prompt_length) {
  const auto ids = random_ids(30, prompt_length + 8);
  const auto other_ids = random_ids(31, 12);
  SequenceRun run(model, prompt_length);
  SequenceRun other(model, 12);
  run.feed(std::span(ids).first(static_cast<size_t>(prompt_length)));
  run.feed_in_chunks(std::span(ids).subspan(static_cast<size_t>(prompt_length), 4), 1);
  const std::vector<Segment> segments{
      {&other.state(), other_ids, other.grow(12)},
      {&run.state(), std::span(ids).last(4), run.grow(4)},
  };
  EXPECT_TRUE(model.forward(segments).has_value());
  std::vector<float> logits(run.logits().begin(), run.logits().end());
  logits.insert(logits.end(), other.logits().begin(), other.logits().end());
  return logits;
}

struct Choice {
  const char* checkpoint;
  PrecisionMode precision;
  int64_t prompt_length;
};

class MachineTest : public testing::TestWithParam<Choice> {};

INSTANTIATE_TEST_SUITE_P(All, MachineTest,
                         testing::Values(Choice{"tiny", PrecisionMode::kProduct, 45},
                                         Choice{"tiny", PrecisionMode::kQat, 20},
                                         Choice{"tiny-long", PrecisionMode::kProduct, 90},
                                         Choice{"tiny-smooth", PrecisionMode::kF32, 20}),
                         [](const auto& test) {
                           std::string name = std::string(test.param.checkpoint) + "_" +
                                              precision_name(test.param.precision);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(MachineTest, ThreadCountsAgree) {
  const auto& [name, precision, prompt_length] = GetParam();
  ThreadPool single(1);
  const auto one = load_tiny(name, {.precision = precision, .pool = &single});
  const auto want = mixed_work(*one, prompt_length);
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    if (pool.num_threads() != threads) {
      std::cout << "[     NOTE ] " << threads << " threads asked for, " << pool.num_threads()
                << " CPUs allowed\n";
    }
    const auto model = load_tiny(name, {.precision = precision, .pool = &pool});
    EXPECT_TRUE(same_logits(want, mixed_work(*model, prompt_length), model->vocab_size()))
        << threads << " threads";
  }
}

TEST_P(MachineTest, InstructionSetsAgree) {
  const auto& [name, precision, prompt_length] = GetParam();
  const auto scalar = load_tiny(name, {.precision = precision, .isa = kernels::Isa::kScalar});
  const auto want = mixed_work(*scalar, prompt_length);
  for (const auto isa : {kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (!kernels::isa_supported(isa)) {
      std::cout << "[     NOTE ] this CPU has no " << kernels::isa_name(isa) << "\n";
      continue;
    }
    const auto model = load_tiny(name, {.precision = precision, .isa = isa});
    EXPECT_TRUE(same_logits(want, mixed_work(*model, prompt_length), model->vocab_size()))
        << kernels::isa_name(isa);
  }
}

TEST(MachineState, TheStateIsTheSameForEveryInstructionSet) {
  const auto ids = random_ids(32, 60);
  const auto scalar = load_tiny("tiny-long", {.isa = kernels::Isa::kScalar});
  SequenceRun want(*scalar, 60);
  want.feed(ids, 1);
  for (const auto isa : {kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (kernels::isa_supported(isa)) {
      const auto model = load_tiny("tiny-long", {.isa = isa});
      SequenceRun got(*model, 60);
      got.feed(ids, 1);
      EXPECT_TRUE(same_state(model->config().text, want.state(), got.state())) << kernels::isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace hadal::model
