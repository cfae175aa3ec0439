#include "runtime/bundle/PlanTables.h"

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Bytes.h"
#include "runtime/bundle/PlanCheck.h"

namespace grok {
namespace {

constexpr std::string_view kMagic = "GROKPLAN";
constexpr uint32_t kVersion = 4;
/// The versions that added the fields of prefill, and clusters and the
/// quantization.
constexpr uint32_t kPrefillVersion = 3, kClusterVersion = 4;
constexpr uint32_t kOldestVersion = 2;
constexpr size_t kMaxNameBytes = 64;
// Bytes of a table's element in the file.
constexpr uint64_t kExpertBytes = 4, kBankBytes = 32, kMatrixBytes = 16,
                   kSlotBytes = 24, kEmbeddingBytes = 24, kRegionBytes = 28;

template <typename Enum>
bool readEnum(ByteReader &in, Enum &out, uint32_t count) {
  uint32_t value = in.u32();
  out = Enum(value);
  return value < count;
}

/// Reads plan.bin; the checks here are those that allocation and the types
/// need, checkPlan makes all others.
class PlanReader {
public:
  PlanReader(std::string_view bytes, std::string_view file)
      : in_(bytes), file_(file), size_(bytes.size()) {}

  absl::StatusOr<PlanTables> read() {
    if (absl::Status s = readHeader(); !s.ok())
      return s;
    if (absl::Status s = readScalars(); !s.ok())
      return s;
    if (absl::Status s = readTables(); !s.ok())
      return s;
    if (in_.failed() || in_.remaining())
      return error("tables", absl::StrCat(in_.remaining(), " bytes after them"),
                   "none");
    return std::move(plan_);
  }

private:
  absl::Status error(const std::string &what, const std::string &found,
                     const std::string &expected) const {
    return absl::InvalidArgumentError(absl::StrCat(
        file_, ": ", what, ": found ", found, ", expected ", expected));
  }

  absl::Status readHeader() {
    if (in_.raw(kMagic.size()) != kMagic)
      return error("start of file", "other bytes", "the magic GROKPLAN");
    version_ = in_.u32();
    if (version_ > kVersion)
      return error("version", absl::StrCat(version_),
                   absl::StrCat("at most ", kVersion,
                                "; the file was written by a newer release"));
    if (version_ < kOldestVersion)
      return error("version", absl::StrCat(version_),
                   absl::StrCat("at least ", kOldestVersion,
                                "; compile the model again"));
    uint32_t reserved = in_.u32();
    uint64_t bytes = in_.u64();
    if (in_.failed() || bytes != size_)
      return error("size", absl::StrCat(size_, " bytes"),
                   absl::StrCat(bytes, "; the file is truncated or extended"));
    if (reserved)
      return error("reserved field", absl::StrCat(reserved), "0");
    return absl::OkStatus();
  }

  absl::Status readScalars() {
    plan_.deviceIndex = in_.u32();
    plan_.deviceCount = in_.u32();
    plan_.slots = in_.u32();
    plan_.maxBatch = in_.u32();
    plan_.maxSeq = in_.u32();
    bool known = readEnum(in_, plan_.dtype, 2);
    known &= readEnum(in_, plan_.activations, 2);
    known &= readEnum(in_, plan_.smPolicy, 2);
    known &= readEnum(in_, plan_.bankPolicy, 2);
    if (!known)
      return error("dtype, activations or policies", "an unknown number",
                   "0 or 1 each");
    plan_.blockSteps = in_.u32();
    plan_.ringStages = in_.u32();
    plan_.chunkBytes = in_.u32();
    plan_.inFlightChunks = in_.u32();
    plan_.paceCycles = in_.u32();
    plan_.sharedBytes = in_.u32();
    plan_.threads = in_.u32();
    plan_.vectorsOffset = in_.u64();
    plan_.vectorsLayerBytes = in_.u64();
    plan_.blobBytes = in_.u64();
    plan_.arenaBytes = in_.u64();
    plan_.kvReserveBytes = in_.u64();
    if (version_ >= kPrefillVersion) {
      plan_.prefill.tokens = in_.u32();
      plan_.prefill.tileTokens = in_.u32();
      plan_.prefill.stages = in_.u32();
      plan_.prefill.sharedBytes = in_.u32();
    }
    if (version_ >= kClusterVersion) {
      plan_.cluster = in_.u32();
      if (!readEnum(in_, plan_.quantization, 3))
        return error("quantization", "an unknown number", "0, 1 or 2");
    }
    return absl::OkStatus();
  }

