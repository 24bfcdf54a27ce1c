// config.json from an untrusted directory: whatever is accepted must be safe to compute with.
#include <cstdint>
#include <cstdlib>

#include <spdlog/spdlog.h>

#include "checkpoint/memory_plan.h"
#include "checkpoint/model_config.h"
#include "checkpoint/tensor_catalog.h"

namespace {

using namespace hadal::checkpoint;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void check_sources(const TextConfig& text, const std::vector<int64_t>& source_of) {
  require(std::ssize(source_of) == text.num_hidden_layers);
  for (int64_t layer = 0; layer < text.num_hidden_layers; ++layer) {
    const int64_t source = source_of[static_cast<size_t>(layer)];
    const int64_t ratio = text.compress_ratios[static_cast<size_t>(layer)];
    require(ratio >= 0 && ratio <= 2);
    require(ratio == 0 ? source == -1
                       : source >= 0 && source <= layer &&
                             text.compress_ratios[static_cast<size_t>(source)] == ratio);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  const auto config = parse_model_config(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!config) {
    require(!config.error().message.empty() && config.error().message.size() < 5000);
    return 0;
  }
  const TextConfig& text = config->text;
  require(text.num_attention_heads % text.o_groups == 0);
  require(text.engram_num_embeddings.size() == text.engram_layer_ids.size());
  check_sources(text, text.kv_source_of);
  check_sources(text, text.index_source_of);
  check_sources(text, text.index_k_source_of);
  // No tensor's size overflows; the walk may be long, so only its front is taken.
  int num_seen = 0;
  (void)for_each_expected_tensor(*config, [&](const ExpectedTensor& tensor) -> hadal::Result<void> {
    const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
    require(bytes && *bytes < uint64_t{1} << 62);
    if (++num_seen == 2000) {
      return hadal::fail(hadal::ErrorCode::kCancelled, "enough");
    }
    return {};
  });
  const auto plan = plan_memory(*config, {}, text.max_position_embeddings, 1);
  require(plan.has_value());
  return 0;
}
