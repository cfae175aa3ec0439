#include "runtime/checkpoint/Pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/Messages.h"

namespace grok {
namespace {

using Kind = PickleValue::Kind;

// Far above what a checkpoint needs: a state dict has about 40 values a tensor.
constexpr size_t kMaxValues = size_t(1) << 20;
constexpr size_t kMaxItems = size_t(1) << 22; // in all values together
constexpr size_t kMaxStack = size_t(1) << 20;
constexpr size_t kMaxMemo = size_t(1) << 20;
constexpr size_t kMaxSteps = size_t(1) << 24; // opcodes
constexpr size_t kMaxText = size_t(1) << 16;
constexpr size_t kMaxAllText = size_t(64) << 20;

/// The opcodes of data, by their names in Python's pickle module.
enum Op : uint8_t {
  kMarkOp = '(',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNoneOp = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobalOp = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTupleOp = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

/// The machine that a pickle is a program for, without its power.
class Machine {
public:
  Machine(std::span<const uint8_t> bytes, const std::string &place,
          std::span<const std::string_view> globals,
          std::span<const std::string_view> ofOtherProtocols)
      : bytes_(bytes), place_(place), globals_(globals),
        ofOtherProtocols_(ofOtherProtocols) {
    pickle_.values.emplace_back(); // None
  }

  absl::StatusOr<Pickle> run() {
    bool stopped = false;
    for (size_t steps = 0; !stopped && status_.ok(); ++steps) {
      begin_ = at_;
      if (steps == kMaxSteps)
        damaged(absl::StrCat("found more than ", kMaxSteps,
                             " operations, expected no more"));
      uint8_t op = uint8_t(number(1));
      stopped = status_.ok() && step(op);
    }
    if (stopped && at_ != bytes_.size())
      damaged(absl::StrCat("found ", bytes_.size() - at_,
                           " bytes after the end, expected none"));
    if (stopped && stack_.size() != 1)
      damaged(absl::StrCat("found ", stack_.size(),
                           " values at the end, expected one"));
    if (!status_.ok())
      return status_;
    pickle_.root = stack_[0];
    return std::move(pickle_);
  }

private:
  void error(const std::string &what) {
    if (status_.ok())
      status_ = absl::InvalidArgumentError(
          absl::StrCat(place_, ": pickle, byte ", begin_, ": ", what));
  }
  void damaged(const std::string &what) {
    error(absl::StrCat(what, "; the file is damaged: download or export it "
                             "again"));
  }

  /// Little-endian, up to 8 bytes.
  uint64_t number(unsigned size) {
    std::span<const uint8_t> from = take(size);
    uint64_t value = 0;
    for (size_t i = 0; i < from.size(); ++i)
      value |= uint64_t(from[i]) << (8 * i);
    return value;
  }
  std::span<const uint8_t> take(uint64_t size) {
    if (size > bytes_.size() - at_) {
      damaged(absl::StrCat("found the end of the data ", bytes_.size() - at_,
                           " bytes ahead, expected ", size, " bytes there"));
      return {};
    }
    auto out = bytes_.subspan(at_, size);
    at_ += size;
    return out;
  }
  std::string text(uint64_t size) {
    textBytes_ += size;
    if (size > kMaxText || textBytes_ > kMaxAllText) {
      damaged(absl::StrCat("found a text of ", size,
                           " bytes, expected at most ", kMaxText, ", and ",
                           kMaxAllText, " in all"));
      return "";
    }
    std::span<const uint8_t> from = take(size);
    return {from.begin(), from.end()};
  }
  std::string line() {
    auto rest = bytes_.subspan(at_, std::min(bytes_.size() - at_, kMaxText));
    auto end = std::ranges::find(rest, uint8_t('\n'));
    if (end == rest.end()) {
      damaged(absl::StrCat("found no end of a line in ", rest.size(),
                           " bytes, expected one"));
      return "";
    }
    std::string out = text(uint64_t(end - rest.begin()));
    take(1);
    return out;
  }

