#include "runtime/bundle/PlanCheck.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/KernelAbi.h"

namespace grok {
namespace {

// Wide enough for any sum and product of a file's fields.
using Wide = unsigned __int128;

constexpr uint32_t kMaxSlots = 65536, kMaxSharedBytes = 1 << 20,
                   kMaxThreads = 1024;
/// A consumer warp waits for what it needs at once with a lane a stage.
constexpr uint32_t kMaxRingStages = 32;
constexpr uint64_t kMaxBytes = uint64_t(1) << 56;
/// What a bulk copy needs.
constexpr uint64_t kExtentAlign = 16;

/// Bytes [begin, end) of the blob and what they are.
struct Interval {
  Wide begin, end;
  std::string what;
};

std::string text(Wide v) {
  return v > ~uint64_t(0) ? "2^64 or more" : absl::StrCat(uint64_t(v));
}

class PlanChecker {
public:
  PlanChecker(const PlanTables &plan, const ModelConfig &model,
              std::string_view file)
      : p_(plan), m_(model), file_(file) {}

  absl::Status check() {
    using Check = absl::Status (PlanChecker::*)();
    // In this order: later checks use what earlier ones established.
    constexpr Check kChecks[] = {
        &PlanChecker::checkScalars,   &PlanChecker::checkExperts,
        &PlanChecker::checkBanks,     &PlanChecker::checkMatrixList,
        &PlanChecker::checkTiles,     &PlanChecker::checkGroups,
        &PlanChecker::checkOutputs,   &PlanChecker::checkEmbedding,
        &PlanChecker::checkPlacement, &PlanChecker::checkKernel,
        &PlanChecker::checkPrefill,   &PlanChecker::checkArena,
        &PlanChecker::checkRegions,   &PlanChecker::checkPrefillRegions,
    };
    for (Check check : kChecks)
      if (absl::Status status = (this->*check)(); !status.ok())
        return status;
    return absl::OkStatus();
  }

private:
  absl::Status error(const std::string &what, const std::string &found,
                     const std::string &expected) const {
    return absl::InvalidArgumentError(absl::StrCat(
        file_, ": ", what, ": found ", found, ", expected ", expected));
  }

  absl::Status range(const char *what, uint64_t v, uint64_t low,
                     uint64_t high) const {
    if (v >= low && v <= high)
      return absl::OkStatus();
    return error(what, absl::StrCat(v), absl::StrCat(low, " .. ", high));
  }

  absl::Status checkScalars() {
    if (p_.deviceCount != 1 || p_.deviceIndex != 0)
      return error("device",
                   absl::StrCat(p_.deviceIndex, " of ", p_.deviceCount),
                   "0 of 1; this release runs plans for one device");
    for (absl::Status s :
         {range("slots", p_.slots, 1, kMaxSlots),
          range("max batch", p_.maxBatch, 1, abi::kMaxBatch),
          range("max sequence", p_.maxSeq, 1, m_.maxPositions),
          range("K block steps", p_.blockSteps, kWarps, 1 << 20),
          range("blob bytes", p_.blobBytes, 1, kMaxBytes),
          range("arena bytes", p_.arenaBytes, 1, kMaxBytes),
          range("KV reserve bytes", p_.kvReserveBytes, 1, kMaxBytes)})
      if (!s.ok())
        return s;
    if (p_.blockSteps % kWarps)
      return error("K block steps", absl::StrCat(p_.blockSteps),
                   absl::StrCat("a multiple of ", kWarps));
    if (p_.smPolicy == SmPolicy::kGroup && !m_.hash)
      return error("SM policy", "'group' for a model without expert groups",
                   "'all'");
    return absl::OkStatus();
  }

  absl::Status checkExperts() {
    if (p_.experts.size() != m_.numExperts)
      return error("experts", absl::StrCat(p_.experts.size()),
                   absl::StrCat(m_.numExperts, " as in the model"));
    for (uint32_t e = 0; e < m_.numExperts; ++e)
      if (p_.experts[e] == PlanTables::Expert::kUnreachable && !m_.hash)
        return error(absl::StrCat("expert ", e), "unreachable",
                     "kept or pruned: a learned router can reach every expert");
    return absl::OkStatus();
  }

