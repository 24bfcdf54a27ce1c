#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "checkpoint/tensor_catalog.h"
#include "test_support.h"

namespace hadal::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void expect_refused(const CheckpointDraft& draft, ErrorCode code, const std::string& expected) {
  const TempDir dir;
  draft.write(dir.path());
  const auto opened = Checkpoint::open(dir.path());
  ASSERT_FALSE(opened) << "should say: " << expected;
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr(expected), HasSubstr(dir.path().string())));
  EXPECT_EQ(opened.error().code, code) << opened.error().message;
}

/// What is logged while it lives.
class LogCapture {
 public:
  LogCapture() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_, true));
    spdlog::set_default_logger(std::move(logger));
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST(Checkpoint, OpensTheEmbeddedModelWithItsData) {
  const LogCapture log;
  const auto opened = Checkpoint::open(fs::path(HADAL_MODELS) / "tiny");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->num_shards(), 2U);
  EXPECT_EQ(opened->num_tensors(), 820U);
  EXPECT_EQ(opened->total_bytes(), 9220930U);
  EXPECT_EQ(opened->config().text.hidden_size, 192);
  EXPECT_TRUE(opened->has("layers.1.engram.embed.scale"));
  EXPECT_FALSE(opened->has("layers.0.engram.embed.scale"));
  const auto norm = opened->tensor("norm.weight");
  ASSERT_TRUE(norm) << norm.error().message;
  EXPECT_EQ(norm->dtype, DType::kBF16);
  EXPECT_EQ(norm->shape, std::vector<int64_t>{192});
  // A trained norm has no zero weights: the view points at data.
  const auto* weights = reinterpret_cast<const uint16_t*>(norm->data);
  EXPECT_TRUE(std::all_of(weights, weights + 192, [](uint16_t bits) { return bits != 0; }));
  const auto missing = opened->tensor("model.norm.weight");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("models/tiny: no tensor \"model.norm.weight\""));
  EXPECT_EQ(log.text(), "");
}

TEST(Checkpoint, OpensEverySmallCheckpointFromItsOriginalHeaders) {
  const struct {
    const char* name;
    size_t num_tensors;
  } cases[] = {{"tiny", 1568},       {"tiny-mini", 396}, {"tiny-long", 1035},
               {"tiny-smooth", 460}, {"tiny-spec", 640}, {"tiny-engram", 534}};
  for (const auto& test : cases) {
    const TempDir dir;
    write_file(dir.path() / "config.json", read_file(data_path(test.name) / "config.json"));
    json weight_map = json::object();
    for (const auto& entry : fs::directory_iterator(data_path(test.name))) {
      if (entry.path().extension() != ".header") {
        continue;
      }
      const std::string text = read_file(entry.path());
      const std::string shard = entry.path().stem().string();
      uint64_t data_bytes = 0;
      const json header = json::parse(text);
      for (const auto& [tensor, info] : header.items()) {
        if (tensor != "__metadata__") {
          data_bytes = std::max(data_bytes, info["data_offsets"][1].get<uint64_t>());
          weight_map[tensor] = shard;
        }
      }
      write_sparse_shard(dir.path() / shard, text, data_bytes);
    }
    const fs::path index = data_path(test.name) / "model.safetensors.index.json";
    write_file(dir.path() / "model.safetensors.index.json",
               fs::exists(index) ? read_file(index) : json{{"weight_map", weight_map}}.dump());
    const auto opened = Checkpoint::open(dir.path());
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->num_tensors(), test.num_tensors);
    size_t num_expected = 0;
    ASSERT_TRUE(for_each_expected_tensor(opened->config(), [&](const ExpectedTensor&) {
      ++num_expected;
      return Result<void>();
    }));
    EXPECT_EQ(num_expected, test.num_tensors) << test.name;
  }
}

TEST(Checkpoint, ViewsOutliveAMove) {
  auto opened = Checkpoint::open(fs::path(HADAL_MODELS) / "tiny");
  ASSERT_TRUE(opened);
  const std::byte* data = opened->tensor("embed.weight")->data;
  const Checkpoint moved = std::move(*opened);
  EXPECT_EQ(moved.tensor("embed.weight")->data, data);
  EXPECT_NE(data[0] | data[1] | data[2] | data[3], std::byte{0});
}

TEST(Checkpoint, AcceptsThePrefixOnAllTensors) {
  CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
  for (auto& [file, tensors] : draft.shards) {
    ShardTensors renamed;
    for (const auto& [name, info] : tensors) {
      renamed["model." + name] = info;
    }
    tensors = renamed;
  }
  const TempDir dir;
  draft.write(dir.path());
  const auto opened = Checkpoint::open(dir.path());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(opened->has("layers.0.attn.wq_a.weight"));
  EXPECT_FALSE(opened->has("model.layers.0.attn.wq_a.weight"));
}

