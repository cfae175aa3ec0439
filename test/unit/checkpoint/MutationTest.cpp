// Files in which one byte is another, or that end early: read or refused, but
// never more than that. GROK_TEST_LAYOUTS holds a small checkpoint of each
// layout.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/Survey.h"
#include "test/unit/checkpoint/CheckpointFiles.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Mutation : public ::testing::Test {
protected:
  /// Copies a layout's directory; `name` is the file that will change.
  void use(const std::string &layout, const std::string &name) {
    const char *layouts = std::getenv("GROK_TEST_LAYOUTS");
    if (!layouts)
      GTEST_SKIP() << "GROK_TEST_LAYOUTS is not set";
    for (const auto &entry : fs::directory_iterator(fs::path(layouts) / layout))
      if (entry.is_regular_file() && entry.path().filename() != "config.json")
        dir.write(entry.path().filename().string(), contents(entry.path()));
    file = name;
    good = contents(dir / name);
    ASSERT_TRUE(surveyCheckpoint(dir.path(), nullptr).ok());
  }

  void expectNoFault(const std::string &bytes, const std::string &what) {
    dir.write(file, bytes);
    absl::StatusOr<Survey> survey = surveyCheckpoint(dir.path(), nullptr);
    ASSERT_NE(survey.status().code(), absl::StatusCode::kInternal)
        << what << ": " << survey.status();
    if (!survey.ok())
      ASSERT_NE(survey.status().message().find(dir.path()), std::string::npos)
          << what << ": " << survey.status();
  }

  /// Bytes [begin, end) of the file, one at a time.
  void changeEach(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      for (int flip : {0x01, 0x80, 0xff}) {
        std::string bytes = good;
        bytes[i] = char(bytes[i] ^ flip);
        expectNoFault(bytes, absl::StrCat("byte ", i, " flipped by ", flip));
        if (HasFatalFailure())
          return;
      }
  }
  void cutEach(size_t begin, size_t end) {
    for (size_t size = begin; size < end && !HasFatalFailure(); ++size)
      expectNoFault(good.substr(0, size), absl::StrCat("cut to ", size));
  }

  TempDir dir;
  std::string file, good;
};

/// The pickle is the first entry, behind 64 bytes.
TEST_F(Mutation, TorchPickle) {
  use("torch", "pytorch_model.bin");
  if (IsSkipped())
    return;
  size_t end = good.find("PK\x07\x08");
  ASSERT_NE(end, good.npos);
  changeEach(0, std::min<size_t>(end, 1200));
}

/// The directory is the last.
TEST_F(Mutation, TorchDirectory) {
  use("torch", "pytorch_model.bin");
  if (IsSkipped())
    return;
  size_t begin = good.find("PK\x01\x02");
  ASSERT_NE(begin, good.npos);
  changeEach(begin, std::min(begin + 400, good.size()));
  changeEach(good.size() - 22, good.size());
  cutEach(good.size() - 200, good.size());
}

TEST_F(Mutation, Gguf) {
  use("gguf", "model.gguf");
  if (IsSkipped())
    return;
  size_t infos = good.find("token_embd.weight");
  ASSERT_NE(infos, good.npos);
  changeEach(0, 400);
  changeEach(infos - 200, infos + 200);
  cutEach(0, 200);
}

TEST_F(Mutation, Jax) {
  use("ckpt-0/ckpt-0", "tensor00002_000");
  if (IsSkipped())
    return;
  changeEach(0, 260);
  cutEach(0, 260);
}

} // namespace
} // namespace grok::test