  absl::Status checkBanks() {
    if (p_.banks.empty())
      return error("banks", "none", "at least one");
    Wide next = 0;
    for (size_t b = 0; b < p_.banks.size(); ++b) {
      const BankSegment &bank = p_.banks[b];
      std::string what = absl::StrCat("bank ", b);
      if (bank.offset != next)
        return error(what, absl::StrCat("offset ", bank.offset),
                     absl::StrCat(text(next), ", where the one before ends"));
      if (bank.usedBytes > bank.bytes)
        return error(what, absl::StrCat(bank.usedBytes, " bytes in use"),
                     absl::StrCat("at most its ", bank.bytes));
      next += bank.bytes;
    }
    if (next != p_.blobBytes)
      return error("banks", absl::StrCat(text(next), " bytes together"),
                   absl::StrCat(p_.blobBytes, " as in the blob"));
    return absl::OkStatus();
  }

  struct Expected {
    MatrixKind kind;
    uint32_t expert;
  };
  std::vector<Expected> expectedMatrices() const {
    std::vector<Expected> list = {{MatrixKind::kQkv, 0},
                                  {MatrixKind::kAttnOut, 0}};
    for (bool down : {false, true}) {
      for (uint32_t e = 0; e < m_.numExperts; ++e)
        if (p_.experts[e] == PlanTables::Expert::kKept)
          list.push_back({down ? MatrixKind::kDown : MatrixKind::kGateUp, e});
      if (m_.denseWidth)
        list.push_back(
            {down ? MatrixKind::kDenseDown : MatrixKind::kDenseGateUp, 0});
    }
    list.push_back({MatrixKind::kHead, 0});
    return list;
  }

  absl::Status checkMatrixList() {
    std::vector<Expected> expected = expectedMatrices();
    if (p_.matrices.size() != expected.size())
      return error("matrices", absl::StrCat(p_.matrices.size()),
                   absl::StrCat(expected.size(),
                                " for this model and its kept experts"));
    for (size_t i = 0; i < expected.size(); ++i) {
      const PlanMatrix &matrix = p_.matrices[i];
      std::string name = matrixName(expected[i].kind, expected[i].expert);
      if (matrix.kind != expected[i].kind ||
          matrix.expert != expected[i].expert)
        return error(absl::StrCat("matrix ", i),
                     matrixName(matrix.kind, matrix.expert), name);
      MatrixShape shape = matrixShape(m_, matrix.kind);
      uint32_t tiles = ceilDiv(shape.rows, kTileRows),
               steps = ceilDiv(shape.k, kTileK);
      if (matrix.tiles != tiles || matrix.steps != steps)
        return error(
            name,
            absl::StrCat(matrix.tiles, " tiles of ", matrix.steps, " steps"),
            absl::StrCat(tiles, " of ", steps));
      if (matrix.slots.size() != p_.slots)
        return error(name, absl::StrCat(matrix.slots.size(), " slots"),
                     absl::StrCat(p_.slots));
    }
    return absl::OkStatus();
  }

  /// Every tile of a matrix belongs to exactly one slot.
  absl::Status checkTiles() {
    std::vector<std::pair<uint32_t, uint32_t>> ranges; // begin, slot
    for (const PlanMatrix &matrix : p_.matrices) {
      std::string name = matrixName(matrix.kind, matrix.expert);
      ranges.clear();
      for (uint32_t s = 0; s < p_.slots; ++s) {
        const SlotExtent &extent = matrix.slots[s];
        if (extent.tileCount)
          ranges.push_back({extent.tileBegin, s});
        else if (extent.bank || extent.offset ||
                 extent.tileBegin > matrix.tiles)
          return error(absl::StrCat(name, ", slot ", s), "a place for no tiles",
                       "bank and offset 0");
      }
      std::sort(ranges.begin(), ranges.end());
      uint64_t next = 0;
      for (auto [begin, s] : ranges) {
        if (begin != next)
          return error(
              absl::StrCat(name, ", slot ", s),
              absl::StrCat("tiles from ", begin),
              absl::StrCat("from ", next, ", so that each is produced once"));
        next += matrix.slots[s].tileCount;
      }
      if (next != matrix.tiles)
        return error(name, absl::StrCat(next, " tiles of all slots together"),
                     absl::StrCat(matrix.tiles));
    }
    return absl::OkStatus();
  }

