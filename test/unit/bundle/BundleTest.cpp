#include "runtime/bundle/Bundle.h"

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"
#include "runtime/bundle/Half.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/Names.h"
#include "runtime/bundle/Sha256.h"
#include "test/unit/bundle/TestModel.h"

namespace grok {
namespace {

namespace fs = std::filesystem;
using test::contentsOf;
using test::hashModel;
using test::learnedModel;
using test::makePlan;
using test::readText;
using test::TempDirectory;
using test::writeText;
using Kind = WeightsRecipe::Kind;

TEST(FileError, IsNeverOurFault) {
  for (int error = 1; error < 200; ++error) {
    absl::Status status = fileError(error, "f");
    EXPECT_FALSE(status.ok()) << error;
    EXPECT_NE(status.code(), absl::StatusCode::kUnknown) << error;
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << error;
    EXPECT_EQ(status.message().substr(0, 3), "f: ") << error;
  }
  EXPECT_EQ(fileError(ENOSPC, "f").message(),
            "f: No space left on device; free some space or choose another "
            "place");
}

class BundleTest : public ::testing::Test {
protected:
  ModelConfig model = learnedModel();
  TempDirectory dir;
  std::string path = dir / "m.grok";

  void write(WeightsRecipe recipe = {Kind::kBlob, 0}, uint64_t seed = 7) {
    auto source = syntheticSource(model, seed);
    absl::Status status =
        writeBundle(path, contentsOf(model, makePlan(model), recipe),
                    recipe.kind == Kind::kBlob ? source.get() : nullptr);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::string openError() {
    auto bundle = Bundle::open(path);
    return bundle.ok() ? "no error" : std::string(bundle.status().message());
  }
  void expectOpenError(const std::string &part) {
    EXPECT_NE(openError().find(part), std::string::npos)
        << part << ": " << openError();
  }
  std::map<std::string, std::string> everyFile(const std::string &bundle) {
    std::map<std::string, std::string> files;
    for (const auto &entry : fs::directory_iterator(bundle))
      files[entry.path().filename()] = readText(entry.path());
    return files;
  }
};

TEST_F(BundleTest, ReadsBackWhatWasWritten) {
  write();
  auto bundle = Bundle::open(path + "/");
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  BundleContents c = contentsOf(model, makePlan(model), {Kind::kBlob, 0});
  EXPECT_EQ((*bundle)->path(), path);
  EXPECT_EQ((*bundle)->model(), model);
  EXPECT_EQ((*bundle)->options(), c.options);
  EXPECT_EQ((*bundle)->plan(), c.plan);
  const Manifest &m = (*bundle)->manifest();
  EXPECT_EQ(m.target, c.manifest.target);
  EXPECT_EQ(m.weights, c.manifest.weights);
  EXPECT_EQ(m.predictionJson, c.manifest.predictionJson);
  EXPECT_EQ(m.compilerVersion, "0.1.0");
  EXPECT_EQ(m.sm, 80u);
  EXPECT_EQ(m.ptxVersion, "8.0");
  EXPECT_EQ(m.minimumDriver, 12000u);
  EXPECT_EQ((*bundle)->readFile("decode.ptx").value(), "// ptx\n");
  EXPECT_FALSE((*bundle)->readFile("tokenizer.model").ok());
  std::string blob((*bundle)->blob().begin(), (*bundle)->blob().end());
  EXPECT_EQ(blob, test::packSynthetic(model, c.plan, 7));
  uint64_t last = 0, total = 0;
  EXPECT_TRUE((*bundle)
                  ->verify([&](uint64_t done, uint64_t all) {
                    EXPECT_GE(done, last);
                    last = done, total = all;
                  })
                  .ok());
  EXPECT_EQ(last, total);
  EXPECT_GT(total, c.plan.blobBytes);
}

TEST_F(BundleTest, SameInputSameBytes) {
  write();
  std::string first = path;
  path = dir / "again.grok";
  write();
  EXPECT_EQ(everyFile(first), everyFile(path));
}

TEST_F(BundleTest, OptionsSurvive) {
  BundleContents c = contentsOf(model, makePlan(model), {Kind::kNone, 0});
  c.options.keepUnreachable = true;
  c.options.pruningRatio = 0.1;
  c.options.histogram = {1, 2, ~uint64_t(0), 4};
  c.options.trace = true;
  c.files["trace.ptx"] = "// traced ptx\n";
  ASSERT_TRUE(writeBundle(path, c, nullptr).ok());
  auto bundle = Bundle::open(path);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->options(), c.options);
  EXPECT_TRUE((*bundle)->blob().empty());
}

TEST_F(BundleTest, PackingEqualsWritingWithWeights) {
  write({Kind::kNone, 0});
  auto source = syntheticSource(model, 7);
  absl::Status status = packBundle(path, *source, {Kind::kBlob, 0});
  ASSERT_TRUE(status.ok()) << status;
  std::string packed = path;
  path = dir / "direct.grok";
  write();
  EXPECT_EQ(everyFile(packed), everyFile(path));
  EXPECT_NE(packBundle(path, *source, {Kind::kBlob, 0})
                .message()
                .find("has its weights"),
            absl::string_view::npos);
}

/// Its kernels and its prediction stay what they were.
TEST_F(BundleTest, PackingAnOlderBundleKeepsItsVersion) {
  write({Kind::kNone, 0});
  std::string text = readText(path + "/manifest.json"),
              from = "\"format_version\": 6";
  text.replace(text.find(from), from.size(), "\"format_version\": 5");
  // What format 5 did not look at.
  size_t begin = text.find("\"prediction\": {"),
         end = text.find("\"ptx_version\"");
  text.replace(begin, end - begin, "\"prediction\": {},\n  ");
  writeText(path + "/manifest.json", sealManifest(text).value());
  auto source = syntheticSource(model, 7);
  absl::Status status = packBundle(path, *source, {Kind::kBlob, 0});
  ASSERT_TRUE(status.ok()) << status;
  auto bundle = Bundle::open(path);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->manifest().formatVersion, 5u);
  EXPECT_TRUE((*bundle)->verify().ok());
}

TEST_F(BundleTest, ARecipeStaysAfterPacking) {
  write({Kind::kSynthetic, ~uint64_t(0)});
  auto bundle = Bundle::open(path);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  WeightsRecipe recipe = (*bundle)->manifest().weights;
  EXPECT_EQ(recipe.seed, ~uint64_t(0));
  EXPECT_TRUE((*bundle)->blob().empty());
  auto source = syntheticSource(model, recipe.seed);
  ASSERT_TRUE(packBundle(path, *source, recipe).ok());
  bundle = Bundle::open(path);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->manifest().weights, recipe);
  EXPECT_EQ((*bundle)->blob().size(), (*bundle)->plan().blobBytes);
  EXPECT_TRUE((*bundle)->verify().ok());
}

