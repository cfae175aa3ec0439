// The blob's hash, the journal that keeps the part of it that is known, and the
// file that goes on with it.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/bundle/BlobFile.h"
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
    test::writeText(file, text);
    uint64_t last = 0;
    EXPECT_EQ(
        hashBlobFile(file, bytes, [&](uint64_t done) { last = done; }).value(),
        defined(text));
    EXPECT_EQ(last, bytes);
  }
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

TEST(PackJournal, KeepsChunks) {
  test::TempDirectory dir;
  StagedDirectory staged;
  ASSERT_TRUE(staged.create(dir / "m").ok());
  std::string place = staged.path(), a(64, 'a'), b(64, 'b'), c(64, 'c');
  {
    PackJournal journal;
    ASSERT_TRUE(journal.create(staged, "key").ok());
    EXPECT_EQ(PackJournal::read(place, "key"), ChunkHashes());
    ASSERT_TRUE(journal.note({{0, a}, {7, b}}).ok());
    ASSERT_TRUE(journal.note({}).ok());
  }
  const ChunkHashes both = {{0, a}, {7, b}};
  EXPECT_EQ(PackJournal::read(place, "key"), both);
  EXPECT_EQ(PackJournal::read(place, "other"), std::nullopt);
  // Of a chunk that was packed again the later hash counts.
  PackJournal again;
  ASSERT_TRUE(again.open(staged).ok());
  ASSERT_TRUE(again.note({{7, c}}).ok());
  EXPECT_EQ(PackJournal::read(place, "key"), (ChunkHashes{{0, a}, {7, c}}));
}

TEST(PackJournal, ALineThatAKillCutOffCountsForNothing) {
  test::TempDirectory dir;
  StagedDirectory staged;
  ASSERT_TRUE(staged.create(dir / "m").ok());
  std::string place = staged.path(), a(64, 'a'), b(64, 'b'), c(64, 'c');
  {
    PackJournal journal;
    ASSERT_TRUE(journal.create(staged, "key").ok());
    ASSERT_TRUE(journal.note({{0, a}}).ok());
  }
  // Cut in a number, in a hash, and where it looks whole.
  std::string file = place + "/" + PackJournal::kFile;
  std::string torn = "0000000005 " + b;
  for (const std::string &text :
       {torn.substr(0, 4), torn.substr(0, torn.size() - 1), torn}) {
    test::writeText(file, test::readText(file) + text);
    EXPECT_EQ(PackJournal::read(place, "key"), (ChunkHashes{{0, a}}));
    PackJournal again;
    ASSERT_TRUE(again.open(staged).ok());
    EXPECT_EQ(PackJournal::read(place, "key"), (ChunkHashes{{0, a}}));
  }
  PackJournal again;
  ASSERT_TRUE(again.open(staged).ok());
  ASSERT_TRUE(again.note({{9, c}}).ok());
  EXPECT_EQ(PackJournal::read(place, "key"), (ChunkHashes{{0, a}, {9, c}}));
}

/// A blob of six chunks and a bit, the fifth of which is padding, in pieces
/// that a run packs until it is killed, with some more padding before each.
/// The parameter: chunks that are in memory.
class GoingOn : public testing::TestWithParam<size_t> {
protected:
  static constexpr size_t kPiece = kChunk / 4 * 3, kPadding = 999;

