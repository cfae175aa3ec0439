// The verifier of plan.device: what must never go wrong, for what is there so
// far.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "llvm/ADT/SmallVector.h"

#include "ir/Plan/PlanFacts.h"

namespace grok::plan {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;
using mlir::failure;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;

class Verifier {
public:
  explicit Verifier(DeviceOp device) : device(device) {}
  LogicalResult run();

private:
  template <typename OpT> auto all() {
    return device.getBody().front().getOps<OpT>();
  }
  template <typename OpT> LogicalResult atMostOne();
  template <typename OpT> LogicalResult exactlyOne();

  LogicalResult singles();
  LogicalResult phases();
  LogicalResult edge(EdgeOp op);
  LogicalResult reads(PhaseOp op);
  LogicalResult acyclic();
  LogicalResult matrices();
  LogicalResult shapeOf(MatrixOp op, const ModelConfig &sizes);
  LogicalResult production(MatrixOp op);
  LogicalResult sameOutputs();
  LogicalResult presence();
  LogicalResult stream();
  LogicalResult prefill();
  LogicalResult prefillRegion(const RegionSize &needed);
  LogicalResult arena();
  LogicalResult carried(EdgeOp op);
  LogicalResult kvReserve(ArenaOp op, RegionOp kv);
  LogicalResult segments();
  LogicalResult extents();

