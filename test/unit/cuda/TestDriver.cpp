#include "test/unit/cuda/TestDriver.h"

#include <cstdlib>
#include <dlfcn.h>

namespace grok::test {
namespace {

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  if (!value)
    ADD_FAILURE() << name << " is not set";
  return value ? value : "";
}

} // namespace

std::shared_ptr<Bundle> openBundle(const std::string &name) {
  absl::StatusOr<std::shared_ptr<Bundle>> bundle =
      Bundle::open(environment("GROK_TEST_BUNDLES") + "/" + name + ".grok");
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  return bundle.ok() ? *bundle : nullptr;
}

std::string driverPath(bool old) {
  return environment("GROK_TEST_DRIVERS") +
         (old ? "/libgrok-fake-cuda-old.so" : "/libgrok-fake-cuda.so");
}

void CudaTest::SetUp() {
  void *library = dlopen(driverPath().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  fake = reinterpret_cast<FakeCuda *(*)()>(dlsym(library, "grokFakeCuda"))();
  *fake = FakeCuda{};
  absl::StatusOr<cuda::DriverApi> opened =
      cuda::DriverApi::open(driverPath().c_str());
  ASSERT_TRUE(opened.ok()) << opened.status();
  api = *opened;
}

void CudaTest::TearDown() { EXPECT_EQ(fake->live(), 0); }

absl::StatusOr<std::unique_ptr<cuda::CudaExecutor>>
CudaTest::load(const std::string &name, int ordinal) {
  std::shared_ptr<Bundle> bundle = openBundle(name);
  if (!bundle)
    return absl::NotFoundError(name);
  return cuda::CudaExecutor::create(*api, *bundle, {}, ordinal);
}

void CudaTest::expectRefused(const std::string &bundle, absl::StatusCode code,
                             const std::vector<std::string> &parts,
                             int ordinal) {
  expectParts(load(bundle, ordinal).status(), code, parts);
  EXPECT_EQ(fake->live(), 0);
}

void expectParts(const absl::Status &status, absl::StatusCode code,
                 const std::vector<std::string> &parts) {
  EXPECT_EQ(status.code(), code) << status;
  std::string message(status.message());
  for (const std::string &part : parts)
    EXPECT_NE(message.find(part), std::string::npos)
        << message << "\n  lacks: " << part;
}

} // namespace grok::test
