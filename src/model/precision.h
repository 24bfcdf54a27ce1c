#pragma once
// What is rounded where. docs/numerics.md compares the modes.

#include <string_view>

#include "base/result.h"
#include "kernels/kernels.h"

namespace hadal::model {

/// `product` is what hadal serves with; the others are modes of the reference, for comparison.
enum class PrecisionMode {
  kProduct,  ///< cached rows quantized as the model defines them, linear inputs in bfloat16, the rest float32
  kF32,      ///< nothing is rounded: a test of the arithmetic
  kF32Kvq,   ///< only the cached rows are quantized
  kQat,      ///< the official regime: FP8 inputs of FP8/FP4 layers, bfloat16 between operations
};

/// "default", "f32", "f32_kvq", "qat".
inline Result<PrecisionMode> parse_precision(std::string_view name) {
  if (name == "default") {
    return PrecisionMode::kProduct;
  }
  if (name == "f32") {
    return PrecisionMode::kF32;
  }
  if (name == "f32_kvq") {
    return PrecisionMode::kF32Kvq;
  }
  if (name == "qat") {
    return PrecisionMode::kQat;
  }
  return fail(ErrorCode::kInvalidArgument, "precision '{}' is unknown; expected default, f32, f32_kvq or qat",
              name);
}

struct Precision {
  PrecisionMode mode = PrecisionMode::kProduct;

  bool quantized_cache() const { return mode != PrecisionMode::kF32; }
  /// bfloat16 at every border between operations
  bool rounds_between() const { return mode == PrecisionMode::kQat; }

  /// The rounding of the input of a layer with weights of this format.
  kernels::InputRounding input_rounding(kernels::WeightFormat format) const {
    using kernels::InputRounding;
    using kernels::WeightFormat;
    if (format == WeightFormat::kF32) {
      return InputRounding::kNone;
    }
    if (mode == PrecisionMode::kProduct) {
      return InputRounding::kBf16;
    }
    const bool quantized = format == WeightFormat::kFp8 || format == WeightFormat::kFp4;
    return mode == PrecisionMode::kQat && quantized ? InputRounding::kFp8 : InputRounding::kNone;
  }

  kernels::RowFormat window_format() const {
    return quantized_cache() ? kernels::RowFormat::kFp8 : kernels::RowFormat::kF32;
  }
  kernels::RowFormat entry_format(bool fp4) const {
    return quantized_cache() && fp4 ? kernels::RowFormat::kFp4Kv : window_format();
  }
  kernels::RowFormat index_format() const {
    return quantized_cache() ? kernels::RowFormat::kFp4Index : kernels::RowFormat::kF32;
  }
};

}  // namespace hadal::model
