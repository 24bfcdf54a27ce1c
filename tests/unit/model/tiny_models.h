#pragma once
// The tiny checkpoints of tests/data/checkpoints (and models/tiny), loaded for tests.

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace hadal::model {

/// "tiny", "tiny-long", ...: tests/data/checkpoints; "models/tiny": the checkpoint that hadal ships. Opened
/// once.
std::shared_ptr<const checkpoint::Checkpoint> tiny_checkpoint(const std::string& name);
const tokenizer::Tokenizer& tiny_tokenizer(const std::string& name);

/// The pool that tests share unless they are about threads.
ThreadPool& shared_pool();

struct TinyChoice {
  PrecisionMode precision = PrecisionMode::kProduct;
  ReplayMode replay = ReplayMode::kOff;
  int64_t replay_keep = 140;
  kernels::Isa isa = kernels::detect_isa();
  ThreadPool* pool = nullptr;  ///< shared_pool() if null
  bool keeps_snapshots = false;
  int64_t draft_length = 0;
};
std::unique_ptr<Model> load_tiny(const std::string& name, const TinyChoice& choice = {});

const char* precision_name(PrecisionMode mode);

/// Token ids without meaning, the same on every run; never the image token or ids above 2000.
std::vector<int32_t> random_ids(uint64_t seed, int64_t count);

/// A small generator for choices that tests make.
class Choices {
 public:
  explicit Choices(uint64_t seed) : state_(seed) {}
  int64_t below(int64_t bound);

 private:
  uint64_t state_;
};

}  // namespace hadal::model