  /// With the group policy a slot works for the experts of one group only.
  absl::Status checkGroups() {
    if (p_.smPolicy != SmPolicy::kGroup)
      return absl::OkStatus();
    std::vector<std::optional<uint32_t>> groupOfSlot(p_.slots);
    for (const PlanMatrix &matrix : p_.matrices) {
      if (matrix.kind != MatrixKind::kGateUp &&
          matrix.kind != MatrixKind::kDown)
        continue;
      uint32_t group = matrix.expert / m_.hash->expertsPerGroup;
      for (uint32_t s = 0; s < p_.slots; ++s) {
        if (!matrix.slots[s].tileCount)
          continue;
        if (groupOfSlot[s].value_or(group) != group)
          return error(absl::StrCat("slot ", s),
                       absl::StrCat("experts of groups ", *groupOfSlot[s],
                                    " and ", group),
                       "one group only under the SM policy 'group'");
        groupOfSlot[s] = group;
      }
    }
    return absl::OkStatus();
  }

  /// A slot sums a row's experts and dense MLP where it stands, so their
  /// output matrices are dealt alike.
  absl::Status checkOutputs() {
    if (m_.expertsPerToken == 1 && m_.denseWidth == 0)
      return absl::OkStatus();
    const PlanMatrix *first = nullptr;
    for (const PlanMatrix &matrix : p_.matrices) {
      if (matrix.kind != MatrixKind::kDown &&
          matrix.kind != MatrixKind::kDenseDown)
        continue;
      if (!first)
        first = &matrix;
      for (uint32_t s = 0; s < p_.slots; ++s)
        if (matrix.slots[s].tileBegin != first->slots[s].tileBegin ||
            matrix.slots[s].tileCount != first->slots[s].tileCount)
          return error(absl::StrCat("slot ", s), "output matrices dealt unlike",
                       "the same tiles of every down matrix");
    }
    return absl::OkStatus();
  }

  /// The rows of an untied embedding lie with the slot that owns the head's
  /// rows of the same numbers.
  absl::Status checkEmbedding() {
    size_t expected = m_.tiedHead ? 0 : p_.slots;
    if (p_.embedding.size() != expected)
      return error("embedding", absl::StrCat(p_.embedding.size(), " extents"),
                   absl::StrCat(expected));
    if (m_.tiedHead)
      return absl::OkStatus();
    const PlanMatrix &head = p_.matrices.back();
    for (uint32_t s = 0; s < p_.slots; ++s) {
      const EmbeddingExtent &extent = p_.embedding[s];
      const SlotExtent &tiles = head.slots[s];
      uint32_t begin = tiles.tileBegin * kTileRows;
      uint32_t count = tiles.tileCount ? std::min(tiles.tileCount * kTileRows,
                                                  m_.vocabSize - begin)
                                       : 0;
      if (extent.rowCount != count || (count && extent.rowBegin != begin))
        return error(
            absl::StrCat("embedding, slot ", s),
            absl::StrCat(extent.rowCount, " rows from ", extent.rowBegin),
            absl::StrCat(count, " from ", begin, " as in the head's tiles"));
      if (!count && (extent.bank || extent.offset))
        return error(absl::StrCat("embedding, slot ", s), "a place for no rows",
                     "bank and offset 0");
    }
    return absl::OkStatus();
  }

  absl::Status addExtent(uint32_t bank, uint64_t offset, uint64_t bytes,
                         std::string what,
                         std::vector<std::vector<Interval>> &banks) {
    if (bank >= p_.banks.size())
      return error(what, absl::StrCat("bank ", bank),
                   absl::StrCat("less than ", p_.banks.size()));
    if (offset % kExtentAlign)
      return error(what, absl::StrCat("offset ", offset),
                   absl::StrCat("a multiple of ", kExtentAlign));
    banks[bank].push_back({offset, Wide(offset) + bytes, std::move(what)});
    return absl::OkStatus();
  }