TEST_F(BundleTest, FindsDamage) {
  write();
  std::string blob = readText(path + "/weights.blob");
  blob[blob.size() / 2] ^= 1;
  writeText(path + "/weights.blob", blob);
  auto bundle = Bundle::open(path); // structure only
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  std::string message((*bundle)->verify().message());
  EXPECT_NE(message.find("weights.blob: found sha256"), std::string::npos);
  writeText(path + "/plan.mlir", "module }{\n");
  expectOpenError("plan.mlir: found sha256");
}

TEST_F(BundleTest, NamesFilesThatShouldNotBeThere) {
  write();
  writeText(path + "/notes.txt", "x");
  expectOpenError("/notes.txt: found a file that the manifest doesn't list");
  fs::remove(path + "/notes.txt");
  fs::remove(path + "/plan.mlir");
  expectOpenError("/plan.mlir: found no such file");
  fs::create_directory(path + "/plan.mlir");
  expectOpenError("/plan.mlir: found a directory, expected a file");
  fs::remove(path + "/plan.mlir");
  writeText(dir / "elsewhere", "module {}\n");
  fs::create_symlink(dir / "elsewhere", path + "/plan.mlir");
  expectOpenError("/plan.mlir: found a symbolic link, expected a file");
  fs::remove(path + "/plan.mlir");
  writeText(path + "/plan.mlir", "mod");
  expectOpenError("/plan.mlir: found 3 bytes, expected 10");
}

TEST_F(BundleTest, RefusesWhatIsNoBundle) {
  expectOpenError("opening");
  writeText(path, "x");
  expectOpenError("found a file, expected a bundle");
  fs::remove(path);
  fs::create_directory(path);
  expectOpenError("found no manifest.json");
  writeText(path + "/manifest.json", "{}");
  expectOpenError("manifest.json: found no \"format\"");
}

TEST_F(BundleTest, SaysWhenTheFormatIsNewer) {
  write();
  std::string text = readText(path + "/manifest.json"),
              from = "\"format_version\": 6";
  text.replace(text.find(from), from.size(), "\"format_version\": 7");
  writeText(path + "/manifest.json", text);
  expectOpenError("found bundle format 7, expected at most 6; a newer release "
                  "wrote this bundle");
}

