// Preloaded before a program (LD_PRELOAD), makes calls into the system fail.
//
// GROK_FAULTS="CALL:N:ERROR" fails the N-th call (from 1) of CALL with the
// errno ERROR, a number; "CALL:0:short" lets each read or write move only a
// part of what it is asked to; "CALL:N:sigNUMBER" sends the program a signal
// before that call. Only calls after the program has opened a file
// whose name contains GROK_FAULTS_AFTER count, and with GROK_FAULTS_IN=NAME
// only those that read, write, sync or lock a file whose name contains NAME.
// GROK_FAULTS_NO_EXCHANGE: no two names can be exchanged, as on some file
// systems. GROK_FAULTS_COUNT=FILE: at its end the program writes how often it
// made each call there, a line "CALL COUNT" each.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr const char *kCalls[] = {"open",  "read",  "write",     "mmap",
                                  "fsync", "mkdir", "fallocate", "rename",
                                  "close", "flock", "malloc",    "thread"};
enum Call {
  kOpen,
  kRead,
  kWrite,
  kMmap,
  kFsync,
  kMkdir,
  kFallocate,
  kRename,
  kClose,
  kFlock,
  kMalloc,
  kThread,
  kNumCalls
};

/// No constructor: calls come before any has run.
std::atomic<long> counts[kNumCalls];
std::atomic<bool> counting;
int failing = -1;
long failAt;
int failWith, signalNumber;
bool shortened;

/// The function that this library stands before.
template <class F> F *next(const char *name) {
  return reinterpret_cast<F *>(dlsym(RTLD_NEXT, name));
}
#define NEXT(name) static auto *const real = next<decltype(name)>(#name)

constexpr int kMostFiles = 1024;
std::atomic<bool> namedFiles[kMostFiles];

const char *meantName() {
  static const char *const name = std::getenv("GROK_FAULTS_IN");
  return name;
}

/// Of an open file; -1: the call has none.
bool isMeant(int file) {
  return !meantName() || (file >= 0 && file < kMostFiles && namedFiles[file]);
}

bool fails(Call call, int file = -1) {
  if (!counting.load(std::memory_order_relaxed) || !isMeant(file))
    return false;
  if (++counts[call] != failAt || failing != call)
    return false;
  if (signalNumber) {
    kill(getpid(), signalNumber);
    return false;
  }
  errno = failWith;
  return true;
}

size_t part(Call call, size_t bytes) {
  return shortened && failing == call && counting && bytes > 1 ? (bytes + 2) / 3
                                                               : bytes;
}

bool contains(const char *path, const char *name) {
  return name && std::strstr(path, name);
}

void opened(const char *path) {
  static const char *const after = std::getenv("GROK_FAULTS_AFTER");
  if (contains(path, after))
    counting = true;
}

__attribute__((constructor)) void start() {
  const char *text = std::getenv("GROK_FAULTS");
  char call[16] = "", error[16] = "";
  if (text && std::sscanf(text, "%15[a-z]:%ld:%15s", call, &failAt, error) == 3)
    for (int i = 0; i != kNumCalls; ++i)
      if (std::strcmp(kCalls[i], call) == 0)
        failing = i;
  if (text && failing < 0) {
    std::fprintf(stderr, "GROK_FAULTS: found '%s', expected CALL:N:ERROR\n",
                 text);
    std::abort();
  }
  shortened = std::strcmp(error, "short") == 0;
  if (std::sscanf(error, "sig%d", &signalNumber) != 1)
    failWith = std::atoi(error);
}

__attribute__((destructor)) void end() {
  counting = false;
  const char *path = std::getenv("GROK_FAULTS_COUNT");
  FILE *file = path ? std::fopen(path, "w") : nullptr;
  for (int i = 0; file && i != kNumCalls; ++i)
    std::fprintf(file, "%s %ld\n", kCalls[i], counts[i].load());
  if (file)
    std::fclose(file);
}

} // namespace

extern "C" {

int open(const char *path, int flags, ...) {
  NEXT(open);
  va_list list;
  va_start(list, flags);
  mode_t mode = va_arg(list, mode_t);
  va_end(list);
  opened(path);
  const int file = fails(kOpen) ? -1 : real(path, flags, mode);
  if (file >= 0 && file < kMostFiles)
    namedFiles[file] = contains(path, meantName());
  return file;
}

ssize_t read(int file, void *to, size_t bytes) {
  NEXT(read);
  return fails(kRead, file) ? -1 : real(file, to, part(kRead, bytes));
}

ssize_t write(int file, const void *from, size_t bytes) {
  NEXT(write);
  return fails(kWrite, file) ? -1 : real(file, from, part(kWrite, bytes));
}

ssize_t pread(int file, void *to, size_t bytes, off_t at) {
  NEXT(pread);
  return fails(kRead, file) ? -1 : real(file, to, part(kRead, bytes), at);
}

ssize_t pwrite(int file, const void *from, size_t bytes, off_t at) {
  NEXT(pwrite);
  return fails(kWrite, file) ? -1 : real(file, from, part(kWrite, bytes), at);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file,
           off_t offset) {
  NEXT(mmap);
  return fails(kMmap) ? MAP_FAILED
                      : real(at, bytes, protection, flags, file, offset);
}

int fsync(int file) {
  NEXT(fsync);
  return fails(kFsync, file) ? -1 : real(file);
}

int flock(int file, int operation) {
  NEXT(flock);
  return fails(kFlock, file) ? -1 : real(file, operation);
}

int fdatasync(int file) {
  NEXT(fdatasync);
  return fails(kFsync, file) ? -1 : real(file);
}

/// What only begins to write says nothing of the disk.
int sync_file_range(int file, off_t at, off_t bytes, unsigned flags) {
  NEXT(sync_file_range);
  const bool waits = flags & SYNC_FILE_RANGE_WAIT_AFTER;
  return waits && fails(kFsync, file) ? -1 : real(file, at, bytes, flags);
}

int mkdir(const char *path, mode_t mode) {
  NEXT(mkdir);
  return fails(kMkdir) ? -1 : real(path, mode);
}

int fallocate(int file, int mode, off_t offset, off_t bytes) {
  NEXT(fallocate);
  return fails(kFallocate, file) ? -1 : real(file, mode, offset, bytes);
}

int rename(const char *from, const char *to) {
  NEXT(rename);
  return fails(kRename) ? -1 : real(from, to);
}

int renameat2(int fromFolder, const char *from, int toFolder, const char *to,
              unsigned flags) {
  NEXT(renameat2);
  if (flags & RENAME_EXCHANGE && std::getenv("GROK_FAULTS_NO_EXCHANGE")) {
    errno = EINVAL;
    return -1;
  }
  return fails(kRename) ? -1 : real(fromFolder, from, toFolder, to, flags);
}

/// It closes all the same, as Linux does.
int close(int file) {
  NEXT(close);
  const bool fail = fails(kClose, file);
  const int result = real(file);
  if (fail)
    errno = failWith;
  return fail ? -1 : result;
}

/// dlsym allocates, so that glibc's own name is called.
void *__libc_malloc(size_t);
void *malloc(size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_malloc(bytes);
}

void *__libc_memalign(size_t, size_t);
void *aligned_alloc(size_t alignment, size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_memalign(alignment, bytes);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*run)(void *), void *argument) {
  NEXT(pthread_create);
  return fails(kThread) ? failWith : real(thread, attributes, run, argument);
}

} // extern "C"
