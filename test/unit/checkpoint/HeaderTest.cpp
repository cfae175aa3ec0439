// The container's checks, in the order in which they are made.
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/SafetensorsHeader.h"
#include "test/unit/checkpoint/CheckpointFiles.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

absl::StatusOr<std::vector<TensorEntry>> parse(std::string_view bytes) {
  return parseSafetensors(
      {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()},
      "dir/f.safetensors");
}
/// One entry named x.
std::string entry(const std::string &type, const std::string &shape,
                  const std::string &offsets) {
  return absl::StrCat(R"({"x":{"dtype":")", type, R"(","shape":)", shape,
                      R"(,"data_offsets":)", offsets, "}}");
}
::testing::AssertionResult rejects(std::string_view bytes,
                                   std::vector<std::string> parts) {
  parts.push_back("dir/f.safetensors: ");
  parts.push_back("expected");
  return fails(parse(bytes).status(), parts);
}
::testing::AssertionResult accepts(std::string_view bytes, size_t tensors) {
  absl::StatusOr<std::vector<TensorEntry>> entries = parse(bytes);
  if (!entries.ok())
    return ::testing::AssertionFailure() << entries.status();
  if (entries->size() != tensors)
    return ::testing::AssertionFailure() << entries->size() << " tensors";
  return ::testing::AssertionSuccess();
}

TEST(Header, EmptyFile) { EXPECT_TRUE(rejects("", {"found an empty file"})); }

TEST(Header, SevenBytes) {
  EXPECT_TRUE(
      rejects(std::string(7, '\0'), {"found 7 bytes", "at least the 8"}));
}

TEST(Header, LengthAboveTheLimit) {
  std::string bytes = withHeader("{}");
  uint64_t length = 100'000'001;
  bytes.replace(0, 8, reinterpret_cast<const char *>(&length), 8);
  EXPECT_TRUE(
      rejects(bytes, {"header length of 100000001", "at most 100000000"}));
}

TEST(Header, LengthIsAllOnes) {
  EXPECT_TRUE(rejects(std::string(8, '\xff') + "{}",
                      {"header length of 18446744073709551615"}));
}

TEST(Header, LengthBeyondTheFile) {
  std::string bytes = withHeader("{}");
  bytes[0] = 3;
  EXPECT_TRUE(
      rejects(bytes, {"header length of 3", "the 2 bytes that follow"}));
}

TEST(Header, GitLfsPointer) {
  EXPECT_TRUE(rejects("version https://git-lfs.github.com/spec/v1\noid "
                      "sha256:00\nsize 12\n",
                      {"Git LFS pointer", "git lfs pull"}));
}

TEST(Header, WebPage) {
  EXPECT_TRUE(rejects("<!DOCTYPE html><html>404</html>", {"web page"}));
  EXPECT_TRUE(rejects("\n<html></html>", {"web page"}));
}

TEST(Header, OtherContainers) {
  EXPECT_TRUE(rejects("PK\x03\x04 and the rest", {"ZIP archive"}));
  EXPECT_TRUE(rejects("GGUF and the rest", {"GGUF"}));
}

TEST(Header, NotUtf8) {
  EXPECT_TRUE(rejects(withHeader("{\"\xff\":1}"),
                      {"header, byte 10", "found 0xff", "UTF-8"}));
  EXPECT_TRUE(rejects(withHeader("{\"\xc0\xaf\":1}"), {"byte 10"})); // overlong
  EXPECT_TRUE(
      rejects(withHeader("{\"\xed\xa0\x80\":1}"), {"byte 10"})); // surrogate
  EXPECT_TRUE(rejects(withHeader("\"\xe2\x82"), {"byte 9"}));    // cut short
}

TEST(Header, NulIsNoEndOfText) {
  EXPECT_TRUE(rejects(withHeader(std::string_view("{}\0{", 4)),
                      {"header, byte 10", "0x00"}));
}

TEST(Header, ByteOrderMark) {
  EXPECT_TRUE(rejects(withHeader("\xef\xbb\xbf{}"), {"byte order mark"}));
}

TEST(Header, MalformedJson) {
  EXPECT_TRUE(rejects(withHeader("{"), {"header, byte 9", "malformed JSON"}));
  EXPECT_TRUE(rejects(withHeader(""), {"malformed JSON"}));
  EXPECT_TRUE(rejects(withHeader("{} x"), {"header, byte 11"}));
  EXPECT_TRUE(rejects(withHeader("{}{}"), {"header, byte 10"}));
}

