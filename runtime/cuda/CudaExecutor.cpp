#include "runtime/cuda/CudaExecutor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/Json.h"
#include "runtime/common/Rope.h"
#include "runtime/cuda/SlotTable.h"

#define RETURN_IF_ERROR(expression)                                            \
  if (absl::Status status_ = (expression); !status_.ok())                      \
  return status_

namespace grok::cuda {
namespace {

/// A kernel that waits longer than this for another slot is stuck. A step takes
/// milliseconds.
constexpr uint32_t kWatchdogMicroseconds = 4'000'000;

std::string megabytes(uint64_t bytes) {
  return absl::StrFormat("%.0f MB", double(bytes) / (1 << 20));
}

/// GROK_SLOT_SHIFT gives every slot another SM: results must not depend on it.
absl::StatusOr<uint32_t> slotShift() {
  const char *text = std::getenv("GROK_SLOT_SHIFT");
  uint32_t shift = 0;
  if (text && !absl::SimpleAtoi(text, &shift))
    return absl::InvalidArgumentError(absl::StrFormat(
        "GROK_SLOT_SHIFT: found '%s', expected an integer from 0", text));
  return shift;
}

/// GROK_SLOT_ABSENT keeps every block from taking a slot. Nobody hands its
/// words over then, which is what the kernel's watchdog is there for.
absl::StatusOr<std::optional<uint32_t>> absentSlot(uint32_t slots) {
  const char *text = std::getenv("GROK_SLOT_ABSENT");
  if (!text)
    return std::nullopt;
  uint32_t slot = 0;
  if (!absl::SimpleAtoi(text, &slot) || slot >= slots)
    return absl::InvalidArgumentError(
        absl::StrFormat("GROK_SLOT_ABSENT: found '%s', expected an integer, 0 "
                        "to %d",
                        text, slots - 1));
  return slot;
}

/// The rows of a launch.
abi::Turn firstTurn(const abi::DecodeParams &p) {
  abi::Turn turn{};
  turn.rows = p.rows;
  std::ranges::copy(p.start, turn.start);
  std::ranges::copy(p.known, turn.known);
  std::ranges::copy(p.limit, turn.limit);
  return turn;
}

} // namespace

absl::StatusOr<std::unique_ptr<CudaExecutor>>
CudaExecutor::create(const DriverApi &api, const Bundle &bundle,
                     const LoadLimits &asked, int ordinal) {
  absl::StatusOr<LoadLimits> limits =
      resolveLimits(asked, bundle.model(), bundle.plan(),
                    kvElementBytes(bundle.plan().activations));
  if (!limits.ok())
    return limits.status();
  absl::StatusOr<ContextOwner> context = ContextOwner::retain(api, ordinal);
  if (!context.ok())
    return context.status();
  std::unique_ptr<CudaExecutor> executor(
      new CudaExecutor(api, *std::move(context), bundle, *limits));
  RETURN_IF_ERROR(executor->load(bundle));
  return executor;
}

CudaExecutor::~CudaExecutor() {
  // Memory is freed in the current context, and this may be another thread than
  // the one that loaded. If it fails, the driver is going away and takes the
  // memory along.
  begin().IgnoreError();
}

absl::Status CudaExecutor::load(const Bundle &bundle) {
  RETURN_IF_ERROR(checkDevice(bundle));
  if (bundle.manifest().weights.kind == WeightsRecipe::Kind::kNone)
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: the bundle holds no weights; fill them in with grokrun pack",
        bundle.path()));
  const ArenaRegion &kv = plan_.arena.back();
  arenaBytes_ = kv.offset + limits_.kvBytes;
  RETURN_IF_ERROR(checkMemory(plan_.blobBytes + arenaBytes_));
  RETURN_IF_ERROR(loadKernels(bundle));
  RETURN_IF_ERROR(takeMemory());
  RETURN_IF_ERROR(loadTables());
  if (plan_.prefill.tokens) {
    absl::StatusOr<std::unique_ptr<Prefill>> prefill =
        Prefill::load(api_, bundle, smCount_, sharedLimit_);
    if (!prefill.ok())
      return prefill.status();
    prefill_ = *std::move(prefill);
    memoryBytes_ += prefill_->memoryBytes();
  }
  return loadWeights(bundle);
}

