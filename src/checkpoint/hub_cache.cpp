// The layout of the Hugging Face hub cache:
//   models--ORG--NAME/refs/REVISION        a text file with a commit hash
//   models--ORG--NAME/snapshots/HASH/FILE  a link to ../../blobs/...
#include <algorithm>
#include <system_error>

#include "base/log.h"
#include "base/mapped_file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model_files.h"

namespace hadal::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelPrefix = "models--";

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

/// True if `path` lies below `root`; both canonical.
bool is_below(const fs::path& path, const fs::path& root) {
  const auto [root_end, rest] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return root_end == root.end() && rest != path.end();
}

/// The models-- folder that a canonical snapshot directory belongs to; empty for any other directory.
fs::path hub_folder(const fs::path& directory) {
  const fs::path snapshots = directory.parent_path();
  const fs::path folder = snapshots.parent_path();
  return snapshots.filename() == "snapshots" && folder.filename().string().starts_with(kModelPrefix)
             ? folder
             : fs::path();
}

std::string repo_of_folder(const fs::path& folder) {
  std::string name = folder.filename().string().substr(kModelPrefix.size());
  if (const size_t dashes = name.find("--"); dashes != name.npos) {
    name.replace(dashes, 2, "/");
  }
  return name;
}

/// "org/name" as the hub allows it.
bool is_repo_id(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos || text.find('/', slash + 1) != text.npos || text.size() > 200) {
    return false;
  }
  const auto good_part = [](std::string_view part) {
    const auto good = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
             c == '_' || c == '.';
    };
    return !part.empty() && std::all_of(part.begin(), part.end(), good) && part.front() != '.' &&
           part.front() != '-' && part.back() != '.' && part.back() != '-' && part.find("--") == part.npos &&
           part.find("..") == part.npos;
  };
  return good_part(text.substr(0, slash)) && good_part(text.substr(slash + 1));
}

bool is_commit_hash(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() >= 7 && text.size() <= 64 && std::all_of(text.begin(), text.end(), hex);
}

/// A branch, a tag, a pull request ("refs/pr/1") or a commit hash, that cannot lead out of a folder.
bool is_revision(std::string_view text) {
  if (text.empty() || text.size() > 200 || text.find('\0') != text.npos) {
    return false;
  }
  const fs::path path(text);
  return path.is_relative() && std::none_of(path.begin(), path.end(), [](const fs::path& part) {
           return part == ".." || part == "." || part.empty();
         });
}

std::string download_command(std::string_view repo, std::string_view revision) {
  return revision == "main" ? fmt::format("hf download {}", repo)
                            : fmt::format("hf download {} --revision {}", repo, printable(revision, 200));
}

}  // namespace

Result<fs::path> resolve_model_file(const fs::path& directory, std::string_view name) {
  if (!is_plain_name(name)) {
    return fail(ErrorCode::kInvalidArgument,
                "{}: file name \"{}\", expected a plain name without directories", directory.string(),
                printable(name, 200));
  }
  std::error_code reason;
  const fs::path root = fs::canonical(directory, reason);
  if (reason) {
    return fail(reason == std::errc::no_such_file_or_directory ? ErrorCode::kNotFound : ErrorCode::kIo,
                "{}: {}", directory.string(), reason.message());
  }
  const fs::path folder = hub_folder(root);
  const fs::path target = fs::canonical(root / name, reason);
  if (reason == std::errc::no_such_file_or_directory) {
    if (!folder.empty()) {
      return fail(ErrorCode::kNotFound, "{}: {} is missing; complete the download with: {}",
                  directory.string(), printable(name, 200),
                  download_command(repo_of_folder(folder), root.filename().string()));
    }
    return fail(ErrorCode::kNotFound, "{}: {} is missing", directory.string(), printable(name, 200));
  }
  if (reason) {
    return fail(ErrorCode::kIo, "{}: {}: {}", directory.string(), printable(name, 200), reason.message());
  }
  if (is_below(target, root) || (!folder.empty() && is_below(target, folder / "blobs"))) {
    // Opening anything else could block (a pipe) or do worse.
    if (!fs::is_regular_file(target, reason)) {
      return fail(ErrorCode::kInvalidArgument, "{}: {} is not a regular file", directory.string(),
                  printable(name, 200));
    }
    return target;
  }
  return fail(
      ErrorCode::kInvalidArgument,
      "{}: {} is a symbolic link to {}, expected a file in this directory (or a blob of the same folder of "
      "the Hugging Face cache)",
      directory.string(), printable(name, 200), target.string());
}

Result<fs::path> find_model_directory(std::string_view model, const fs::path& cache_root,
                                      std::string_view revision) {
  if (model.empty() || model.find('\0') != model.npos) {
    return fail(ErrorCode::kInvalidArgument,
                "model: found \"{}\", expected a directory or a repo id like org/name",
                printable(model, 200));
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(fs::path(model), ignored);
  if (fs::is_directory(status)) {
    return fs::path(model);
  }
  if (fs::exists(status)) {
    return fail(ErrorCode::kInvalidArgument,
                "model: {} is not a directory; expected the directory of a checkpoint",
                printable(model, 400));
  }
  if (!is_repo_id(model)) {
    return fail(ErrorCode::kNotFound,
                "model: there is no directory \"{}\", and it is no repo id like org/name",
                printable(model, 400));
  }
  if (!is_revision(revision)) {
    return fail(ErrorCode::kInvalidArgument,
                "model revision: found \"{}\", expected a branch, tag or commit hash",
                printable(revision, 200));
  }

  const fs::path folder = cache_root / fmt::format("{}{}--{}", kModelPrefix, model.substr(0, model.find('/')),
                                                   model.substr(model.find('/') + 1));
  const std::string command = download_command(model, revision);
  std::string commit(revision);
  const fs::path reference = folder / "refs" / fs::path(revision);
  if (fs::is_regular_file(reference, ignored)) {
    HADAL_TRY(commit, read_text_file(reference, 4096));
    commit.erase(commit.find_last_not_of(" \t\r\n") + 1);
    if (!is_commit_hash(commit)) {
      return fail(ErrorCode::kCorrupt, "{}: found \"{}\", expected a commit hash; repair the cache with: {}",
                  reference.string(), printable(commit, 100), command);
    }
  }
  const fs::path snapshot = folder / "snapshots" / commit;
  if (!is_commit_hash(commit) || !fs::is_directory(snapshot, ignored)) {
    return fail(
        ErrorCode::kNotFound,
        "model: there is no directory \"{}\", and the Hugging Face cache at {} has no revision {} of it; get "
        "it with: {}",
        model, cache_root.string(), printable(revision, 200), command);
  }
  return snapshot;
}

}  // namespace hadal::checkpoint