  /// No two things in the blob overlap, in any layer, and all lie in the used
  /// part of their bank's segment. A bank's per-layer extents lie within one
  /// layer stride of each other, so that layers follow one another: disjoint
  /// in layer 0 is then disjoint in all.
  absl::Status checkPlacement() {
    std::vector<std::vector<Interval>> layered(p_.banks.size()),
        single(p_.banks.size());
    for (const PlanMatrix &matrix : p_.matrices)
      for (uint32_t s = 0; s < p_.slots; ++s) {
        const SlotExtent &extent = matrix.slots[s];
        if (!extent.tileCount)
          continue;
        absl::Status status = addExtent(
            extent.bank, extent.offset, extentBytes(p_, matrix, extent),
            absl::StrCat(matrixName(matrix.kind, matrix.expert), ", slot ", s),
            isPerLayer(matrix.kind) ? layered : single);
        if (!status.ok())
          return status;
      }
    for (uint32_t s = 0; s < p_.embedding.size(); ++s) {
      const EmbeddingExtent &extent = p_.embedding[s];
      if (!extent.rowCount)
        continue;
      absl::Status status =
          addExtent(extent.bank, extent.offset,
                    uint64_t(extent.rowCount) * m_.hiddenSize * 2,
                    absl::StrCat("embedding, slot ", s), single);
      if (!status.ok())
        return status;
    }
    if (absl::Status status = addVectors(single[0]); !status.ok())
      return status;
    for (size_t b = 0; b < p_.banks.size(); ++b)
      if (absl::Status s = checkBank(b, layered[b], single[b]); !s.ok())
        return s;
    return absl::OkStatus();
  }

  absl::Status addVectors(std::vector<Interval> &bank0) {
    if (p_.vectorsLayerBytes < layerVectorBytes(m_) ||
        p_.vectorsLayerBytes % sizeof(float) || p_.vectorsOffset % kExtentAlign)
      return error("vectors",
                   absl::StrCat(p_.vectorsLayerBytes, " bytes a layer at ",
                                p_.vectorsOffset),
                   absl::StrCat(layerVectorBytes(m_),
                                " or more, whole floats, at a multiple of ",
                                kExtentAlign));
    Wide bytes = Wide(m_.numLayers) * p_.vectorsLayerBytes +
                 Wide(m_.hiddenSize) * sizeof(float);
    bank0.push_back({p_.vectorsOffset, p_.vectorsOffset + bytes, "vectors"});
    return absl::OkStatus();
  }

  absl::Status checkDisjoint(std::vector<Interval> &list) {
    std::sort(
        list.begin(), list.end(),
        [](const Interval &a, const Interval &b) { return a.begin < b.begin; });
    for (size_t i = 1; i < list.size(); ++i)
      if (list[i].begin < list[i - 1].end)
        return error(list[i].what,
                     absl::StrCat("an overlap with ", list[i - 1].what),
                     "none");
    return absl::OkStatus();
  }

  absl::Status checkBank(size_t b, std::vector<Interval> &layered,
                         std::vector<Interval> &single) {
    const BankSegment &bank = p_.banks[b];
    if (absl::Status s = checkDisjoint(layered); !s.ok())
      return s;
    if (!layered.empty()) {
      Wide begin = layered.front().begin, end = layered.back().end;
      if (bank.layerStride % kExtentAlign || end - begin > bank.layerStride)
        return error(absl::StrCat("bank ", b),
                     absl::StrCat("a layer stride of ", bank.layerStride),
                     absl::StrCat("at least the ", text(end - begin),
                                  " bytes of a layer, a multiple of ",
                                  kExtentAlign));
      single.push_back({begin, end + Wide(m_.numLayers - 1) * bank.layerStride,
                        absl::StrCat("the layers of bank ", b)});
    }
    if (absl::Status s = checkDisjoint(single); !s.ok())
      return s;
    for (const Interval &i : single)
      if (i.begin < bank.offset || i.end > Wide(bank.offset) + bank.usedBytes)
        return error(i.what,
                     absl::StrCat("bytes ", text(i.begin), " .. ", text(i.end)),
                     absl::StrCat("inside bank ", b, ", ", bank.offset, " .. ",
                                  bank.offset + bank.usedBytes));
    return absl::OkStatus();
  }