absl::Status CudaExecutor::checkDevice(const Bundle &bundle) {
  const Manifest &manifest = bundle.manifest();
  if (!bundle.hasFile("decode.ptx"))
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: compiled for %s, which has no GPU code; compile "
                        "or retarget it for the GPU",
                        bundle.path(), json::printable(manifest.target.name)));
  if (api_.version < int(manifest.minimumDriver))
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: needs a driver for CUDA %d.%d, found one for CUDA "
                        "%d.%d; update the driver",
                        bundle.path(), manifest.minimumDriver / 1000,
                        manifest.minimumDriver % 1000 / 10, api_.version / 1000,
                        api_.version % 1000 / 10));
  char name[256] = {};
  GROK_CUDA_RETURN_IF_ERROR(api_, deviceGetName, name, sizeof name,
                            context_.device());
  name_ = name;
  int major = 0, minor = 0, sms = 0, shared = 0, cooperative = 0;
  const std::pair<int *, Attribute> attributes[] = {
      {&major, kComputeMajor},
      {&minor, kComputeMinor},
      {&sms, kSmCount},
      {&shared, kSharedBytesPerBlock},
      {&cooperative, kCooperativeLaunch}};
  for (auto [value, attribute] : attributes)
    GROK_CUDA_RETURN_IF_ERROR(api_, deviceGetAttribute, value, attribute,
                              context_.device());
  smCount_ = sms;
  sharedLimit_ = shared;
  // sm_90a code runs on compute capability 9.0 alone, sm_80 code on every later
  // part too.
  int found = major * 10 + minor, wanted = manifest.sm;
  if (wanted >= 90 ? found != wanted : found < wanted)
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: compiled for sm_%d, the GPU (%s) is sm_%d; retarget it",
        bundle.path(), wanted, name_, found));
  if (!cooperative)
    return absl::FailedPreconditionError(
        absl::StrFormat("the GPU (%s) does not launch cooperatively", name_));
  if (smCount_ < plan_.slots)
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: compiled for %d SMs, the GPU (%s) has %d; retarget it",
        bundle.path(), plan_.slots, name_, smCount_));
  if (sharedLimit_ < plan_.sharedBytes)
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: needs %d bytes of shared memory per block, the "
                        "GPU (%s) has %d; retarget it",
                        bundle.path(), plan_.sharedBytes, name_, sharedLimit_));
  return absl::OkStatus();
}

absl::Status CudaExecutor::checkMemory(uint64_t needed) {
  size_t available = 0, total = 0;
  GROK_CUDA_RETURN_IF_ERROR(api_, memGetInfo, &available, &total);
  if (needed > available)
    return absl::ResourceExhaustedError(absl::StrFormat(
        "device memory: needed %s (weights %s, arena %s), available %s of %s; "
        "lower --max-batch or --max-seq, or take a larger GPU",
        megabytes(needed), megabytes(plan_.blobBytes), megabytes(arenaBytes_),
        megabytes(available), megabytes(total)));
  return absl::OkStatus();
}

