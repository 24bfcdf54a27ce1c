#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/mapped_file.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/encoder_pool.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/string_index.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"
#include "tokenizer/word_encoder.h"

namespace hadal::tokenizer {
namespace {

/// The tokens by id, with all strings in one place.
class Vocabulary {
 public:
  explicit Vocabulary(const TokenizerFile& file) {
    size_t size = file.spellings.size();
    for (const AddedToken& added : file.added_tokens) {
      size = std::max(size, static_cast<size_t>(added.id) + 1);
    }
    tokens_.resize(size);
    std::vector<std::optional<std::string>> bytes(file.spellings.size());
    size_t total = 0;
    for (size_t id = 0; id < file.spellings.size(); ++id) {
      bytes[id] = bytes_of_spelling(file.spellings[id]);
      total += file.spellings[id].size() + (bytes[id] ? bytes[id]->size() : 0);
    }
    for (const AddedToken& added : file.added_tokens) {
      total += added.content.size();
    }
    // Reserved in full, so that the views into it stay valid.
    text_.reserve(total);
    const auto keep = [this](std::string_view string) {
      text_.append(string);
      return std::string_view(text_).substr(text_.size() - string.size());
    };
    model_bytes_.resize(file.spellings.size());
    for (size_t id = 0; id < file.spellings.size(); ++id) {
      Token& token = tokens_[id];
      token.spelling = keep(file.spellings[id]);
      model_bytes_[id] = bytes[id] ? keep(*bytes[id]) : std::string_view();
      token.bytes = bytes[id] ? model_bytes_[id] : token.spelling;
    }
    for (const AddedToken& added : file.added_tokens) {
      Token& token = tokens_[static_cast<size_t>(added.id)];
      token.spelling = token.bytes = keep(added.content);
      token.added = true;
      token.special = added.special;
    }
    index_ = StringIndex(size);
    for (size_t id = 0; id < size; ++id) {
      if (!tokens_[id].spelling.empty()) {
        index_.insert(tokens_[id].spelling, static_cast<int32_t>(id));
      }
    }
  }

  struct Token {
    std::string_view spelling;
    std::string_view bytes;
    bool added = false;
    bool special = false;
  };

  const Token& operator[](int32_t id) const {
    static constexpr Token kUnknown;
    const auto index = static_cast<size_t>(static_cast<uint32_t>(id));
    return index < tokens_.size() ? tokens_[index] : kUnknown;
  }
  std::optional<int32_t> find(std::string_view spelling) const { return index_.find(spelling); }
  size_t size() const { return tokens_.size(); }
  std::span<const std::string_view> model_bytes() const { return model_bytes_; }

 private:
  std::string text_;
  std::vector<Token> tokens_;
  std::vector<std::string_view>
      model_bytes_;  ///< of model.vocab; empty where the spelling stands for no bytes
  StringIndex index_;
};

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(std::unique_ptr<const Vocabulary> vocabulary, Bpe bpe, Pretokenizer pretokenizer,
               const std::vector<AddedToken>& added)
      : vocabulary_(std::move(vocabulary)), bpe_(std::move(bpe)), pretokenizer_(std::move(pretokenizer)) {
    std::vector<AddedToken> raw;
    std::vector<AddedToken> normalized;
    for (const AddedToken& token : added) {
      (token.normalized ? normalized : raw).push_back(token);
    }
    raw_matcher_ = AddedTokenMatcher(std::move(raw));
    normalized_matcher_ = AddedTokenMatcher(std::move(normalized));
  }

  void encode_plain(std::string_view text, std::vector<int32_t>& ids) const override {
    const Repaired repaired(text);
    EncoderPool::Loan memory(pool_);
    encode_text(repaired.text(), *memory, ids);
  }