  /// A plan for a machine without a decode kernel leaves all of these 0.
  bool hasKernel() const {
    return p_.ringStages || p_.chunkBytes || p_.inFlightChunks ||
           p_.paceCycles || p_.sharedBytes || p_.threads;
  }

  absl::Status checkKernel() {
    // Of every plan: the rule is the format's, whoever runs it.
    uint32_t longest = 0;
    for (const PlanMatrix &matrix : p_.matrices)
      longest = std::max(longest, matrix.steps);
    if (!sumsWholeBatches(p_.blockSteps, longest))
      return error("K block steps", absl::StrCat(p_.blockSteps),
                   absl::StrCat("a multiple of ", kBatchSteps * kWarps,
                                " or at least the longest row's ", longest));
    if (!hasKernel() ? p_.cluster != 1
                     : p_.cluster < 1 || p_.cluster > 2 ||
                           (p_.cluster == 2 && p_.slots % 2))
      return error("blocks of a cluster", absl::StrCat(p_.cluster),
                   "1, or 2 of a kernel with an even number of slots");
    if (!hasKernel())
      return absl::OkStatus();
    for (absl::Status s :
         {range("ring stages", p_.ringStages, 1, kMaxRingStages),
          range("chunks in flight", p_.inFlightChunks, 1, p_.ringStages),
          range("chunk bytes", p_.chunkBytes, kFragmentBytes, kMaxSharedBytes),
          range("shared bytes", p_.sharedBytes, 1, kMaxSharedBytes),
          range("threads", p_.threads, 32 * kWarps, kMaxThreads)})
      if (!s.ok())
        return s;
    if (p_.chunkBytes % kFragmentBytes)
      return error("chunk bytes", absl::StrCat(p_.chunkBytes),
                   absl::StrCat("a multiple of ", kFragmentBytes));
    if (absl::Status s =
            range("pace", p_.paceCycles, 0, mostPaceCycles(p_.chunkBytes));
        !s.ok())
      return s;
    if (p_.threads % 32)
      return error("threads", absl::StrCat(p_.threads), "a multiple of 32");
    if (m_.headDim > kMostHeadDim)
      return error("head_dim", absl::StrCat(m_.headDim),
                   absl::StrCat("at most ", kMostHeadDim,
                                ", which the decode kernel sums"));
    // Also what keeps sharedLayout within 32 bits.
    uint64_t queries = uint64_t(m_.numHeads / m_.numKvHeads) * m_.headDim * 4;
    if (queries > kMaxSharedBytes)
      return error(
          "shared bytes", absl::StrCat(p_.sharedBytes),
          absl::StrCat("room for ", queries, " bytes of a kv head's queries"));
    uint64_t ring = uint64_t(p_.ringStages) * p_.chunkBytes;
    if (uint64_t needed = fewestRingBytes(decodeShape(m_, p_)); ring < needed)
      return error("ring", absl::StrCat(ring, " bytes"),
                   absl::StrCat("at least ", needed,
                                ", which the kernel waits for at once"));
    if (ring > p_.sharedBytes)
      return error(
          "ring", absl::StrCat(ring, " bytes"),
          absl::StrCat("at most the ", p_.sharedBytes, " of shared memory"));
    return absl::OkStatus();
  }

