#include "cache/prefix_key.h"

#include <bit>

#include <fmt/format.h>
#include <sodium.h>

#include "cache/state_layout.h"

namespace hadal::cache {
namespace {

static_assert(std::endian::native == std::endian::little, "keys are kept on disk");
constexpr std::string_view kRootDomain = "hadal prefix root 1";
constexpr std::string_view kBlockDomain = "hadal prefix block 1";

class Hash {
 public:
  explicit Hash(std::string_view domain) {
    crypto_generichash_init(&state_, nullptr, 0, sizeof(PrefixKey::bytes));
    add_sized(domain.data(), domain.size());
  }
  void add_sized(const void* data, size_t bytes) {
    const auto size = static_cast<uint64_t>(bytes);
    add(&size, sizeof(size));
    add(data, bytes);
  }
  void add(const void* data, size_t bytes) {
    crypto_generichash_update(&state_, static_cast<const unsigned char*>(data), bytes);
  }
  PrefixKey finish() {
    PrefixKey key;
    crypto_generichash_final(&state_, reinterpret_cast<unsigned char*>(key.bytes.data()), key.bytes.size());
    return key;
  }

 private:
  crypto_generichash_state state_;
};

}  // namespace

std::string hex(const PrefixKey& key) {
  std::string text;
  for (const std::byte byte : key.bytes) {
    fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

PrefixKey root_key(std::string_view identity, std::string_view tenant, std::string_view salt) {
  Hash hash(kRootDomain);
  for (const std::string_view part : {identity, tenant, salt}) {
    hash.add_sized(part.data(), part.size());
  }
  return hash.finish();
}

PrefixKey child_key(const PrefixKey& parent, std::span<const int32_t> tokens,
                    std::span<const std::byte> media) {
  Hash hash(kBlockDomain);
  hash.add(parent.bytes.data(), parent.bytes.size());
  hash.add_sized(tokens.data(), tokens.size_bytes());
  hash.add_sized(media.data(), media.size());
  return hash.finish();
}

struct ContentDigest::State {
  Hash hash{"hadal content 1"};
};

ContentDigest::ContentDigest() : state_(std::make_unique<State>()) {}
ContentDigest::~ContentDigest() = default;

void ContentDigest::add(std::span<const std::byte> piece) {
  state_->hash.add_sized(piece.data(), piece.size());
}

std::string ContentDigest::finish() {
  return hex(state_->hash.finish());
}

const PrefixKey& PrefixKeys::after(int64_t num_blocks, std::span<const int32_t> tokens) {
  while (std::ssize(keys_) <= num_blocks) {
    const auto first = static_cast<size_t>((std::ssize(keys_) - 1) * kBlockTokens);
    keys_.push_back(child_key(keys_.back(), tokens.subspan(first, static_cast<size_t>(kBlockTokens))));
  }
  return keys_[static_cast<size_t>(num_blocks)];
}

}  // namespace hadal::cache