absl::Status CudaExecutor::takeMemory() {
  const std::pair<DeviceBuffer *, uint64_t> buffers[] = {
      {&weights_, plan_.blobBytes},
      {&arena_, arenaBytes_},
      {&extents_, plan_.matrices.size() * plan_.slots * sizeof(abi::Extent)},
      {&embedding_, plan_.slots * sizeof(uint64_t)},
      {&forwarded_, sizeof(abi::Turn)},
  };
  for (auto [buffer, bytes] : buffers) {
    absl::StatusOr<DeviceBuffer> taken = DeviceBuffer::allocate(api_, bytes);
    if (!taken.ok())
      return taken.status();
    *buffer = *std::move(taken);
    memoryBytes_ += bytes;
  }
  const std::pair<MappedBuffer *, uint64_t> mapped[] = {
      {&statusRecord_, sizeof(abi::StatusRecord)},
      {&mailbox_, sizeof(abi::Turn)},
      {&hostIds_, plan_.maxBatch * (plan_.maxSeq + 1ull) * sizeof(int32_t)},
      {&stepRecords_, plan_.maxSeq * sizeof(abi::StepRecord)},
  };
  for (auto [buffer, bytes] : mapped) {
    absl::StatusOr<MappedBuffer> taken = MappedBuffer::allocate(api_, bytes);
    if (!taken.ok())
      return taken.status();
    *buffer = *std::move(taken);
  }
  logits_.resize(uint64_t(plan_.maxBatch) * model_.vocabSize);
  return absl::OkStatus();
}

absl::Status CudaExecutor::loadKernels(const Bundle &bundle) {
  absl::StatusOr<std::string> ptx = bundle.readFile("decode.ptx");
  if (!ptx.ok())
    return ptx.status();
  absl::StatusOr<ModuleOwner> module =
      ModuleOwner::load(api_, *ptx, bundle.path() + "/decode.ptx");
  if (!module.ok())
    return module.status();
  module_ = *std::move(module);
  for (auto [function, name] :
       {std::pair{&decode_, "grok_decode"}, std::pair{&fill_, "grok_fill"}}) {
    absl::StatusOr<Function> found = module_.function(name);
    if (!found.ok())
      return found.status();
    *function = *found;
  }
  GROK_CUDA_RETURN_IF_ERROR(api_, functionSetAttribute, decode_,
                            kFunctionDynamicShared, int(sharedLimit_));
  if (!bundle.hasFile("trace.ptx"))
    return absl::OkStatus();
  absl::StatusOr<std::string> traced = bundle.readFile("trace.ptx");
  if (traced.ok())
    tracePtx_ = *std::move(traced); // compiled when a trace is asked for
  return traced.status();
}

absl::Status CudaExecutor::loadTables() {
  std::vector<abi::Extent> extents;
  extents.reserve(plan_.matrices.size() * plan_.slots);
  for (const PlanMatrix &matrix : plan_.matrices)
    for (const SlotExtent &extent : matrix.slots)
      extents.push_back({extent.offset, plan_.banks[extent.bank].layerStride,
                         extent.tileBegin, extent.tileCount});
  GROK_CUDA_RETURN_IF_ERROR(api_, copyToDevice, extents_.address(),
                            extents.data(),
                            extents.size() * sizeof(abi::Extent));

  // Slot s of an untied embedding holds the rows of its head tiles.
  std::vector<uint64_t> embedding(plan_.slots);
  for (uint32_t slot = 0; slot < plan_.embedding.size(); ++slot)
    embedding[slot] = plan_.embedding[slot].offset;
  GROK_CUDA_RETURN_IF_ERROR(api_, copyToDevice, embedding_.address(),
                            embedding.data(),
                            embedding.size() * sizeof(uint64_t));

  absl::StatusOr<std::vector<uint32_t>> smIds =
      readSmIds(api_, smCount_, sharedLimit_);
  if (!smIds.ok())
    return smIds.status();
  absl::StatusOr<uint32_t> shift = slotShift();
  if (!shift.ok())
    return shift.status();
  absl::StatusOr<std::vector<uint32_t>> table =
      slotTable(*smIds, plan_.slots, *shift);
  if (!table.ok())
    return table.status();
  absl::StatusOr<DeviceBuffer> slots =
      DeviceBuffer::allocate(api_, table->size() * sizeof(uint32_t));
  if (!slots.ok())
    return slots.status();
  slotOfSm_ = *std::move(slots);
  smTableEntries_ = table->size();
  memoryBytes_ += slotOfSm_.bytes();
  GROK_CUDA_RETURN_IF_ERROR(api_, copyToDevice, slotOfSm_.address(),
                            table->data(), table->size() * sizeof(uint32_t));

  absl::StatusOr<std::optional<uint32_t>> absent = absentSlot(plan_.slots);
  if (!absent.ok())
    return absent.status();
  absentSlot_ = *absent;

  RETURN_IF_ERROR(clearWords());
  std::vector<float> rope = ropeTable(model_, plan_.maxSeq);
  GROK_CUDA_RETURN_IF_ERROR(api_, copyToDevice,
                            arena_.address() + region("rope"), rope.data(),
                            rope.size() * sizeof(float));
  return absl::OkStatus();
}

