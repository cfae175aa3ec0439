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
/// Blobs from which on it is worth while to say how long it takes.
constexpr uint64_t kLargeBlob = uint64_t(1) << 30;
/// What packing alone does on one core, hash beside it.
constexpr double kPackRate = 1e9;

std::string duration(double seconds) {
  if (seconds < 120)
    return absl::StrFormat("%.0f s", std::max(seconds, 1.0));
  if (seconds < 7200)
    return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

absl::Status announce(BlobFile &file, uint64_t bytes, const WriteHooks &hooks) {
  if (bytes < kLargeBlob || !hooks.report)
    return absl::OkStatus();
  absl::StatusOr<double> disk = file.measure();
  if (!disk.ok())
    return disk.status();
  double rate = std::min(*disk, kPackRate);
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

absl::StatusOr<FileRecord> BlobWriter::write(const std::string &key,
                                             const PackJournal::Packed &packed,
                                             const WriteHooks &hooks) {
  bool whole = weights_.wantsWholeMatrices();
  std::vector<BlobPart> parts = packingOrder(model_, plan_, whole);
  uint64_t skipped = std::min<uint64_t>(packed.parts, parts.size()), done = 0;
  for (uint64_t i = 0; i < skipped; ++i)
    done += parts[i].bytes;
  std::span<const BlobPart> rest = std::span(parts).subspan(skipped);

  PackJournal journal; // outlives the file's threads, which write to it
  BlobFile file(absl::StrCat(directory_, "/", kBlobFile), plan_.blobBytes,
                whole ? BlobFile::Order::kAny : BlobFile::Order::kAscending);
  absl::Status status;
  if (packed.parts) {
    const BlobPart *last = skipped ? &parts[skipped - 1] : nullptr;
    status = file.reopen(last ? last->offset + last->bytes : 0, packed.chunks);
    if (status.ok())
      status = journal.open(directory_);
    if (status.ok() && hooks.report)
      hooks.report(false, absl::StrFormat("weights: going on at %.2f of %.2f "
                                          "GB, where an earlier run ended",
                                          double(done) * 1e-9,
                                          double(plan_.blobBytes) * 1e-9));
  } else {
    status = file.create();
    if (status.ok())
      status = announce(file, plan_.blobBytes, hooks);
    if (status.ok() && !key.empty())
      status = journal.create(directory_, key);
  }
  if (!status.ok())
    return status;

  uint64_t noted = done, step = noteBytes(plan_.blobBytes);
  auto sink = [&](uint64_t offset, std::span<const uint8_t> bytes) {
    return file.write(offset, bytes);
  };
  auto partDone = [&](size_t count) {
    done += rest[count - 1].bytes;
    if (hooks.progress)
      hooks.progress(done, plan_.blobBytes);
    if (key.empty() || done - noted < step)
      return absl::OkStatus();
    noted = done;
    return file.sync([&journal, number = skipped + count](
                         std::span<const std::string> chunks) {
      return journal.note(number, chunks);
    });
  };
  absl::StatusOr<QuantizationError> error =
      packParts(model_, plan_, weights_, rest, sink, partDone);
  if (!error.ok())
    return error.status();
  if (error->elements && hooks.report)
    hooks.report(false,
                 absl::StrFormat("weights: %d elements rounded to %s, relative "
                                 "error %.2e",
                                 error->elements,
                                 std::string(wordFor(plan_.quantization)),
                                 error->relative()));
  absl::StatusOr<std::string> hash = file.finish();
  if (!hash.ok())
    return hash.status();
  if (!key.empty())
    if (status = journal.remove(); !status.ok())
      return status;
  if (hooks.progress)
    hooks.progress(plan_.blobBytes, plan_.blobBytes);
  return FileRecord{plan_.blobBytes, *std::move(hash)};
}

} // namespace grok
