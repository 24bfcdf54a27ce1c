#include "cache/disk_tier.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "written_state.h"

namespace hadal::cache {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<int32_t>;
namespace fs = std::filesystem;

constexpr uint64_t kNoLimit = uint64_t{1} << 40;

SegmentShape shape_of(std::string_view model = "model") {
  const StateLayout layout = written_layout();
  return {root_key(model, "", ""), BlockShape(layout).bytes, layout.snapshot_bytes()};
}

PrefixKeys new_keys() {
  return PrefixKeys(root_key("model", "", ""));
}

/// The segments of a prompt with snapshots at these lengths.
std::vector<PrefixSegment> segments_of(const Tokens& tokens, const std::vector<int64_t>& lengths,
                                       const std::shared_ptr<MemoryBudget>& budget) {
  PrefixTree tree(budget, BlockShape(written_layout()).bytes);
  SequenceState state(written_layout(), 0);
  state.charge_to(budget);
  PrefixKeys keys = new_keys();
  std::vector<PrefixSegment> segments;
  int64_t done = 0;
  for (const int64_t length : lengths) {
    write_tokens(state,
                 std::span(tokens).subspan(static_cast<size_t>(done), static_cast<size_t>(length - done)));
    segments.push_back(tree.insert(keys, tokens, length, state));
    done = length;
  }
  return segments;
}

bool same_segment(const PrefixSegment& a, const PrefixSegment& b) {
  return a.parent == b.parent && a.first_block == b.first_block && a.snapshot->rows == b.snapshot->rows &&
         a.snapshot->position == b.snapshot->position &&
         std::equal(
             a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(),
             [](const PrefixBlock& x, const PrefixBlock& y) {
               // Padding between the regions of a block is never written.
               const BlockShape shape(written_layout());
               const auto& layout = written_layout();
               bool same = x.key == y.key && x.tokens == y.tokens && x.context == y.context;
               for (size_t s = 0; s < shape.regions.size(); ++s) {
                 const auto rows = static_cast<size_t>(shape.regions[s].rows);
                 for (const auto& [offset, bytes] :
                      {std::pair{shape.regions[s].entries, rows * layout.sources[s].entry_bytes},
                       std::pair{shape.regions[s].index_keys, rows * layout.sources[s].index_key_bytes}}) {
                   same = same && std::memcmp(x.block->data() + offset, y.block->data() + offset, bytes) == 0;
                 }
               }
               return same;
             });
}

class DiskTierTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(init_logging("off"));
    directory_ = fs::temp_directory_path() / ("hadal-disk-tier-" + std::to_string(::getpid()));
    fs::remove_all(directory_);
  }
  void TearDown() override {
    std::error_code error;
    fs::permissions(directory_, fs::perms::owner_all, error);
    fs::remove_all(directory_);
  }

  std::unique_ptr<DiskTier> open(uint64_t limit = kNoLimit, const SegmentShape& shape = shape_of()) {
    auto tier = DiskTier::open(directory_, limit, shape, budget_);
    EXPECT_TRUE(tier) << tier.error().message;
    return tier ? std::move(*tier) : nullptr;
  }

  static std::vector<PrefixSegment> load(DiskTier& tier, std::vector<PrefixKey> keys) {
    std::promise<std::vector<PrefixSegment>> loaded;
    tier.load(std::move(keys),
              [&](std::vector<PrefixSegment> segments) { loaded.set_value(std::move(segments)); });
    return loaded.get_future().get();
  }

  std::vector<fs::path> files(const std::string& extension = ".segment") const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().extension() == extension) {
        paths.push_back(entry.path());
      }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  fs::path directory_;
  std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>();
};