/// Everything before the rope table that carries epochs, the claims, and the
/// turn that was forwarded: zero is an epoch and a turn that never was.
absl::Status CudaExecutor::clearWords() {
  GROK_CUDA_RETURN_IF_ERROR(api_, memsetD8, arena_.address(), 0,
                            region("residual"));
  GROK_CUDA_RETURN_IF_ERROR(api_, memsetD8, arena_.address() + region("claims"),
                            0, plan_.slots * sizeof(uint32_t));
  GROK_CUDA_RETURN_IF_ERROR(api_, memsetD8, forwarded_.address(), 0,
                            forwarded_.bytes());
  *mailbox_.host<abi::Turn>() = {};
  epoch_ = 0;
  turn_ = 0;
  return absl::OkStatus();
}

absl::Status CudaExecutor::loadWeights(const Bundle &bundle) {
  if (bundle.manifest().weights.kind != WeightsRecipe::Kind::kSynthetic ||
      !bundle.blob().empty()) {
    GROK_CUDA_RETURN_IF_ERROR(api_, copyToDevice, weights_.address(),
                              bundle.blob().data(), bundle.blob().size());
    return absl::OkStatus();
  }
  GROK_CUDA_RETURN_IF_ERROR(api_, memsetD8, weights_.address(), 0,
                            weights_.bytes()); // the padding
  abi::FillParams params{
      weights_.as<uint8_t>(), extents_.as<const abi::Extent>(),
      embedding_.as<const uint64_t>(), bundle.manifest().weights.seed};
  void *arguments[] = {&params};
  GROK_CUDA_RETURN_IF_ERROR(api_, launchKernel, fill_, smCount_ * 8, 1, 1,
                            abi::kFillThreads, 1, 1, 0, nullptr, arguments,
                            nullptr);
  GROK_CUDA_RETURN_IF_ERROR(api_, contextSynchronize);
  return absl::OkStatus();
}

abi::DecodeParams CudaExecutor::paramsOf(const abi::Turn &turn) const {
  abi::DecodeParams p{};
  p.weights = weights_.as<const uint8_t>();
  p.arena = arena_.as<uint8_t>();
  p.extents = extents_.as<const abi::Extent>();
  p.embedding = embedding_.as<const uint64_t>();
  p.slotOfSm = slotOfSm_.as<const uint32_t>();
  p.claims = arena_.as<uint32_t>(region("claims"));
  p.status = statusRecord_.device<abi::StatusRecord>();
  p.ids = arena_.as<int32_t>(region("ids"));
  p.idStride = plan_.maxSeq + 1;
  p.smCount = smTableEntries_;
  p.rows = turn.rows;
  p.kvRowBlocks = ceilDiv(limits_.maxSeq, kKvBlock);
  std::ranges::copy(turn.start, p.start);
  std::ranges::copy(turn.known, p.known);
  std::ranges::copy(turn.limit, p.limit);
  p.eosId = turn.eosId;
  p.inverseTemperature = turn.inverseTemperature;
  p.seed = turn.seed;
  p.watchdogMicroseconds = kWatchdogMicroseconds;
  p.inFlightChunks = plan_.inFlightChunks;
  p.paceCycles = plan_.paceCycles;
  p.hostIds = hostIds_.device<int32_t>();
  return p;
}