TEST_F(BundleTest, RefusesTheFirstFormat) {
  write({Kind::kNone, 0});
  std::string text = readText(path + "/manifest.json"),
              from = "\"format_version\": 6";
  text.replace(text.find(from), from.size(), "\"format_version\": 1");
  writeText(path + "/manifest.json", text);
  const char *error =
      "found bundle format 1, expected at least 2; this "
      "release's kernels and plans are others, compile the model again";
  expectOpenError(error);
  auto source = syntheticSource(model, 7);
  EXPECT_NE(packBundle(path, *source, {Kind::kBlob, 0}).message().find(error),
            absl::string_view::npos);
  // Nor is it overwritten.
  auto written = writeBundle(
      path, contentsOf(model, makePlan(model), {Kind::kNone, 0}), nullptr);
  EXPECT_NE(written.message().find("found what is no bundle of this release"),
            absl::string_view::npos)
      << written;
}

TEST_F(BundleTest, ChecksThePrediction) {
  write();
  std::string text = readText(path + "/manifest.json"), from = "\"clock_mhz\"";
  text.replace(text.find(from), from.size(), "\"clock\"");
  writeText(path + "/manifest.json", sealManifest(text).value());
  expectOpenError("found no key 'clock_mhz', expected it in '/prediction'");
}

/// Manifests of the formats before have no seal, and stay readable.
TEST_F(BundleTest, ReadsManifestsWithoutASeal) {
  write();
  std::string text = readText(path + "/manifest.json"),
              from = "\"format_version\": 6";
  text.replace(text.find(from), from.size(), "\"format_version\": 3");
  EXPECT_NE(readManifest(text, "m").status().message().find(
                "found unknown key 'seal'"),
            absl::string_view::npos);
  size_t seal = text.find("  \"seal\": ");
  ASSERT_NE(seal, std::string::npos);
  text.erase(seal, text.find('\n', seal) + 1 - seal);
  // Their options have no quantization.
  std::string options = readText(path + "/model.json");
  auto record = [&] {
    return absl::StrCat("\"bytes\": ", options.size(),
                        ",\n      \"sha256\": \"", sha256(options).value());
  };
  const std::string before = record();
  size_t key = options.find("    \"quantization\": ");
  ASSERT_NE(key, std::string::npos);
  options.erase(key, options.find('\n', key) + 1 - key);
  ASSERT_NE(text.find(before), std::string::npos);
  text.replace(text.find(before), before.size(), record());
  writeText(path + "/model.json", options);
  writeText(path + "/manifest.json", text);
  EXPECT_EQ(openError(), "no error");
}

TEST_F(BundleTest, SealsTheManifest) {
  write({Kind::kSynthetic, 7});
  std::string text = readText(path + "/manifest.json");
  EXPECT_EQ(*sealManifest(text), text);
  // What decides about the weights, and stands nowhere else.
  std::string from = "\"seed\": 7", changed = text;
  changed.replace(text.find(from), from.size(), "\"seed\": 8");
  writeText(path + "/manifest.json", changed);
  expectOpenError("key 'seal': found \"");
  expectOpenError("expected the text's own seal; the manifest was changed or "
                  "damaged: compile the bundle again, or restore it");
  writeText(path + "/manifest.json", text + "\n");
  expectOpenError("expected the text's own seal");
  std::string none = text;
  none.replace(text.find("\"seal\""), 6, "\"sea\"");
  writeText(path + "/manifest.json", none);
  expectOpenError("found no key 'seal'");
  // Two places for a seal are none, nor is one of another length.
  std::string twice = text + text;
  EXPECT_EQ(*sealManifest(twice), twice);
  EXPECT_EQ(*sealManifest("\"seal\": \"0\""), "\"seal\": \"0\"");
  writeText(path + "/manifest.json", text);
  EXPECT_EQ(openError(), "no error");
}

