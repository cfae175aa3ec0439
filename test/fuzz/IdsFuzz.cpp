// Lists of ids, as both tools read them: what one takes the other takes alike.
#include <algorithm>
#include <limits>

#include "compiler/Routing/Routing.h"
#include "test/fuzz/Fuzz.h"
#include "tools/cli/Printable.h"
#include "tools/grokrun/Ids.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = textOf(data, size);
  absl::StatusOr<std::vector<int64_t>> counted = parseIds(text, kFile);
  absl::StatusOr<std::vector<int32_t>> run = grokrun::parseIds(text, kFile, 1);
  if (!counted.ok())
    requireRefusal(counted.status());
  if (!run.ok()) // shown in printable form, as by the tool
    requireRefusal(absl::Status(
        run.status().code(),
        cli::printable(std::string_view(run.status().message().data(),
                                        run.status().message().size()))));
  const bool same =
      counted.ok() && !counted->empty() &&
      std::all_of(counted->begin(), counted->end(), [](int64_t id) {
        return id >= 0 && id <= std::numeric_limits<int32_t>::max();
      });
  require(run.ok() == same, "a list is taken if it has ids and nothing else");
  if (!run.ok())
    return 0;
  require(
      std::equal(run->begin(), run->end(), counted->begin(), counted->end()),
      "both read the same ids");
  absl::StatusOr<std::vector<int32_t>> again =
      grokrun::parseIds(grokrun::joinIds(*run), kFile, 1);
  require(again.ok() && *again == *run, "ids survive their canonical form");
  return 0;
}
