#include "tools/grok-opt/TextLimits.h"

#include <algorithm>
#include <optional>

#include "mlir/Bytecode/BytecodeReader.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace grok {
namespace {

/// A place in a text, and what is wrong there.
struct Excess {
  size_t at;
  std::string what;
};

/// Walks over text by the rules of MLIR's lexer, as far as brackets, aliases
/// and affine maps need them.
class Walk {
public:
  /// `aliasBytes`: bytes that the aliases of other parts stand for; those of
  /// this one are added.
  Walk(llvm::StringRef text, size_t &aliasBytes)
      : text_(text), aliasBytes_(aliasBytes) {}

  std::optional<Excess> findExcess() {
    while (skipBlanks(), at_ < text_.size()) {
      const size_t begin = at_;
      step();
      const llvm::StringRef token = text_.slice(begin, at_);
      if (std::optional<Excess> excess = take(token, begin))
        return excess;
      last_ = token;
    }
    return std::nullopt;
  }

private:
  /// What an alias stands for, with the aliases that it names.
  struct Alias {
    size_t levels = 0, bytes = 0;
  };

  llvm::StringRef rest() const { return text_.drop_front(at_); }

  // The lexer: each moves behind what it reads.

  /// A NUL is one of them.
  void skipBlanks() {
    newLine_ = false;
    while (at_ < text_.size()) {
      if (rest().starts_with("//"))
        at_ = std::min(text_.find_first_of("\n\r", at_), text_.size());
      else if (!llvm::isSpace(text_[at_]) && text_[at_] != '\0')
        return;
      else
        newLine_ |= text_[at_++] == '\n';
    }
  }

  void step() {
    const char c = text_[at_];
    if (c == '"')
      return skipString();
    if (c == '#' || c == '!') {
      ++at_;
      return skipSuffix();
    }
    if (llvm::isAlpha(c) || c == '_')
      return skipWhile("_$.");
    if (llvm::isDigit(c))
      return skipNumber();
    for (llvm::StringRef noBracket : {"->", "<=", ">="})
      if (rest().starts_with(noBracket)) {
        at_ += noBracket.size();
        return;
      }
    ++at_;
  }

  void skipNumber() {
    const bool isHex = rest().size() > 2 && rest().starts_with("0x") &&
                       llvm::isHexDigit(rest()[2]);
    at_ += isHex ? 2 : 0;
    at_ += rest().take_while(isHex ? llvm::isHexDigit : llvm::isDigit).size();
  }

  /// Letters, digits and `others`.
  void skipWhile(llvm::StringRef others) {
    at_ += rest()
               .take_while([&](char c) {
                 return llvm::isAlnum(c) || others.contains(c);
               })
               .size();
  }

  /// Digits alone, or a word that does not begin with one.
  void skipSuffix() {
    if (at_ < text_.size() && llvm::isDigit(text_[at_]))
      at_ += rest().take_while(llvm::isDigit).size();
    else
      skipWhile("_$.-");
  }

  /// A string ends with its line at the latest.
  void skipString() {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n')
      end += text_[end] == '\\' ? 2 : 1;
    at_ = std::min(end + 1, text_.size());
  }

  // What the tokens mean.

  std::optional<Excess> take(llvm::StringRef token, size_t begin) {
    delimitAlias(token);
    signs_ = token == "-" ? signs_ + 1 : 0;
    if (token.size() == 1)
      bracket(token[0], begin);
    Alias here{open_.size() + signs_, token.size()};
    if (auto alias = aliases_.find(token); alias != aliases_.end()) {
      here.levels += alias->second.levels;
      here.bytes = alias->second.bytes;
      aliasBytes_ += here.bytes;
    }
    defined_.levels = std::max(defined_.levels, here.levels);
    defined_.bytes += here.bytes;
    return excess(here, begin);
  }

  std::optional<Excess> excess(const Alias &here, size_t begin) const {
    if (here.levels > kMaxNesting)
      return Excess{
          begin, llvm::formatv("found nesting deeper than {0} levels, expected "
                               "no more than that",
                               kMaxNesting)};
    if (aliasBytes_ > kMaxAliasBytes)
      return Excess{begin,
                    llvm::formatv("found aliases that stand for more than {0} "
                                  "bytes of text, expected no more than that",
                                  kMaxAliasBytes)};
    if (affineLevel_ && at_ - affineBegin_ > kMaxAffineBytes)
      return Excess{affineBegin_,
                    llvm::formatv("found an affine map or set of more than {0} "
                                  "bytes, expected no more than that",
                                  kMaxAffineBytes)};
    if (text_[begin] != '"' && at_ - begin > kMaxWordBytes)
      return Excess{begin,
                    llvm::formatv("found a number or a word of more than {0} "
                                  "bytes, expected no more than that",
                                  kMaxWordBytes)};
    if (isBeyondResults(text_.slice(begin, at_)))
      return Excess{begin,
                    llvm::formatv("found the result '{0}', expected a number "
                                  "of at most {1}",
                                  text_.slice(begin, at_).take_front(40),
                                  kMaxResultNumber)};
    return std::nullopt;
  }