TEST_F(BundleTest, ChecksTheManifest) {
  write();
  std::string text = readText(path + "/manifest.json");
  auto with = [&](const std::string &from, const std::string &to) {
    std::string changed = text;
    size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    writeText(path + "/manifest.json", *sealManifest(changed));
  };
  with("\"kind\": \"blob\"", "\"kind\": \"none\"");
  expectOpenError("kind 'none' with weights.blob");
  with("\"plan.mlir\"", "\"../plan.mlir\"");
  expectOpenError("found a file name \"../plan.mlir\"");
  with("\"bank\": \"striped\"", "\"bank\": \"expert\"");
  expectOpenError("policies: found others, expected those of the plan");
  with("\"sm\": \"all\"", "\"sm\": \"some\"");
  expectOpenError("key 'sm': found \"some\", expected \"all\" or \"group\"");
  with("\"sm\": 80", "\"sm\": \"80\"");
  expectOpenError("key 'sm': found \"80\", expected an integer");
  with("\"ptx_version\"", "\"ptx\"");
  expectOpenError("found no key 'ptx_version'");
  with("\"format\"", "\"sm\": 80, \"format\"");
  expectOpenError("key 'sm': found a second time");
}

TEST_F(BundleTest, EveryChangedManifestByteIsReadOrRefused) {
  write({Kind::kNone, 0});
  std::string text = readText(path + "/manifest.json");
  for (size_t i = 0; i < text.size(); ++i)
    for (char c : {'\0', '"', '}', '9', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      (void)readManifest(changed, "manifest.json");
    }
}

TEST_F(BundleTest, ReplacesABundleAndNothingElse) {
  write({Kind::kNone, 0});
  write();
  EXPECT_EQ(openError(), "no error");
  EXPECT_EQ(dir.names(), std::vector<std::string>{"m.grok"});
  BundleContents c = contentsOf(model, makePlan(model), {Kind::kNone, 0});
  auto writeError = [&] {
    return std::string(writeBundle(path, c, nullptr).message());
  };
  writeText(path + "/mine.txt", "x");
  EXPECT_NE(writeError().find("mine.txt: found a file that is not"),
            std::string::npos);
  EXPECT_EQ(readText(path + "/mine.txt"), "x");
  fs::remove_all(path);
  fs::create_directory(path);
  EXPECT_NE(writeError().find("found a directory without"), std::string::npos);
  fs::remove(path);
  writeText(path, "x");
  EXPECT_NE(writeError().find("found a file, expected"), std::string::npos);
  fs::remove(path);
  fs::create_symlink(dir / "nowhere", path);
  EXPECT_NE(writeError().find("found a symbolic link"), std::string::npos);
  EXPECT_EQ(dir.names(), std::vector<std::string>{"m.grok"});
}

/// Fails after some rows.
struct FailingSource : TensorSource {
  std::unique_ptr<TensorSource> inner;
  int rowsLeft;
  FailingSource(const ModelConfig &m, int rows)
      : inner(syntheticSource(m, 9)), rowsLeft(rows) {}
  absl::Status readRow(const TensorId &id, uint32_t row,
                       std::span<float> out) override {
    if (rowsLeft-- == 0)
      return absl::DataLossError("the disk has gone");
    return inner->readRow(id, row, out);
  }
};

TEST_F(BundleTest, AFailureLeavesNothingBehind) {
  for (int rows : {0, 1, 100, 1000}) {
    FailingSource source(model, rows);
    BundleContents c = contentsOf(model, makePlan(model), {Kind::kBlob, 0});
    EXPECT_EQ(writeBundle(path, c, &source).message(), "the disk has gone");
    EXPECT_TRUE(dir.names().empty());
  }
}

TEST_F(BundleTest, AFailureLeavesTheOldBundle) {
  write();
  auto before = everyFile(path);
  FailingSource source(model, 50);
  BundleContents c = contentsOf(model, makePlan(model), {Kind::kBlob, 0});
  EXPECT_FALSE(writeBundle(path, c, &source).ok());
  EXPECT_EQ(everyFile(path), before);
  EXPECT_EQ(dir.names(), std::vector<std::string>{"m.grok"});
}

TEST_F(BundleTest, RefusesInconsistentContents) {
  BundleContents c = contentsOf(model, makePlan(model), {Kind::kNone, 0});
  auto errorWith = [&](auto spoil) {
    BundleContents copy = c;
    spoil(copy);
    return std::string(writeBundle(path, copy, nullptr).message());
  };
  EXPECT_NE(errorWith([](auto &b) {
              b.options.maxBatch = 1;
            }).find("max batch: found 2, expected 1 as in the options"),
            std::string::npos);
  EXPECT_NE(errorWith([](auto &b) { b.files["a/b"] = ""; }).find("'a/b'"),
            std::string::npos);
  EXPECT_NE(
      errorWith([](auto &b) { b.files["plan.bin"] = ""; }).find("'plan.bin'"),
      std::string::npos);
  EXPECT_NE(errorWith([](auto &b) {
              b.files.erase("decode.ptx");
            }).find("no decode.ptx"),
            std::string::npos);
  EXPECT_NE(errorWith([](auto &b) {
              b.options.trace = true;
            }).find("files: found no trace.ptx, expected it"),
            std::string::npos);
  EXPECT_NE(errorWith([](auto &b) { b.files["trace.ptx"] = ""; })
                .find("files: found trace.ptx, expected none: the options "
                      "don't ask for it"),
            std::string::npos);
  EXPECT_NE(errorWith([](auto &b) {
              b.manifest.target.json = "[]";
            }).find("target description"),
            std::string::npos);
  EXPECT_NE(errorWith([](auto &b) { b.manifest.weights.kind = Kind::kBlob; }),
            "");
  EXPECT_TRUE(dir.names().empty());
}

TEST_F(BundleTest, MissingParentIsAnError) {
  path = dir / "no/such/m.grok";
  BundleContents c = contentsOf(model, makePlan(model), {Kind::kNone, 0});
  EXPECT_NE(writeBundle(path, c, nullptr).message().find("found no directory"),
            absl::string_view::npos);
}

TEST_F(BundleTest, SourceGivesBackEveryRow) {
  for (const ModelConfig &m : {learnedModel(), hashModel()}) {
    model = m;
    write();
    auto bundle = Bundle::open(path);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    auto source = bundleSource(*bundle), expected = syntheticSource(model, 7);
    test::forEachTensor(model, [&](const TensorId &id) {
      TensorShape shape = tensorShape(model, id.kind);
      bool vector = shape.rows == 1 || id.kind == TensorKind::kRouter;
      std::vector<uint16_t> a(shape.columns), b(shape.columns);
      std::vector<float> wide(shape.columns), other(shape.columns);
      for (uint32_t row = 0; row < shape.rows; ++row) {
        absl::Status s = source->readRow(id, row, wide);
        ASSERT_TRUE(s.ok()) << s;
        ASSERT_TRUE(expected->readRow(id, row, other).ok());
        if (!vector)
          for (float &f : other)
            f = bf16ToFloat(floatToBf16(f));
        ASSERT_EQ(wide, other) << tensorName(id) << " row " << row;
        for (DType type : {DType::kBF16, DType::kF16}) {
          ASSERT_TRUE(source->readRow16(id, row, type, a).ok());
          ASSERT_EQ(floatToHalf(type, other, b.data()), std::nullopt);
          ASSERT_EQ(a, b) << tensorName(id) << " row " << row;
        }
      }
    });
  }
}

TEST_F(BundleTest, SourceNamesWhatTheBundleLacks) {
  PlanTables plan =
      makePlan(model, {5, 3, 4096, DType::kBF16, SmPolicy::kAll, {2}});
  auto weights = syntheticSource(model, 7);
  ASSERT_TRUE(writeBundle(path, contentsOf(model, plan, {Kind::kBlob, 0}),
                          weights.get())
                  .ok());
  std::vector<float> row(model.hiddenSize);
  absl::Status status = bundleSource(Bundle::open(path).value())
                            ->readRow({TensorKind::kExpertUp, 0, 2}, 0, row);
  EXPECT_NE(status.message().find("no tensor 'layers.0.experts.2.up'"),
            absl::string_view::npos)
      << status;
  write({Kind::kNone, 0});
  status = bundleSource(Bundle::open(path).value())
               ->readRow({TensorKind::kQuery, 0, 0}, 0, row);
  EXPECT_NE(status.message().find("found no weights in the bundle"),
            absl::string_view::npos);
}

/// Packs a bundle's weights for another plan, as retargeting does.
std::string repack(const std::string &from, const std::string &to,
                   const ModelConfig &model, const test::PlanOptions &options) {
  auto source = bundleSource(Bundle::open(from).value());
  BundleContents c =
      contentsOf(model, makePlan(model, options), {Kind::kBlob, 0});
  absl::Status status = writeBundle(to, c, source.get());
  EXPECT_TRUE(status.ok()) << status;
  return readText(to + "/weights.blob");
}

TEST_F(BundleTest, TwelveBanksToEightAndBackIsTheSameBlob) {
  for (DType dtype : {DType::kBF16, DType::kF16})
    for (const ModelConfig &m : {learnedModel(), hashModel()}) {
      test::PlanOptions twelve{27, 12, 4096, dtype, SmPolicy::kAll, {1}},
          eight{33, 8, 8192, dtype, SmPolicy::kAll, {1}};
      std::string a = dir / "a.grok", b = dir / "b.grok", c = dir / "c.grok";
      auto weights = syntheticSource(m, 11);
      BundleContents first =
          contentsOf(m, makePlan(m, twelve), {Kind::kBlob, 0});
      ASSERT_TRUE(writeBundle(a, first, weights.get()).ok());
      std::string middle = repack(a, b, m, eight);
      EXPECT_EQ(middle, test::packSynthetic(m, makePlan(m, eight), 11));
      EXPECT_EQ(repack(b, c, m, twelve), readText(a + "/weights.blob"));
      EXPECT_EQ(everyFile(a), everyFile(c));
    }
}

/// A model whose rows are one block of inputs, or 8.
ModelConfig wideModel() {
  ModelConfig m = learnedModel();
  m.expertWidth = 256;
  return m;
}

TEST_F(BundleTest, CodesStayAsTheyAreForAnotherPlan) {
  const ModelConfig m = wideModel();
  for (Quantization q : {Quantization::kInt8, Quantization::kFp8}) {
    test::PlanOptions twelve{27, 12, 4096, DType::kBF16, SmPolicy::kAll, {}},
        eight{33, 8, 8192, DType::kBF16, SmPolicy::kAll, {}};
    twelve.quantization = eight.quantization = q;
    std::string a = dir / "a.grok", b = dir / "b.grok", c = dir / "c.grok";
    auto weights = syntheticSource(m, 11);
    BundleContents first = contentsOf(m, makePlan(m, twelve), {Kind::kBlob, 0});
    std::string said;
    ASSERT_TRUE(
        writeBundle(
            a, first, weights.get(),
            {{}, [&](bool, const std::string &message) { said += message; }})
            .ok());
    EXPECT_NE(
        said.find(absl::StrCat("elements rounded to ", std::string(wordFor(q)),
                               ", relative error ")),
        std::string::npos)
        << said;
    EXPECT_EQ(repack(a, b, m, eight),
              test::packSynthetic(m, makePlan(m, eight), 11));
    EXPECT_EQ(repack(b, c, m, twelve), readText(a + "/weights.blob"));
  }
}

TEST_F(BundleTest, SourceGivesTheValuesOfCodes) {
  const ModelConfig m = wideModel();
  test::PlanOptions options;
  options.quantization = Quantization::kInt8;
  auto weights = syntheticSource(m, 7);
  BundleContents contents =
      contentsOf(m, makePlan(m, options), {Kind::kBlob, 0});
  ASSERT_TRUE(writeBundle(path, contents, weights.get()).ok());
  auto source = bundleSource(Bundle::open(path).value());
  for (TensorId id : {TensorId{TensorKind::kExpertDown, 1, 2},
                      TensorId{TensorKind::kQuery, 1, 0}}) {
    TensorShape shape = tensorShape(m, id.kind);
    std::vector<float> row(shape.columns), exact(shape.columns);
    std::vector<uint8_t> codes(shape.columns);
    RowScales scales;
    for (uint32_t r = 0; r != shape.rows; ++r) {
      ASSERT_TRUE(weights->readRow(id, r, exact).ok());
      ASSERT_FALSE(quantizeRow(Quantization::kInt8, exact, codes, scales));
      dequantizeRow(Quantization::kInt8, codes, scales, exact);
      ASSERT_TRUE(source->readRow(id, r, row).ok());
      EXPECT_EQ(row, exact) << tensorName(id) << " row " << r;
    }
  }
}

/// A source with one element that is not finite.
struct InfiniteSource : TensorSource {
  std::unique_ptr<TensorSource> inner = syntheticSource(learnedModel(), 1);
  absl::Status readRow(const TensorId &id, uint32_t row,
                       std::span<float> out) override {
    absl::Status status = inner->readRow(id, row, out);
    if (id.kind == TensorKind::kKey && id.layer == 1 && row == 3)
      out[5] = INFINITY;
    return status;
  }
};

TEST_F(BundleTest, CodesHaveNoInfinity) {
  test::PlanOptions options;
  options.quantization = Quantization::kInt8;
  InfiniteSource weights;
  EXPECT_EQ(
      writeBundle(path,
                  contentsOf(learnedModel(), makePlan(learnedModel(), options),
                             {Kind::kBlob, 0}),
                  &weights)
          .message(),
      "tensor 'layers.1.key' [3, 5]: found inf, expected a finite value, "
      "as int8 has no other; download or export the weights again");
}

} // namespace
} // namespace grok
