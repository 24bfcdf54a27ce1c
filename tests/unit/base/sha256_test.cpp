#include "base/sha256.h"

#include <gtest/gtest.h>

namespace hadal {
namespace {

// Digests that coreutils' sha256sum prints for the same bytes.
TEST(Sha256, EqualsTheStandard) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PadsAtEveryLength) {
  // The digest of the digests of 0 to 129 letters: all places where the padding can begin.
  std::string all;
  for (size_t length = 0; length < 130; ++length) {
    all += sha256_hex(std::string(length, 'x'));
  }
  EXPECT_EQ(sha256_hex(all), "199af942eba7fa5d1e16d475169eb24018b14e69339c93d26a9ea6d873b4ace6");
}

}  // namespace
}  // namespace hadal