abi::Turn CudaExecutor::turnOf(const BatchRequest &request,
                               const std::vector<RowProgress> &rows) const {
  abi::Turn turn{};
  turn.rows = uint32_t(rows.size());
  for (uint32_t b = 0; b < turn.rows; ++b) {
    turn.start[b] = rows[b].next;
    turn.known[b] = rows[b].known;
    turn.limit[b] = rows[b].limit;
  }
  turn.eosId = int32_t(request.eosId);
  turn.inverseTemperature =
      request.temperature > 0 ? 1 / request.temperature : 0;
  turn.seed = request.seed;
  return turn;
}

uint64_t CudaExecutor::epochsOf(const abi::Turn &turn,
                                uint32_t benchSteps) const {
  uint32_t steps = benchSteps;
  for (uint32_t b = 0; b < turn.rows; ++b)
    steps =
        std::max(steps, std::max(turn.limit[b], turn.known[b]) - turn.start[b]);
  return uint64_t(steps) * (model_.numLayers + 1);
}

absl::Status CudaExecutor::launch(abi::DecodeParams &params, Function kernel) {
  abi::Turn turn = firstTurn(params);
  const uint64_t epochs = epochsOf(turn, params.benchSteps);
  if (epochs >= kEpochLimit)
    return absl::InvalidArgumentError(absl::StrFormat(
        "found %d steps of %d layers in one request, expected at most %d: "
        "their "
        "hand-overs could not be told apart",
        epochs / (model_.numLayers + 1), model_.numLayers,
        (kEpochLimit - 1) / (model_.numLayers + 1)));
  if (epoch_ + epochs >= kEpochLimit)
    RETURN_IF_ERROR(clearWords());
  params.epochBase = epoch_;
  params.launchId = turn.number = ++turn_;
  epoch_ += uint32_t(epochs);
  status() = abi::StatusRecord{};
  if (absentSlot_) { // every block finds it taken; a pair asks for its first
    uint32_t claim = *absentSlot_ / plan_.cluster * plan_.cluster;
    GROK_CUDA_RETURN_IF_ERROR(api_, copyToDevice,
                              arena_.address() + region("claims") +
                                  claim * sizeof(uint32_t),
                              &params.launchId, sizeof params.launchId);
  }
  void *arguments[] = {&params};
  // A block an SM, in whole clusters.
  uint32_t blocks = smCount_ / plan_.cluster * plan_.cluster;
  GROK_CUDA_RETURN_IF_ERROR(api_, launchCooperative, kernel, blocks, 1, 1,
                            plan_.threads, 1, 1, sharedLimit_, nullptr,
                            arguments);
  stayingRows_ = params.mailbox ? turn.rows : 0;
  if (stayingRows_)
    return awaitTurn(turn);
  GROK_CUDA_RETURN_IF_ERROR(api_, contextSynchronize);
  turnEnd_ = Clock::now();
  return checkTurn(turn);
}

absl::Status CudaExecutor::checkTurn(const abi::Turn &turn) const {
  if (status().code == abi::kWatchdog)
    return absl::InternalError(absl::StrFormat(
        "the decode kernel was stuck for %.1f s in phase %s, slot %d, layer "
        "%d, step %d",
        kWatchdogMicroseconds * 1.024e-6,
        status().phase < kNumPhases ? kPhaseNames[status().phase] : "?",
        status().slot, status().layer, status().step));
  if (status().done != turn.number)
    return absl::InternalError("the decode kernel ended without reporting");
  for (uint32_t b = 0; b < turn.rows; ++b)
    if (uint32_t length = status().rowLength[b];
        length < turn.known[b] || length > turn.limit[b])
      return absl::InternalError(absl::StrFormat(
          "the decode kernel reports %d ids of row %d, expected %d to %d",
          length, b, turn.known[b], turn.limit[b]));
  return absl::OkStatus();
}