TEST(Checkpoint, RefusesThePrefixOnSomeTensors) {
  CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
  auto node = draft.first_shard().extract("norm.weight");
  node.key() = "model.norm.weight";
  draft.first_shard().insert(std::move(node));
  expect_refused(
      draft, ErrorCode::kCorrupt,
      "tensor \"model.norm.weight\" has the prefix \"model.\" and \"layers.2.hc_ffn_scale\" has not");
}

TEST(Checkpoint, OpensOneFileWithoutAnIndex) {
  const CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
  const TempDir dir;
  write_file(dir.path() / "config.json", draft.config.dump());
  const auto empty = Checkpoint::open(dir.path());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(empty.error().message, HasSubstr("model.safetensors.index.json is missing"));

  CheckpointDraft::write_shard(dir.path() / "model.safetensors", draft.shards.begin()->second);
  const auto opened = Checkpoint::open(dir.path());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->num_tensors(), 396U);
}

TEST(Checkpoint, CountsTensorsThatNothingCallsFor) {
  CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
  draft.first_shard()["some.other.weight"] = {{"dtype", "F16"}, {"shape", {2, 2}}};
  draft.first_shard()["vision.norm.weight"] = {{"dtype", "BF16"},
                                               {"shape", {64}}};  // the config has no vision
  const TempDir dir;
  draft.write(dir.path());
  const LogCapture log;
  const auto opened = Checkpoint::open(dir.path());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT(log.text(), HasSubstr("2 tensors that the configuration does not call for are not used"));
}

TEST(Checkpoint, WarnsOfAWrongTotalSize) {
  const CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
  const TempDir dir;
  draft.write(dir.path());
  write_file(dir.path() / "model.safetensors.index.json",
             json{{"metadata", {{"total_size", 5}}}, {"weight_map", draft.weight_map()}}.dump());
  const LogCapture log;
  ASSERT_TRUE(Checkpoint::open(dir.path()));
  EXPECT_THAT(log.text(), HasSubstr("metadata.total_size is 5, but the tensors take"));
}

TEST(Checkpoint, RefusesEveryMissingOrMisshapenTensor) {
  // One of each kind that the model has.
  const char* names[] = {"embed.weight",
                         "norm.weight",
                         "head.weight",
                         "image_start",
                         "image_newline",
                         "image_end",
                         "layers.0.attn_norm.weight",
                         "layers.9.ffn_norm.weight",
                         "layers.3.hc_attn_fn",
                         "layers.3.hc_ffn_base",
                         "layers.3.hc_ffn_scale",
                         "layers.0.attn.attn_sink",
                         "layers.0.attn.wq_a.weight",
                         "layers.0.attn.wq_a.scale",
                         "layers.0.attn.q_norm.weight",
                         "layers.0.attn.wq_b.weight",
                         "layers.0.attn.wkv.scale",
                         "layers.0.attn.kv_norm.weight",
                         "layers.0.attn.wo_a.weight",
                         "layers.0.attn.wo_b.scale",
                         "layers.2.attn.compressor.wkv.weight",
                         "layers.2.attn.compressor.wgate.weight",
                         "layers.6.attn.compressor.norm.weight",
                         "layers.8.attn.indexer.wq_b.weight",
                         "layers.8.attn.indexer.weights_proj.weight",
                         "layers.6.attn.indexer.wk.weight",
                         "layers.6.attn.indexer.k_norm.weight",
                         "layers.1.engram.embed.weight",
                         "layers.4.engram.embed.scale",
                         "layers.1.engram.wkv.weight",
                         "layers.1.engram.q_weight",
                         "layers.4.engram.k_weight",
                         "layers.5.ffn.gate.weight",
                         "layers.5.ffn.gate.bias",
                         "layers.5.ffn.gate.bias_vl",
                         "layers.5.ffn.experts.0.w1.weight",
                         "layers.5.ffn.experts.15.w2.scale",
                         "layers.5.ffn.experts.7.w3.weight",
                         "layers.5.ffn.shared_experts.w1.weight",
                         "layers.5.ffn.shared_experts.w2.scale",
                         "layers.5.ffn.shared_experts.w3.weight",
                         "mtp.0.main_proj.weight",
                         "mtp.0.main_norm.weight",
                         "mtp.1.attn.wkv.weight",
                         "mtp.2.ffn.experts.7.w1.weight",
                         "mtp.2.norm.weight",
                         "mtp.2.markov_head.embed.weight",
                         "mtp.2.markov_head.head.weight",
                         "mtp.2.confidence_head.proj.weight",
                         "vision.patch_embed.proj.weight",
                         "vision.patch_embed.proj.bias",
                         "vision.blocks.1.norm1.weight",
                         "vision.blocks.1.norm2.weight",
                         "vision.blocks.1.attn.wqkv.bias",
                         "vision.blocks.0.attn.wo.weight",
                         "vision.blocks.0.mlp.w1.weight",
                         "vision.blocks.0.mlp.w2.weight",
                         "vision.norm.weight",
                         "aligner.w1.weight",
                         "aligner.w2.bias"};
  const CheckpointDraft draft = CheckpointDraft::load("tiny");
  const TempDir dir;
  draft.write(dir.path());
  ASSERT_TRUE(Checkpoint::open(dir.path()));
  int fault = 0;
  for (const char* name : names) {
    const std::string file = draft.weight_map().at(name).get<std::string>();
    const auto reopen = [&](const std::function<void(CheckpointDraft&)>& change) {
      CheckpointDraft changed = draft;
      change(changed);
      write_file(dir.path() / "model.safetensors.index.json",
                 json{{"weight_map", changed.weight_map()}}.dump());
      CheckpointDraft::write_shard(dir.path() / file, changed.shards.at(file));
      auto opened = Checkpoint::open(dir.path());
      return opened ? Error{ErrorCode::kInternal, "opened"} : opened.error();
    };
    const Error missing = reopen([&](CheckpointDraft& changed) { changed.shards.at(file).erase(name); });
    EXPECT_EQ(missing.code, ErrorCode::kNotFound) << missing.message;
    EXPECT_THAT(missing.message, HasSubstr(fmt::format("tensor \"{}\": missing, expected ", name)));

    // Each tensor gets one of three other faults in turn.
    const Error misshapen = reopen([&](CheckpointDraft& changed) {
      json& info = changed.shards.at(file).at(name);
      switch (fault++ % 3) {
        case 0:
          info["shape"].back() = info["shape"].back().get<int64_t>() + 1;
          break;
        case 1:
          info["shape"].push_back(1);
          break;
        default:
          info["dtype"] = "U8";
      }
    });
    EXPECT_EQ(misshapen.code, ErrorCode::kCorrupt);
    EXPECT_THAT(misshapen.message, HasSubstr(fmt::format("tensor \"{}\": found ", name)));
    EXPECT_THAT(misshapen.message, HasSubstr("], expected "));
    CheckpointDraft::write_shard(dir.path() / file, draft.shards.at(file));
  }
}

