#pragma once
// Names for beginnings of sequences: two are equal only if model, tenant, salt and every token are.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hadal::cache {

/// 256 bits of BLAKE2b.
struct PrefixKey {
  std::array<std::byte, 32> bytes{};
  bool operator==(const PrefixKey&) const = default;
};

std::string hex(const PrefixKey& key);

/// A digest of bytes that are given piece by piece, for describing a model.
class ContentDigest {
 public:
  ContentDigest();
  ~ContentDigest();
  ContentDigest(const ContentDigest&) = delete;
  ContentDigest& operator=(const ContentDigest&) = delete;
  /// Pieces are told apart: ("ab", "c") is not ("a", "bc").
  void add(std::span<const std::byte> piece);
  void add(std::string_view piece) { add(std::as_bytes(std::span(piece))); }
  std::string finish();  ///< 64 hexadecimal digits; nothing may be added afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The name of the empty beginning. `identity`: everything that decides about the bytes of a state (model,
/// precision, replay, layout). `tenant`: who may share; set by the operator's side alone. `salt`: what a
/// caller adds to be apart from others of its tenant. The three are hashed with their lengths, so that no
/// choice of salt can stand for another tenant.
PrefixKey root_key(std::string_view identity, std::string_view tenant, std::string_view salt);

/// The name of `parent` followed by one block of tokens. `media`: digests of the images that the block
/// overlaps, whose token ids are the same for all images.
PrefixKey child_key(const PrefixKey& parent, std::span<const int32_t> tokens,
                    std::span<const std::byte> media = {});

/// The keys of all complete blocks of one sequence, computed as they are asked for.
class PrefixKeys {
 public:
  explicit PrefixKeys(const PrefixKey& root) : keys_{root} {}
  const PrefixKey& root() const { return keys_.front(); }
  /// The name of the first `num_blocks` blocks of `tokens`, which must always be the same sequence, perhaps
  /// longer than before.
  const PrefixKey& after(int64_t num_blocks, std::span<const int32_t> tokens);

 private:
  std::vector<PrefixKey> keys_;
};

}  // namespace hadal::cache

/// The bits are random already.
template <>
struct std::hash<hadal::cache::PrefixKey> {
  size_t operator()(const hadal::cache::PrefixKey& key) const noexcept {
    size_t value = 0;
    std::memcpy(&value, key.bytes.data(), sizeof(value));
    return value;
  }
};