/// Ids [first, first + count) of a row from the device.
absl::Status CudaExecutor::copyIds(uint32_t row, uint32_t first,
                                   std::vector<int32_t> &ids, uint32_t count) {
  if (count == 0)
    return absl::OkStatus();
  size_t before = ids.size();
  ids.resize(before + count);
  DevicePtr from =
      arena_.address() + region("ids") +
      (uint64_t(row) * (plan_.maxSeq + 1) + first) * sizeof(int32_t);
  GROK_CUDA_RETURN_IF_ERROR(api_, copyToHost, ids.data() + before, from,
                            count * sizeof(int32_t));
  return absl::OkStatus();
}

/// The same of ids that the decode kernel chose, which has them in the host's
/// memory already.
absl::Status CudaExecutor::takeIds(uint32_t row, uint32_t first,
                                   std::vector<int32_t> &ids, uint32_t count) {
  if (!takesTurns_)
    return copyIds(row, first, ids, count);
  ids.insert(ids.end(), hostIds(row) + first, hostIds(row) + first + count);
  return absl::OkStatus();
}

absl::Status CudaExecutor::copyIdsToDevice(const BatchRequest &request) {
  for (uint32_t b = 0; b < request.rows.size(); ++b) {
    const std::vector<int32_t> &ids = request.rows[b].ids;
    DevicePtr to = arena_.address() + region("ids") +
                   uint64_t(b) * (plan_.maxSeq + 1) * sizeof(int32_t);
    if (!request.rows[b].idle)
      GROK_CUDA_RETURN_IF_ERROR(api_, copyToDevice, to, ids.data(),
                                ids.size() * sizeof(int32_t));
  }
  return absl::OkStatus();
}

absl::StatusOr<BatchResult> CudaExecutor::run(const BatchRequest &request) {
  RETURN_IF_ERROR(validateRequest(request, model_, maxBatch(), maxSeq()));
  if (request.onRouting)
    return absl::UnimplementedError(
        "routing is reported by the CPU executor only; use --device cpu");
  RETURN_IF_ERROR(context_.makeCurrent());
  if (request.wantTimes)
    std::fill_n(stepRecords_.host<abi::StepRecord>(), plan_.maxSeq,
                abi::StepRecord{});
  const Clock::time_point begin = Clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  BatchResult result;
  result.newIds.resize(request.rows.size());
  std::vector<RowProgress> rows;
  for (const RowRequest &row : request.rows)
    rows.push_back({row.start, uint32_t(row.ids.size()),
                    uint32_t(row.ids.size()) + row.maxNew});
  if (request.wantTimes)
    result.newSeconds.resize(request.rows.size());
  if (needsLaunch(request, rows)) {
    RETURN_IF_ERROR(leave());
    RETURN_IF_ERROR(copyIdsToDevice(request));
  }
  if (prefill_ && !stayingRows_) {
    RETURN_IF_ERROR(prefill(request, rows, result.newIds));
    const double now = elapsed();
    for (uint32_t b = 0; b < rows.size() && request.wantTimes; ++b)
      result.newSeconds[b].assign(result.newIds[b].size(), now);
  }
  if (!std::all_of(rows.begin(), rows.end(),
                   [](const RowProgress &row) { return row.done(); }))
    RETURN_IF_ERROR(request.onLogits
                        ? runByPosition(request, rows, result.newIds)
                        : runAtOnce(request, rows, result.newIds));
  result.seconds = elapsed();
  if (request.wantTimes)
    RETURN_IF_ERROR(noteDecodeTimes(rows, begin, result));
  return result;
}

