#include "runtime/bundle/SharedLibrary.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"

namespace grok {

absl::StatusOr<void *> openLibrary(const std::string &name) {
  struct stat info;
  // The loader would wait for whoever writes to a pipe.
  if (name.find('/') != name.npos && ::stat(name.c_str(), &info) == 0 &&
      !S_ISREG(info.st_mode))
    return absl::UnavailableError(
        absl::StrCat(name, ": found what is no regular file, expected a shared "
                           "library"));
  if (void *library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
    return library;
  return absl::UnavailableError(::dlerror());
}

} // namespace grok