TEST_F(DiskTierTest, GivesBackWhatItWasGiven) {
  const auto segments = segments_of(some_tokens(1, 1000), {256, 640, 896}, budget_);
  ASSERT_EQ(segments.size(), 3U);
  std::vector<PrefixKey> keys;
  {
    const auto tier = open();
    for (const auto& segment : segments) {
      EXPECT_FALSE(tier->find(segment.key()));
      tier->offer(segment);
      keys.push_back(segment.key());
    }
    tier->flush();
    EXPECT_EQ(tier->stats().written_total, 3U);
    tier->offer(segments[0]);
    tier->flush();
    EXPECT_EQ(tier->stats().written_total, 3U) << "it is there already";
  }
  const auto tier = open();
  EXPECT_EQ(tier->stats().segments, 3);
  const auto entry = tier->find(keys[1]);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->parent, keys[0]);
  EXPECT_EQ(entry->first_block, 2);
  EXPECT_EQ(entry->num_blocks, 3);
  const auto loaded = load(*tier, keys);
  ASSERT_EQ(loaded.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_segment(segments[i], loaded[i])) << i;
  }
}

TEST_F(DiskTierTest, MemoryIsHeldNoLongerThanNeeded) {
  const auto tier = open();
  tier->offer(segments_of(some_tokens(2, 512), {512}, budget_)[0]);
  tier->flush();
  EXPECT_EQ(budget_->used(), 0U);
}

TEST_F(DiskTierTest, LoadingStopsAtTheFirstFailure) {
  const auto segments = segments_of(some_tokens(3, 1000), {256, 640, 896}, budget_);
  const auto tier = open();
  std::vector<PrefixKey> keys;
  for (const auto& segment : segments) {
    tier->offer(segment);
    keys.push_back(segment.key());
  }
  tier->flush();
  fs::resize_file(directory_ / (hex(keys[1]) + ".segment"), 1000);
  EXPECT_EQ(load(*tier, keys).size(), 1U);
  EXPECT_FALSE(tier->find(keys[1]));
  EXPECT_TRUE(tier->find(keys[2]));
  EXPECT_EQ(tier->stats().bad_files_total, 1U);
}

TEST_F(DiskTierTest, EveryFlippedBitAndEveryCutIsNoticed) {
  const auto segment = segments_of(some_tokens(4, 128), {128}, budget_)[0];
  open()->offer(segment);
  const fs::path path = files().at(0);
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  const auto is_read = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return read_segment(path, segment.key(), shape_of(), budget_).has_value();
  };
  ASSERT_TRUE(is_read(good));
  std::mt19937 random(5);
  for (size_t at = 0; at < good.size(); at += at < 200 ? 1 : 1 + random() % 40) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (random() % 8)));
    EXPECT_FALSE(is_read(bad)) << "byte " << at;
    EXPECT_FALSE(is_read(good.substr(0, at))) << "cut at " << at;
  }
  EXPECT_FALSE(is_read(good + "x"));
  EXPECT_FALSE(is_read(std::string(good.size(), '\0')));
}

TEST_F(DiskTierTest, FilesOfOtherModelsVersionsAndNamesAreMisses) {
  const auto segment = segments_of(some_tokens(5, 256), {256}, budget_)[0];
  open()->offer(segment);
  const fs::path path = files().at(0);
  EXPECT_FALSE(open(kNoLimit, shape_of("another model"))->find(segment.key()));
  EXPECT_TRUE(fs::exists(path)) << "the other model may come back";
  EXPECT_FALSE(read_segment(path, segment.key(), shape_of("another model"), budget_));
  EXPECT_FALSE(read_segment(path, root_key("x", "", ""), shape_of(), budget_));
  SegmentShape wider = shape_of();
  wider.block_bytes += 32;
  EXPECT_FALSE(read_segment(path, segment.key(), wider, budget_));

  fs::copy_file(path, directory_ / "mine.segment");
  std::string other_name = path.filename().string();
  other_name[0] = other_name[0] == '0' ? '1' : '0';
  fs::rename(path, directory_ / other_name);
  const auto tier = open();
  EXPECT_FALSE(tier->find(segment.key()));
  EXPECT_EQ(tier->stats().bad_files_total, 2U);
  EXPECT_TRUE(fs::exists(directory_ / "mine.segment")) << "files that are not called like ours stay";
}