abi::PrefillParams
CudaExecutor::prefillParams(const BatchRequest &request) const {
  abi::PrefillParams p{};
  p.weights = weights_.as<const uint8_t>();
  p.arena = arena_.as<uint8_t>();
  p.places = prefill_->places();
  p.kvRowBlocks = ceilDiv(limits_.maxSeq, kKvBlock);
  p.ids = arena_.as<int32_t>(region("ids"));
  p.idStride = plan_.maxSeq + 1;
  p.inverseTemperature = request.temperature > 0 ? 1 / request.temperature : 0;
  p.seed = request.seed;
  return p;
}

absl::Status CudaExecutor::prefill(const BatchRequest &request,
                                   std::vector<RowProgress> &rows,
                                   std::vector<std::vector<int32_t>> &ids) {
  const uint32_t most = request.prefillTokens ? std::min(request.prefillTokens,
                                                         plan_.prefill.tokens)
                                              : plan_.prefill.tokens;
  abi::PrefillParams params = prefillParams(request);
  std::vector<abi::PrefillToken> tokens;
  while (true) {
    tokens.clear();
    for (uint32_t b = 0; b < rows.size(); ++b) {
      uint32_t end = std::min(rows[b].known, request.rows[b].decodeFrom),
               left = end > rows[b].next ? end - rows[b].next : 0,
               count = std::min(left, most - uint32_t(tokens.size()));
      for (uint32_t i = 0; i != count; ++i)
        tokens.push_back({request.rows[b].ids[rows[b].next + i], b,
                          rows[b].next + i, rows[b].next + count});
      rows[b].next += count;
    }
    if (tokens.empty())
      break;
    RETURN_IF_ERROR(prefill_->run(params, tokens));
    params.tokens = uint32_t(tokens.size());
    RETURN_IF_ERROR(prefillHeads(request, params, tokens, rows));
  }
  GROK_CUDA_RETURN_IF_ERROR(api_, contextSynchronize);
  for (uint32_t b = 0; b < rows.size(); ++b) {
    if (!rows[b].done() || rows[b].known == rows[b].limit)
      continue;
    RETURN_IF_ERROR(copyIds(b, rows[b].known, ids[b], 1));
    bool last =
        ids[b].back() == request.eosId || rows[b].known + 1 == rows[b].limit;
    ++rows[b].known;
    if (last) // there is nothing to compute for its id
      rows[b].next = rows[b].limit = rows[b].known;
  }
  return absl::OkStatus();
}

