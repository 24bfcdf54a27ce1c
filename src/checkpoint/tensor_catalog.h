#pragma once
// The tensors that a configuration calls for (model.md section 2), and the part of the model that a tensor
// belongs to.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/model_config.h"
#include "checkpoint/safetensors.h"

namespace hadal::checkpoint {

struct ExpectedTensor {
  std::string name;  ///< without the optional "model." prefix
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

/// Calls `visit` for every tensor in a fixed order; the first error ends the walk and is returned. Nothing is
/// collected, so that a configuration with absurd counts costs no memory.
Result<void> for_each_expected_tensor(const ModelConfig& config,
                                      const std::function<Result<void>(const ExpectedTensor&)>& visit);

enum class PartKind {
  kEmbeddingAndHead,
  kAttention,
  kRoutedExperts,
  kSharedExperts,
  kEngramTables,
  kEngramProjections,
  kCompressorsAndIndexers,
  kDraftLayers,
  kVision,
  kOther,  ///< norms, routers, hyper-connections; tensors that no configuration calls for
};
inline constexpr int kNumPartKinds = 10;

std::string_view part_name(PartKind kind);

/// The part of a tensor, by its name without prefix.
PartKind part_of(std::string_view tensor_name);

}  // namespace hadal::checkpoint
