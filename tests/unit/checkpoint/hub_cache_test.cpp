#include <gmock/gmock.h>
#include <sys/stat.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_files.h"
#include "test_support.h"

namespace hadal::checkpoint {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

/// A hub cache with one model as `hf download` leaves it.
struct HubCache {
  TempDir dir;
  fs::path folder = dir.path() / "models--deepseek-ai--DeepSeek-V4.1-Flash";
  fs::path snapshot = folder / "snapshots" / kCommit;

  HubCache() {
    write_file(folder / "refs" / "main", kCommit);
    fs::create_directories(snapshot);
    fs::create_directories(folder / "blobs");
  }

  void add(const std::string& name, const std::string& blob, const std::string& content) const {
    write_file(folder / "blobs" / blob, content);
    fs::create_symlink(fs::path("../../blobs") / blob, snapshot / name);
  }
};

TEST(FindModel, TakesADirectoryAsItIs) {
  const TempDir dir;
  const auto found = find_model_directory(dir.path().string(), "/nowhere");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, dir.path());
}

TEST(FindModel, FollowsTheHubCache) {
  const HubCache cache;
  const auto found = find_model_directory("deepseek-ai/DeepSeek-V4.1-Flash", cache.dir.path());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, cache.snapshot);
  write_file(cache.folder / "refs" / "refs" / "pr" / "1", std::string(kCommit) + "\n");
  EXPECT_EQ(find_model_directory("deepseek-ai/DeepSeek-V4.1-Flash", cache.dir.path(), "refs/pr/1"),
            cache.snapshot);
  EXPECT_EQ(find_model_directory("deepseek-ai/DeepSeek-V4.1-Flash", cache.dir.path(), kCommit),
            cache.snapshot);
}

TEST(FindModel, SaysHowToGetAModel) {
  const HubCache cache;
  const auto missing = find_model_directory("deepseek-ai/Other", cache.dir.path());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, ::testing::EndsWith("get it with: hf download deepseek-ai/Other"));
  EXPECT_THAT(missing.error().message, HasSubstr(cache.dir.path().string()));

  const auto revision = find_model_directory("deepseek-ai/DeepSeek-V4.1-Flash", cache.dir.path(), "v2");
  ASSERT_FALSE(revision);
  EXPECT_THAT(revision.error().message,
              ::testing::EndsWith("hf download deepseek-ai/DeepSeek-V4.1-Flash --revision v2"));

  fs::remove_all(cache.snapshot);
  const auto gone = find_model_directory("deepseek-ai/DeepSeek-V4.1-Flash", cache.dir.path());
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error().message, ::testing::EndsWith("hf download deepseek-ai/DeepSeek-V4.1-Flash"));

  write_file(cache.folder / "refs" / "main", "../../../../etc");
  const auto corrupt = find_model_directory("deepseek-ai/DeepSeek-V4.1-Flash", cache.dir.path());
  ASSERT_FALSE(corrupt);
  EXPECT_EQ(corrupt.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(corrupt.error().message, HasSubstr("expected a commit hash"));
}

TEST(FindModel, RefusesWhatIsNeitherDirectoryNorRepo) {
  const HubCache cache;
  const fs::path file = cache.dir.path() / "file";
  write_file(file, "x");
  const struct {
    std::string model;
    ErrorCode code;
    const char* expected;
  } cases[] = {
      {"", ErrorCode::kInvalidArgument, "expected a directory or a repo id"},
      {std::string("a\0b", 3), ErrorCode::kInvalidArgument, "expected a directory or a repo id"},
      {file.string(), ErrorCode::kInvalidArgument, "is not a directory"},
      {"no-such-model", ErrorCode::kNotFound,
       "there is no directory \"no-such-model\", and it is no repo id"},
      {"/no/such/directory", ErrorCode::kNotFound, "there is no directory"},
      {"./no-such/directory", ErrorCode::kNotFound, "it is no repo id"},
      {"../models", ErrorCode::kNotFound, "it is no repo id"},
      {"a/..", ErrorCode::kNotFound, "it is no repo id"},
      {"a/b/c", ErrorCode::kNotFound, "it is no repo id"},
      {"a/b c", ErrorCode::kNotFound, "it is no repo id"},
      {"a/b--c", ErrorCode::kNotFound, "it is no repo id"},
      {"/b", ErrorCode::kNotFound, "it is no repo id"},
      {"a/", ErrorCode::kNotFound, "it is no repo id"},
      {"a/$(reboot)", ErrorCode::kNotFound, "it is no repo id"},
      {"a/" + std::string(100000, 'b'), ErrorCode::kNotFound, "it is no repo id"},
  };
  for (const auto& test : cases) {
    const auto found = find_model_directory(test.model, cache.dir.path());
    ASSERT_FALSE(found) << test.model.substr(0, 50);
    EXPECT_EQ(found.error().code, test.code) << found.error().message;
    EXPECT_THAT(found.error().message, HasSubstr(test.expected));
    EXPECT_LT(found.error().message.size(), 1000U);
  }
  for (const char* revision : {"", "../main", "refs/../../main", "/etc/passwd", "."}) {
    const auto found = find_model_directory("deepseek-ai/DeepSeek-V4.1-Flash", cache.dir.path(), revision);
    ASSERT_FALSE(found) << revision;
    EXPECT_EQ(found.error().code, ErrorCode::kInvalidArgument) << revision;
  }
}

TEST(ModelFiles, FollowLinksOfTheHubCache) {
  const HubCache cache;
  cache.add("config.json", "abc", "{}");
  const auto file = resolve_model_file(cache.snapshot, "config.json");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file, fs::canonical(cache.folder / "blobs" / "abc"));
}

