// The blob of a bundle that is being written: packed from its source, or the
// rest of it where an earlier run was killed.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/bundle/BlobHash.h"
#include "runtime/bundle/Bundle.h"

namespace grok {

class BlobFile;
class PackJournal;

class BlobWriter {
public:
  /// `directory`: where the files of the bundle are put together.
  BlobWriter(const ModelConfig &model, const PlanTables &plan,
             TensorSource &weights, std::string directory);

  /// `journal`: of the blob, open; null: a later run cannot go on with this
  /// one. `packed`: what an earlier run has packed.
  absl::StatusOr<FileRecord> write(PackJournal *journal,
                                   const ChunkHashes &packed,
                                   const WriteHooks &hooks);

private:
  absl::Status begin(BlobFile &file, const WriteHooks &hooks) const;
  absl::Status goOn(BlobFile &file, const ChunkHashes &packed,
                    const WriteHooks &hooks) const;

  const ModelConfig &model_;
  const PlanTables &plan_;
  TensorSource &weights_;
  std::string directory_;
};

} // namespace grok
