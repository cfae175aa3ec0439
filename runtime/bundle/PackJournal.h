// What of a blob is packed for certain: a small file beside the blob, by which
// a later run goes on where this one was killed.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "runtime/bundle/BlobHash.h"
#include "runtime/bundle/FileIO.h"

namespace grok {

class PackJournal {
public:
  static constexpr const char *kFile = "packing";

  /// Begins one in a directory that is to be filled, and kept on signals once
  /// something is noted. `key` is of everything
  /// that the blob follows from. On the disk when it returns, so that whatever
  /// is put beside it is known by it.
  absl::Status create(StagedDirectory &directory, const std::string &key);
  /// Goes on with one that was found.
  absl::Status open(StagedDirectory &directory);
  /// Chunks that are whole and on the disk.
  absl::Status note(const ChunkHashes &chunks);
  absl::Status close() { return file_.close(); }

  /// What a journal in `directory` vouches for; nothing if there is no journal
  /// of this key.
  static std::optional<ChunkHashes> read(const std::string &directory,
                                         const std::string &key);

private:
  StagedDirectory *directory_ = nullptr;
  FileWriter file_;
};

} // namespace grok