/// Logits of a pass's tokens: of all that are asked for, or of those that end a
/// row's known ids, from which the row goes on.
absl::Status
CudaExecutor::prefillHeads(const BatchRequest &request,
                           abi::PrefillParams params,
                           std::span<const abi::PrefillToken> tokens,
                           const std::vector<RowProgress> &rows) {
  auto goesOn = [&](const abi::PrefillToken &token) {
    const RowProgress &row = rows[token.row];
    return token.position + 1 == row.known && row.known < row.limit;
  };
  std::vector<uint32_t> wanted;
  for (uint32_t t = 0; t != tokens.size(); ++t)
    if (request.onLogits || goesOn(tokens[t]))
      wanted.push_back(t);
  for (size_t first = 0; first < wanted.size(); first += plan_.maxBatch) {
    params.headCount =
        std::min<uint32_t>(plan_.maxBatch, uint32_t(wanted.size() - first));
    params.chooses = 0;
    for (uint32_t i = 0; i != params.headCount; ++i) {
      params.headToken[i] = wanted[first + i];
      params.chooses |= goesOn(tokens[wanted[first + i]]) ? 1u << i : 0;
    }
    RETURN_IF_ERROR(prefill_->head(params));
    if (!request.onLogits)
      continue;
    GROK_CUDA_RETURN_IF_ERROR(
        api_, copyToHost, logits_.data(), arena_.address() + region("logits"),
        uint64_t(params.headCount) * model_.vocabSize * sizeof(float));
    for (uint32_t i = 0; i != params.headCount; ++i) {
      const abi::PrefillToken &token = tokens[params.headToken[i]];
      RETURN_IF_ERROR(
          request.onLogits(token.row, token.position,
                           std::span<const float>(
                               logits_.data() + uint64_t(i) * model_.vocabSize,
                               model_.vocabSize)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> CudaExecutor::matrixRate() {
  if (!prefill_)
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: found no prefill, expected it; compile the model with grokc "
        "compile --max-prefill above 0",
        path_));
  RETURN_IF_ERROR(begin());
  return prefill_->matrixRate(prefillParams({}));
}

absl::Status CudaExecutor::runAtOnce(const BatchRequest &request,
                                     const std::vector<RowProgress> &rows,
                                     std::vector<std::vector<int32_t>> &ids) {
  const abi::Turn turn = turnOf(request, rows);
  RETURN_IF_ERROR(stayingRows_ ? post(request, turn)
                               : launchTurn(request, turn));
  for (uint32_t b = 0; b < turn.rows; ++b)
    RETURN_IF_ERROR(takeIds(b, turn.known[b], ids[b],
                            status().rowLength[b] - turn.known[b]));
  return absl::OkStatus();
}

absl::Status CudaExecutor::launchTurn(const BatchRequest &request,
                                      const abi::Turn &turn) {
  abi::DecodeParams params = paramsOf(turn);
  if (resident_) {
    params.mailbox = mailbox_.device<const abi::Turn>();
    params.forwarded = forwarded_.as<abi::Turn>();
  }
  if (resident_ || request.wantTimes)
    params.steps = stepRecords_.device<abi::StepRecord>();
  return launch(params, decode_);
}

/// A launch a position, so that every position's logits can be taken.
absl::Status
CudaExecutor::runByPosition(const BatchRequest &request,
                            std::vector<RowProgress> rows,
                            std::vector<std::vector<int32_t>> &ids) {
  while (true) {
    abi::Turn turn = turnOf(request, rows);
    bool any = false;
    for (uint32_t b = 0; b < turn.rows; ++b) {
      const RowProgress &row = rows[b];
      bool computes = !row.done();
      any |= computes;
      turn.known[b] = computes ? row.next + 1 : row.next;
      bool generates =
          computes && row.next + 1 == row.known && row.known < row.limit;
      turn.limit[b] = turn.known[b] + (generates ? 1 : 0);
    }
    if (!any)
      return absl::OkStatus();
    abi::DecodeParams params = paramsOf(turn);
    params.writeLogits = 1;
    RETURN_IF_ERROR(launch(params, decode_));
    GROK_CUDA_RETURN_IF_ERROR(
        api_, copyToHost, logits_.data(), arena_.address() + region("logits"),
        uint64_t(turn.rows) * model_.vocabSize * sizeof(float));
    for (uint32_t b = 0; b < turn.rows; ++b) {
      if (turn.start[b] == turn.known[b])
        continue;
      std::span<const float> logits(
          logits_.data() + uint64_t(b) * model_.vocabSize, model_.vocabSize);
      RETURN_IF_ERROR(request.onLogits(b, rows[b].next, logits));
      ++rows[b].next;
      if (turn.limit[b] == turn.known[b])
        continue;
      RETURN_IF_ERROR(takeIds(b, rows[b].next, ids[b], 1));
      bool last =
          rows[b].known + 1 == rows[b].limit || ids[b].back() == request.eosId;
      if (!last)
        ++rows[b].known;
    }
  }
}

} // namespace grok::cuda

namespace grok {

absl::StatusOr<std::unique_ptr<Executor>>
createCudaExecutor(const Bundle &bundle, const LoadLimits &limits, int device) {
  absl::StatusOr<const cuda::DriverApi *> api = cuda::DriverApi::get();
  if (!api.ok())
    return api.status();
  return cuda::CudaExecutor::create(**api, bundle, limits, device);
}

} // namespace grok