  void encode_with_special(std::string_view text, std::vector<int32_t>& ids) const override {
    const Repaired repaired(text);
    EncoderPool::Loan loan(pool_);
    EncoderMemory& memory = *loan;
    memory.pieces.clear();
    raw_matcher_.split(repaired.text(), memory.pieces);
    for (const AddedTokenPiece& piece : memory.pieces) {
      if (piece.id != AddedTokenPiece::kText) {
        ids.push_back(piece.id);
        continue;
      }
      memory.sub_pieces.clear();
      normalized_matcher_.split(piece.text, memory.sub_pieces);
      for (const AddedTokenPiece& sub_piece : memory.sub_pieces) {
        if (sub_piece.id != AddedTokenPiece::kText) {
          ids.push_back(sub_piece.id);
        } else {
          encode_text(sub_piece.text, memory, ids);
        }
      }
    }
  }

  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const override {
    std::string bytes;
    for (const int32_t id : ids) {
      const Vocabulary::Token& token = (*vocabulary_)[id];
      if (!skip_special_tokens || !token.special) {
        bytes.append(token.bytes);
      }
    }
    if (valid_utf8_prefix(bytes) == bytes.size()) {
      return bytes;
    }
    std::string text;
    append_valid_utf8(text, bytes);
    return text;
  }

  std::string_view token_bytes(int32_t id) const override { return (*vocabulary_)[id].bytes; }
  std::string_view token_spelling(int32_t id) const override { return (*vocabulary_)[id].spelling; }
  std::optional<int32_t> token_id(std::string_view spelling) const override {
    return vocabulary_->find(spelling);
  }
  bool is_added_token(int32_t id) const override { return (*vocabulary_)[id].added; }
  bool is_special_token(int32_t id) const override { return (*vocabulary_)[id].special; }
  int32_t vocab_size() const override { return static_cast<int32_t>(vocabulary_->size()); }

 private:
  /// Text made valid UTF-8, copied only if it is not.
  class Repaired {
   public:
    explicit Repaired(std::string_view text) : text_(text) {
      if (valid_utf8_prefix(text) != text.size()) {
        append_valid_utf8(copy_, text);
        text_ = copy_;
      }
    }
    Repaired(const Repaired&) = delete;
    Repaired& operator=(const Repaired&) = delete;
    std::string_view text() const { return text_; }

   private:
    std::string copy_;
    std::string_view text_;
  };

  void encode_text(std::string_view text, EncoderMemory& memory, std::vector<int32_t>& ids) const {
    WordEncoder encoder(bpe_, memory.cache, memory.scratch, memory.batch, text.data() + text.size(), ids);
    pretokenizer_.split(text, memory.regex, encoder);
    encoder.flush();
  }

  std::unique_ptr<const Vocabulary> vocabulary_;  ///< at a fixed address: bpe_ has views into it
  Bpe bpe_;
  Pretokenizer pretokenizer_;
  AddedTokenMatcher raw_matcher_;
  AddedTokenMatcher normalized_matcher_;
  mutable EncoderPool pool_;
};

Result<std::shared_ptr<const Tokenizer>> build(const TokenizerFile& file) {
  auto vocabulary = std::make_unique<const Vocabulary>(file);
  HADAL_TRY(Bpe bpe, Bpe::create(vocabulary->model_bytes(), file.merges, file.ignore_merges));
  for (const AddedToken& token : file.added_tokens) {
    if (static_cast<size_t>(token.id) < file.spellings.size() && bpe.can_produce(token.id)) {
      return fail(ErrorCode::kUnsupported,
                  "added_tokens: ordinary text can produce the id {} of \"{}\" too, so a "
                  "marker could not be told from text that spells it",
                  token.id, printable(token.content, 100));
    }
  }
  HADAL_TRY(Pretokenizer pretokenizer, Pretokenizer::create(file.split_steps));
  spdlog::debug("tokenizer: {} ids, {} merges, {} added tokens, pre-tokenizer {}", vocabulary->size(),
                file.merges.size(), file.added_tokens.size(),
                pretokenizer.by_hand() ? "by hand" : "by PCRE2");
  return std::make_shared<const BpeTokenizer>(std::move(vocabulary), std::move(bpe), std::move(pretokenizer),
                                              file.added_tokens);
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::parse(std::string_view json,
                                                          std::string_view source_name) {
  HADAL_TRY(const TokenizerFile file, read_tokenizer_json(json, source_name));
  auto tokenizer = build(file);
  if (!tokenizer) {
    return fail_within(source_name, std::move(tokenizer).error());
  }
  return tokenizer;
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const std::filesystem::path& file) {
  HADAL_TRY(const MappedFile mapped, MappedFile::open(file));
  const auto bytes = mapped.bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string());
}

}  // namespace hadal::tokenizer
