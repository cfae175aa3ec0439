// --plan-place-banks: gives every extent a bank and an offset in the blob.
#include <algorithm>
#include <map>

#include "mlir/IR/Builders.h"

#include "compiler/Passes/Passes.h"
#include "ir/Plan/PlanFacts.h"

namespace grok {
#define GEN_PASS_DEF_PLACEBANKS
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;
using namespace grok::plan;

namespace {

/// What fills a bank; offsets are relative to the bank's segment.
struct BankFill {
  uint64_t layer = 0; // bytes of all extents of one layer
  uint64_t used = 0;
  uint64_t take(uint64_t bytes) {
    uint64_t at = used;
    used = alignUp(used + bytes, kFragmentBytes);
    return at;
  }
};

/// The embedding rows of every slot.
struct Rows {
  SmallVector<int32_t> begin, count, bank;
  SmallVector<int64_t> offset;
};

struct PlaceBanks : grok::impl::PlaceBanksBase<PlaceBanks> {
  using PlaceBanksBase::PlaceBanksBase;
  void runOnOperation() override;

private:
  LogicalResult check();
  void place(MatrixOp matrix, PlacePolicy policy);
  Rows placeEmbedding(MatrixOp head);
  void placeAll(PlacePolicy policy);
  void finish(PlacePolicy policy, uint64_t vectors, std::optional<Rows> rows);
  void reportCollisions(PlacePolicy policy);

  std::vector<BankFill> banks;
};

} // namespace

LogicalResult PlaceBanks::check() {
  DeviceOp device = getOperation();
  if (device.find<PlacementOp>())
    return device.emitOpError("has its banks placed already");
  if (!device.find<AssignmentOp>())
    return device.emitOpError(
        "has no slots assigned; run --plan-assign-slots first");
  return success();
}

/// Layer 0's extents of a matrix, slot by slot.
void PlaceBanks::place(MatrixOp matrix, PlacePolicy policy) {
  DeviceOp device = getOperation();
  ArrayRef<int32_t> count = *matrix.getCount();
  SmallVector<int32_t> bank(count.size());
  SmallVector<int64_t> offset(count.size());
  for (uint32_t s = 0; s < count.size(); ++s) {
    if (!count[s])
      continue;
    bank[s] = int32_t(bankOf(device, matrix, policy, s));
    offset[s] = int64_t(banks[bank[s]].take(matrix.extentBytes(s)));
  }
  matrix.setBank(bank);
  matrix.setOffset(offset);
}

/// Slot s holds the embedding rows of its tiles of the head.
Rows PlaceBanks::placeEmbedding(MatrixOp head) {
  auto shape = getOperation().find<ShapeOp>();
  ArrayRef<int32_t> begin = *head.getBegin(), count = *head.getCount();
  Rows rows;
  for (uint32_t s = 0; s < count.size(); ++s) {
    int32_t from = 0, to = 0, bank = 0;
    int64_t offset = 0;
    if (count[s]) {
      from = begin[s] * int32_t(kTileRows);
      to = std::min<int32_t>(from + count[s] * int32_t(kTileRows),
                             int32_t(shape.getVocab()));
      bank = int32_t(s % banks.size());
      offset = int64_t(
          banks[bank].take(uint64_t(to - from) * shape.getHidden() * 2));
    }
    rows.begin.push_back(from);
    rows.count.push_back(to - from);
    rows.bank.push_back(bank);
    rows.offset.push_back(offset);
  }
  return rows;
}

void PlaceBanks::placeAll(PlacePolicy policy) {
  DeviceOp device = getOperation();
  banks.assign(device.find<TargetOp>().getBankCount(), {});
  MatrixOp head;
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>()) {
    if (matrix.getKind() == StreamKind::Head)
      head = matrix;
    else
      place(matrix, policy);
  }
  auto shape = device.find<ShapeOp>();
  for (BankFill &bank : banks) {
    bank.layer = bank.used;
    bank.used *= shape.getLayers();
  }
  uint64_t vectors =
      banks[0].take(shape.getLayers() * vectorLayerBytes(sizesOf(device)) +
                    uint64_t(shape.getHidden()) * 4);
  std::optional<Rows> rows;
  if (!shape.getTied())
    rows = placeEmbedding(head);
  place(head, policy);
  finish(policy, vectors, std::move(rows));
}

/// Lines the segments up and makes all offsets those of the blob.
void PlaceBanks::finish(PlacePolicy policy, uint64_t vectors,
                        std::optional<Rows> rows) {
  DeviceOp device = getOperation();
  uint64_t align = device.find<TargetOp>().getBankAlign();
  std::vector<uint64_t> starts;
  uint64_t blob = 0;
  for (const BankFill &bank : banks) {
    starts.push_back(blob);
    blob += alignUp(bank.used, align);
  }
  auto move = [&](ArrayRef<int32_t> count, ArrayRef<int32_t> bank,
                  ArrayRef<int64_t> offset) {
    SmallVector<int64_t> moved(offset);
    for (size_t s = 0; s < moved.size(); ++s)
      if (count[s])
        moved[s] += int64_t(starts[bank[s]]);
    return moved;
  };
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>())
    matrix.setOffset(
        move(*matrix.getCount(), *matrix.getBank(), *matrix.getOffset()));

  OpBuilder b = OpBuilder::atBlockEnd(&device.getBody().front());
  Location loc = device.getLoc();
  PlacementOp::create(b, loc, policy, vectors + starts[0],
                      vectorLayerBytes(sizesOf(device)), blob);
  for (auto [i, bank] : llvm::enumerate(banks))
    SegmentOp::create(b, loc, uint32_t(i), starts[i], alignUp(bank.used, align),
                      bank.used, bank.layer);
  if (rows)
    EmbeddingOp::create(b, loc, rows->begin, rows->count, rows->bank,
                        move(rows->count, rows->bank, rows->offset));
}

/// Experts of a group run in one step. Those whose extents take the same banks
/// slot by slot are reported.
void PlaceBanks::reportCollisions(PlacePolicy policy) {
  DeviceOp device = getOperation();
  auto experts = device.find<ExpertsOp>();
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> meeting;
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>()) {
    if (matrix.getKind() != StreamKind::GateUp)
      continue;
    uint32_t expert = *matrix.getExpert();
    uint32_t bank = bankOf(device, matrix, policy, /*slot=*/0);
    meeting[{groupOf(experts, expert), bank}].push_back(expert);
  }
  for (auto &[where, list] : meeting) {
    if (list.size() < 2)
      continue;
    auto remark = experts.emitRemark("experts ");
    llvm::interleave(
        list, [&](uint32_t e) { remark << e; }, [&] { remark << ", "; });
    remark << " of group " << where.first;
    if (policy == PlacePolicy::Expert)
      remark << " share bank " << where.second;
    else
      remark << " share their banks slot by slot, from bank " << where.second
             << " on";
  }
}

void PlaceBanks::runOnOperation() {
  DeviceOp device = getOperation();
  std::optional<PlacePolicy> parsed = symbolizePlacePolicy(policy);
  if (!parsed)
    device.emitError("option 'policy': found '")
        << policy << "', expected 'striped' or 'expert'";
  if (!parsed || failed(check()))
    return signalPassFailure();
  placeAll(*parsed);
  reportCollisions(*parsed);
}