  GoingOn() {
    std::string all = noise(text_.size());
    for (size_t at : places())
      text_.replace(at + kPadding, count(at), all, at + kPadding, count(at));
  }
  /// Where pieces lie; the last ones first, so that several chunks are begun.
  std::vector<size_t> places() const {
    std::vector<size_t> all;
    for (size_t at = 0; at < text_.size(); at += kPiece)
      if (at + kPiece <= 4 * kChunk || at >= 5 * kChunk)
        all.insert(all.begin(), at);
    std::rotate(all.begin(), all.end() - 3, all.end());
    return all;
  }
  /// Writes what the file does not hold, of the first `pieces`; what it then
  /// knows of chunks, and the number of pieces that were written.
  size_t pack(BlobFile &file, size_t pieces, ChunkHashes &known) {
    std::vector<size_t> missing;
    for (size_t at : places())
      if (!file.holds(at + kPadding, count(at))) {
        missing.push_back(at);
        file.expect(at + kPadding, count(at));
      }
    size_t written = 0;
    for (; written < std::min(pieces, missing.size()); ++written)
      EXPECT_TRUE(file.write(missing[written] + kPadding,
                             bytesOf(text_).subspan(missing[written] + kPadding,
                                                    count(missing[written])))
                      .ok());
    for (int i = 0; i < 2; ++i) // what was hashed meanwhile
      EXPECT_TRUE(file.sync([&](const ChunkHashes &chunks) {
                        for (const auto &[number, hash] : chunks)
                          known[number] = hash;
                        return absl::OkStatus();
                      })
                      .ok());
    return written;
  }
  size_t count(size_t at) const {
    return std::min(kPiece, text_.size() - at) - kPadding;
  }
  std::string hashOf(uint64_t chunk) const {
    return sha256(std::string_view(text_).substr(chunk * kChunk, kChunk))
        .value();
  }

  test::TempDirectory dir_;
  std::string path_ = dir_ / "blob", text_ = std::string(6 * kChunk + 4321, 0);
};

TEST_P(GoingOn, KeepsWhatIsWholeAndUnchanged) {
  ChunkHashes known;
  {
    BlobFile first(path_, text_.size(), GetParam());
    ASSERT_TRUE(first.create().ok());
    ChunkHashes some; // as many as were hashed in time
    pack(first, 100, some);
    EXPECT_EQ(first.finish().value(), defined(text_));
    EXPECT_EQ(test::readText(path_), text_);
  }
  for (uint64_t chunk = 0; chunk < 6; ++chunk)
    known[chunk] = hashOf(chunk);
  auto resume = [&](size_t expected, size_t changed) {
    BlobFile again(path_, text_.size(), GetParam());
    EXPECT_EQ(again.reopen(known).value(), changed);
    ChunkHashes more;
    EXPECT_EQ(pack(again, 100, more), expected);
    EXPECT_EQ(again.finish().value(), defined(text_));
    EXPECT_EQ(test::readText(path_), text_);
  };
  auto damage = [&](std::vector<size_t> places) {
    std::string damaged = text_;
    for (size_t at : places)
      damaged[at] ^= 0x55;
    test::writeText(path_, damaged);
  };
  // Only the end is not vouched for.
  resume(1, 0);
  // The second chunk, and the pieces in it.
  damage({kChunk + 5000000});
  resume(3, 1);
  // What lies between pieces, and what is nothing else.
  damage({2 * kPiece + 5, 4 * kChunk + 5});
  resume(3, 2);
  // A hash of a chunk that the blob has not, and none of the first.
  known[1000] = known[0];
  known.erase(0);
  resume(3, 0);
}

TEST_P(GoingOn, VouchesOnlyForWhatIsWhole) {
  ChunkHashes known;
  BlobFile file(path_, text_.size(), GetParam());
  ASSERT_TRUE(file.create().ok());
  pack(file, 2, known);
  for (const auto &[number, hash] : known)
    EXPECT_EQ(hash, hashOf(number));
  EXPECT_LE(known.size(), 1u);
  EXPECT_EQ(file.finish().status().code(), absl::StatusCode::kInternal);
}

TEST_P(GoingOn, TakesNoMoreThanWasAnnounced) {
  BlobFile file(path_, text_.size(), GetParam());
  ASSERT_TRUE(file.create().ok());
  file.expect(0, 5);
  EXPECT_EQ(file.write(0, bytesOf(text_).first(6)).code(),
            absl::StatusCode::kInternal);
}

INSTANTIATE_TEST_SUITE_P(ChunksInMemory, GoingOn, testing::Values(8, 1, 0));

} // namespace
} // namespace grok
