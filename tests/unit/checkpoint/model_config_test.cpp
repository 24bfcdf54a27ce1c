#include "checkpoint/model_config.h"

#include <numeric>

#include <gmock/gmock.h>

#include "test_support.h"

namespace hadal::checkpoint {
namespace {

using ::testing::HasSubstr;

/// `config` with the value at a JSON pointer replaced; a pointer that ends in "-" removes that field.
json with(json config, const std::string& pointer, const json& value) {
  config[json::json_pointer(pointer)] = value;
  return config;
}

json without(json config, const std::string& pointer) {
  const json::json_pointer place(pointer);
  config[place.parent_pointer()].erase(place.back());
  return config;
}

void expect_refused(const json& config, ErrorCode code, const std::string& expected) {
  const auto parsed = parse_model_config(config.dump());
  ASSERT_FALSE(parsed) << "should say: " << expected;
  EXPECT_THAT(parsed.error().message, HasSubstr(expected));
  EXPECT_THAT(parsed.error().message, ::testing::StartsWith("config.json: "));
  EXPECT_EQ(parsed.error().code, code) << parsed.error().message;
}

TEST(ModelConfig, ReadsTheRelease) {
  const auto config = load_model_config(data_path("flash-1017"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->image_token_id, 129264);
  EXPECT_EQ(config->tokenizer_compatibility, "release");
  const TextConfig& text = config->text;
  EXPECT_EQ(text.vocab_size, 129280);
  EXPECT_EQ(text.hidden_size, 5120);
  EXPECT_EQ(text.num_hidden_layers, 40);
  EXPECT_EQ(text.num_attention_heads, 64);
  EXPECT_EQ(text.head_dim, 512);
  EXPECT_EQ(text.qk_rope_head_dim, 64);
  EXPECT_EQ(text.q_lora_rank, 1280);
  EXPECT_EQ(text.o_lora_rank, 1024);
  EXPECT_EQ(text.o_groups, 8);
  EXPECT_EQ(text.sliding_window, 128);
  EXPECT_EQ(text.rope_theta, 10000);
  EXPECT_EQ(text.compress_rope_theta, 160000);
  ASSERT_TRUE(text.rope_scaling);
  EXPECT_EQ(text.rope_scaling->factor, 16);
  EXPECT_EQ(text.rope_scaling->original_max_position_embeddings, 65536);
  EXPECT_EQ(text.rope_scaling->beta_fast, 32);
  EXPECT_EQ(text.rope_scaling->beta_slow, 1);
  EXPECT_EQ(text.max_position_embeddings, 1048576);
  EXPECT_EQ(text.index_n_heads, 32);
  EXPECT_EQ(text.index_head_dim, 128);
  EXPECT_EQ(text.index_topk, 512);
  EXPECT_EQ(text.candidate_source_layer_id, 20);
  EXPECT_EQ(text.candidate_topk_blocks, 2048);
  EXPECT_EQ(text.candidate_block_size, 8);
  EXPECT_EQ(text.n_routed_experts, 384);
  EXPECT_EQ(text.n_shared_experts, 1);
  EXPECT_EQ(text.num_experts_per_tok, 6);
  EXPECT_EQ(text.moe_intermediate_size, 2304);
  EXPECT_EQ(text.routed_scaling_factor, 1.5);
  EXPECT_EQ(text.swiglu_limit, 10.0);
  EXPECT_EQ(text.rms_norm_eps, 1e-20);
  EXPECT_EQ(text.hc_mult, 4);
  EXPECT_EQ(text.hc_sinkhorn_iters, 20);
  EXPECT_EQ(text.hc_eps, 1e-6);
  EXPECT_EQ(text.engram_layer_ids, (std::vector<int64_t>{1, 14}));
  EXPECT_EQ(text.engram_num_embeddings, (std::vector<int64_t>{384006168, 384016682}));
  EXPECT_EQ(text.engram_max_ngram_size, 4);
  EXPECT_EQ(text.engram_vocab_size, 16000000);
  EXPECT_EQ(text.engram_n_heads, 8);
  EXPECT_EQ(text.engram_head_dim, 256);
  EXPECT_EQ(text.engram_pad_token_id, 2);
  EXPECT_EQ(text.engram_compressed_vocab_size, 99092);
  EXPECT_EQ(text.num_nextn_predict_layers, 3);
  EXPECT_EQ(text.dspark_block_size, 5);
  EXPECT_EQ(text.dspark_noise_token_id, 128799);
  EXPECT_EQ(text.dspark_target_layer_ids, (std::vector<int64_t>{37, 38, 39}));
  EXPECT_EQ(text.dspark_markov_rank, 256);
  EXPECT_EQ(text.dspark_n_routed_experts, 128);
  EXPECT_EQ(text.dspark_num_experts_per_tok, 3);
  EXPECT_TRUE(text.use_fp4_sparse_kv);
  EXPECT_EQ(text.gate_temp, 1.0);
  ASSERT_TRUE(config->vision);
  EXPECT_EQ(config->vision->hidden_size, 1024);
  EXPECT_EQ(config->vision->intermediate_size, 2816);
  EXPECT_EQ(config->vision->min_pixels, 295936);
  EXPECT_FALSE(config->vision->max_wh_ratio);
}

TEST(ModelConfig, DerivesWhoBorrowsFromWhomInTheRelease) {
  const auto config = load_model_config(data_path("flash-1017"));
  ASSERT_TRUE(config) << config.error().message;
  const TextConfig& text = config->text;
  EXPECT_EQ(text.first_consumer_layer, 20);
  ASSERT_EQ(text.kv_source_of.size(), 40U);
  for (size_t layer = 0; layer < 40; ++layer) {
    const int64_t kv = layer < 2 ? -1 : layer < 8 ? 2 : layer < 14 ? 8 : layer < 20 ? 14 : 20;
    EXPECT_EQ(text.kv_source_of[layer], kv) << layer;
    EXPECT_EQ(text.index_k_source_of[layer], kv) << layer;
    EXPECT_EQ(text.index_source_of[layer], layer < 20 ? kv : static_cast<int64_t>(layer / 4 * 4)) << layer;
  }
}

TEST(ModelConfig, ReadsEverySmallCheckpoint) {
  for (const char* name : {"tiny", "tiny-mini", "tiny-long", "tiny-smooth", "tiny-spec", "tiny-engram"}) {
    const auto config = load_model_config(data_path(name));
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->tokenizer_compatibility, "native");
    EXPECT_EQ(config->vision.has_value(), std::string(name) == "tiny");
  }
  const auto embedded = load_model_config(fs::path(HADAL_MODELS) / "tiny");
  ASSERT_TRUE(embedded) << embedded.error().message;
  EXPECT_EQ(embedded->text.engram_compressed_vocab_size, 1599);
}

TEST(ModelConfig, NullsAndAbsentFieldsMeanTheirDefaults) {
  json config = config_of("tiny-mini");
  config.erase("tokenizer_compatibility");
  for (const char* field : {"engram_layer_ids",
                            "engram_num_embeddings",
                            "engram_max_ngram_size",
                            "engram_vocab_size",
                            "engram_n_heads",
                            "engram_head_dim",
                            "engram_pad_token_id",
                            "engram_compressed_vocab_size",
                            "num_nextn_predict_layers",
                            "dspark_block_size",
                            "dspark_noise_token_id",
                            "dspark_target_layer_ids",
                            "dspark_markov_rank",
                            "dspark_n_routed_experts",
                            "dspark_num_experts_per_tok",
                            "candidate_source_layer_id",
                            "rope_scaling",
                            "attention_bias",
                            "attention_dropout",
                            "tie_word_embeddings"}) {
    config["text_config"].erase(field);
  }
  config["text_config"]["swiglu_limit"] = nullptr;
  config["vision_config"] = nullptr;
  const auto parsed = parse_model_config(config.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->tokenizer_compatibility, "release");
  EXPECT_FALSE(parsed->vision);
  EXPECT_FALSE(parsed->text.rope_scaling);
  EXPECT_FALSE(parsed->text.candidate_source_layer_id);
  EXPECT_EQ(parsed->text.swiglu_limit, 0.0);
  EXPECT_EQ(parsed->text.num_nextn_predict_layers, 0);
  EXPECT_EQ(parsed->text.index_k_source_layer_ids, parsed->text.kv_source_layer_ids);
  EXPECT_EQ(parsed->text.first_consumer_layer, 2);
}

TEST(ModelConfig, ReadsFieldsThatTheReleaseDoesNotHave) {
  json config = config_of("tiny-long");
  config["text_config"]["gate_temp"] = 2.5;
  config["text_config"]["use_fp4_sparse_kv"] = false;
  config["text_config"]["hc_shifted"] = true;
  config["text_config"]["index_k_source_layer_ids"] = {1, 3, 4};
  const auto parsed = parse_model_config(config.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->text.gate_temp, 2.5);
  EXPECT_FALSE(parsed->text.use_fp4_sparse_kv);
  EXPECT_EQ(parsed->text.index_k_source_of, (std::vector<int64_t>{-1, 1, 1, 3, 4, 4, 4, 4}));
  EXPECT_EQ(parsed->text.kv_source_of, (std::vector<int64_t>{-1, 1, 1, 1, 4, 4, 4, 4}));
}

TEST(ModelConfig, WithoutRatioOneThereIsNoConsumer) {
  json config = config_of("tiny-mini");
  config["text_config"]["compress_ratios"] = {0, 2, 2};
  config["text_config"]["kv_source_layer_ids"] = {1};
  config["text_config"]["index_source_layer_ids"] = {1};
  const auto parsed = parse_model_config(config.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->text.first_consumer_layer, 3);
}

TEST(ModelConfig, RefusesOtherArchitecturesByName) {
  const json config = config_of("tiny");
  for (const char* other : {"DeepseekV3ForCausalLM", "DeepseekV4ForCausalLM", "LlamaForCausalLM", ""}) {
    expect_refused(
        with(config, "/architectures", {other}), ErrorCode::kUnsupported,
        fmt::format("architectures: found [\"{}\"], expected exactly [\"DeepseekV41ForCausalLM\"]", other));
  }
  expect_refused(with(config, "/architectures", {"DeepseekV41ForCausalLM", "DeepseekV3ForCausalLM"}),
                 ErrorCode::kUnsupported,
                 "architectures: found [\"DeepseekV41ForCausalLM\",\"DeepseekV3ForCausalLM\"]");
  expect_refused(with(config, "/architectures", json::array()), ErrorCode::kUnsupported,
                 "architectures: found []");
  expect_refused(with(config, "/architectures", "DeepseekV41ForCausalLM"), ErrorCode::kUnsupported,
                 "architectures: found \"DeepseekV41ForCausalLM\" (a string)");
  expect_refused(without(config, "/architectures"), ErrorCode::kInvalidArgument, "architectures: missing");
  expect_refused(with(config, "/model_type", "deepseek_v3"), ErrorCode::kUnsupported,
                 "model_type: found \"deepseek_v3\" (a string), expected \"deepseek_v41\"");
}

TEST(ModelConfig, EveryRequiredFieldIsMissed) {
  const json config = config_of("tiny");
  const std::vector<std::string> required = {"/model_type",
                                             "/dtype",
                                             "/bos_token_id",
                                             "/eos_token_id",
                                             "/pad_token_id",
                                             "/image_token_id",
                                             "/quantization_config",
                                             "/quantization_config/quant_method",
                                             "/quantization_config/expert_dtype",
                                             "/quantization_config/activation_scheme",
                                             "/quantization_config/weight_block_size",
                                             "/quantization_config/scale_fmt",
                                             "/text_config",
                                             "/text_config/model_type",
                                             "/text_config/vocab_size",
                                             "/text_config/hidden_size",
                                             "/text_config/num_hidden_layers",
                                             "/text_config/num_attention_heads",
                                             "/text_config/num_key_value_heads",
                                             "/text_config/head_dim",
                                             "/text_config/qk_rope_head_dim",
                                             "/text_config/q_lora_rank",
                                             "/text_config/o_lora_rank",
                                             "/text_config/o_groups",
                                             "/text_config/sliding_window",
                                             "/text_config/rope_theta",
                                             "/text_config/compress_rope_theta",
                                             "/text_config/rope_scaling/rope_type",
                                             "/text_config/rope_scaling/factor",
                                             "/text_config/rope_scaling/beta_fast",
                                             "/text_config/rope_scaling/beta_slow",
                                             "/text_config/rope_scaling/original_max_position_embeddings",
                                             "/text_config/max_position_embeddings",
                                             "/text_config/compress_ratios",
                                             "/text_config/kv_source_layer_ids",
                                             "/text_config/index_source_layer_ids",
                                             "/text_config/index_n_heads",
                                             "/text_config/index_head_dim",
                                             "/text_config/index_topk",
                                             "/text_config/candidate_topk_blocks",
                                             "/text_config/candidate_block_size",
                                             "/text_config/n_routed_experts",
                                             "/text_config/n_shared_experts",
                                             "/text_config/num_experts_per_tok",
                                             "/text_config/moe_intermediate_size",
                                             "/text_config/scoring_func",
                                             "/text_config/topk_method",
                                             "/text_config/norm_topk_prob",
                                             "/text_config/routed_scaling_factor",
                                             "/text_config/hidden_act",
                                             "/text_config/rms_norm_eps",
                                             "/text_config/hc_mult",
                                             "/text_config/hc_sinkhorn_iters",
                                             "/text_config/hc_eps",
                                             "/text_config/engram_max_ngram_size",
                                             "/text_config/engram_vocab_size",
                                             "/text_config/engram_n_heads",
                                             "/text_config/engram_head_dim",
                                             "/text_config/dspark_block_size",
                                             "/text_config/dspark_noise_token_id",
                                             "/text_config/dspark_markov_rank",
                                             "/text_config/dspark_n_routed_experts",
                                             "/text_config/dspark_num_experts_per_tok",
                                             "/vision_config/model_type",
                                             "/vision_config/num_hidden_layers",
                                             "/vision_config/hidden_size",
                                             "/vision_config/num_attention_heads",
                                             "/vision_config/intermediate_size",
                                             "/vision_config/patch_size",
                                             "/vision_config/downsample_ratio",
                                             "/vision_config/rope_theta",
                                             "/vision_config/max_image_tokens",
                                             "/vision_config/min_pixels"};
  for (const std::string& pointer : required) {
    std::string dotted = pointer.substr(1);
    std::replace(dotted.begin(), dotted.end(), '/', '.');
    ASSERT_TRUE(config.contains(json::json_pointer(pointer))) << pointer;
    expect_refused(without(config, pointer), ErrorCode::kInvalidArgument, dotted + ": missing, expected ");
    // No field may be of another type either.
    const auto parsed = parse_model_config(with(config, pointer, json{{"a", true}}).dump());
    ASSERT_FALSE(parsed) << pointer;
    EXPECT_THAT(parsed.error().message, HasSubstr(dotted)) << pointer;
  }
}

TEST(ModelConfig, RefusesWrongValues) {
  const json config = config_of("tiny");
  constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument;
  constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
  const struct {
    const char* pointer;
    const char* value;
    ErrorCode code;
    const char* expected;
  } cases[] = {
      // Types.
      {"/text_config/hidden_size", R"("96")", kInvalid,
       "text_config.hidden_size: found \"96\" (a string), expected an integer from 32 to 65536 and a "
       "multiple of 32"},
      {"/text_config/hidden_size", R"(96.0)", kInvalid, "text_config.hidden_size: found 96.0 (a number)"},
      {"/text_config/hidden_size", R"(true)", kInvalid, "text_config.hidden_size: found true"},
      {"/text_config/hidden_size", R"(null)", kInvalid, "text_config.hidden_size: found null"},
      {"/text_config", R"([])", kInvalid, "text_config: found [], expected an object"},
      {"/text_config/use_fp4_sparse_kv", R"(1)", kInvalid,
       "text_config.use_fp4_sparse_kv: found 1, expected true or false"},
      {"/text_config/rope_theta", R"("10000")", kInvalid, "text_config.rope_theta: found \"10000\""},
      {"/text_config/compress_ratios", R"(2)", kInvalid,
       "text_config.compress_ratios: found 2, expected a list"},
      {"/vision_config", R"("x")", kInvalid, "vision_config: found \"x\" (a string), expected an object"},
      {"/tokenizer_compatibility", R"(7)", kInvalid, "tokenizer_compatibility: found 7, expected a string"},
      // Ranges: zero, negative, overflowing, not whole blocks.
      {"/text_config/num_attention_heads", R"(0)", kInvalid,
       "text_config.num_attention_heads: found 0, expected an integer from 1"},
      {"/text_config/num_hidden_layers", R"(0)", kInvalid, "text_config.num_hidden_layers: found 0"},
      {"/text_config/num_hidden_layers", R"(1000000)", kInvalid,
       "text_config.num_hidden_layers: found 1000000"},
      {"/text_config/vocab_size", R"(-1)", kInvalid, "text_config.vocab_size: found -1"},
      {"/text_config/vocab_size", R"(18446744073709551615)", kInvalid,
       "text_config.vocab_size: found 18446744073709551615"},
      {"/text_config/vocab_size", R"(9223372036854775807)", kInvalid,
       "text_config.vocab_size: found 9223372036854775807"},
      {"/text_config/hidden_size", R"(100)", kInvalid, "text_config.hidden_size: found 100, expected"},
      {"/text_config/head_dim", R"(48)", kInvalid, "text_config.head_dim: found 48"},
      {"/text_config/q_lora_rank", R"(33)", kInvalid, "text_config.q_lora_rank: found 33"},
      {"/text_config/o_lora_rank", R"(16)", kInvalid, "text_config.o_lora_rank: found 16"},
      {"/text_config/moe_intermediate_size", R"(40)", kInvalid,
       "text_config.moe_intermediate_size: found 40"},
      {"/text_config/index_head_dim", R"(40)", kInvalid, "text_config.index_head_dim: found 40"},
      {"/text_config/engram_head_dim", R"(40)", kInvalid, "text_config.engram_head_dim: found 40"},
      {"/text_config/qk_rope_head_dim", R"(33)", kInvalid, "text_config.qk_rope_head_dim: found 33"},
      {"/text_config/qk_rope_head_dim", R"(96)", kInvalid,
       "text_config.qk_rope_head_dim: found 96, expected an integer from 2 to 64"},
      {"/text_config/sliding_window", R"(0)", kInvalid, "text_config.sliding_window: found 0"},
      {"/text_config/index_topk", R"(0)", kInvalid, "text_config.index_topk: found 0"},
      {"/text_config/hc_mult", R"(0)", kInvalid, "text_config.hc_mult: found 0"},
      {"/text_config/hc_sinkhorn_iters", R"(0)", kInvalid, "text_config.hc_sinkhorn_iters: found 0"},
      {"/text_config/rms_norm_eps", R"(0)", kInvalid, "text_config.rms_norm_eps: found 0"},
      {"/text_config/rms_norm_eps", R"(1e-60)", kInvalid, "text_config.rms_norm_eps: found 1e-60"},
      {"/text_config/hc_eps", R"(-1e-6)", kInvalid, "text_config.hc_eps: found -1e-06"},
      {"/text_config/swiglu_limit", R"(-1)", kInvalid, "text_config.swiglu_limit: found -1"},
      {"/text_config/gate_temp", R"(0)", kInvalid, "text_config.gate_temp: found 0"},
      {"/text_config/routed_scaling_factor", R"(0)", kInvalid, "text_config.routed_scaling_factor: found 0"},
      {"/text_config/compress_rope_theta", R"(0)", kInvalid, "text_config.compress_rope_theta: found 0"},
      {"/text_config/max_position_embeddings", R"(0)", kInvalid,
       "text_config.max_position_embeddings: found 0"},
      {"/text_config/num_experts_per_tok", R"(17)", kInvalid,
       "text_config.num_experts_per_tok: found 17, expected an integer from 1 to 16"},
      {"/text_config/n_shared_experts", R"(0)", kInvalid, "text_config.n_shared_experts: found 0"},
      {"/text_config/o_groups", R"(3)", kInvalid,
       "text_config.o_groups: found 3, expected a divisor of text_config.num_attention_heads = 4"},
      {"/text_config/rope_scaling/factor", R"(0.5)", kInvalid, "text_config.rope_scaling.factor: found 0.5"},
      {"/text_config/rope_scaling/beta_slow", R"(64)", kInvalid,
       "text_config.rope_scaling.beta_slow: found 64, expected at most beta_fast = 32"},
      {"/text_config/rope_scaling/rope_type", R"("linear")", kUnsupported,
       "text_config.rope_scaling.rope_type: found \"linear\""},
      {"/text_config/rope_scaling/type", R"("linear")", kUnsupported,
       "text_config.rope_scaling.type: found \"linear\""},
      {"/bos_token_id", R"(2048)", kInvalid, "bos_token_id: found 2048, expected an integer from 0 to 2047"},
      {"/eos_token_id", R"(-1)", kInvalid, "eos_token_id: found -1"},
      {"/image_token_id", R"(5000)", kInvalid, "image_token_id: found 5000"},
      // Fixed values.
      {"/dtype", R"("float16")", kUnsupported, "dtype: found \"float16\" (a string), expected \"bfloat16\""},
      {"/quantization_config/quant_method", R"("awq")", kUnsupported,
       "quantization_config.quant_method: found \"awq\""},
      {"/quantization_config/expert_dtype", R"("fp8")", kUnsupported,
       "quantization_config.expert_dtype: found \"fp8\""},
      {"/quantization_config/activation_scheme", R"("static")", kUnsupported,
       "quantization_config.activation_scheme: found"},
      {"/quantization_config/weight_block_size", R"([128,128])", kUnsupported,
       "quantization_config.weight_block_size: found [128,128], expected [32,32]"},
      {"/quantization_config/weight_block_size", R"(32)", kUnsupported,
       "quantization_config.weight_block_size: found 32"},
      {"/quantization_config/scale_fmt", R"("float")", kUnsupported,
       "quantization_config.scale_fmt: found \"float\""},
      {"/text_config/num_key_value_heads", R"(8)", kUnsupported,
       "text_config.num_key_value_heads: found 8, expected 1"},
      {"/text_config/scoring_func", R"("sigmoid")", kUnsupported,
       "text_config.scoring_func: found \"sigmoid\""},
      {"/text_config/topk_method", R"("greedy")", kUnsupported, "text_config.topk_method: found \"greedy\""},
      {"/text_config/norm_topk_prob", R"(false)", kUnsupported,
       "text_config.norm_topk_prob: found false, expected true"},
      {"/text_config/hidden_act", R"("gelu")", kUnsupported, "text_config.hidden_act: found \"gelu\""},
      {"/text_config/attention_bias", R"(true)", kUnsupported,
       "text_config.attention_bias: found true, expected false"},
      {"/text_config/attention_dropout", R"(0.1)", kUnsupported, "text_config.attention_dropout: found 0.1"},
      {"/text_config/tie_word_embeddings", R"(true)", kUnsupported,
       "text_config.tie_word_embeddings: found true"},
      {"/text_config/hc_shifted", R"(false)", kUnsupported,
       "text_config.hc_shifted: found false, expected true"},
      {"/text_config/model_type", R"("deepseek_v4")", kUnsupported,
       "text_config.model_type: found \"deepseek_v4\""},
      {"/tokenizer_compatibility", R"("old")", kUnsupported, "tokenizer_compatibility: found \"old\""},
      // Engram.
      {"/text_config/engram_layer_ids", R"([1])", kInvalid,
       "text_config.engram_num_embeddings: found 2 entries, expected 1"},
      {"/text_config/engram_layer_ids", R"([4,1])", kInvalid,
       "text_config.engram_layer_ids[1]: found 1 behind 4, expected ascending"},
      {"/text_config/engram_layer_ids", R"([1,10])", kInvalid,
       "text_config.engram_layer_ids[1]: found 10, expected an integer from 0 to 9"},
      {"/text_config/engram_num_embeddings", R"([1916,2149])", kInvalid,
       "text_config.engram_num_embeddings[1]: found 2149, expected 2148, the sum of the primes"},
      {"/text_config/engram_num_embeddings", R"([1916])", kInvalid,
       "text_config.engram_num_embeddings: found 1 entries, expected 2"},
      {"/text_config/engram_num_embeddings", R"([-1,2148])", kInvalid,
       "text_config.engram_num_embeddings[0]: found -1"},
      {"/text_config/engram_max_ngram_size", R"(1)", kInvalid, "text_config.engram_max_ngram_size: found 1"},
      {"/text_config/engram_vocab_size", R"(0)", kInvalid, "text_config.engram_vocab_size: found 0"},
      {"/text_config/engram_vocab_size", R"(308)", kInvalid,
       "text_config.engram_num_embeddings[0]: found 1916, expected"},
      {"/text_config/engram_pad_token_id", R"(2048)", kInvalid,
       "text_config.engram_pad_token_id: found 2048"},
      // Drafts.
      {"/text_config/dspark_target_layer_ids", R"([7,8,10])", kInvalid,
       "text_config.dspark_target_layer_ids[2]: found 10"},
      {"/text_config/dspark_target_layer_ids", R"([7,7])", kInvalid,
       "text_config.dspark_target_layer_ids: found [7, 7]"},
      {"/text_config/dspark_target_layer_ids", R"([])", kInvalid,
       "text_config.dspark_target_layer_ids: found []"},
      {"/text_config/dspark_num_experts_per_tok", R"(9)", kInvalid,
       "text_config.dspark_num_experts_per_tok: found 9, expected at most "
       "text_config.dspark_n_routed_experts = 8"},
      {"/text_config/dspark_noise_token_id", R"(2048)", kInvalid,
       "text_config.dspark_noise_token_id: found 2048"},
      {"/text_config/num_nextn_predict_layers", R"(17)", kInvalid,
       "text_config.num_nextn_predict_layers: found 17"},
      // Vision.
      {"/vision_config/model_type", R"("clip")", kUnsupported, "vision_config.model_type: found \"clip\""},
      {"/vision_config/num_attention_heads", R"(3)", kInvalid, "vision_config.num_attention_heads: found 3"},
      {"/vision_config/num_attention_heads", R"(32)", kInvalid,
       "vision_config.num_attention_heads: found 32"},
      {"/vision_config/patch_size", R"(0)", kInvalid, "vision_config.patch_size: found 0"},
      {"/vision_config/max_image_tokens", R"(2)", kInvalid, "vision_config.max_image_tokens: found 2"},
      {"/vision_config/max_wh_ratio", R"(0)", kInvalid, "vision_config.max_wh_ratio: found 0"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.pointer);
    expect_refused(with(config, test.pointer, json::parse(test.value)), test.code, test.expected);
  }
}

TEST(ModelConfig, RefusesContradictoryTopology) {
  const json config = config_of("tiny");
  constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument;
  constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
  const struct {
    const char* fields;  // of text_config
    ErrorCode code;
    const char* expected;
  } cases[] = {
      {R"({"compress_ratios":[0,0,2,2,2,2,1,1,1,1,0,0]})", kInvalid,
       "text_config.compress_ratios: found 12 entries, expected 13"},
      {R"({"compress_ratios":[0,0,2,2,2,2,1,1,1,1,0,0,1]})", kInvalid,
       "text_config.compress_ratios[12]: found 1, expected 0 for a draft layer"},
      {R"({"compress_ratios":[0,0,2,2,-2,2,1,1,1,1,0,0,0]})", kInvalid,
       "text_config.compress_ratios[4]: found -2"},
      {R"({"compress_ratios":[0,0,4,4,2,2,1,1,1,1,0,0,0]})", kUnsupported,
       "text_config.compress_ratios[2]: found 4, expected 0, 1 or 2"},
      {R"({"compress_ratios":[0,0,128,4,2,2,1,1,1,1,0,0,0]})", kUnsupported,
       "text_config.compress_ratios[2]: found 128"},
      {R"({"compress_ratios":[0,1,2,2,2,2,1,1,1,1,0,0,0]})", kInvalid,
       "text_config.kv_source_layer_ids: found no entry at or below layer 1"},
      {R"({"compress_ratios":[0,0,2,1,2,2,1,1,1,1,0,0,0]})", kInvalid,
       "text_config.compress_ratios[3]: found 1, expected 2 as in layer 2, its source in "
       "text_config.kv_source_layer_ids"},
      {R"({"compress_ratios":[0,0,0,2,2,2,1,1,1,1,0,0,0]})", kInvalid,
       "text_config.kv_source_layer_ids: found layer 2, expected only layers with a compress ratio above 0"},
      {R"({"kv_source_layer_ids":[2,4,10]})", kInvalid,
       "text_config.kv_source_layer_ids[2]: found 10, expected an integer from 0 to 9"},
      {R"({"kv_source_layer_ids":[-1,4]})", kInvalid, "text_config.kv_source_layer_ids[0]: found -1"},
      {R"({"kv_source_layer_ids":[4,2,6]})", kInvalid,
       "text_config.kv_source_layer_ids[1]: found 2 behind 4"},
      {R"({"kv_source_layer_ids":[2,2,6]})", kInvalid,
       "text_config.kv_source_layer_ids[1]: found 2 behind 2"},
      {R"({"kv_source_layer_ids":[]})", kInvalid,
       "text_config.kv_source_layer_ids: found no entry at or below layer 2"},
      {R"({"index_source_layer_ids":[2,6,8]})", kInvalid,
       "text_config.index_source_layer_ids: layer 4 missing, expected every layer of "
       "text_config.index_k_source_layer_ids"},
      {R"({"index_k_source_layer_ids":[2,6]})", kInvalid,
       "text_config.index_k_source_layer_ids: layer 4 missing, expected every layer of "
       "text_config.kv_source_layer_ids"},
      {R"({"index_k_source_layer_ids":[2,4,6,9]})", kInvalid,
       "text_config.index_source_layer_ids: layer 9 missing"},
      {R"({"kv_source_layer_ids":[2,4,6,8]})", kUnsupported,
       "text_config.kv_source_layer_ids: found layer 8, expected none behind layer 6"},
      {R"({"candidate_source_layer_id":7})", kInvalid,
       "text_config.candidate_source_layer_id: found 7, expected a layer of "
       "text_config.index_source_layer_ids"},
      {R"({"candidate_source_layer_id":10})", kInvalid, "text_config.candidate_source_layer_id: found 10"},
      {R"({"candidate_source_layer_id":4})", kInvalid,
       "text_config.compress_ratios[6]: found 1, expected 2 as in the candidate source (layer 4)"},
      {R"({"candidate_topk_blocks":1})", kInvalid,
       "text_config.candidate_topk_blocks: found 1 blocks of 8, expected room for text_config.index_topk = "
       "16"},
      {R"({"candidate_block_size":0})", kInvalid, "text_config.candidate_block_size: found 0"},
      {R"({"candidate_topk_blocks":null})", kInvalid, "text_config.candidate_topk_blocks: found null"},
      {R"({"index_head_dim":32,"qk_rope_head_dim":64})", kInvalid,
       "text_config.index_head_dim: found 32, expected at least text_config.qk_rope_head_dim = 64"},
  };
  for (const auto& test : cases) {
    json changed = config;
    changed["text_config"].update(json::parse(test.fields));
    SCOPED_TRACE(test.expected);
    expect_refused(changed, test.code, test.expected);
  }
}

TEST(ModelConfig, RefusesAPrimeSearchThatWouldTakeMinutes) {
  json config = config_of("tiny");
  json& text = config["text_config"];
  std::vector<int> layers(41);
  std::iota(layers.begin(), layers.end(), 0);
  text["num_hidden_layers"] = 64;
  text["compress_ratios"] = std::vector<int>(67, 0);
  text["kv_source_layer_ids"] = json::array();
  text["index_source_layer_ids"] = json::array();
  text["candidate_source_layer_id"] = nullptr;
  text["engram_layer_ids"] = layers;
  text["engram_num_embeddings"] = std::vector<int>(41, 5);
  text["engram_max_ngram_size"] = 8;
  text["engram_n_heads"] = 64;
  expect_refused(config, ErrorCode::kUnsupported,
                 "text_config.engram_layer_ids: found 41 layers of 448 hash heads, expected at most 16384");
}

TEST(ModelConfig, RefusesTextThatIsNoConfig) {
  const struct {
    std::string text;
    const char* expected;
  } cases[] = {
      {"", "config.json: not valid JSON at byte"},
      {"[]", "config.json: document: found [], expected an object"},
      {"null", "config.json: document: found null"},
      {"{}" + std::string(1, '\0') + "{}", "config.json: NUL byte at byte 2"},
      {"{} {}", "config.json: not valid JSON at byte"},
      {R"({"a":1,"a":2})", "config.json: key \"a\" appears twice in one object"},
      {R"({"architectures":["DeepseekV41ForCausalLM"],"text_config":{"x":1,"x":2}})",
       "key \"x\" appears twice"},
      {std::string(1000, '['), "config.json: nested deeper than 32 levels"},
      {R"({"a":)" + std::string(40, '{'), "config.json: not valid JSON"},
      {"{\"rope_theta\":1e999}", "number overflow"},
      {"{}" + std::string(2 << 20, ' '), "config.json: 2097154 bytes, expected at most 1048576"},
  };
  for (const auto& test : cases) {
    const auto parsed = parse_model_config(test.text);
    ASSERT_FALSE(parsed) << test.expected;
    EXPECT_THAT(parsed.error().message, HasSubstr(test.expected));
  }
}

TEST(ModelConfig, NamesTheDirectoryOfABadFile) {
  const TempDir dir;
  const auto missing = load_model_config(dir.path());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr(dir.path().string() + ": config.json is missing"));
  write_file(dir.path() / "config.json", with(config_of("tiny"), "/dtype", "x").dump());
  const auto bad = load_model_config(dir.path());
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, HasSubstr(dir.path().string() + ": config.json: dtype: found \"x\""));
}

}  // namespace
}  // namespace hadal::checkpoint
