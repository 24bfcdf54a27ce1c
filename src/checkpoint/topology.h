#pragma once
// Which layer owns what that other layers borrow: compressed entries, index keys, selections.

#include "base/result.h"
#include "checkpoint/model_config.h"

namespace hadal::checkpoint {

/// Checks the layer lists of `text` (already in range, ascending) against each other and fills the derived
/// fields first_consumer_layer, kv_source_of, index_source_of and index_k_source_of.
///
/// The rules. For each kind of source the source of a layer is the largest source id not above it. Every
/// layer with a compress ratio above 0 has a source of each kind, with the same ratio. kv sources are
/// index-key sources, index-key sources are index sources. The candidate source is an index source; the
/// index sources behind it have its ratio, and its blocks can hold index_topk groups. No kv source lies
/// behind the first layer with ratio 1 (kUnsupported).
Result<void> resolve_topology(TextConfig& text);

}  // namespace hadal::checkpoint
