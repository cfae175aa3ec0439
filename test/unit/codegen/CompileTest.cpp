#include "codegen/Clang/Compile.h"

#include <algorithm>
#include <vector>

#include "codegen/Clang/EmbeddedFiles.h"
#include "gtest/gtest.h"

namespace grok::codegen {
namespace {

constexpr const char *kKernel =
    "extern \"C\" [[clang::device_kernel]] void k(float *p) { *p = 1; }\n";

absl::StatusOr<std::string> compileKernel(std::string_view source,
                                          const DeviceTarget &target = {
                                              "sm_90a", "8.0"}) {
  const KernelBounds kernels[] = {
      {.name = "k", .threads = 128, .minBlocksPerSm = 1, .maxRegisters = 96}};
  return compileToPtx(source, target, kernels);
}

/// The message of the error that compiling `source` gives; Internal is
/// expected.
std::string failure(std::string_view source) {
  absl::StatusOr<std::string> ptx = compileKernel(source);
  EXPECT_EQ(ptx.status().code(), absl::StatusCode::kInternal);
  return std::string(ptx.status().message());
}

testing::AssertionResult contains(const std::string &text,
                                  const std::string &part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no \"" << part << "\" in:\n" << text;
}

TEST(Compile, VersionAndTargetAreExactlyAsAsked) {
  for (auto [arch, version] : {std::pair("sm_80", "7.0"),
                               {"sm_80", "7.1"},
                               {"sm_90a", "8.0"},
                               {"sm_90a", "8.6"}}) {
    absl::StatusOr<std::string> ptx = compileKernel(kKernel, {arch, version});
    ASSERT_TRUE(ptx.ok()) << ptx.status();
    EXPECT_TRUE(contains(*ptx, std::string("\n.version ") + version +
                                   "\n.target " + arch + "\n"));
  }
}

TEST(Compile, BoundsBecomeDirectives) {
  absl::StatusOr<std::string> ptx = compileKernel(kKernel);
  ASSERT_TRUE(ptx.ok()) << ptx.status();
  EXPECT_TRUE(contains(*ptx, ".reqntid 128\n.minnctapersm 1\n.maxnreg 96\n"));
}

TEST(Compile, SameInputSameBytes) {
  absl::StatusOr<std::string> first = compileKernel(kKernel),
                              second = compileKernel(kKernel);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST(Compile, ClangErrorsComeBackWithTheirPlace) {
  EXPECT_TRUE(contains(
      failure(
          "extern \"C\" [[clang::device_kernel]] void k(float *p) { *p = q; }"),
      "does not compile for sm_90a: /grok/kernels.cpp:1:61: error: use of "
      "undeclared identifier 'q'"));
}

TEST(Compile, WarningsAreErrors) {
  EXPECT_TRUE(contains(failure("extern \"C\" [[clang::device_kernel]] void "
                               "k(float *p) { int unused; *p = 1; }"),
                       "error: unused variable 'unused'"));
}

TEST(Compile, UndefinedFunctionsAreNamed) {
  EXPECT_TRUE(contains(
      failure("extern \"C\" int second(int); extern \"C\" int first(int);\n"
              "extern \"C\" [[clang::device_kernel]] void k(int *p) { *p = "
              "second(first(1)); }"),
      "undefined on the device: first, second"));
}

TEST(Compile, UndefinedVariablesAreNamed) {
  EXPECT_TRUE(contains(failure("extern int elsewhere;\n"
                               "extern \"C\" [[clang::device_kernel]] void "
                               "k(int *p) { *p = elsewhere; }"),
                       "undefined on the device: elsewhere"));
}

TEST(Compile, LibraryCallsOfTheBackEndAreNamed) {
  EXPECT_TRUE(contains(failure("extern \"C\" [[clang::device_kernel]] void "
                               "k(float *p) { *p = __builtin_erff(*p); }"),
                       "undefined on the device: erff"));
}

TEST(Compile, SurvivesAFatalErrorOfTheBackEnd) {
  EXPECT_TRUE(contains(failure("extern \"C\" [[clang::device_kernel]] void "
                               "k(float *p) { *p = __builtin_expf(*p); }"),
                       "the code generator failed for sm_90a: Cannot select"));
  EXPECT_TRUE(compileKernel(kKernel).ok());
}

TEST(Compile, MissingKernelIsNamed) {
  EXPECT_TRUE(contains(failure("extern \"C\" void k() {}"),
                       "does not define the kernel k"));
}

TEST(Compile, HeadersOfTheMachineAreOutOfReach) {
  EXPECT_TRUE(contains(failure("#include <string.h>\n"),
                       "error: 'string.h' file not found"));
}

TEST(Compile, UnknownTargetsAreTheCallersMistake) {
  for (const DeviceTarget &target : {DeviceTarget{"sm_90a", "9.9"},
                                     {"sm_99", "8.0"},
                                     {"sm_90a", "80"},
                                     {"sm_90a", ""}})
    EXPECT_EQ(compileKernel(kKernel, target).status().code(),
              absl::StatusCode::kInvalidArgument)
        << target.arch << " " << target.ptxVersion;
}

TEST(Compile, ProductsAndSumsStayApart) {
  absl::StatusOr<std::string> ptx =
      compileKernel("extern \"C\" [[clang::device_kernel]] void k(float *p) { "
                    "*p = p[1] * p[2] + p[3]; }");
  ASSERT_TRUE(ptx.ok()) << ptx.status();
  EXPECT_TRUE(contains(*ptx, "mul.rn.f32"));
  EXPECT_TRUE(contains(*ptx, "add.rn.f32"));
  EXPECT_FALSE(contains(*ptx, "fma"));
}

TEST(Compile, ParametersAreReadWhereTheyLie) {
  absl::StatusOr<std::string> ptx =
      compileKernel("struct P { unsigned n; unsigned a[8]; unsigned *out; };\n"
                    "extern \"C\" [[clang::device_kernel]] void k(const P p) { "
                    "*p.out = p.a[p.n]; }");
  ASSERT_TRUE(ptx.ok()) << ptx.status();
  EXPECT_FALSE(contains(*ptx, ".local"));
}

TEST(Compile, SharedHeadersCompileForTheDevice) {
  absl::StatusOr<std::string> ptx =
      compileKernel("#include <stdint.h>\n"
                    "#include \"runtime/bundle/DecodeMemory.h\"\n"
                    "#include \"runtime/bundle/KernelAbi.h\"\n"
                    "#include \"runtime/bundle/Synthetic.h\"\n"
                    "static_assert(sizeof(uint64_t) == 8 && sizeof(uint32_t) "
                    "== 4 && sizeof(uint16_t) == 2);\n"
                    "extern \"C\" [[clang::device_kernel]] void k(const "
                    "grok::abi::FillParams p) { *p.weights = 1; }");
  EXPECT_TRUE(ptx.ok()) << ptx.status();
}

TEST(EmbeddedFiles, HoldTheDeviceLibrary) {
  std::vector<std::string_view> paths;
  for (const EmbeddedFile &file : embeddedFiles())
    paths.push_back(file.path);
  for (std::string_view path :
       {"codegen/Device/decode.h", "codegen/Device/fill.h",
        "runtime/bundle/TileLayout.h"})
    EXPECT_NE(std::find(paths.begin(), paths.end(), path), paths.end()) << path;
}

} // namespace
} // namespace grok::codegen
