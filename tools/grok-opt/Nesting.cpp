#include "tools/grok-opt/Nesting.h"

#include <algorithm>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace grok {
namespace {

/// Walks over text by the rules of MLIR's lexer, as far as brackets need them.
class Walk {
public:
  explicit Walk(llvm::StringRef text) : text_(text) {}

  /// Where it nests too deep; npos: nowhere.
  size_t findDeep() {
    while (at_ < text_.size()) {
      const size_t start = at_;
      step();
      if (open_.size() + signs_ > kMaxNesting)
        return start;
    }
    return llvm::StringRef::npos;
  }

private:
  llvm::StringRef rest() const { return text_.drop_front(at_); }

  void step() {
    if (rest().starts_with("//"))
      return skipLine();
    const char c = text_[at_];
    if (c == '"')
      return skipString();
    for (llvm::StringRef noBracket : {"->", "<=", ">="})
      if (rest().starts_with(noBracket)) {
        at_ += noBracket.size();
        signs_ = 0;
        return;
      }
    ++at_;
    if (llvm::isSpace(c))
      return;
    signs_ = c == '-' ? signs_ + 1 : 0;
    bracket(c);
  }

  /// One that closes another kind is no level less: the parser ends there.
  void bracket(char c) {
    constexpr llvm::StringRef kOpening = "([{<", kClosing = ")]}>";
    if (kOpening.contains(c))
      open_ += c;
    else if (size_t kind = kClosing.find(c); kind != llvm::StringRef::npos &&
                                             !open_.empty() &&
                                             open_.back() == kOpening[kind])
      open_.pop_back();
  }

  /// A string ends with its line at the latest.
  void skipString() {
    signs_ = 0;
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n')
      end += text_[end] == '\\' ? 2 : 1;
    at_ = end + 1;
  }

  void skipLine() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  llvm::StringRef text_;
  size_t at_ = 0;
  std::string open_; // brackets that wait for their ends
  size_t signs_ = 0; // minus signs without anything else in between
};

} // namespace

std::string findDeepNesting(llvm::StringRef text, llvm::StringRef name) {
  const size_t at = Walk(text).findDeep();
  if (at == llvm::StringRef::npos)
    return "";
  const llvm::StringRef before = text.take_front(at);
  const size_t line = before.count('\n') + 1;
  const size_t column = at - (before.rfind('\n') + 1) + 1; // npos + 1 is 0
  return llvm::formatv("{0}:{1}:{2}: error: found nesting deeper than {3} "
                       "levels, expected no more than that",
                       name, line, column, kMaxNesting)
      .str();
}

} // namespace grok