  /// Nothing is allocated for a count that the remaining bytes cannot hold.
  absl::Status readCount(const std::string &what, uint64_t elementBytes,
                         uint32_t &count) {
    count = in_.u32();
    if (count <= in_.remaining() / elementBytes)
      return absl::OkStatus();
    return error(what, absl::StrCat(count, " of ", elementBytes, " bytes"),
                 absl::StrCat("no more than fit in the ", in_.remaining(),
                              " that follow"));
  }

  absl::Status readTables() {
    if (absl::Status s = readExperts(); !s.ok())
      return s;
    if (absl::Status s = readBanks(); !s.ok())
      return s;
    if (absl::Status s = readMatrices(); !s.ok())
      return s;
    if (absl::Status s = readEmbedding(); !s.ok())
      return s;
    return readArena();
  }

  absl::Status readExperts() {
    uint32_t count;
    if (absl::Status s = readCount("experts", kExpertBytes, count); !s.ok())
      return s;
    plan_.experts.resize(count);
    for (auto &expert : plan_.experts)
      if (!readEnum(in_, expert, 3))
        return error("experts", "an unknown state", "0, 1 or 2");
    return absl::OkStatus();
  }

  absl::Status readBanks() {
    uint32_t count;
    if (absl::Status s = readCount("banks", kBankBytes, count); !s.ok())
      return s;
    plan_.banks.resize(count);
    for (BankSegment &bank : plan_.banks) {
      bank.offset = in_.u64();
      bank.bytes = in_.u64();
      bank.usedBytes = in_.u64();
      bank.layerStride = in_.u64();
    }
    return absl::OkStatus();
  }

  absl::Status readMatrices() {
    uint32_t count;
    uint64_t bytes = kMatrixBytes + plan_.slots * kSlotBytes;
    if (absl::Status s = readCount("matrices", bytes, count); !s.ok())
      return s;
    plan_.matrices.resize(count);
    for (PlanMatrix &matrix : plan_.matrices) {
      if (!readEnum(in_, matrix.kind, uint32_t(MatrixKind::kHead) + 1))
        return error("matrices", "an unknown kind", "0 .. 6");
      matrix.expert = in_.u32();
      matrix.tiles = in_.u32();
      matrix.steps = in_.u32();
      matrix.slots.resize(plan_.slots);
      for (SlotExtent &extent : matrix.slots) {
        extent.tileBegin = in_.u32();
        extent.tileCount = in_.u32();
        extent.bank = in_.u32();
        if (in_.u32())
          return error("matrices", "a reserved field that is set", "0");
        extent.offset = in_.u64();
      }
    }
    return absl::OkStatus();
  }

  absl::Status readEmbedding() {
    uint32_t count;
    if (absl::Status s = readCount("embedding", kEmbeddingBytes, count);
        !s.ok())
      return s;
    plan_.embedding.resize(count);
    for (EmbeddingExtent &extent : plan_.embedding) {
      extent.rowBegin = in_.u32();
      extent.rowCount = in_.u32();
      extent.bank = in_.u32();
      if (in_.u32())
        return error("embedding", "a reserved field that is set", "0");
      extent.offset = in_.u64();
    }
    return absl::OkStatus();
  }

  absl::Status readArena() {
    uint32_t count;
    if (absl::Status s = readCount("arena", kRegionBytes, count); !s.ok())
      return s;
    plan_.arena.resize(count);
    for (ArenaRegion &region : plan_.arena) {
      region.offset = in_.u64();
      region.bytes = in_.u64();
      region.firstPhase = in_.u32();
      region.lastPhase = in_.u32();
      uint32_t length = in_.u32();
      if (length > kMaxNameBytes || length > in_.remaining())
        return error("arena", absl::StrCat("a name of ", length, " bytes"),
                     absl::StrCat("at most ", kMaxNameBytes));
      region.name = std::string(in_.raw(length));
    }
    return absl::OkStatus();
  }

