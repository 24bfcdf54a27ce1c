#pragma once
// Working memory for encoding, lent to one call at a time.

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/regex_pattern.h"
#include "tokenizer/word_encoder.h"

namespace hadal::tokenizer {

/// All that one running encode() needs besides the tokenizer; about 1.3 MB.
struct EncoderMemory {
  WordCache cache;
  WordBatch batch;
  BpeScratch scratch;
  RegexWorkspace regex;
  std::vector<AddedTokenPiece> pieces;      ///< around added tokens that are not normalized
  std::vector<AddedTokenPiece> sub_pieces;  ///< in one of these, around those that are
};

/// Keeps what was given back, so that calls find warm caches: as many as ever ran at the same time, at most
/// kMaxKept. Belongs to one tokenizer, as the caches hold its ids.
class EncoderPool {
 public:
  static constexpr size_t kMaxKept = 64;

  /// Memory on loan; goes back by the destructor. The pool must outlive it.
  class Loan {
   public:
    explicit Loan(EncoderPool& pool) : pool_(pool), memory_(pool.take()) {}
    ~Loan() { pool_.give_back(std::move(memory_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    EncoderMemory& operator*() { return *memory_; }

   private:
    EncoderPool& pool_;
    std::unique_ptr<EncoderMemory> memory_;
  };

 private:
  std::unique_ptr<EncoderMemory> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto memory = std::move(idle_.back());
        idle_.pop_back();
        return memory;
      }
    }
    return std::make_unique<EncoderMemory>();
  }

  void give_back(std::unique_ptr<EncoderMemory> memory) {
    // The pieces point into the text of the call that ends.
    memory->pieces.clear();
    memory->sub_pieces.clear();
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxKept) {
      idle_.push_back(std::move(memory));
    }
  }

  std::mutex mutex_;  ///< guards idle_
  std::vector<std::unique_ptr<EncoderMemory>> idle_;
};

}  // namespace hadal::tokenizer
