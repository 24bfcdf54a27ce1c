#pragma once
// The bytes that a parser has not decided about yet, and the pieces that came of those before them.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/parse/output_unit.h"
#include "recipe/parse/piece.h"

namespace hadal::recipe {

/// A parser reads bytes at a cursor and settles them in order: as text of a piece, or dropped. Bytes between
/// the last settled one and the cursor are pending; the parser may go back to them.
///
/// Neighbouring text of one kind and one unit of input becomes one piece, so a stream shows its input's own
/// pieces; a piece is handed out when its unit is settled whole (or something else follows it).
class PieceQueue {
 public:
  enum class Form {
    kPlain,    ///< bytes as they are
    kEscaped,  ///< as the inside of a JSON string
    kBlank,    ///< one space in place of the text of a unit
  };

  void add(OutputUnit unit);

  bool at_end() const { return cursor_ == buffer_.size(); }
  char byte() const { return buffer_[cursor_]; }
  Origin origin() const { return static_cast<Origin>(origins_[cursor_]); }
  void advance() { ++cursor_; }
  /// Bytes from the cursor on.
  std::string_view ahead() const { return std::string_view(buffer_).substr(cursor_); }
  void advance(size_t count) { cursor_ += count; }

  std::string_view pending() const { return std::string_view(buffer_).substr(settled_, cursor_ - settled_); }
  size_t num_pending() const { return cursor_ - settled_; }
  /// Puts the cursor behind the first `count` pending bytes.
  void go_back_to(size_t count) { cursor_ = settled_ + count; }

  /// Settles the first `count` pending bytes as text of a piece.
  void settle(size_t count, PieceKind kind, Form form = Form::kPlain);
  void settle_all(PieceKind kind, Form form = Form::kPlain) { settle(num_pending(), kind, form); }
  /// Settles the first `count` pending bytes as nothing.
  void drop(size_t count);
  void drop_all() { drop(num_pending()); }

  /// Text that follows starts a new piece, even of the same kind and unit.
  void cut() {
    close_open();
    text_kind_.reset();
  }
  /// Adds a piece of its own after the settled bytes.
  void insert(Piece piece);
  void insert(PieceKind kind, std::string_view text) {
    insert(Piece{.kind = kind, .text = std::string(text)});
  }

  /// The pieces that are settled, in order.
  std::vector<Piece> take() { return std::exchange(ready_, {}); }

  /// Tokens that show in pieces of reasoning.
  uint64_t num_reasoning_tokens() const { return num_reasoning_tokens_; }

 private:
  struct Unit {
    size_t bytes = 0;    ///< that are not settled
    size_t settled = 0;  ///< bytes that are
    std::vector<TokenSpan> tokens = {};
    size_t next_token = 0;  ///< the first that may belong to a later byte
    uint64_t first_token = 0;
  };

  void settle_in_unit(Unit& unit, size_t count, PieceKind kind, Form form);
  void close_open();
  void attach_tokens(Unit& unit, size_t begin, size_t end);
  void skip_tokens(Unit& unit, size_t end);
  void close_settled_units();
  void forget_settled_bytes();

  std::string buffer_;   ///< bytes from settled_ on are not settled
  std::string origins_;  ///< of the same bytes
  size_t settled_ = 0;
  size_t cursor_ = 0;
  std::deque<Unit> units_;
  uint64_t num_tokens_ = 0;
  std::optional<Piece> open_;  ///< may still grow
  bool open_is_blank_ = false;
  std::optional<PieceKind> text_kind_;  ///< of the text that was settled last, unless it was cut
  std::vector<Piece> ready_;
  uint64_t num_reasoning_tokens_ = 0;
};

}  // namespace hadal::recipe