TEST(Header, RootIsNoObject) {
  EXPECT_TRUE(
      rejects(withHeader("[]"), {"header: found an array", "an object"}));
  EXPECT_TRUE(rejects(withHeader("1"), {"header: found the number 1"}));
}

TEST(Header, EntryOfWrongType) {
  EXPECT_TRUE(rejects(withHeader(R"({"x":["F32",[1],[0,4]]})", "abcd"),
                      {"tensor 'x'", "found an array", "dtype, shape"}));
  EXPECT_TRUE(rejects(withHeader(R"({"x":null})"), {"tensor 'x'", "null"}));
}

TEST(Header, MissingKeys) {
  EXPECT_TRUE(rejects(withHeader(R"({"x":{"shape":[],"data_offsets":[0,4]}})"),
                      {"tensor 'x'", "key 'dtype' is missing"}));
  EXPECT_TRUE(
      rejects(withHeader(R"({"x":{"dtype":"U8","data_offsets":[0,1]}})"),
              {"key 'shape' is missing"}));
  EXPECT_TRUE(rejects(withHeader(R"({"x":{"dtype":"U8","shape":[]}})"),
                      {"key 'data_offsets' is missing"}));
}

TEST(Header, UnknownElementType) {
  EXPECT_TRUE(rejects(withHeader(entry("F8", "[1]", "[0,1]"), "a"),
                      {"tensor 'x', key 'dtype'", "found 'F8'", "BF16"}));
  EXPECT_TRUE(rejects(
      withHeader(R"({"x":{"dtype":7,"shape":[],"data_offsets":[0,1]}})"),
      {"key 'dtype'", "the number 7", "a string"}));
}

TEST(Header, NumbersThatAreNoUnsignedIntegers) {
  for (const char *bad : {"-1", "1.0", "1e0", "18446744073709551616", "true",
                          "null", "\"1\"", "[1]", "{}", "-0"}) {
    EXPECT_TRUE(rejects(
        withHeader(entry("U8", absl::StrCat("[", bad, "]"), "[0,1]"), "a"),
        {"tensor 'x', key 'shape'", "an unsigned 64-bit integer"}))
        << bad;
    EXPECT_TRUE(rejects(
        withHeader(entry("U8", "[1]", absl::StrCat("[0,", bad, "]")), "a"),
        {"tensor 'x', key 'data_offsets'", "an unsigned 64-bit integer"}))
        << bad;
  }
}

TEST(Header, OffsetsAreTwo) {
  EXPECT_TRUE(rejects(withHeader(entry("U8", "[1]", "[0]"), "a"),
                      {"key 'data_offsets'", "found 1 numbers"}));
  EXPECT_TRUE(rejects(withHeader(entry("U8", "[1]", "[0,1,2]"), "a"),
                      {"key 'data_offsets'", "more than two"}));
}

TEST(Header, MetadataHoldsStringsOnly) {
  EXPECT_TRUE(rejects(withHeader(R"({"__metadata__":{"a":1}})"),
                      {"key '__metadata__'", "the number 1", "a string"}));
  EXPECT_TRUE(rejects(withHeader(R"({"__metadata__":{"a":null}})"), {"null"}));
  EXPECT_TRUE(rejects(withHeader(R"({"__metadata__":[]})"),
                      {"found an array", "an object of strings"}));
}

TEST(Header, DuplicateNames) {
  const std::string one = R"({"dtype":"U8","shape":[1],"data_offsets":)";
  EXPECT_TRUE(rejects(
      withHeader(absl::StrCat("{\"x\":", one, "[0,1]},\"x\":", one, "[1,2]}}"),
                 "ab"),
      {"tensor 'x'", "second entry"}));
}

TEST(Header, DuplicateKeys) {
  EXPECT_TRUE(rejects(
      withHeader(
          R"({"x":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          "a"),
      {"tensor 'x'", "key 'dtype' a second time"}));
  EXPECT_TRUE(rejects(withHeader(R"({"__metadata__":{"a":"","a":""}})"),
                      {"key 'a' a second time"}));
  EXPECT_TRUE(rejects(
      withHeader(
          R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"y":{"a":1,"a":2}}})",
          "a"),
      {"tensor 'x'", "key 'a' a second time"}));
}

