// How far the packing of a blob has come for certain: a small file beside the
// blob, by which a later run goes on where this one was killed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/bundle/FileIO.h"

namespace grok {

class PackJournal {
public:
  static constexpr const char *kFile = "packing";

  /// Begins one in a directory that is being filled. `key` is of everything
  /// that the blob follows from.
  absl::Status create(const std::string &directory, const std::string &key);
  /// Goes on with one that was found.
  absl::Status open(const std::string &directory);
  /// The blob's first `parts` parts, in packing order, are on the disk, and
  /// `chunks` are the hashes of the next chunks of it (BlobHash.h).
  absl::Status note(uint64_t parts, std::span<const std::string> chunks);
  /// It is not part of the bundle.
  absl::Status remove();

  /// What a journal in `directory` vouches for; none if there is no journal of
  /// this key, or it vouches for nothing.
  struct Packed {
    uint64_t parts = 0;
    std::vector<std::string> chunks; // hashes of the blob's first ones
  };
  static std::optional<Packed> read(const std::string &directory,
                                    const std::string &key);

private:
  std::string path_;
  FileWriter file_;
};

} // namespace grok