TEST(ModelFiles, AnIncompleteDownloadNamesTheCommand) {
  const HubCache cache;
  fs::create_symlink("../../blobs/missing", cache.snapshot / "model.safetensors");
  for (const char* name : {"model.safetensors", "config.json"}) {
    const auto file = resolve_model_file(cache.snapshot, name);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(file.error().message,
                HasSubstr(fmt::format("{} is missing; complete the download with: hf download "
                                      "deepseek-ai/DeepSeek-V4.1-Flash --revision {}",
                                      name, kCommit)));
  }
}

TEST(ModelFiles, RefuseLinksThatLeave) {
  const HubCache cache;
  const TempDir elsewhere;
  write_file(elsewhere.path() / "secret", "x");
  write_file(cache.dir.path() / "models--other--model" / "blobs" / "abc", "x");
  write_file(cache.folder / "refs" / "x", "x");
  const struct {
    const char* name;
    fs::path target;
  } links[] = {{"absolute", elsewhere.path() / "secret"},
               {"other-model", "../../../models--other--model/blobs/abc"},
               {"refs", "../../refs/x"},
               {"passwd", "/etc/passwd"}};
  for (const auto& link : links) {
    fs::create_symlink(link.target, cache.snapshot / link.name);
    const auto file = resolve_model_file(cache.snapshot, link.name);
    ASSERT_FALSE(file) << link.name;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(file.error().message, HasSubstr(fmt::format("{} is a symbolic link to ", link.name)));
  }
  // A chain that passes through blobs but ends elsewhere.
  fs::create_symlink(elsewhere.path() / "secret", cache.folder / "blobs" / "chain");
  fs::create_symlink("../../blobs/chain", cache.snapshot / "chain");
  EXPECT_FALSE(resolve_model_file(cache.snapshot, "chain"));
  // A blobs folder that is itself elsewhere.
  fs::remove_all(cache.folder / "blobs");
  fs::create_directory_symlink(elsewhere.path(), cache.folder / "blobs");
  fs::create_symlink("../../blobs/secret", cache.snapshot / "moved");
  EXPECT_FALSE(resolve_model_file(cache.snapshot, "moved"));
  // A cycle.
  fs::create_symlink("loop", cache.snapshot / "loop");
  const auto loop = resolve_model_file(cache.snapshot, "loop");
  ASSERT_FALSE(loop);
  EXPECT_EQ(loop.error().code, ErrorCode::kIo);
}

TEST(ModelFiles, LinksInsideADirectoryAreFineAndNoOthers) {
  const TempDir dir;
  const fs::path model = dir.path() / "model";
  write_file(model / "data" / "x.safetensors", "x");
  write_file(dir.path() / "blobs" / "y.safetensors", "y");
  write_file(dir.path() / "model-twin" / "z.safetensors", "z");
  fs::create_symlink("data/x.safetensors", model / "x.safetensors");
  fs::create_symlink("../blobs/y.safetensors", model / "y.safetensors");
  fs::create_symlink("../model-twin/z.safetensors", model / "z.safetensors");
  EXPECT_TRUE(resolve_model_file(model, "x.safetensors"));
  EXPECT_FALSE(resolve_model_file(model, "y.safetensors"));
  EXPECT_FALSE(
      resolve_model_file(model, "z.safetensors"));  // "model" is a prefix of its name, not its folder
  // The directory itself may be reached through a link.
  fs::create_directory_symlink(model, dir.path() / "alias");
  EXPECT_TRUE(resolve_model_file(dir.path() / "alias", "x.safetensors"));
}

TEST(ModelFiles, RefuseNamesWithDirectories) {
  const TempDir dir;
  write_file(dir.path() / "sub" / "x", "x");
  for (const std::string& name :
       {std::string("../x"), std::string("sub/x"), std::string("/etc/passwd"), std::string(".."),
        std::string("."), std::string(), std::string("x\0y", 3), std::string(300, 'x')}) {
    const auto file = resolve_model_file(dir.path(), name);
    ASSERT_FALSE(file) << name;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument) << name;
  }
}

TEST(ModelFiles, RefuseWhatIsNoRegularFile) {
  const TempDir dir;
  fs::create_directory(dir.path() / "folder");
  ASSERT_EQ(::mkfifo((dir.path() / "pipe").c_str(), 0600), 0);
  for (const char* name : {"folder", "pipe"}) {
    const auto file = resolve_model_file(dir.path(), name);
    ASSERT_FALSE(file) << name;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(file.error().message, HasSubstr(fmt::format("{} is not a regular file", name)));
  }
}

TEST(Checkpoint, OpensASnapshotOfTheHubCache) {
  const HubCache cache;
  const CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
  const TempDir source;
  draft.write(source.path());
  for (const auto& entry : fs::directory_iterator(source.path())) {
    const std::string name = entry.path().filename().string();
    cache.add(name, "blob-of-" + name, "");
    fs::copy_file(entry.path(), cache.folder / "blobs" / ("blob-of-" + name),
                  fs::copy_options::overwrite_existing);
  }
  const auto found = find_model_directory("deepseek-ai/DeepSeek-V4.1-Flash", cache.dir.path());
  ASSERT_TRUE(found);
  const auto opened = Checkpoint::open(*found);
  ASSERT_TRUE(opened) << opened.error().message;

  const std::string shard = draft.shards.begin()->first;
  fs::remove(cache.folder / "blobs" / ("blob-of-" + shard));
  const auto incomplete = Checkpoint::open(*found);
  ASSERT_FALSE(incomplete);
  EXPECT_THAT(incomplete.error().message,
              HasSubstr(shard + " is missing; complete the download with: hf download"));
}

}  // namespace
}  // namespace hadal::checkpoint