TEST_F(DiskTierTest, HoldsToItsLimitAndRemovesTheOldest) {
  std::vector<PrefixSegment> segments;
  for (uint32_t i = 0; i < 6; ++i) {
    segments.push_back(segments_of(some_tokens(10 + i, 256), {256}, budget_)[0]);
  }
  const uint64_t each = header_of(segments[0], shape_of()).file_bytes();
  {
    const auto tier = open(3 * each);
    for (size_t i = 0; i < 5; ++i) {
      if (i == 3) {
        load(*tier, {segments[0].key()});  // used just now
      }
      tier->offer(segments[i]);
      tier->flush();
      EXPECT_LE(tier->stats().bytes, 3 * each);
    }
    EXPECT_EQ(tier->stats().evicted_total, 2U);
    EXPECT_TRUE(tier->find(segments[0].key()));
    EXPECT_FALSE(tier->find(segments[1].key()));
    EXPECT_FALSE(tier->find(segments[2].key()));
  }
  const auto smaller = open(each);
  EXPECT_EQ(smaller->stats().segments, 1);
  EXPECT_EQ(files().size(), 1U);
  const auto tiny = DiskTier::open(directory_.string() + "-2", each - 1, shape_of(), budget_);
  ASSERT_TRUE(tiny);
  (*tiny)->offer(segments[5]);
  (*tiny)->flush();
  EXPECT_EQ((*tiny)->stats().dropped_total, 1U);
  fs::remove_all(directory_.string() + "-2");
}

TEST_F(DiskTierTest, OneProcessHasTheDirectoryForItself) {
  auto first = open();
  const auto second = DiskTier::open(directory_, kNoLimit, shape_of(), budget_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(second.error().message, HasSubstr("another process"));
  first.reset();
  EXPECT_TRUE(open());
}

TEST_F(DiskTierTest, WhatCannotBeWrittenIsCounted) {
  const auto segments = segments_of(some_tokens(20, 512), {256, 512}, budget_);
  const auto tier = open();
  // A directory in the way of the file: works for root too, whom no permission stops.
  fs::create_directories(directory_ / (hex(segments[0].key()) + ".unfinished"));
  tier->offer(segments[0]);
  tier->offer(segments[1]);
  tier->flush();
  EXPECT_EQ(tier->stats().write_errors_total, 1U);
  EXPECT_EQ(tier->stats().written_total, 1U);
  EXPECT_FALSE(tier->find(segments[0].key()));
  EXPECT_TRUE(tier->find(segments[1].key()));
}

TEST_F(DiskTierTest, WhatAKilledProcessLeftBehindIsRightOrNotThere) {
  // A child writes segments until it is killed; whatever is found afterwards must be what it computed.
  constexpr int kPrompts = 40;
  std::mt19937 random(static_cast<unsigned>(std::chrono::steady_clock::now().time_since_epoch().count()));
  int64_t found = 0;
  for (int kill_number = 0; kill_number < 5; ++kill_number) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto budget = std::make_shared<MemoryBudget>();
      auto tier = DiskTier::open(directory_, 400'000, shape_of(), budget);
      for (uint32_t i = 0; tier; i = (i + 1) % kPrompts) {
        for (const auto& segment : segments_of(some_tokens(1000 + i, 2000), {1024, 1920}, budget)) {
          (*tier)->offer(segment);
        }
        (*tier)->flush();
      }
      ::_exit(1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(5000 + random() % 60000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    const auto tier = open();
    EXPECT_TRUE(files(".unfinished").empty());
    EXPECT_EQ(tier->stats().bad_files_total, 0U);
    for (uint32_t i = 0; i < kPrompts; ++i) {
      for (const auto& segment : segments_of(some_tokens(1000 + i, 2000), {1024, 1920}, budget_)) {
        if (tier->find(segment.key())) {
          const auto loaded = load(*tier, {segment.key()});
          ASSERT_EQ(loaded.size(), 1U);
          EXPECT_TRUE(same_segment(segment, loaded[0]));
          ++found;
        }
      }
    }
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace hadal::cache