  DeviceOp device;
  std::map<PhaseKind, PhaseOp> phaseOps;
  std::map<StringRef, RegionOp> regionOps;
  TargetOp target;
};

StringRef name(PhaseKind kind) { return stringifyPhaseKind(kind); }

bool lists(mlir::ArrayAttr buffers, StringRef buffer) {
  return llvm::any_of(buffers.getAsValueRange<mlir::StringAttr>(),
                      [&](StringRef b) { return b == buffer; });
}

//===--------------------------------------------------------------------===//
// What there is once
//===--------------------------------------------------------------------===//

template <typename OpT> LogicalResult Verifier::atMostOne() {
  auto ops = all<OpT>();
  if (ops.empty() || std::next(ops.begin()) == ops.end())
    return success();
  Operation *second = *std::next(ops.begin());
  auto diagnostic = second->emitOpError("stands twice in a device");
  diagnostic.attachNote((*ops.begin())->getLoc()) << "the first is here";
  return diagnostic;
}

template <typename OpT> LogicalResult Verifier::exactlyOne() {
  if (all<OpT>().empty())
    return device.emitOpError("has no '") << OpT::getOperationName() << "'";
  return atMostOne<OpT>();
}

LogicalResult Verifier::singles() {
  if (device.getDeviceIndex() >= device.getDeviceCount())
    return device.emitOpError("is rank ")
           << device.getDeviceIndex() << " of " << device.getDeviceCount()
           << ", expected a rank below the count";
  return success(
      succeeded(exactlyOne<TargetOp>()) && succeeded(exactlyOne<ShapeOp>()) &&
      succeeded(exactlyOne<BoundsOp>()) && succeeded(exactlyOne<ExpertsOp>()) &&
      succeeded(atMostOne<AssignmentOp>()) &&
      succeeded(atMostOne<PlacementOp>()) &&
      succeeded(atMostOne<EmbeddingOp>()) && succeeded(atMostOne<StreamOp>()) &&
      succeeded(atMostOne<PrefillOp>()) && succeeded(atMostOne<ArenaOp>()));
}

//===--------------------------------------------------------------------===//
// Phases and hand-overs
//===--------------------------------------------------------------------===//

LogicalResult Verifier::phases() {
  for (PhaseOp op : all<PhaseOp>()) {
    auto [it, isNew] = phaseOps.try_emplace(op.getKind(), op);
    if (!isNew)
      return op.emitOpError() << name(op.getKind()) << " stands twice";
  }
  for (EdgeOp op : all<EdgeOp>())
    if (failed(edge(op)))
      return failure();
  for (PhaseOp op : all<PhaseOp>())
    if (failed(reads(op)))
      return failure();
  return acyclic();
}

LogicalResult Verifier::edge(EdgeOp op) {
  for (PhaseKind end : {op.getFrom(), op.getTo()})
    if (!phaseOps.count(end))
      return op.emitOpError("ends at phase ")
             << name(end) << ", which the device does not have";
  if (!lists(phaseOps[op.getFrom()].getWrites(), op.getBuffer()))
    return op.emitOpError("carries \"")
           << op.getBuffer() << "\", which " << name(op.getFrom())
           << " does not write";
  if (!lists(phaseOps[op.getTo()].getReads(), op.getBuffer()))
    return op.emitOpError("carries \"") << op.getBuffer() << "\", which "
                                        << name(op.getTo()) << " does not read";
  bool ofStep =
      op.getFrom() == PhaseKind::Head || op.getTo() == PhaseKind::Head;
  if (op.getScope() == EdgeScope::NextLayer && ofStep)
    return op.emitOpError("leads to the next layer, but head runs once a step");
  bool isCache = op.getBuffer() == "kv";
  if (isCache != (op.getSync() == EdgeSync::StepFence))
    return op.emitOpError("carries \"")
           << op.getBuffer() << "\" by " << stringifyEdgeSync(op.getSync())
           << "; expected step_fence for the KV cache, which ordinary stores "
              "write, and epoch for words";
  if (isCache && op.getScope() != EdgeScope::NextStep)
    return op.emitOpError("carries \"kv\" within a step, but the fence that "
                          "orders it ends the step");
  return success();
}

/// A phase that reads a buffer waits for the phase that writes it.
LogicalResult Verifier::reads(PhaseOp op) {
  for (StringRef buffer : op.getReads().getAsValueRange<mlir::StringAttr>()) {
    bool written = false;
    for (PhaseOp producer : all<PhaseOp>()) {
      if (!lists(producer.getWrites(), buffer))
        continue;
      written = true;
      bool waits = llvm::any_of(all<EdgeOp>(), [&](EdgeOp e) {
        return e.getFrom() == producer.getKind() && e.getTo() == op.getKind() &&
               e.getBuffer() == buffer;
      });
      if (!waits)
        return op.emitOpError()
               << name(op.getKind()) << " reads \"" << buffer
               << "\", but no edge leads here from " << name(producer.getKind())
               << ", which writes it";
    }
    if (!written)
      return op.emitOpError() << name(op.getKind()) << " reads \"" << buffer
                              << "\", which no phase writes";
  }
  return success();
}

/// Edges inside a layer (and on to the head) lead forward; those to the next
/// layer or step do so by what they are.
LogicalResult Verifier::acyclic() {
  std::map<PhaseKind, std::set<PhaseKind>> next;
  for (EdgeOp op : all<EdgeOp>())
    if (op.getScope() == EdgeScope::SameLayer)
      next[op.getFrom()].insert(op.getTo());
  enum State { kNew, kOpen, kDone };
  std::map<PhaseKind, State> state;
  SmallVector<PhaseKind> path;
  auto visit = [&](auto &&self, PhaseKind at) -> bool {
    state[at] = kOpen;
    path.push_back(at);
    for (PhaseKind to : next[at]) {
      if (state[to] == kOpen) {
        path.push_back(to);
        return false;
      }
      if (state[to] == kNew && !self(self, to))
        return false;
    }
    state[at] = kDone;
    path.pop_back();
    return true;
  };
  for (auto &[kind, op] : phaseOps) {
    if (state[kind] != kNew || visit(visit, kind))
      continue;
    auto diagnostic =
        op.emitOpError("hand-over edges form a cycle within a step: ");
    auto *start = llvm::find(path, path.back());
    llvm::interleave(
        llvm::make_range(start, path.end()),
        [&](PhaseKind k) { diagnostic << name(k); },
        [&] { diagnostic << " -> "; });
    return diagnostic;
  }
  return success();
}

//===--------------------------------------------------------------------===//
// Matrices: each output tile is produced once
//===--------------------------------------------------------------------===//

/// Kind and expert of every matrix that a model needs, in consumption order.
std::vector<std::pair<StreamKind, uint32_t>> expectedMatrices(DeviceOp device) {
  std::vector<std::pair<StreamKind, uint32_t>> list = {
      {StreamKind::Qkv, 0}, {StreamKind::AttnOut, 0}};
  bool dense = device.find<ShapeOp>().getDenseWidth() != 0;
  auto experts = device.find<ExpertsOp>();
  for (auto [ofExpert, ofDense] :
       {std::pair(StreamKind::GateUp, StreamKind::DenseGateUp),
        std::pair(StreamKind::Down, StreamKind::DenseDown)}) {
    for (int32_t expert : experts.getKept())
      list.emplace_back(ofExpert, expert);
    if (dense)
      list.emplace_back(ofDense, 0);
  }
  list.emplace_back(StreamKind::Head, 0);
  return list;
}

LogicalResult Verifier::matrices() {
  auto ops = all<MatrixOp>();
  if (ops.empty())
    return success();
  ModelConfig sizes = sizesOf(device);
  auto expected = expectedMatrices(device);
  size_t i = 0;
  for (MatrixOp op : ops) {
    if (i == expected.size())
      return op.emitOpError() << op.describe() << " is not of this model";
    auto [kind, expert] = expected[i++];
    if (op.getKind() != kind || op.getExpert().value_or(0) != expert) {
      auto diagnostic = op.emitOpError() << op.describe() << " stands where "
                                         << stringifyStreamKind(kind);
      if (isExpertMatrix(kind))
        diagnostic << " of expert " << expert;
      return diagnostic << " is expected: matrices stand in consumption order, "
                           "one of each kept expert";
    }
    if (failed(shapeOf(op, sizes)) || failed(production(op)))
      return failure();
  }
  if (i < expected.size()) {
    auto diagnostic = device.emitOpError("lacks matrix ")
                      << stringifyStreamKind(expected[i].first);
    if (isExpertMatrix(expected[i].first))
      diagnostic << " of expert " << expected[i].second;
    return diagnostic;
  }
  if (failed(sameOutputs()))
    return failure();
  return presence();
}

/// A slot adds up a row's experts and dense MLP where it stands: their output
/// matrices must be dealt alike unless a row has one expert and nothing else.
LogicalResult Verifier::sameOutputs() {
  auto shape = device.find<ShapeOp>();
  if (shape.getExpertsPerToken() == 1 && shape.getDenseWidth() == 0)
    return success();
  MatrixOp first;
  for (MatrixOp op : all<MatrixOp>()) {
    if ((op.getKind() != StreamKind::Down &&
         op.getKind() != StreamKind::DenseDown) ||
        !op.getCount())
      continue;
    if (!first)
      first = op;
    if (*op.getBegin() != *first.getBegin() ||
        *op.getCount() != *first.getCount())
      return op.emitOpError()
             << op.describe() << " is dealt unlike " << first.describe()
             << ", but a slot sums both in place";
  }
  return success();
}

/// A slot without a tile of attn_out or of some expert's output may hand
/// nothing over in a layer: presence words must say that it is done.
LogicalResult Verifier::presence() {
  bool carried = llvm::any_of(
      all<EdgeOp>(), [](EdgeOp op) { return op.getBuffer() == "presence"; });
  if (phaseOps.empty() || carried)
    return success();
  for (MatrixOp op : all<MatrixOp>())
    if ((op.getKind() == StreamKind::AttnOut ||
         op.getKind() == StreamKind::Down) &&
        op.getCount() && llvm::is_contained(*op.getCount(), 0))
      return op.emitOpError()
             << op.describe() << " has no tile on some slot, but no edge "
             << "carries \"presence\" for it";
  return success();
}

LogicalResult Verifier::shapeOf(MatrixOp op, const ModelConfig &sizes) {
  MatrixShape shape = matrixShape(sizes, MatrixKind(op.getKind()));
  uint32_t tiles = ceilDiv(shape.rows, kTileRows);
  uint32_t steps = ceilDiv(shape.k, kTileK);
  if (op.getTiles() != tiles || op.getSteps() != steps)
    return op.emitOpError()
           << op.describe() << " has " << op.getTiles() << " tiles of "
           << op.getSteps() << " steps, expected " << tiles << " of " << steps
           << " for " << shape.rows << " x " << shape.k;
  if (!phaseOps.empty() && !phaseOps.count(phaseOf(op.getKind())))
    return op.emitOpError() << op.describe() << " has no phase "
                            << name(phaseOf(op.getKind())) << " to run in";
  return success();
}

LogicalResult Verifier::production(MatrixOp op) {
  if (!op.getBegin())
    return success();
  auto assignment = device.find<AssignmentOp>();
  if (!assignment)
    return op.emitOpError("has slots, but the device has no "
                          "'plan.assignment'");
  uint32_t slots = target.getSlots();
  ArrayRef<int32_t> begin = *op.getBegin(), count = *op.getCount();
  if (begin.size() != slots || count.size() != slots)
    return op.emitOpError()
           << op.describe() << " lists " << begin.size() << " begins and "
           << count.size() << " counts, expected one a slot (" << slots << ")";
  Range allowed = allowedSlots(device, op, assignment.getPolicy());
  std::vector<int32_t> owner(op.getTiles(), -1);
  for (uint32_t s = 0; s < slots; ++s) {
    if (count[s] == 0)
      continue;
    if (begin[s] < 0 || count[s] < 0 ||
        int64_t(begin[s]) + count[s] > int64_t(op.getTiles()))
      return op.emitOpError()
             << op.describe() << " gives slot " << s << " tiles ["
             << int64_t(begin[s]) << ", " << int64_t(begin[s]) + count[s]
             << "), but has " << op.getTiles();
    if (!allowed.contains(s))
      return op.emitOpError() << op.describe() << " runs on slot " << s
                              << ", outside its group's slots ["
                              << allowed.begin << ", " << allowed.end << ")";
    for (int32_t t = begin[s]; t < begin[s] + count[s]; ++t) {
      if (owner[t] >= 0)
        return op.emitOpError()
               << op.describe() << " has tile " << t << " produced twice, by "
               << "slots " << owner[t] << " and " << s;
      owner[t] = int32_t(s);
    }
  }
  auto missing = llvm::find(owner, -1);
  if (missing != owner.end())
    return op.emitOpError()
           << op.describe() << " has tile " << missing - owner.begin()
           << " produced by no slot";
  return success();
}

//===--------------------------------------------------------------------===//
// Shared memory and the arena
//===--------------------------------------------------------------------===//

bool assigned(DeviceOp device) {
  auto ops = device.getBody().front().getOps<MatrixOp>();
  return !ops.empty() && llvm::all_of(ops, [](MatrixOp op) {
    return op.getCount().has_value();
  });
}

DecodeShape shapeWith(DeviceOp device, StreamOp op) {
  return decodeShape(device, streamShape(op));
}

LogicalResult Verifier::stream() {
  auto op = device.find<StreamOp>();
  if (!op)
    return success();
  if (!assigned(device))
    return op.emitOpError("stands in a device whose slots are not assigned");
  uint32_t longest = longestRow(device);
  if (!sumsWholeBatches(op.getBlockSteps(), longest))
    return op.emitOpError("has K blocks of ")
           << op.getBlockSteps() << " steps, expected a multiple of "
           << kBatchSteps * kWarps << " or at least the longest row's "
           << longest;
  if (op.getCluster() == 2 &&
      !canPairBlocks(shapeWith(device, op), target.getSm()))
    return op.emitOpError("pairs blocks, expected single ones: pairs need "
                          "sm_90, an even number of slots, a batch, and a row "
                          "of the residual stream within a K block");
  if (target.getSm() == 0)
    return success(); // no kernel runs it
  uint64_t ring = uint64_t(op.getRingStages()) * op.getChunkBytes();
  uint64_t awaited = fewestRingBytes(shapeWith(device, op));
  if (ring < awaited)
    return op.emitOpError("has a ring of ")
           << ring << " bytes, but the kernel waits for " << awaited
           << " at once";
  uint32_t needed = sharedLayout(shapeWith(device, op)).total;
  if (op.getSharedBytes() < needed)
    return op.emitOpError("has ")
           << op.getSharedBytes()
           << " bytes of shared memory a block, but the ring and buffers need "
           << needed;
  if (op.getSharedBytes() > target.getSharedBytes())
    return op.emitOpError("needs ")
           << op.getSharedBytes() << " bytes of shared memory a block, but "
           << target.getName() << " has " << target.getSharedBytes();
  return success();
}

LogicalResult Verifier::prefill() {
  auto op = device.find<PrefillOp>();
  if (!op)
    return success();
  if (!device.find<StreamOp>() || !device.find<ArenaOp>() ||
      target.getSm() == 0)
    return op.emitOpError(
        "stands in a device without a decode kernel's memory");
  auto bounds = device.find<BoundsOp>();
  uint64_t most = uint64_t(bounds.getBatch()) * bounds.getSeq();
  if (op.getTokens() > most)
    return op.emitOpError("has passes of ")
           << op.getTokens() << " tokens, but " << bounds.getBatch()
           << " rows of " << bounds.getSeq() << " positions are " << most;
  PrefillShape shape =
      prefillShape(device, {op.getTokens(), op.getTileTokens(), op.getStages(),
                            op.getSharedBytes()});
  if (!attentionHolds(shape.model.headDim, shape.model.headsPerKv()))
    return op.emitOpError("stands in a device with ")
           << shape.model.headsPerKv() << " query heads of "
           << shape.model.headDim
           << " dimensions for a kv head, which its attention cannot hold";
  if (uint64_t needed = productSharedBytes(shape); op.getSharedBytes() < needed)
    return op.emitOpError("has ")
           << op.getSharedBytes()
           << " bytes of shared memory a block, but its stages need " << needed;
  if (op.getSharedBytes() > target.getSharedBytes())
    return op.emitOpError("needs ")
           << op.getSharedBytes() << " bytes of shared memory a block, but "
           << target.getName() << " has " << target.getSharedBytes();
  for (const RegionSize &needed : prefillRegions(shape).regions)
    if (failed(prefillRegion(needed)))
      return failure();
  return success();
}

LogicalResult Verifier::prefillRegion(const RegionSize &needed) {
  if (needed.bytes == 0)
    return success();
  auto op = device.find<PrefillOp>();
  auto it = regionOps.find(needed.name);
  if (it == regionOps.end())
    return op.emitOpError("has no region \"") << needed.name << "\"";
  if (it->second.getBytes() < needed.bytes)
    return it->second.emitOpError("\"")
           << needed.name << "\" has " << it->second.getBytes()
           << " bytes, but prefill needs " << needed.bytes;
  return success();
}

bool aliveTogether(RegionOp a, RegionOp b) {
  return a.getFirst() <= b.getLast() && b.getFirst() <= a.getLast();
}

LogicalResult Verifier::arena() {
  auto op = device.find<ArenaOp>();
  SmallVector<RegionOp> regions(all<RegionOp>());
  if (!op)
    return regions.empty()
               ? success()
               : regions.front().emitOpError("stands in a device without an "
                                             "arena");
  uint64_t size = op.getBytes();
  for (auto [i, a] : llvm::enumerate(regions)) {
    if (!regionOps.try_emplace(a.getName(), a).second)
      return a.emitOpError() << "\"" << a.getName() << "\" stands twice";
    if (a.getFirst() > a.getLast())
      return a.emitOpError()
             << "\"" << a.getName() << "\" dies in " << name(a.getLast())
             << " before it lives in " << name(a.getFirst());
    if (a.getOffset() > size || a.getBytes() > size - a.getOffset())
      return a.emitOpError()
             << "\"" << a.getName() << "\" ends at byte "
             << a.getOffset() + a.getBytes() << ", beyond the arena's " << size;
    for (RegionOp b : ArrayRef(regions).take_front(i)) {
      bool apart = a.getOffset() + a.getBytes() <= b.getOffset() ||
                   b.getOffset() + b.getBytes() <= a.getOffset();
      if (apart || !aliveTogether(a, b))
        continue;
      auto diagnostic = a.emitOpError()
                        << "\"" << a.getName() << "\" overlaps \""
                        << b.getName() << "\", and both are alive in "
                        << name(std::max(a.getFirst(), b.getFirst()));
      diagnostic.attachNote(b.getLoc()) << "the other region is here";
      return diagnostic;
    }
  }
  if (regions.empty() || regions.back().getName() != "kv")
    return op.emitOpError("has no region \"kv\" in the last place");
  for (EdgeOp e : all<EdgeOp>())
    if (failed(carried(e)))
      return failure();
  return kvReserve(op, regions.back());
}

/// What an edge carries lies in a region that is large enough and alive.
LogicalResult Verifier::carried(EdgeOp op) {
  auto it = regionOps.find(op.getBuffer());
  if (it == regionOps.end())
    return op.emitOpError("carries \"")
           << op.getBuffer() << "\", which has no region in the arena";
  RegionOp region = it->second;
  uint64_t needed = kParities * op.getWords() * kWordBytes;
  if (op.getSync() == EdgeSync::Epoch && region.getBytes() < needed)
    return op.emitOpError("carries ")
           << op.getWords() << " words of \"" << op.getBuffer()
           << "\", which need " << needed << " bytes in both parities, but the "
           << "region has " << region.getBytes();
  if (region.getFirst() > op.getFrom())
    return op.emitOpError("carries \"")
           << op.getBuffer() << "\" from " << name(op.getFrom())
           << ", but the region is alive only from " << name(region.getFirst());
  if (op.getScope() == EdgeScope::SameLayer && region.getLast() < op.getTo())
    return op.emitOpError("carries \"")
           << op.getBuffer() << "\" to " << name(op.getTo())
           << ", but the region is alive only until " << name(region.getLast());
  return success();
}

LogicalResult Verifier::kvReserve(ArenaOp op, RegionOp kv) {
  uint64_t reserve = op.getKvReserve();
  if (reserve == 0 || reserve % kKvReserveUnit != 0)
    return op.emitOpError("has a KV reserve of ")
           << reserve << " bytes, expected a multiple of " << kKvReserveUnit
           << " (200 MiB)";
  auto bounds = device.find<BoundsOp>();
  uint64_t needed = kvBytes(sizesOf(device), bounds.getBatch(), bounds.getSeq(),
                            kvElementBytes(device));
  if (reserve < needed)
    return op.emitOpError("has a KV reserve of ")
           << reserve << " bytes, but " << bounds.getBatch() << " rows of "
           << bounds.getSeq() << " positions need " << needed;
  if (kv.getBytes() != reserve)
    return kv.emitOpError("\"kv\" has ")
           << kv.getBytes() << " bytes, expected the reserve of " << reserve;
  for (auto &[regionName, region] : regionOps)
    if (region != kv && region.getOffset() > kv.getOffset())
      return region.emitOpError()
             << "\"" << regionName << "\" lies behind the KV cache, which is "
             << "the arena's last region";
  return success();
}

//===--------------------------------------------------------------------===//
// Banks: extents lie inside their segment and apart from each other
//===--------------------------------------------------------------------===//

LogicalResult Verifier::segments() {
  auto placement = device.find<PlacementOp>();
  SmallVector<SegmentOp> ops(all<SegmentOp>());
  if (!placement)
    return ops.empty() ? success()
                       : ops.front().emitOpError("stands in a device whose "
                                                 "banks are not placed");
  if (ops.size() != target.getBankCount())
    return placement.emitOpError("has ")
           << ops.size() << " segments, expected one a bank ("
           << target.getBankCount() << ")";
  uint64_t at = 0;
  for (auto [i, op] : llvm::enumerate(ops)) {
    if (op.getBank() != i)
      return op.emitOpError("of bank ")
             << op.getBank() << " stands where bank " << i << " is expected";
    if (op.getOffset() != at)
      return op.emitOpError("of bank ")
             << i << " begins at byte " << op.getOffset()
             << ", expected the end of the one before, " << at;
    if (op.getBytes() % target.getBankAlign() != 0)
      return op.emitOpError("of bank ")
             << i << " has " << op.getBytes() << " bytes, expected a multiple "
             << "of the bank alignment " << target.getBankAlign();
    if (op.getUsedBytes() > op.getBytes())
      return op.emitOpError("of bank ") << i << " uses " << op.getUsedBytes()
                                        << " of " << op.getBytes() << " bytes";
    at += op.getBytes();
  }
  if (placement.getBlobBytes() != at)
    return placement.emitOpError("has a blob of ")
           << placement.getBlobBytes() << " bytes, but the segments end at "
           << at;
  return extents();
}

/// A piece of the blob: a slot's extent of a matrix in one layer, all that a
/// bank has of the layers between, a slot's embedding rows, or the vectors.
struct Piece {
  uint64_t begin, end;
  Operation *op;
  uint32_t slot, layer, lastLayer;
};

std::string describe(const Piece &piece) {
  std::string text = "vectors";
  if (piece.lastLayer != piece.layer)
    text = "layers " + std::to_string(piece.layer) + " to " +
           std::to_string(piece.lastLayer);
  else if (auto matrix = llvm::dyn_cast<MatrixOp>(piece.op))
    text = matrix.describe() + " of slot " + std::to_string(piece.slot) +
           " in layer " + std::to_string(piece.layer);
  else if (llvm::isa<EmbeddingOp>(piece.op))
    text = "embedding rows of slot " + std::to_string(piece.slot);
  return text;
}

/// All pieces that lie in a bank. Its layers are alike and follow one another:
/// the first two and the last are looked at, and those between as one piece.
class BankContents {
public:
  explicit BankContents(DeviceOp device) : device(device) {
    for (SegmentOp op : device.getBody().front().getOps<SegmentOp>())
      segments.push_back(op);
    pieces.resize(segments.size());
    layers.resize(segments.size());
  }
  LogicalResult add(MatrixOp op, PlacePolicy policy);
  LogicalResult add(EmbeddingOp op);
  void add(PlacementOp op);
  LogicalResult check();

private:
  /// Bytes of a bank's matrices in layer 0, and one of them.
  struct Layer {
    uint64_t begin = 0, end = 0;
    Operation *op = nullptr;
  };
  void addExtent(MatrixOp op, uint32_t slot, uint32_t bank, uint64_t begin);
  void addLayersBetween();
  LogicalResult checkStride(uint32_t bank);
  LogicalResult bankExists(Operation *op, uint32_t slot, int32_t bank) {
    if (bank >= 0 && size_t(bank) < segments.size())
      return success();
    return op->emitOpError("slot ")
           << slot << " reads from bank " << int64_t(bank) << ", but there are "
           << segments.size();
  }

