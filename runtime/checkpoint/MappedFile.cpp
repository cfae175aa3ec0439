#include "runtime/checkpoint/MappedFile.h"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"

namespace grok {
namespace {

absl::Status systemError(const std::string &path, const char *what) {
  return fileError(errno, absl::StrCat(path, ": cannot ", what));
}

} // namespace

absl::StatusOr<MappedFile> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::error_code error;
  if (file.fd < 0 && errno == ENOENT &&
      std::filesystem::is_symlink(path, error))
    return absl::NotFoundError(
        absl::StrCat(path, ": found a link to a file that is not there, "
                           "expected the weights; download them again"));
  if (file.fd < 0)
    return systemError(path, "open");
  struct stat info;
  if (fstat(file.fd, &info) != 0)
    return systemError(path, "read the size");
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": found a ",
                     S_ISDIR(info.st_mode) ? "directory" : "special file",
                     ", expected a regular file"));
  const FileState state(info);
  if (info.st_size == 0) // mmap refuses empty ranges
    return MappedFile(path, state, {});
  void *start =
      mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (start == MAP_FAILED)
    return systemError(path, "map into memory");
  return MappedFile(
      path, state, {static_cast<const uint8_t *>(start), size_t(info.st_size)});
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : path_(std::move(other.path_)), state_(other.state_),
      bytes_(std::exchange(other.bytes_, {})) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(path_, other.path_);
  std::swap(state_, other.state_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty())
    munmap(const_cast<uint8_t *>(bytes_.data()), bytes_.size());
}

void MappedFile::readAhead(uint64_t offset, uint64_t bytes) const {
  static const uint64_t page = uint64_t(::sysconf(_SC_PAGESIZE));
  uint64_t begin = offset / page * page; // a mapping begins with a page
  madvise(const_cast<uint8_t *>(bytes_.data()) + begin, offset + bytes - begin,
          MADV_WILLNEED);
}

void MappedFile::evict() const {
  // Only advice: where it is refused, the pages stay until memory is short.
  if (!bytes_.empty())
    madvise(const_cast<uint8_t *>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

} // namespace grok