TEST(Header, NestingIsBounded) {
  std::string deep(100'000, '[');
  EXPECT_TRUE(rejects(withHeader(R"({"x":{"y":)" + deep),
                      {"tensor 'x'", "nesting deeper"}));
}

TEST(Header, RankIsBounded) {
  std::string shape = "[1";
  for (int i = 0; i < 100; ++i)
    shape += ",1";
  EXPECT_TRUE(rejects(withHeader(entry("U8", shape + "]", "[0,1]"), "a"),
                      {"tensor 'x', key 'shape'", "more than 64 dimensions"}));
}

TEST(Header, NameLengthIsBounded) {
  std::string name(kMaxTensorName + 1, 'n');
  EXPECT_TRUE(rejects(
      withHeader(
          absl::StrCat(R"({")", name,
                       R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})"),
          "a"),
      {"found a name of 1025 bytes", "at most 1024"}));
}

TEST(Header, TensorCountIsBounded) {
  std::string header = "{";
  for (size_t i = 0; i <= kMaxTensors + 1; ++i)
    absl::StrAppend(&header, i ? "," : "", "\"", i,
                    R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})");
  EXPECT_TRUE(
      rejects(withHeader(header + "}", "a"), {"more than 262144 tensors"}));
}

TEST(Header, FirstTensorBeginsAtZero) {
  EXPECT_TRUE(rejects(withHeader(entry("U8", "[1]", "[1,2]"), "ab"),
                      {"tensor 'x'", "begin at 1", "expected 0"}));
}

TEST(Header, Hole) {
  EXPECT_TRUE(rejects(
      withHeader(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                 R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                 "abc"),
      {"tensor 'b'", "begin at 2", "expected 1"}));
}

TEST(Header, Overlap) {
  EXPECT_TRUE(rejects(
      withHeader(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                 R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                 "abc"),
      {"tensor 'b'", "begin at 1", "expected 2"}));
}

TEST(Header, SameBytesTwice) {
  EXPECT_TRUE(rejects(
      withHeader(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                 R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                 "ab"),
      {"tensor 'b'", "begin at 0", "expected 2"}));
}

TEST(Header, EndBeforeBegin) {
  EXPECT_TRUE(rejects(
      withHeader(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                 R"("b":{"dtype":"U8","shape":[0],"data_offsets":[2,1]}})",
                 "ab"),
      {"tensor 'b'", "[2, 1]", "not before the begin"}));
}

TEST(Header, ShapeOverflows) {
  EXPECT_TRUE(
      rejects(withHeader(entry("U8", "[2,18446744073709551614]", "[0,1]"), "a"),
              {"tensor 'x'", "[2, 18446744073709551614]", "fits 64 bits"}));
  // The count fits, the bits don't.
  EXPECT_TRUE(
      rejects(withHeader(entry("F32", "[2,9223372036854775807]", "[0,1]"), "a"),
              {"fits 64 bits"}));
}

TEST(Header, BitsThatAreNoBytes) {
  EXPECT_TRUE(rejects(withHeader(entry("F4", "[3]", "[0,2]"), "ab"),
                      {"tensor 'x'", "12 bits", "whole bytes"}));
  EXPECT_TRUE(
      rejects(withHeader(entry("F6_E2M3", "[2]", "[0,2]"), "ab"), {"12 bits"}));
}

TEST(Header, SizeAndShapeDisagree) {
  EXPECT_TRUE(
      rejects(withHeader(entry("F32", "[2]", "[0,4]"), "abcd"),
              {"tensor 'x'", "found 4 bytes", "expected 8", "[2] of F32"}));
}

TEST(Header, OneByteTooFew) {
  std::string bytes = safetensors({{"x", bf16({2, 2}, 1)}});
  bytes.pop_back();
  EXPECT_TRUE(rejects(bytes, {"tensor 'x'", "found 7 bytes", "expected 8",
                              "truncated", "download"}));
}

TEST(Header, WholeBufferMissing) {
  std::string bytes = safetensors({{"x", bf16({2, 2}, 1)}});
  bytes.resize(bytes.size() - 8);
  EXPECT_TRUE(rejects(bytes, {"tensor 'x'", "found 0 bytes", "truncated"}));
}