  /// A plan without prefill leaves all of its fields 0.
  absl::Status checkPrefill() {
    const PrefillTile &tile = p_.prefill;
    if (tile == PrefillTile{})
      return absl::OkStatus();
    if (!hasKernel())
      return error("prefill tokens", absl::StrCat(tile.tokens),
                   "0 in a plan without kernels");
    if (p_.quantization != Quantization::kNone)
      return error("prefill tokens", absl::StrCat(tile.tokens),
                   "0 in a plan with weights of 8 bits");
    uint32_t most = uint32_t(std::min<uint64_t>(
        uint64_t(p_.maxBatch) * p_.maxSeq, kMostPrefillTokens));
    for (absl::Status s :
         {range("prefill tokens", tile.tokens, 1, most),
          range("prefill tile", tile.tileTokens, 1, kMostTileTokens),
          range("prefill stages", tile.stages, 1, kMostPrefillStages),
          range("prefill shared bytes", tile.sharedBytes, 1, kMaxSharedBytes)})
      if (!s.ok())
        return s;
    if (tile.tileTokens % kTileTokenStep)
      return error("prefill tile", absl::StrCat(tile.tileTokens),
                   absl::StrCat("a multiple of ", kTileTokenStep));
    uint32_t group = m_.numHeads / m_.numKvHeads;
    if (!attentionHolds(m_.headDim, group))
      return error("prefill tokens", absl::StrCat(tile.tokens),
                   absl::StrCat("0 for ", group, " heads of ", m_.headDim,
                                " dimensions a kv head"));
    if (uint64_t needed = leastProductSharedBytes(prefillShape(m_, p_));
        tile.sharedBytes < needed)
      return error("prefill shared bytes", absl::StrCat(tile.sharedBytes),
                   absl::StrCat("at least the ", needed,
                                " that a product's block uses"));
    return absl::OkStatus();
  }

  absl::Status checkArena() {
    if (p_.arena.empty() || p_.arena.back().name != "kv")
      return error("arena", "another last region", "'kv'");
    Wide end = 0;
    for (size_t i = 0; i < p_.arena.size(); ++i) {
      const ArenaRegion &region = p_.arena[i];
      std::string what = absl::StrCat("arena region ", i);
      if (!validName(region.name) || p_.findRegion(region.name) != &region)
        return error(what, "its name",
                     "one of its own, of lower-case letters, digits and '_'");
      what = absl::StrCat("arena region '", region.name, "'");
      if (region.offset % kRegionAlign || region.offset < end)
        return error(what, absl::StrCat("offset ", region.offset),
                     absl::StrCat("a multiple of ", kRegionAlign, " from ",
                                  text(end), " on"));
      end = Wide(region.offset) + region.bytes;
      if (end > p_.arenaBytes)
        return error(what, absl::StrCat("an end at ", text(end)),
                     absl::StrCat("within the arena's ", p_.arenaBytes));
      if (region.firstPhase > region.lastPhase ||
          region.lastPhase >= kNumPhases)
        return error(what,
                     absl::StrCat("phases ", region.firstPhase, " .. ",
                                  region.lastPhase),
                     absl::StrCat("within 0 .. ", kNumPhases - 1));
    }
    return checkKv(p_.arena.back());
  }

  static bool validName(const std::string &name) {
    return !name.empty() &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
             return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    c == '_';
           });
  }

  absl::Status checkKv(const ArenaRegion &kv) {
    if (p_.kvReserveBytes % kKvReserveUnit)
      return error("KV reserve", absl::StrCat(p_.kvReserveBytes, " bytes"),
                   absl::StrCat("a multiple of ", kKvReserveUnit));
    uint64_t blocks = (uint64_t(p_.maxSeq) + kKvBlock - 1) / kKvBlock;
    Wide need = Wide(p_.maxBatch) * blocks * kKvBlock * m_.numLayers * 2 *
                m_.numKvHeads * m_.headDim * kvElementBytes(p_.activations);
    if (kv.bytes < need || kv.bytes > p_.kvReserveBytes)
      return error("arena region 'kv'", absl::StrCat(kv.bytes, " bytes"),
                   absl::StrCat(text(need), " for batch ", p_.maxBatch,
                                " times length ", p_.maxSeq,
                                ", at most the reserve of ",
                                p_.kvReserveBytes));
    return absl::OkStatus();
  }