  DeviceOp device;
  SmallVector<SegmentOp> segments;
  std::vector<std::vector<Piece>> pieces;
  std::vector<Layer> layers; // of the banks
};

LogicalResult BankContents::add(MatrixOp op, PlacePolicy policy) {
  if (!op.getBank())
    return op.emitOpError() << op.describe() << " has no place in the blob, "
                            << "but the device's banks are placed";
  ArrayRef<int32_t> count = *op.getCount(), bank = *op.getBank();
  ArrayRef<int64_t> offset = *op.getOffset();
  if (bank.size() != count.size() || offset.size() != count.size())
    return op.emitOpError()
           << op.describe() << " lists " << bank.size() << " banks and "
           << offset.size() << " offsets, expected one a slot (" << count.size()
           << ")";
  for (uint32_t s = 0; s < count.size(); ++s) {
    if (count[s] == 0)
      continue;
    if (failed(bankExists(op, s, bank[s])))
      return failure();
    if (uint32_t expected = bankOf(device, op, policy, s);
        uint32_t(bank[s]) != expected)
      return op.emitOpError()
             << op.describe() << " has slot " << s << "'s extent in bank "
             << int64_t(bank[s]) << ", expected bank " << expected
             << " under policy " << stringifyPlacePolicy(policy);
    if (offset[s] % kFragmentBytes != 0)
      return op.emitOpError()
             << op.describe() << " has slot " << s << "'s extent at byte "
             << offset[s] << ", expected a multiple of " << kFragmentBytes;
    addExtent(op, s, uint32_t(bank[s]), uint64_t(offset[s]));
  }
  return success();
}

void BankContents::addExtent(MatrixOp op, uint32_t slot, uint32_t bank,
                             uint64_t begin) {
  const uint64_t bytes = op.extentBytes(slot),
                 stride = segments[bank].getLayerStride();
  const uint32_t count = layersOf(device, op.getKind());
  for (uint32_t l : std::set<uint32_t>{0, std::min(1u, count - 1), count - 1}) {
    uint64_t at = begin + l * stride;
    pieces[bank].push_back({at, at + bytes, op, slot, l, l});
  }
  if (op.getKind() == StreamKind::Head)
    return;
  Layer &layer = layers[bank];
  layer.begin = layer.op ? std::min(layer.begin, begin) : begin;
  layer.end = std::max(layer.end, begin + bytes);
  layer.op = op;
}

void BankContents::addLayersBetween() {
  const uint32_t count = device.find<ShapeOp>().getLayers();
  if (count < 4)
    return;
  for (auto [b, layer] : llvm::enumerate(layers)) {
    const uint64_t stride = segments[b].getLayerStride();
    if (layer.op)
      pieces[b].push_back({layer.begin + 2 * stride,
                           layer.end + (count - 2) * stride, layer.op, 0, 2,
                           count - 2});
  }
}

/// Bundles are read by this rule.
LogicalResult BankContents::checkStride(uint32_t bank) {
  const Layer &layer = layers[bank];
  const uint64_t bytes = layer.end - layer.begin,
                 stride = segments[bank].getLayerStride();
  if (bytes <= stride)
    return success();
  return segments[bank].emitOpError("of bank ")
         << bank << " has layers " << stride
         << " bytes apart, expected at least the " << bytes << " of a layer";
}

LogicalResult BankContents::add(EmbeddingOp op) {
  uint32_t slots = device.find<TargetOp>().getSlots();
  if (op.getRowBegin().size() != slots || op.getRowCount().size() != slots ||
      op.getBank().size() != slots || op.getOffset().size() != slots)
    return op.emitOpError("expected one entry a slot (") << slots << ")";
  auto shape = device.find<ShapeOp>();
  int64_t rows = 0;
  for (uint32_t s = 0; s < slots; ++s) {
    if (op.getRowCount()[s] == 0)
      continue;
    if (op.getRowBegin()[s] != rows || op.getRowCount()[s] < 0)
      return op.emitOpError("slot ")
             << s << " holds rows from " << int64_t(op.getRowBegin()[s])
             << ", expected " << rows
             << ": every row lies in one slot, in order";
    if (failed(bankExists(op, s, op.getBank()[s])))
      return failure();
    rows += op.getRowCount()[s];
    uint64_t begin = uint64_t(op.getOffset()[s]);
    uint64_t bytes = uint64_t(op.getRowCount()[s]) * shape.getHidden() * 2;
    pieces[op.getBank()[s]].push_back({begin, begin + bytes, op, s, 0, 0});
  }
  if (rows != int64_t(shape.getVocab()))
    return op.emitOpError("holds ")
           << rows << " rows, expected the vocabulary's " << shape.getVocab();
  return success();
}

void BankContents::add(PlacementOp op) {
  auto shape = device.find<ShapeOp>();
  uint64_t bytes = shape.getLayers() * op.getVectorsLayerBytes() +
                   uint64_t(shape.getHidden()) * 4;
  uint64_t begin = op.getVectorsOffset();
  pieces[0].push_back({begin, begin + bytes, op, 0, 0, 0});
}

LogicalResult BankContents::check() {
  addLayersBetween();
  for (auto [b, bank] : llvm::enumerate(pieces)) {
    std::sort(bank.begin(), bank.end(), [](const Piece &x, const Piece &y) {
      return std::tie(x.begin, x.end, x.layer, x.slot) <
             std::tie(y.begin, y.end, y.layer, y.slot);
    });
    uint64_t from = segments[b].getOffset();
    uint64_t to = from + segments[b].getUsedBytes();
    for (auto [i, piece] : llvm::enumerate(bank)) {
      if (piece.begin < from || piece.end > to)
        return piece.op->emitOpError()
               << describe(piece) << ": bytes [" << piece.begin << ", "
               << piece.end << ") lie outside bank " << b << "'s used bytes ["
               << from << ", " << to << ")";
      if (i == 0 || bank[i - 1].end <= piece.begin)
        continue;
      auto diagnostic = piece.op->emitOpError()
                        << describe(piece) << " at byte " << piece.begin
                        << " of bank " << b << " overlaps "
                        << describe(bank[i - 1]);
      diagnostic.attachNote(bank[i - 1].op->getLoc()) << "the other is here";
      return diagnostic;
    }
    if (failed(checkStride(uint32_t(b))))
      return failure();
  }
  return success();
}

LogicalResult Verifier::extents() {
  BankContents contents(device);
  auto placement = device.find<PlacementOp>();
  uint64_t layerBytes = vectorLayerBytes(sizesOf(device));
  if (placement.getVectorsLayerBytes() != layerBytes)
    return placement.emitOpError("has ")
           << placement.getVectorsLayerBytes()
           << " bytes of vectors a layer, expected " << layerBytes;
  for (MatrixOp op : all<MatrixOp>())
    if (failed(contents.add(op, placement.getPolicy())))
      return failure();
  auto embedding = device.find<EmbeddingOp>();
  if (bool(embedding) == device.find<ShapeOp>().getTied())
    return placement.emitOpError(
        embedding ? "comes with an embedding table, but the head is tied to it"
                  : "comes without an embedding table, but the head is not "
                    "tied to it");
  if (embedding && failed(contents.add(embedding)))
    return failure();
  contents.add(placement);
  return contents.check();
}

LogicalResult Verifier::run() {
  if (failed(singles()))
    return failure();
  target = device.find<TargetOp>();
  return success(succeeded(phases()) && succeeded(matrices()) &&
                 succeeded(stream()) && succeeded(arena()) &&
                 succeeded(prefill()) && succeeded(segments()));
}

} // namespace

LogicalResult DeviceOp::verifyRegions() { return Verifier(*this).run(); }

} // namespace grok::plan
