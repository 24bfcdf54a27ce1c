#pragma once
// Byte-level BPE read from a Hugging Face tokenizer.json of the DeepSeek family.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hadal::tokenizer {

/// Text <-> token ids. Immutable after loading and safe to use from many threads at once.
class Tokenizer {
 public:
  /// Reads a tokenizer.json. What this family does not use (another model type, an unknown normalizer or
  /// pre-tokenizer, a decoder other than ByteLevel) is kUnsupported and named; a damaged file is kCorrupt.
  /// So is one where ordinary text could produce the id of an added token: then the markers of a prompt could
  /// be forged (kUnsupported).
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& file);
  static Result<std::shared_ptr<const Tokenizer>> parse(std::string_view json, std::string_view source_name);

  virtual ~Tokenizer() = default;

  /// Ids of `text` where spellings of added tokens stay ordinary text. Invalid UTF-8 is first replaced by
  /// U+FFFD (one per maximal invalid part). Appends to `ids`. Linear time. (If the pre-tokenizer is not
  /// DeepSeek's, its regexes have a work limit; text on which one gives up stays whole from there, with a
  /// warning.)
  virtual void encode_plain(std::string_view text, std::vector<int32_t>& ids) const = 0;

  /// Ids of `text` where spellings of added tokens become their ids, as `tokenizers` does with
  /// add_special_tokens=False. Appends to `ids`.
  virtual void encode_with_special(std::string_view text, std::vector<int32_t>& ids) const = 0;

  /// Text of `ids`; invalid UTF-8 becomes U+FFFD as the reference shows it; unknown ids give nothing.
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = false) const = 0;

  /// The raw bytes that one token stands for (an added token: its content); empty for an unknown id.
  virtual std::string_view token_bytes(int32_t id) const = 0;

  /// The spelling in the vocabulary file (byte-level alphabet for ordinary tokens); empty if unknown.
  virtual std::string_view token_spelling(int32_t id) const = 0;

  /// Id of an added token by its content, or of an ordinary token by its vocabulary spelling.
  virtual std::optional<int32_t> token_id(std::string_view spelling) const = 0;

  virtual bool is_added_token(int32_t id) const = 0;
  virtual bool is_special_token(int32_t id) const = 0;

  /// One more than the largest id.
  virtual int32_t vocab_size() const = 0;
};

/// Decodes a stream of ids so that no half code point is ever emitted. Concatenating all push() results
/// and finish() gives Tokenizer::decode of all ids.
class IncrementalDecoder {
 public:
  explicit IncrementalDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens = false)
      : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

  /// Text that id completes. As in the reference, all that was held back comes out as soon as it ends with a
  /// whole code point other than U+FFFD: while the end may still be damaged, nothing does. Linear over a
  /// stream.
  std::string push(int32_t id);
  /// What was held back, with U+FFFD for an unfinished code point. The decoder is then as new.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  std::string held_;     ///< valid text that ends with U+FFFD or has `pending_` after it
  std::string pending_;  ///< the bytes of an unfinished code point, at most three
};

}  // namespace hadal::tokenizer
