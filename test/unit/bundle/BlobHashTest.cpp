// The blob's hash, and the journal that keeps the part of it that is known.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/bundle/BlobHash.h"
#include "runtime/bundle/PackJournal.h"
#include "test/unit/bundle/TestModel.h"

namespace grok {
namespace {

constexpr size_t kChunk = size_t(kHashChunkBytes);

std::string noise(size_t bytes) {
  std::string text(bytes, 0);
  uint32_t state = 1;
  for (char &c : text)
    c = char((state = state * 1664525 + 1013904223) >> 24);
  return text;
}
std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

/// As the format's document has it.
std::string defined(const std::string &text) {
  std::string chunks;
  for (size_t at = 0; at < text.size(); at += kChunk)
    chunks += sha256(std::string_view(text).substr(at, kChunk)).value();
  return sha256(chunks).value();
}

TEST(BlobHash, IsTheHashOfTheChunksHashes) {
  test::TempDirectory dir;
  for (size_t bytes : {size_t(0), size_t(7), kChunk, 2 * kChunk + 12345}) {
    std::string text = noise(bytes), file = dir / std::to_string(bytes);
    BlobHash hash;
    for (size_t at = 0; at < bytes; at += 1000003) // across chunks
      ASSERT_TRUE(
          hash.update(bytesOf(std::string_view(text).substr(at, 1000003)))
              .ok());
    EXPECT_EQ(hash.bytes(), bytes);
    EXPECT_EQ(hash.chunks().size(), bytes / kChunk);
    EXPECT_EQ(hash.finish().value(), defined(text));
    test::writeText(file, text);
    uint64_t last = 0;
    EXPECT_EQ(
        hashBlobFile(file, bytes, [&](uint64_t done) { last = done; }).value(),
        defined(text));
    EXPECT_EQ(last, bytes);
  }
}

TEST(BlobHash, GoesOnBehindKnownChunks) {
  std::string text = noise(2 * kChunk + 5);
  BlobHash first;
  ASSERT_TRUE(
      first.update(bytesOf(std::string_view(text).substr(0, kChunk + 99)))
          .ok());
  BlobHash second(first.chunks());
  EXPECT_EQ(second.bytes(), kChunk);
  ASSERT_TRUE(
      second.update(bytesOf(std::string_view(text).substr(kChunk))).ok());
  EXPECT_EQ(second.finish().value(), defined(text));
}

TEST(BlobHash, AShorterFileIsAnError) {
  test::TempDirectory dir;
  test::writeText(dir / "f", "123");
  EXPECT_NE(hashBlobFile(dir / "f", 4)
                .status()
                .message()
                .find("found 3 bytes, expected more"),
            absl::string_view::npos);
}

TEST(PackJournal, KeepsPartsAndChunks) {
  test::TempDirectory dir;
  std::string place = dir / ".", a(64, 'a'), b(64, 'b'), c(64, 'c');
  {
    PackJournal journal;
    ASSERT_TRUE(journal.create(place, "key").ok());
    EXPECT_FALSE(PackJournal::read(place, "key"));
    ASSERT_TRUE(journal.note(3, std::vector{a, b}).ok());
    ASSERT_TRUE(journal.note(5, {}).ok());
  }
  auto packed = PackJournal::read(place, "key");
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->parts, 5u);
  EXPECT_EQ(packed->chunks, (std::vector{a, b}));
  EXPECT_FALSE(PackJournal::read(place, "other"));
  // A line that a kill cut off counts for nothing, also once more follow.
  std::string file = place + "/" + PackJournal::kFile;
  test::writeText(file, test::readText(file) + "000000000000000");
  EXPECT_EQ(PackJournal::read(place, "key")->parts, 5u);
  PackJournal again;
  ASSERT_TRUE(again.open(place).ok());
  ASSERT_TRUE(again.note(9, std::vector{c}).ok());
  packed = PackJournal::read(place, "key");
  EXPECT_EQ(packed->parts, 9u);
  EXPECT_EQ(packed->chunks, (std::vector{a, b, c}));
}

TEST(PackJournal, ALineCutOffWhereItLooksWholeCountsForNothing) {
  test::TempDirectory dir;
  std::string place = dir / ".", a(64, 'a'), b(64, 'b'), c(64, 'c');
  {
    PackJournal journal;
    ASSERT_TRUE(journal.create(place, "key").ok());
    ASSERT_TRUE(journal.note(3, std::vector{a}).ok());
  }
  // Twenty digits and one hash of two, and that but for its last digit.
  std::string file = place + "/" + PackJournal::kFile;
  std::string torn = "00000000000000000005 " + b;
  for (const std::string &text : {torn, torn.substr(0, torn.size() - 1)}) {
    test::writeText(file, test::readText(file) + text);
    PackJournal again;
    ASSERT_TRUE(again.open(place).ok());
    auto packed = PackJournal::read(place, "key");
    EXPECT_EQ(packed->parts, 3u);
    EXPECT_EQ(packed->chunks, std::vector{a});
  }
  PackJournal again;
  ASSERT_TRUE(again.open(place).ok());
  ASSERT_TRUE(again.note(9, std::vector{c}).ok());
  auto packed = PackJournal::read(place, "key");
  EXPECT_EQ(packed->parts, 9u);
  EXPECT_EQ(packed->chunks, (std::vector{a, c}));
}

} // namespace
} // namespace grok
