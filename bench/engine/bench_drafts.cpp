// What drafting gains on a checkpoint: tokens a second and tokens a pass with drafts off and on.
//
// usage: bench_drafts CHECKPOINT [sequences (1)] [tokens of each (200)] [threads (all)]

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "engine/engine.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace {

using hadal::Result;
namespace engine = hadal::engine;
namespace model = hadal::model;

struct Setup {
  std::shared_ptr<const hadal::checkpoint::Checkpoint> checkpoint;
  std::shared_ptr<const hadal::tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<hadal::ThreadPool> pool;
  int64_t num_sequences = 1;
  int64_t num_tokens = 200;
};

struct Run {
  double seconds = 0;
  engine::EngineStats stats;
  std::vector<std::vector<int32_t>> tokens;
};

Result<Run> run(const Setup& setup, int64_t draft_length, bool schedule, double temperature) {
  model::ModelOptions options;
  options.draft_length = draft_length;
  options.max_rollback = std::max(options.max_rollback, draft_length);
  HADAL_TRY(const auto loaded,
            model::Model::load(setup.checkpoint, setup.tokenizer.get(), *setup.pool, options));
  engine::EngineOptions engine_options;
  engine_options.schedule_guesses = schedule;
  HADAL_TRY(const auto started, engine::Engine::start(*loaded, *setup.pool, engine_options));
  Run result;
  result.tokens.resize(static_cast<size_t>(setup.num_sequences));
  std::vector<std::promise<void>> done(result.tokens.size());
  std::mt19937 random(7);
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < result.tokens.size(); ++i) {
    engine::Request request;
    for (int token = 0; token < 20; ++token) {
      request.prompt.push_back(static_cast<int32_t>(3 + random() % 1900));
    }
    request.sampling.temperature = temperature;
    request.sampling.seed = i;
    request.sampling.max_tokens = setup.num_tokens;
    request.sampling.ignore_eos = true;
    const auto handle = started->submit(std::move(request), [&, i](engine::Output output) {
      for (const auto& token : output.tokens) {
        result.tokens[i].push_back(token.token);
      }
      if (output.finish) {
        done[i].set_value();
      }
    });
    if (!handle) {
      return tl::make_unexpected(handle.error());
    }
  }
  for (auto& promise : done) {
    promise.get_future().wait();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.stats = started->stats();
  return result;
}

void print(const char* name, const Run& run) {
  const auto total = run.stats.drafts.total();
  const auto tokens = static_cast<double>(run.stats.generation_tokens_total);
  fmt::print(
      "{:<18}{:>10.0f} tokens/s{:>8.2f} tokens/pass{:>8} drafted{:>8} verified{:>8} accepted  ECE {:.3f}\n",
      name, tokens / run.seconds, tokens / static_cast<double>(run.stats.steps_total), total.drafted,
      total.verified, total.accepted, run.stats.drafts.calibration_error());
  for (size_t i = 0; i < run.stats.drafts.positions.size(); ++i) {
    const auto& position = run.stats.drafts.positions[i];
    if (position.verified > 0) {
      fmt::print("  place {}: {:.2f} of {} verified\n", i + 1,
                 static_cast<double>(position.accepted) / static_cast<double>(position.verified),
                 position.verified);
    }
  }
}

Result<void> bench(const Setup& setup) {
  for (const double temperature : {0.0, 1.0}) {
    fmt::print("temperature {}, {} sequences of {} tokens\n", temperature, setup.num_sequences,
               setup.num_tokens);
    HADAL_TRY(const Run plain, run(setup, 0, true, temperature));
    print("drafts off", plain);
    for (const int64_t length : {1, 3, 5}) {
      for (const bool schedule : {false, true}) {
        HADAL_TRY(const Run drafted, run(setup, length, schedule, temperature));
        print(fmt::format("{} drafts, {}", length, schedule ? "chosen" : "all").c_str(), drafted);
        if (drafted.tokens != plain.tokens) {
          return hadal::fail(hadal::ErrorCode::kInternal, "the tokens differ from those without drafts");
        }
      }
    }
  }
  return {};
}

Result<Setup> set_up(int argc, char** argv) {
  Setup setup;
  const std::filesystem::path directory = argv[1];
  HADAL_TRY(auto opened, hadal::checkpoint::Checkpoint::open(directory));
  setup.checkpoint = std::make_shared<const hadal::checkpoint::Checkpoint>(std::move(opened));
  HADAL_TRY(setup.tokenizer, hadal::tokenizer::Tokenizer::load(directory / "tokenizer.json"));
  setup.num_sequences = argc > 2 ? std::atoll(argv[2]) : setup.num_sequences;
  setup.num_tokens = argc > 3 ? std::atoll(argv[3]) : setup.num_tokens;
  setup.pool = std::make_unique<hadal::ThreadPool>(argc > 4 ? std::atoi(argv[4]) : 0);
  return setup;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_drafts CHECKPOINT [sequences] [tokens of each] [threads]\n");
    return 2;
  }
  const auto logging = hadal::init_logging("warn");
  const auto setup = set_up(argc, argv);
  const auto done = setup ? bench(*setup) : Result<void>(tl::make_unexpected(setup.error()));
  if (!logging || !done) {
    fmt::print(stderr, "{}\n", done ? "no log" : done.error().message);
    return 1;
  }
  return 0;
}