  ByteReader in_;
  std::string file_;
  size_t size_;
  uint32_t version_ = 0;
  PlanTables plan_;
};

void writeScalars(const PlanTables &p, ByteWriter &out) {
  for (uint32_t v :
       {p.deviceIndex, p.deviceCount, p.slots, p.maxBatch, p.maxSeq,
        uint32_t(p.dtype), uint32_t(p.activations), uint32_t(p.smPolicy),
        uint32_t(p.bankPolicy), p.blockSteps, p.ringStages, p.chunkBytes,
        p.inFlightChunks, p.paceCycles, p.sharedBytes, p.threads})
    out.u32(v);
  for (uint64_t v : {p.vectorsOffset, p.vectorsLayerBytes, p.blobBytes,
                     p.arenaBytes, p.kvReserveBytes})
    out.u64(v);
  for (uint32_t v :
       {p.prefill.tokens, p.prefill.tileTokens, p.prefill.stages,
        p.prefill.sharedBytes, p.cluster, uint32_t(p.quantization)})
    out.u32(v);
}

void writeTables(const PlanTables &p, ByteWriter &out) {
  out.u32(uint32_t(p.experts.size()));
  for (PlanTables::Expert expert : p.experts)
    out.u32(uint32_t(expert));
  out.u32(uint32_t(p.banks.size()));
  for (const BankSegment &bank : p.banks)
    for (uint64_t v :
         {bank.offset, bank.bytes, bank.usedBytes, bank.layerStride})
      out.u64(v);
  out.u32(uint32_t(p.matrices.size()));
  for (const PlanMatrix &matrix : p.matrices) {
    for (uint32_t v :
         {uint32_t(matrix.kind), matrix.expert, matrix.tiles, matrix.steps})
      out.u32(v);
    for (const SlotExtent &extent : matrix.slots) {
      for (uint32_t v : {extent.tileBegin, extent.tileCount, extent.bank, 0u})
        out.u32(v);
      out.u64(extent.offset);
    }
  }
  out.u32(uint32_t(p.embedding.size()));
  for (const EmbeddingExtent &extent : p.embedding) {
    for (uint32_t v : {extent.rowBegin, extent.rowCount, extent.bank, 0u})
      out.u32(v);
    out.u64(extent.offset);
  }
  out.u32(uint32_t(p.arena.size()));
  for (const ArenaRegion &region : p.arena) {
    out.u64(region.offset);
    out.u64(region.bytes);
    out.u32(region.firstPhase);
    out.u32(region.lastPhase);
    out.u32(uint32_t(region.name.size()));
    out.raw(region.name);
  }
}

} // namespace

const PlanMatrix *PlanTables::findMatrix(MatrixKind kind,
                                         uint32_t expert) const {
  for (const PlanMatrix &matrix : matrices)
    if (matrix.kind == kind && matrix.expert == expert)
      return &matrix;
  return nullptr;
}

const ArenaRegion *PlanTables::findRegion(std::string_view name) const {
  for (const ArenaRegion &region : arena)
    if (region.name == name)
      return &region;
  return nullptr;
}

std::string PlanTables::serialize() const {
  ByteWriter body;
  writeScalars(*this, body);
  writeTables(*this, body);
  ByteWriter out;
  out.raw(kMagic);
  out.u32(kVersion);
  out.u32(0);
  out.u64(kMagic.size() + 16 + body.bytes().size());
  out.raw(body.bytes());
  return out.bytes();
}

absl::StatusOr<PlanTables> PlanTables::parse(std::string_view bytes,
                                             std::string_view file,
                                             const ModelConfig &model) {
  absl::StatusOr<PlanTables> plan = PlanReader(bytes, file).read();
  if (!plan.ok())
    return plan.status();
  if (absl::Status status = checkPlan(*plan, model, file); !status.ok())
    return status;
  return plan;
}

} // namespace grok
