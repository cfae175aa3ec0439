#include "runtime/bundle/Bundle.h"

#include <cerrno>
#include <sys/stat.h>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/BlobHash.h"
#include "runtime/bundle/BundleCheck.h"
#include "runtime/bundle/FileIO.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/Sha256.h"

namespace grok {
namespace {

/// Nothing but the blob is larger.
constexpr uint64_t kMaxFileBytes = 1 << 30;

absl::Status hashMismatch(const std::string &file, const std::string &found,
                          const std::string &expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      file, ": found sha256 ", found, ", expected ", expected,
      " as in the manifest; the file was changed or damaged: compile the "
      "bundle again, or restore it from a copy"));
}

/// Differs once another directory was renamed into a path's place.
using DirectoryIdentity = std::pair<dev_t, ino_t>;
DirectoryIdentity identityOf(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return {};
  return {info.st_dev, info.st_ino};
}

/// SHA-256 of a file; `progress` gets the bytes that are done.
absl::StatusOr<std::string>
hashFile(const std::string &file,
         const std::function<void(uint64_t)> &progress) {
  Sha256 hash;
  uint64_t done = 0;
  absl::Status status = streamFile(file, [&](std::span<const uint8_t> bytes) {
    hash.update(bytes);
    progress(done += bytes.size());
    return absl::OkStatus();
  });
  return status.ok() ? hash.finish() : status;
}

} // namespace

/// Opens a bundle, from the manifest outwards.
struct BundleReader {
  Bundle &bundle;

  std::string file(const char *name) const {
    return absl::StrCat(bundle.path_, "/", name);
  }

  absl::Status read() {
    using Step = absl::Status (BundleReader::*)();
    constexpr Step kSteps[] = {
        &BundleReader::readDirectory,   &BundleReader::readManifestFile,
        &BundleReader::readModel,       &BundleReader::readPlan,
        &BundleReader::checkOtherFiles, &BundleReader::mapBlob};
    for (Step step : kSteps)
      if (absl::Status status = (this->*step)(); !status.ok())
        return status;
    return absl::OkStatus();
  }

  absl::Status readDirectory() {
    struct stat info;
    if (::stat(bundle.path_.c_str(), &info) != 0)
      return systemError(bundle.path_, "opening", errno);
    if (!S_ISDIR(info.st_mode))
      return absl::InvalidArgumentError(absl::StrCat(
          bundle.path_, ": found a file, expected a bundle, a directory"));
    return absl::OkStatus();
  }

  absl::Status readManifestFile() {
    std::string path = file(kManifestFile);
    absl::StatusOr<std::string> text = readWholeFile(path, kMaxFileBytes);
    if (absl::IsNotFound(text.status()))
      return absl::InvalidArgumentError(absl::StrCat(
          bundle.path_, ": found no manifest.json, expected a bundle"));
    if (!text.ok())
      return text.status();
    absl::StatusOr<Manifest> manifest = readManifest(*text, path);
    if (!manifest.ok())
      return manifest.status();
    bundle.manifest_ = *std::move(manifest);
    return checkDirectory(bundle.path_, bundle.manifest_);
  }

  absl::Status readModel() {
    absl::StatusOr<std::string> text = bundle.readFile(kModelFile);
    if (!text.ok())
      return text.status();
    auto parts =
        readModelJson(*text, file(kModelFile), bundle.manifest_.formatVersion);
    if (!parts.ok())
      return parts.status();
    bundle.model_ = parts->first;
    bundle.options_ = parts->second;
    return absl::OkStatus();
  }

  absl::Status readPlan() {
    absl::StatusOr<std::string> text = bundle.readFile(kPlanFile);
    if (!text.ok())
      return text.status();
    auto plan = PlanTables::parse(*text, file(kPlanFile), bundle.model_);
    if (!plan.ok())
      return plan.status();
    bundle.plan_ = *std::move(plan);
    if (absl::Status status =
            checkOptions(bundle.options_, bundle.plan_, file(kPlanFile));
        !status.ok())
      return status;
    return checkManifest(bundle.manifest_, bundle.options_, bundle.plan_,
                         file(kManifestFile));
  }

  absl::Status checkOtherFiles() {
    for (const auto &[name, record] : bundle.manifest_.files)
      if (name != kBlobFile && name != kModelFile && name != kPlanFile)
        if (absl::Status status = bundle.readFile(name).status(); !status.ok())
          return status;
    return absl::OkStatus();
  }

  absl::Status mapBlob() {
    if (!bundle.hasFile(kBlobFile))
      return absl::OkStatus();
    auto blob = mapFile(file(kBlobFile), bundle.plan_.blobBytes);
    if (!blob.ok())
      return blob.status();
    bundle.blob_ = *blob;
    return absl::OkStatus();
  }
};

Bundle::~Bundle() { unmapFile(blob_); }

absl::StatusOr<std::shared_ptr<Bundle>> Bundle::open(const std::string &path) {
  constexpr int kTries = 4;
  std::string place = trimSlashes(path);
  for (int i = 0; i != kTries; ++i) {
    std::shared_ptr<Bundle> bundle(new Bundle);
    bundle->path_ = place;
    DirectoryIdentity before = identityOf(place);
    absl::Status status = BundleReader{*bundle}.read();
    if (identityOf(place) != before)
      continue; // some files may be one bundle's and some the other's
    if (!status.ok())
      return status;
    return bundle;
  }
  return absl::UnavailableError(absl::StrCat(
      place, ": found another bundle each of the ", kTries,
      " times that it was opened, expected one that stays; try again"));
}

absl::StatusOr<std::string> Bundle::readFile(const std::string &name) const {
  auto record = manifest_.files.find(name);
  std::string file = absl::StrCat(path_, "/", name);
  if (record == manifest_.files.end())
    return absl::NotFoundError(absl::StrCat(
        file, ": found no such file in the manifest, expected it"));
  absl::StatusOr<std::string> text = readWholeFile(file, kMaxFileBytes);
  if (!text.ok())
    return text.status();
  absl::StatusOr<std::string> hash = sha256(*text);
  if (!hash.ok())
    return hash.status();
  if (*hash != record->second.sha256)
    return hashMismatch(file, *hash, record->second.sha256);
  return text;
}

absl::Status
Bundle::verify(const std::function<void(uint64_t, uint64_t)> &progress) const {
  if (absl::Status status = checkDirectory(path_, manifest_); !status.ok())
    return status;
  uint64_t done = 0, total = 0;
  for (const auto &[name, record] : manifest_.files)
    total += record.bytes;
  for (const auto &[name, record] : manifest_.files) {
    auto report = [&](uint64_t ofFile) {
      if (progress)
        progress(done + ofFile, total);
    };
    const bool chunked =
        name == kBlobFile && manifest_.formatVersion >= kChunkedHashVersion;
    std::string file = absl::StrCat(path_, "/", name);
    absl::StatusOr<std::string> found =
        chunked ? hashBlobFile(file, record.bytes, report)
                : hashFile(file, report);
    if (!found.ok())
      return found.status();
    if (*found != record.sha256)
      return hashMismatch(file, *found, record.sha256);
    done += record.bytes;
  }
  return absl::OkStatus();
}

} // namespace grok
