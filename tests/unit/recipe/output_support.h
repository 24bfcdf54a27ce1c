#pragma once
// What the tests of the output side share: a small tokenizer, texts in DSML, and readers of what comes out.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/parse/output_parser.h"
#include "recipe/response_generator.h"

namespace hadal::recipe::testing {

/// Ids 0 to 255 are bytes, those above are added tokens.
class ByteTokenizer final : public tokenizer::Tokenizer {
 public:
  static constexpr int32_t kEos = 256;
  static constexpr int32_t kThinkEnd = 257;
  static constexpr int32_t kDsml = 258;
  static constexpr int32_t kUser = 259;
  static constexpr int32_t kUnknown = 9999;

  void encode_plain(std::string_view text, std::vector<int32_t>& ids) const override;
  void encode_with_special(std::string_view text, std::vector<int32_t>& ids) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const override;
  std::string_view token_bytes(int32_t id) const override;
  std::string_view token_spelling(int32_t id) const override { return token_bytes(id); }
  std::optional<int32_t> token_id(std::string_view spelling) const override;
  bool is_added_token(int32_t id) const override { return id > 255; }
  bool is_special_token(int32_t id) const override { return id > 255; }
  int32_t vocab_size() const override { return kUser + 1; }
};
std::shared_ptr<const tokenizer::Tokenizer> byte_tokenizer();
std::vector<int32_t> ids_of(std::string_view text);

// DSML as the prompts show it. `spaced`: V4.1, otherwise V4.
struct Dsml {
  bool spaced = true;
  std::string parameter(std::string_view key, std::string_view value, bool string = true) const;
  std::string invoke(std::string_view name, std::string_view parameters = {}) const;
  std::string open() const;
  std::string close() const;
  std::string block(std::string_view invokes) const { return open() + std::string(invokes) + close(); }
};

struct ParsedCall {
  std::string name;
  std::string arguments;
  bool complete = true;
  bool operator==(const ParsedCall&) const = default;
};

/// All that a parser said.
struct Parsed {
  std::string reasoning;
  std::string content;
  std::vector<ParsedCall> calls;
  std::string order;  ///< r, c or T for each change of what is spoken
  std::string stop;
  bool cut_off = false;
  bool operator==(const Parsed&) const = default;
  void add(const std::vector<Piece>& pieces);
};
std::ostream& operator<<(std::ostream& out, const Parsed& parsed);

/// Parses pieces of text, or the ids of `ids` one by one.
Parsed parse_pieces(const ParserSettings& settings, const std::vector<std::string>& pieces);
Parsed parse_text(const ParserSettings& settings, std::string_view text);
Parsed parse_ids(const ParserSettings& settings, const std::vector<int32_t>& ids);

ParserSettings tools();
ParserSettings thinking_tools();

/// Cuts `text` at the given ascending offsets.
std::vector<std::string> cut(std::string_view text, const std::vector<size_t>& offsets);

// ---- protocols

PreparedRequest request_for(Protocol protocol, bool thinking = false);
GeneratorOptions generator_options();

/// A stream as a client takes it in.
struct Streamed {
  std::vector<Event> events;
  Json response;
};
Streamed stream(const PreparedRequest& request, const std::vector<std::string>& pieces,
                OutputFinish finish = OutputFinish::kStop);
Streamed stream_ids(const PreparedRequest& request, const std::vector<int32_t>& ids,
                    OutputFinish finish = OutputFinish::kStop);

/// The response that a client puts together out of the events of a protocol. Checks on the way what the
/// protocol promises about the stream (order, ids, numbers, every start has its end) with gtest expectations.
Json replay(Protocol protocol, const std::vector<Event>& events);

}  // namespace hadal::recipe::testing