TEST(Checkpoint, RefusesUnsupportedLayouts) {
  for (const char* name : {"layers.1.hc_attn_norm.weight", "layers.0.hc_ffn_norm.weight",
                           "hc_head_norm.weight", "hc_head_fn", "hc_head_base", "hc_head_scale"}) {
    CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
    draft.first_shard()[name] = {{"dtype", "F32"}, {"shape", {4}}};
    expect_refused(draft, ErrorCode::kUnsupported,
                   fmt::format("tensor \"{}\": belongs to another layout of the hyper-connections", name));
  }
}

TEST(Checkpoint, RefusesMisalignedTensors) {
  const CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
  const TempDir dir;
  draft.write(dir.path());
  const fs::path shard = dir.path() / draft.shards.begin()->first;
  const std::string bytes = read_file(shard);
  const uint64_t length = static_cast<uint8_t>(bytes[0]) |
                          static_cast<uint64_t>(static_cast<uint8_t>(bytes[1])) << 8 |
                          static_cast<uint64_t>(static_cast<uint8_t>(bytes[2])) << 16;
  write_file(shard, length_prefix(length + 1) + bytes.substr(8, length) + " " + bytes.substr(8 + length));
  const auto opened = Checkpoint::open(dir.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(opened.error().message, HasSubstr("is not aligned to 2 bytes"));
}

TEST(Checkpoint, RefusesAnIndexThatDisagreesWithTheShards) {
  {
    CheckpointDraft draft = CheckpointDraft::load("tiny");
    draft.index = draft.weight_map();
    draft.index["embed.weight"] = "model-00002-of-00003.safetensors";
    expect_refused(draft, ErrorCode::kCorrupt,
                   "tensor \"embed.weight\": listed in model-00002-of-00003.safetensors, but "
                   "model-00001-of-00003.safetensors holds it");
    draft.index.erase("embed.weight");
    expect_refused(draft, ErrorCode::kCorrupt,
                   "tensor \"embed.weight\": not listed, but model-00001-of-00003.safetensors holds it");
    draft.index = draft.weight_map();
    draft.index["ghost.weight"] = "model-00001-of-00003.safetensors";
    expect_refused(draft, ErrorCode::kCorrupt,
                   "tensor \"ghost.weight\": listed in model-00001-of-00003.safetensors, but that file does "
                   "not hold it");
    draft.index = draft.weight_map();
    draft.index["ghost.weight"] = "model-00004-of-00003.safetensors";
    expect_refused(draft, ErrorCode::kNotFound, "model-00004-of-00003.safetensors is missing");
  }
  {
    // The same tensor in two shards.
    CheckpointDraft draft = CheckpointDraft::load("tiny");
    draft.shards.rbegin()->second["embed.weight"] = draft.first_shard().at("embed.weight");
    expect_refused(draft, ErrorCode::kCorrupt,
                   "tensor \"embed.weight\": listed in model-00003-of-00003.safetensors, but "
                   "model-00001-of-00003.safetensors holds it");
  }
}

TEST(Checkpoint, RefusesShardsOutsideTheDirectory) {
  for (const char* outside :
       {"../model-00001-of-00001.safetensors", "/tmp/model.safetensors", "sub/x.safetensors"}) {
    CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
    draft.index = draft.weight_map();
    draft.index["norm.weight"] = outside;
    expect_refused(draft, ErrorCode::kCorrupt,
                   fmt::format("tensor \"norm.weight\": found file \"{}\"", outside));
  }
}

TEST(Checkpoint, RefusesTruncatedShards) {
  const CheckpointDraft draft = CheckpointDraft::load("tiny");
  const TempDir dir;
  draft.write(dir.path());
  const fs::path shard = dir.path() / "model-00002-of-00003.safetensors";
  const uint64_t size = fs::file_size(shard);
  for (const uint64_t cut : {size - 1, uint64_t{20000}, uint64_t{8}, uint64_t{3}, uint64_t{0}}) {
    draft.write(dir.path());
    fs::resize_file(shard, cut);
    const auto opened = Checkpoint::open(dir.path());
    ASSERT_FALSE(opened) << cut;
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(opened.error().message, HasSubstr("model-00002-of-00003.safetensors: "));
  }
}

TEST(Checkpoint, AHugeExpertCountEndsAtTheFirstMissingTensor) {
  CheckpointDraft draft = CheckpointDraft::load("tiny-mini");
  draft.config["text_config"]["n_routed_experts"] = 65536;
  expect_refused(draft, ErrorCode::kCorrupt,
                 "tensor \"layers.0.ffn.gate.weight\": found BF16 [16, 64], expected BF16 [65536, 64]");
}

TEST(Checkpoint, SumsBytesByPart) {
  const auto opened = Checkpoint::open(fs::path(HADAL_MODELS) / "tiny");
  ASSERT_TRUE(opened);
  const auto parts = opened->parts();
  uint64_t bytes = 0;
  uint64_t tensors = 0;
  std::map<std::string, uint64_t> by_name;
  for (const auto& part : parts) {
    bytes += part.bytes;
    tensors += part.tensors;
    by_name[part.name] = part.bytes;
  }
  EXPECT_EQ(bytes, opened->total_bytes());
  EXPECT_EQ(tensors, opened->num_tensors());
  EXPECT_EQ(by_name.at("embedding and head"), 2U * 2048 * 192 * 2);
  EXPECT_EQ(by_name.at("engram tables"), 6108U * (32 + 1));
  // 8 layers of 8 experts, three matrices of 128 x 192 each: half a byte an element, a scale byte for 32.
  EXPECT_EQ(by_name.at("routed experts"), 8U * 8 * 3 * (128 * 192 / 2 + 128 * 192 / 32));
  EXPECT_FALSE(by_name.contains("vision"));
}

TEST(Checkpoint, NamesThePartOfATensor) {
  const struct {
    const char* tensor;
    const char* part;
  } cases[] = {{"embed.weight", "embedding and head"},
               {"head.weight", "embedding and head"},
               {"layers.0.attn.wq_a.scale", "attention"},
               {"layers.12.attn.compressor.wkv.weight", "compressors and indexers"},
               {"layers.12.attn.indexer.wq_b.weight", "compressors and indexers"},
               {"layers.3.ffn.experts.383.w2.weight", "routed experts"},
               {"layers.3.ffn.shared_experts.w1.weight", "shared experts"},
               {"layers.3.ffn.gate.weight", "other"},
               {"layers.1.engram.embed.weight", "engram tables"},
               {"layers.1.engram.wkv.weight", "engram projections"},
               {"mtp.0.ffn.experts.1.w1.weight", "draft layers"},
               {"vision.norm.weight", "vision"},
               {"aligner.w1.bias", "vision"},
               {"image_newline", "vision"},
               {"norm.weight", "other"},
               {"layers.", "other"},
               {"layers.7", "other"},
               {"", "other"}};
  for (const auto& test : cases) {
    EXPECT_EQ(part_name(part_of(test.tensor)), test.part) << test.tensor;
  }
}

}  // namespace
}  // namespace hadal::checkpoint