  /// The decode kernel's buffers are there and large enough.
  absl::Status checkRegions() {
    if (!hasKernel())
      return absl::OkStatus();
    DecodeShape shape = decodeShape(m_, p_);
    for (const RegionSize &need : decodeRegions(shape).regions) {
      if (!need.bytes)
        continue;
      const ArenaRegion *region = p_.findRegion(need.name);
      if (!region || region->bytes < need.bytes)
        return error(absl::StrCat("arena region '", need.name, "'"),
                     region ? absl::StrCat(region->bytes, " bytes") : "none",
                     absl::StrCat(need.bytes, " bytes"));
    }
    uint64_t shared = sharedLayout(shape).total;
    if (shared > p_.sharedBytes)
      return error("shared bytes", absl::StrCat(p_.sharedBytes),
                   absl::StrCat("at least the ", shared,
                                " that the decode kernel uses"));
    return absl::OkStatus();
  }

  absl::Status checkPrefillRegions() {
    if (!p_.prefill.tokens)
      return absl::OkStatus();
    for (const RegionSize &need :
         prefillRegions(prefillShape(m_, p_)).regions) {
      const ArenaRegion *region = p_.findRegion(need.name);
      if (need.bytes && (!region || region->bytes < need.bytes))
        return error(absl::StrCat("arena region '", need.name, "'"),
                     region ? absl::StrCat(region->bytes, " bytes") : "none",
                     absl::StrCat(need.bytes, " bytes"));
    }
    return absl::OkStatus();
  }

  const PlanTables &p_;
  const ModelConfig &m_;
  std::string file_;
};

} // namespace

std::string matrixName(MatrixKind kind, uint32_t expert) {
  switch (kind) {
  case MatrixKind::kQkv:
    return "qkv";
  case MatrixKind::kAttnOut:
    return "attn_out";
  case MatrixKind::kGateUp:
    return absl::StrCat("gate_up of expert ", expert);
  case MatrixKind::kDenseGateUp:
    return "dense_gate_up";
  case MatrixKind::kDown:
    return absl::StrCat("down of expert ", expert);
  case MatrixKind::kDenseDown:
    return "dense_down";
  case MatrixKind::kHead:
    return "head";
  }
  return "unknown matrix";
}

DecodeShape decodeShape(const ModelConfig &m, const PlanTables &p) {
  DecodeShape s{};
  s.hidden = m.hiddenSize;
  s.heads = m.numHeads;
  s.kvHeads = m.numKvHeads;
  s.headDim = m.headDim;
  s.experts = m.numExperts;
  s.expertsPerToken = m.expertsPerToken;
  s.expertWidth = m.expertWidth;
  s.denseWidth = m.denseWidth;
  s.vocab = m.vocabSize;
  s.layers = m.numLayers;
  s.learnedRouting = !m.hash;
  s.slots = p.slots;
  s.maxBatch = p.maxBatch;
  s.maxSeq = p.maxSeq;
  s.planes = p.activations == Activations::kSplit ? 2 : 1;
  s.blockSteps = p.blockSteps;
  s.ringStages = p.ringStages;
  s.chunkBytes = p.chunkBytes;
  s.cluster = p.cluster;
  s.matrices = uint32_t(p.matrices.size());
  for (const PlanMatrix &matrix : p.matrices)
    if (matrix.kind == MatrixKind::kDown ||
        matrix.kind == MatrixKind::kDenseDown)
      for (const SlotExtent &extent : matrix.slots)
        s.maxDownTiles = std::max(s.maxDownTiles, extent.tileCount);
  return s;
}

bool needsPresence(const PlanTables &plan, const ModelConfig &model) {
  auto idle = [](const PlanMatrix &matrix) {
    return (matrix.kind == MatrixKind::kDown ||
            matrix.kind == MatrixKind::kAttnOut) &&
           std::any_of(matrix.slots.begin(), matrix.slots.end(),
                       [](const SlotExtent &e) { return e.tileCount == 0; });
  };
  bool pruned = std::count(plan.experts.begin(), plan.experts.end(),
                           PlanTables::Expert::kPruned) > 0;
  return (pruned && model.denseWidth == 0) ||
         std::any_of(plan.matrices.begin(), plan.matrices.end(), idle);
}

PrefillShape prefillShape(const ModelConfig &model, const PlanTables &plan) {
  return {decodeShape(model, plan), plan.prefill};
}

absl::Status checkPlan(const PlanTables &plan, const ModelConfig &model,
                       std::string_view file) {
  return PlanChecker(plan, model, file).check();
}

} // namespace grok
