#pragma once
// A name for a checkpoint as it is run: states that were kept on disk belong to one of them.

#include <string>

#include "base/settings.h"
#include "checkpoint/checkpoint.h"

namespace hadal::cli {

/// Differs when any file of the checkpoint, the precision, the replay mode or the program's version does.
/// Small files count with all their bytes; large ones with size, time of change and samples of 4 KiB, so
/// that a start does not read the weights. kIo if a file cannot be read.
Result<std::string> model_identity(const checkpoint::Checkpoint& checkpoint, const ModelSettings& settings);

}  // namespace hadal::cli