  static bool isBeyondResults(llvm::StringRef token) {
    uint64_t number = 0;
    return token.consume_front("#") && !token.empty() &&
           llvm::all_of(token, llvm::isDigit) &&
           (token.getAsInteger(10, number) || number > kMaxResultNumber);
  }

  /// "#name =" begins an alias, which ends at the latest where the next one
  /// begins, or an operation on a line of its own.
  void delimitAlias(llvm::StringRef token) {
    if (token == "=" && isPrefixed(last_)) {
      endAlias();
      name_ = last_;
    } else if (open_.empty() && newLine_ && isComplete(last_) &&
               beginsOperation(token)) {
      endAlias();
    }
  }

  void endAlias() {
    if (!name_.empty())
      aliases_[name_] = defined_;
    name_ = "";
    defined_ = {};
  }

  static bool isPrefixed(llvm::StringRef token) {
    return token.starts_with("#") || token.starts_with("!");
  }
  /// Whether an attribute or a type may end with it: a closing bracket, a
  /// string, a digit, a word or an alias.
  static bool isComplete(llvm::StringRef token) {
    if (token.size() > 1)
      return token != "->" && token != "<=" && token != ">=";
    return !token.empty() && (llvm::isAlnum(token[0]) ||
                              llvm::StringRef("_)]}>").contains(token[0]));
  }
  static bool beginsOperation(llvm::StringRef token) {
    return llvm::isAlpha(token[0]) ||
           llvm::StringRef("_\"%#!").contains(token[0]);
  }

  /// One that closes another kind is no level less: the parser ends there.
  void bracket(char c, size_t begin) {
    constexpr llvm::StringRef kOpening = "([{<", kClosing = ")]}>";
    if (kOpening.contains(c)) {
      open_ += c;
      if (c == '<' && (last_ == "affine_map" || last_ == "affine_set")) {
        affineLevel_ = open_.size();
        affineBegin_ = begin;
      }
    } else if (size_t kind = kClosing.find(c); kind != llvm::StringRef::npos &&
                                               !open_.empty() &&
                                               open_.back() == kOpening[kind]) {
      if (open_.size() == affineLevel_)
        affineLevel_ = 0;
      open_.pop_back();
    }
  }

  llvm::StringRef text_;
  size_t at_ = 0;
  llvm::StringRef last_; // the token before
  bool newLine_ = false; // before this one
  std::string open_;     // brackets that wait for their ends
  size_t signs_ = 0;     // minus signs without anything else in between
  size_t affineLevel_ = 0, affineBegin_ = 0; // of an open map or set; 0: none
  llvm::StringMap<Alias> aliases_;           // that are complete
  llvm::StringRef name_;                     // of the one that is not, if any
  Alias defined_;                            // what it is so far
  size_t &aliasBytes_;
};

std::optional<Excess> findExcess(llvm::StringRef text,
                                 llvm::StringRef splitMarker) {
  llvm::SmallVector<llvm::StringRef> parts{text};
  if (!splitMarker.empty()) {
    parts.clear();
    text.split(parts, splitMarker);
  }
  size_t aliasBytes = 0;
  for (llvm::StringRef part : parts) {
    const size_t begin = size_t(part.data() - text.data());
    if (mlir::isBytecode(llvm::MemoryBufferRef(part, "")))
      return Excess{begin, "found MLIR's bytecode, expected IR as text; "
                           "let the tool that wrote it print text"};
    if (std::optional<Excess> excess = Walk(part, aliasBytes).findExcess()) {
      excess->at += begin;
      return excess;
    }
  }
  return std::nullopt;
}

} // namespace

std::string findExcess(llvm::StringRef text, llvm::StringRef splitMarker,
                       llvm::StringRef name) {
  std::optional<Excess> excess = findExcess(text, splitMarker);
  if (!excess)
    return "";
  const llvm::StringRef before = text.take_front(excess->at);
  const size_t line = before.count('\n') + 1;
  const size_t column =
      excess->at - (before.rfind('\n') + 1) + 1; // npos + 1: 0
  return llvm::formatv("{0}:{1}:{2}: error: {3}", name, line, column,
                       excess->what)
      .str();
}

} // namespace grok
