// Python's pickle format, read as data. Objects are named, never built: what a
// file asks to import or call is compared with a closed list and written down.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace grok {

struct PickleValue {
  enum class Kind {
    kNone,
    kBool,
    kInteger,
    kFloat,
    kText,
    kBytes,
    kTuple,
    kList,
    kSet,
    kDict,
    kGlobal,     // a class or a function, by name
    kCall,       // what a function or a class would make of arguments
    kPersistent, // an object that lies elsewhere
    kMark,       // not a value: where a list of operands begins
  } kind = Kind::kNone;
  int64_t integer = 0;           // kBool, kInteger
  double number = 0;             // kFloat
  std::string text;              // kText; kGlobal: "module name"
  uint64_t offset = 0, size = 0; // kBytes: where in the pickle
  /// kTuple, kList, kSet: the elements; kCall: callee and arguments;
  /// kPersistent: the key.
  std::vector<uint32_t> items;
  std::vector<uint32_t> pairs; // kDict, kCall: key, value, key, value, ...
  uint32_t state = 0;          // kCall: attributes; 0: none were given
};

/// The values refer to each other by index. Index 0 is None.
struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;
  const PickleValue &operator[](uint32_t index) const { return values[index]; }
  const PickleValue &top() const { return values[root]; }
};

/// Reads one pickle, which fills `bytes`. InvalidArgument, naming `place` and
/// the byte, for opcodes that data does not need, for globals that are not
/// among `globals` ("module name", or "* name" of any module), for what is cut
/// off, and beyond limits that no checkpoint comes near. `ofOtherProtocols`:
/// globals that what is read has too, but not in protocol 4; they are refused
/// with that remedy.
absl::StatusOr<Pickle>
readPickle(std::span<const uint8_t> bytes, const std::string &place,
           std::span<const std::string_view> globals,
           std::span<const std::string_view> ofOtherProtocols = {});

/// "a tuple", for messages.
std::string describe(const PickleValue &value);

} // namespace grok
