#include "runtime/bundle/BlobWriter.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/bundle/BlobFile.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/Names.h"
#include "runtime/bundle/PackBlob.h"
#include "runtime/bundle/PackJournal.h"

namespace grok {
namespace {

/// Bytes from one note in the journal to the next, which a killed run loses: a
/// small part of the blob, but enough to keep the disk busy.
uint64_t noteBytes(uint64_t blobBytes) {
  return std::clamp(blobBytes / 16, uint64_t(8) << 20, uint64_t(256) << 20);
}
/// Chunks in memory: where the blob is packed from front to back, those that
/// wait for disk and hash; else a layer of a small model, whose matrices each
/// have a part of all its chunks.
constexpr size_t kChunksInOrder = 8, kChunksOfMatrices = 24;
/// Blobs from which on it is worth while to say how long it takes.
constexpr uint64_t kLargeBlob = uint64_t(1) << 30;
/// What packing alone does on one core, hash beside it: from rows, and from
/// columns, which are turned first.
constexpr double kPackRate = 1.5e9, kTurnRate = 7e8;

std::string duration(double seconds) {
  if (seconds < 120)
    return absl::StrFormat("%.0f s", std::max(seconds, 1.0));
  if (seconds < 7200)
    return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

absl::Status announce(BlobFile &file, uint64_t bytes, bool turned,
                      const WriteHooks &hooks) {
  if (bytes < kLargeBlob || !hooks.report)
    return absl::OkStatus();
  absl::StatusOr<double> disk = file.measure();
  if (!disk.ok())
    return disk.status();
  double rate = std::min(*disk, turned ? kTurnRate : kPackRate);
  hooks.report(
      false, absl::StrFormat("weights: %.2f GB to write, about %s at %.2f GB/s",
                             double(bytes) * 1e-9,
                             duration(double(bytes) / rate), rate * 1e-9));
  return absl::OkStatus();
}

} // namespace

BlobWriter::BlobWriter(const ModelConfig &model, const PlanTables &plan,
                       TensorSource &weights, std::string directory)
    : model_(model), plan_(plan), weights_(weights),
      directory_(std::move(directory)) {}

absl::Status BlobWriter::begin(BlobFile &file, const WriteHooks &hooks) const {
  if (absl::Status status = file.create(); !status.ok())
    return status;
  return announce(file, plan_.blobBytes, weights_.wantsWholeMatrices(), hooks);
}

absl::Status BlobWriter::goOn(BlobFile &file, const ChunkHashes &packed,
                              const WriteHooks &hooks) const {
  absl::StatusOr<size_t> changed = file.reopen(packed);
  if (!changed.ok())
    return changed.status();
  if (*changed && hooks.report)
    hooks.report(
        true, absl::StrCat(directory_, "/", kBlobFile, ": found ", *changed,
                           *changed == 1 ? " chunk" : " chunks",
                           " changed since an earlier run, expected none; what "
                           "lies there is packed again, but the disk may be at "
                           "fault"));
  return absl::OkStatus();
}

absl::StatusOr<FileRecord> BlobWriter::write(PackJournal *journal,
                                             const ChunkHashes &packed,
                                             const WriteHooks &hooks) {
  const bool whole = weights_.wantsWholeMatrices(), again = !packed.empty();
  BlobFile file(absl::StrCat(directory_, "/", kBlobFile), plan_.blobBytes,
                whole ? kChunksOfMatrices : kChunksInOrder);
  absl::Status status = again ? goOn(file, packed, hooks) : begin(file, hooks);
  if (!status.ok())
    return status;

  std::vector<BlobPart> parts = packingOrder(model_, plan_, whole);
  uint64_t done = 0;
  std::erase_if(parts, [&](const BlobPart &part) {
    bool kept = again && file.holds(part.offset, part.bytes);
    done += kept ? part.bytes : 0;
    return kept;
  });
  for (const BlobPart &part : parts)
    file.expect(part.offset, part.bytes);
  if (again && hooks.report)
    hooks.report(false, absl::StrFormat("weights: going on at %.2f of %.2f "
                                        "GB, where an earlier run ended",
                                        double(done) * 1e-9,
                                        double(plan_.blobBytes) * 1e-9));

  BlobFile::Synced note;
  if (journal)
    note = [journal](const ChunkHashes &chunks) {
      return journal->note(chunks);
    };
  uint64_t noted = done, step = noteBytes(plan_.blobBytes);
  auto sink = [&](uint64_t offset, std::span<const uint8_t> bytes) {
    return file.write(offset, bytes);
  };
  auto partDone = [&](size_t count) {
    done += parts[count - 1].bytes;
    if (hooks.progress)
      hooks.progress(done, plan_.blobBytes);
    if (!note || done - noted < step)
      return absl::OkStatus();
    noted = done;
    return file.sync(note);
  };
  absl::StatusOr<QuantizationError> error =
      packParts(model_, plan_, weights_, parts, sink, partDone);
  if (!error.ok())
    return error.status();
  if (error->elements && hooks.report)
    hooks.report(
        false, absl::StrFormat("weights: %d elements rounded to %s%s, "
                               "relative error %.2e",
                               error->elements,
                               std::string(wordFor(plan_.quantization)),
                               again ? " since then" : "", error->relative()));
  absl::StatusOr<std::string> hash = file.finish(note);
  if (!hash.ok())
    return hash.status();
  if (hooks.progress)
    hooks.progress(plan_.blobBytes, plan_.blobBytes);
  return FileRecord{plan_.blobBytes, *std::move(hash)};
}

} // namespace grok
