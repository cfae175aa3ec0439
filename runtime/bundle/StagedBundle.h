// The directory of a bundle while it is filled: new, or what a killed run of
// the same key left.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "runtime/bundle/BlobHash.h"
#include "runtime/bundle/FileIO.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/PackJournal.h"

namespace grok {

/// Keeps sizes and hashes for the manifest.
class StagedBundle {
public:
  explicit StagedBundle(std::string path) : path_(std::move(path)) {}
  /// `key` of the blob: what an earlier run of the same key left is taken over.
  /// Empty: there is no blob, or it cannot be gone on with.
  absl::Status create(const std::string &key, uint64_t blobBytes);
  /// Puts it into its place, without the journal.
  absl::Status commit(bool replace);
  const std::map<std::string, FileRecord> &files() const { return files_; }
  const std::string &path() const { return directory_.path(); }
  /// Of the blob, once created with a key.
  PackJournal &journal() { return journal_; }
  /// What of the blob should be there already.
  const ChunkHashes &packed() const { return packed_; }
  void addBlob(FileRecord record);
  absl::Status addFile(const std::string &name, const std::string &text);

private:
  std::string place(const std::string &name) const;
  void takeOver(const std::string &key, uint64_t blobBytes);
  absl::Status prepare(const std::string &key);
  absl::Status removeFile(const std::string &name);

  std::string path_;
  StagedDirectory directory_;
  PackJournal journal_;
  bool journaled_ = false;
  ChunkHashes packed_;
  std::map<std::string, FileRecord> files_;
};

} // namespace grok