TEST(Header, OneByteTooMany) {
  std::string bytes = safetensors({{"x", bf16({2, 2}, 1)}}) + "z";
  EXPECT_TRUE(rejects(bytes, {"found 9 bytes", "expected 8", "1 trailing"}));
}

TEST(Header, StrangeNamesAreEscaped) {
  absl::Status status =
      parse(withHeader("{\"a\\n\\u001b\":{\"dtype\":\"U8\",\"shape\":[1],"
                       "\"data_offsets\":[5,6]}}"))
          .status();
  EXPECT_TRUE(fails(status, {R"('a\n\x1b')"}));
}

/// A file that ends anywhere before its end is an error.
TEST(Header, EveryTruncation) {
  std::string bytes = safetensors({{"x", bf16({2, 2}, 1)}});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse(std::string_view(bytes).substr(0, size)).ok()) << size;
}

/// Whatever a byte becomes, the file is read within its bounds or refused.
TEST(Header, EveryByteChanged) {
  const std::string bytes =
      safetensors({{"x", bf16({2, 2}, 1)}, {"y", bf16({3}, 2)}});
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      std::string changed = bytes;
      changed[at] = char(value);
      absl::StatusOr<std::vector<TensorEntry>> entries = parse(changed);
      if (!entries.ok()) {
        EXPECT_EQ(entries.status().code(), absl::StatusCode::kInvalidArgument);
        continue;
      }
      for (const TensorEntry &entry : *entries) {
        EXPECT_LE(entry.begin, entry.end);
        EXPECT_LE(entry.end, changed.size());
      }
    }
}

TEST(Header, AcceptsScalar) {
  EXPECT_TRUE(accepts(withHeader(entry("F32", "[]", "[0,4]"), "abcd"), 1));
}

TEST(Header, AcceptsEmptyTensors) {
  EXPECT_TRUE(accepts(withHeader(entry("F32", "[3,0]", "[0,0]")), 1));
  // In the middle, after the tensor that begins at the same byte by name.
  EXPECT_TRUE(accepts(
      withHeader(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                 R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                 R"("c":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
                 "ab"),
      3));
}

TEST(Header, ZeroDimensionDecidesInEveryOrder) {
  const std::string big = "1099511627776";
  EXPECT_TRUE(
      accepts(withHeader(entry("F32", absl::StrCat("[0,", big, ",", big, "]"),
                               "[0,0]")),
              1));
  EXPECT_TRUE(
      accepts(withHeader(entry("F32", absl::StrCat("[", big, ",", big, ",0]"),
                               "[0,0]")),
              1));
}

TEST(Header, AcceptsNoTensors) { EXPECT_TRUE(accepts(withHeader("{}"), 0)); }

TEST(Header, AcceptsPadding) {
  EXPECT_TRUE(accepts(withHeader(" \n\t{} \r\n\t  "), 0));
}

TEST(Header, AcceptsMetadata) {
  EXPECT_TRUE(accepts(withHeader(R"({"__metadata__":{"format":"pt"}})"), 0));
  EXPECT_TRUE(accepts(withHeader(R"({"__metadata__":null})"), 0));
}

TEST(Header, IgnoresExtraFields) {
  EXPECT_TRUE(accepts(
      withHeader(
          R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"y":{"a":[1,-2.5,null,"s",true]},"z":3}})",
          "a"),
      1));
}

TEST(Header, AcceptsOffsetsOutOfNameOrder) {
  absl::StatusOr<std::vector<TensorEntry>> entries = parse(
      withHeader(R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[1,3]},)"
                 R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                 "xyz"));
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ((*entries)[0].name, "b");
  EXPECT_EQ((*entries)[1].name, "a");
  EXPECT_EQ((*entries)[1].end - (*entries)[1].begin, 2u);
}

TEST(Header, AcceptsEveryElementType) {
  for (const char *type :
       {"BOOL",    "U8",          "I8",          "F8_E5M2", "F8_E4M3",
        "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16",     "U16",
        "F16",     "BF16",        "I32",         "U32",     "F32",
        "C64",     "F64",         "I64",         "U64",     "F4",
        "F6_E2M3", "F6_E3M2"})
    EXPECT_TRUE(accepts(withHeader(entry(type, "[0]", "[0,0]")), 1)) << type;
}

} // namespace
} // namespace grok::test