  void push(PickleValue value) {
    if (pickle_.values.size() >= kMaxValues || stack_.size() >= kMaxStack) {
      damaged(absl::StrCat("found more than ", kMaxValues,
                           " values, expected no more"));
      return;
    }
    if (value.kind == Kind::kNone) { // there is one
      stack_.push_back(0);
      return;
    }
    stack_.push_back(uint32_t(pickle_.values.size()));
    pickle_.values.push_back(std::move(value));
  }
  void push(Kind kind) {
    PickleValue value;
    value.kind = kind;
    push(std::move(value));
  }
  void push(Kind kind, int64_t integer) {
    PickleValue value;
    value.kind = kind;
    value.integer = integer;
    push(std::move(value));
  }
  void pushText(std::string text) {
    PickleValue value;
    value.kind = Kind::kText;
    value.text = std::move(text);
    push(std::move(value));
  }
  void pushBytes(uint64_t size) {
    PickleValue value;
    value.kind = Kind::kBytes;
    value.offset = at_;
    value.size = size;
    take(size);
    push(std::move(value));
  }
  void pushGlobal(const std::string &module, const std::string &name) {
    PickleValue value;
    value.kind = Kind::kGlobal;
    value.text = absl::StrCat(module, " ", name);
    auto in = [](std::span<const std::string_view> names,
                 const std::string &text) {
      return std::ranges::find(names, text) != names.end();
    };
    std::string found = absl::StrCat("found the global ",
                                     inQuotes(absl::StrCat(module, ".", name)));
    if (in(ofOtherProtocols_, value.text)) {
      error(absl::StrCat(found, ", which arrays have in another protocol, "
                                "expected protocol 4; save the checkpoint "
                                "again with it (pickle.dump's protocol=4)"));
      return;
    }
    if (!in(globals_, value.text) && !in(globals_, absl::StrCat("* ", name))) {
      error(absl::StrCat(
          found,
          ", expected only what tensors need; no program was run, but others "
          "would run it: get the checkpoint from a source that you trust, as "
          "safetensors"));
      return;
    }
    push(std::move(value));
  }

  std::optional<uint32_t> pop() {
    if (stack_.empty() || isMark(stack_.back())) {
      damaged("found an operation without its operands");
      return std::nullopt;
    }
    uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  bool isMark(uint32_t index) const {
    return pickle_.values[index].kind == Kind::kMark;
  }
  /// The values above the last mark, which goes too.
  std::vector<uint32_t> popMark() {
    size_t mark = stack_.size();
    while (mark > 0 && !isMark(stack_[mark - 1]))
      --mark;
    if (mark == 0) {
      damaged("found an operation without its mark");
      return {};
    }
    std::vector<uint32_t> out(stack_.begin() + ptrdiff_t(mark), stack_.end());
    stack_.resize(mark - 1);
    count(out.size());
    return out;
  }
  void count(size_t items) {
    items_ += items;
    if (items_ > kMaxItems)
      damaged(absl::StrCat("found more than ", kMaxItems,
                           " elements, expected no more"));
  }
  void tuple(unsigned size) {
    PickleValue value;
    value.kind = Kind::kTuple;
    for (unsigned i = 0; i < size; ++i)
      if (std::optional<uint32_t> item = pop())
        value.items.insert(value.items.begin(), *item);
    count(size);
    if (status_.ok())
      push(std::move(value));
  }

  void memoize(uint64_t key) {
    if (stack_.empty() || isMark(stack_.back()))
      damaged("found nothing to remember");
    else if (memo_.size() >= kMaxMemo)
      damaged(absl::StrCat("found more than ", kMaxMemo,
                           " remembered values, expected no more"));
    else
      memo_[key] = stack_.back();
  }
  void recall(uint64_t key) {
    auto it = memo_.find(key);
    if (it == memo_.end())
      damaged(absl::StrCat("found a reference to value ", key,
                           ", which was not remembered"));
    else if (stack_.size() < kMaxStack)
      stack_.push_back(it->second);
    else
      damaged(absl::StrCat("found more than ", kMaxStack,
                           " operands, expected no more"));
  }

  /// REDUCE and NEWOBJ: callee and arguments.
  void call() {
    std::optional<uint32_t> arguments = pop(), callee = pop();
    if (!arguments || !callee)
      return;
    if (pickle_[*callee].kind != Kind::kGlobal ||
        pickle_[*arguments].kind != Kind::kTuple)
      return damaged(absl::StrCat("found a call of ",
                                  describe(pickle_[*callee]), " with ",
                                  describe(pickle_[*arguments])));
    PickleValue value;
    value.kind = Kind::kCall;
    value.items = {*callee, *arguments};
    push(std::move(value));
  }
  void build() {
    std::optional<uint32_t> state = pop();
    if (!state || stack_.empty())
      return damaged("found attributes of nothing");
    PickleValue &object = pickle_.values[stack_.back()];
    if (object.kind != Kind::kCall || object.state != 0)
      return damaged(absl::StrCat("found attributes of ", describe(object)));
    object.state = *state;
  }
  void setItems(const std::vector<uint32_t> &pairs) {
    if (!status_.ok())
      return;
    if (stack_.empty() || pairs.size() % 2 != 0)
      return damaged("found a key without a value");
    PickleValue &object = pickle_.values[stack_.back()];
    if (object.kind != Kind::kDict && object.kind != Kind::kCall)
      return damaged(absl::StrCat("found items of ", describe(object)));
    object.pairs.insert(object.pairs.end(), pairs.begin(), pairs.end());
  }
  void append(const std::vector<uint32_t> &items) {
    if (!status_.ok())
      return;
    if (stack_.empty() || pickle_.values[stack_.back()].kind != Kind::kList)
      return damaged("found elements of what is no list");
    std::vector<uint32_t> &list = pickle_.values[stack_.back()].items;
    list.insert(list.end(), items.begin(), items.end());
  }

  void stackGlobal() {
    std::optional<uint32_t> name = pop(), module = pop();
    if (!name || !module)
      return;
    if (pickle_[*name].kind != Kind::kText ||
        pickle_[*module].kind != Kind::kText)
      return damaged("found a global that is not named by two texts");
    pushGlobal(std::string(pickle_[*module].text),
               std::string(pickle_[*name].text));
  }
  void pushLong(uint64_t size) {
    if (size > 8) {
      damaged(absl::StrCat("found an integer of ", size,
                           " bytes, expected at most 8"));
      return;
    }
    uint64_t value = number(unsigned(size));
    if (size > 0 && size < 8 && (value >> (8 * size - 1) & 1)) // the sign
      value |= ~uint64_t(0) << (8 * size);
    push(Kind::kInteger, int64_t(value));
  }
  void pushFloat() {
    uint64_t bits = 0;
    for (uint8_t byte : take(8)) // big-endian
      bits = bits << 8 | byte;
    PickleValue value;
    value.kind = Kind::kFloat;
    value.number = std::bit_cast<double>(bits);
    push(std::move(value));
  }
  void persistent() {
    std::optional<uint32_t> key = pop();
    if (!key)
      return;
    PickleValue value;
    value.kind = Kind::kPersistent;
    value.items = {*key};
    push(std::move(value));
  }
  void protocol() {
    if (uint64_t version = number(1); version < 2 || version > 5)
      damaged(absl::StrCat("found protocol ", version, ", expected 2 to 5"));
  }
  void global() {
    std::string module = line();
    pushGlobal(module, line());
  }

  /// True at the end.
  bool step(uint8_t op) {
    switch (op) {
    case kStop:
      return true;
    case kProto:
      protocol();
      break;
    case kFrame:
      if (uint64_t size = number(8); size > bytes_.size() - at_)
        damaged(absl::StrCat("found a frame of ", size,
                             " bytes, expected at "
                             "most the ",
                             bytes_.size() - at_, " that follow"));
      break;
    case kMarkOp:
      push(Kind::kMark);
      break;
    case kNoneOp:
      push(Kind::kNone);
      break;
    case kNewTrue:
    case kNewFalse:
      push(Kind::kBool, op == kNewTrue);
      break;
    case kBinInt:
      push(Kind::kInteger, int32_t(number(4)));
      break;
    case kBinInt1:
      push(Kind::kInteger, int64_t(number(1)));
      break;
    case kBinInt2:
      push(Kind::kInteger, int64_t(number(2)));
      break;
    case kLong1:
      pushLong(number(1));
      break;
    case kBinFloat:
      pushFloat();
      break;
    case kShortBinString:
    case kShortBinUnicode:
      pushText(text(number(1)));
      break;
    case kBinUnicode:
      pushText(text(number(4)));
      break;
    case kShortBinBytes:
      pushBytes(number(1));
      break;
    case kBinBytes:
      pushBytes(number(4));
      break;
    case kBinBytes8:
      pushBytes(number(8));
      break;
    case kEmptyTuple:
      push(Kind::kTuple);
      break;
    case kEmptyList:
      push(Kind::kList);
      break;
    case kEmptyDict:
      push(Kind::kDict);
      break;
    case kEmptySet:
      push(Kind::kSet);
      break;
    case kTupleOp: {
      PickleValue value;
      value.kind = Kind::kTuple;
      value.items = popMark();
      push(std::move(value));
      break;
    }
    case kTuple1:
    case kTuple2:
    case kTuple3:
      tuple(op - kTuple1 + 1u);
      break;
    case kAppend:
      if (std::optional<uint32_t> item = pop())
        append({*item});
      break;
    case kAppends:
      append(popMark());
      break;
    case kSetItem: {
      std::optional<uint32_t> value = pop(), key = pop();
      if (value && key)
        setItems({*key, *value});
      break;
    }
    case kSetItems:
      setItems(popMark());
      break;
    case kBinPut:
      memoize(number(1));
      break;
    case kLongBinPut:
      memoize(number(4));
      break;
    case kMemoize:
      memoize(memo_.size());
      break;
    case kBinGet:
      recall(number(1));
      break;
    case kLongBinGet:
      recall(number(4));
      break;
    case kGlobalOp:
      global();
      break;
    case kStackGlobal:
      stackGlobal();
      break;
    case kBinPersId:
      persistent();
      break;
    case kReduce:
    case kNewObj:
      call();
      break;
    case kBuild:
      build();
      break;
    default:
      error(absl::StrFormat(
          "found opcode 0x%02x, expected one that data needs; the file is "
          "damaged or no checkpoint: download it again, or export it as "
          "safetensors",
          op));
    }
    return false;
  }

  std::span<const uint8_t> bytes_;
  const std::string &place_;
  std::span<const std::string_view> globals_, ofOtherProtocols_;
  Pickle pickle_;
  std::vector<uint32_t> stack_;
  std::map<uint64_t, uint32_t> memo_;
  size_t items_ = 0, textBytes_ = 0;
  uint64_t at_ = 0, begin_ = 0; // the next byte; where the opcode stood
  absl::Status status_;
};

} // namespace

absl::StatusOr<Pickle>
readPickle(std::span<const uint8_t> bytes, const std::string &place,
           std::span<const std::string_view> globals,
           std::span<const std::string_view> ofOtherProtocols) {
  return Machine(bytes, place, globals, ofOtherProtocols).run();
}

std::string describe(const PickleValue &value) {
  switch (value.kind) {
  case Kind::kNone:
    return "None";
  case Kind::kBool:
    return value.integer ? "True" : "False";
  case Kind::kInteger:
    return absl::StrCat("the integer ", value.integer);
  case Kind::kFloat:
    return absl::StrCat("the number ", value.number);
  case Kind::kText:
    return absl::StrCat("the text ", inQuotes(value.text));
  case Kind::kBytes:
    return "bytes";
  case Kind::kTuple:
    return absl::StrCat("a tuple of ", value.items.size());
  case Kind::kList:
    return absl::StrCat("a list of ", value.items.size());
  case Kind::kSet:
    return "a set";
  case Kind::kDict:
    return absl::StrCat("a dict of ", value.pairs.size() / 2);
  case Kind::kGlobal:
    return absl::StrCat("the global ", inQuotes(value.text));
  case Kind::kCall:
    return "an object";
  case Kind::kPersistent:
    return "a storage";
  case Kind::kMark:
    return "nothing";
  }
  return "";
}

} // namespace grok
