// replay: batches of requests from a file through one loaded bundle. Checks of
// a device are made of it: whether a row's logits depend on the other rows, on
// its place or on the run.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/InputFile.h"
#include "runtime/bundle/Json.h"
#include "tools/cli/Numbers.h"
#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Ids.h"
#include "tools/grokrun/Output.h"
#include "tools/grokrun/Session.h"

namespace grok::grokrun {
namespace {

struct Arguments {
  std::string bundle, requests, output, device = "auto";
  uint32_t prefillTokens = 0, decodeFrom = ~0u;
};

/// A batch, and the file's line that holds its first row.
struct Batch {
  std::vector<RowRequest> rows;
  size_t line = 0;
};

/// "1,2,3" or "1,2,3 +N": a row that generates N ids.
absl::StatusOr<RowRequest> parseRow(std::string_view text,
                                    const std::string &file, size_t line) {
  RowRequest row;
  size_t plus = std::min(text.find('+'), text.size());
  if (plus != text.size()) {
    std::string_view count = text.substr(plus + 1);
    auto [end, error] =
        std::from_chars(count.data(), count.data() + count.size(), row.maxNew);
    if (error != std::errc() || end != count.data() + count.size())
      return absl::InvalidArgumentError(
          absl::StrCat(file, ":", line, ": found '+", json::printable(count),
                       "', expected + and the number of ids to generate"));
  }
  absl::StatusOr<std::vector<int32_t>> ids =
      parseIds(text.substr(0, plus), file, line);
  if (!ids.ok())
    return ids.status();
  row.ids = std::move(*ids);
  return row;
}

/// One row a line; an empty line ends a batch.
absl::StatusOr<std::vector<Batch>> readBatches(const std::string &path) {
  absl::StatusOr<std::string> text = readInputFile(path, kMaxIdsBytes);
  if (!text.ok())
    return text.status();
  std::vector<Batch> batches;
  bool open = false;
  std::string_view rest = *text;
  for (size_t line = 1; !rest.empty(); ++line) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view row = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (row.ends_with('\r')) // of a line that ends as on Windows
      row.remove_suffix(1);
    if (row.empty()) {
      open = false;
      continue;
    }
    if (!open)
      batches.push_back({{}, line});
    open = true;
    absl::StatusOr<RowRequest> parsed = parseRow(row, path, line);
    if (!parsed.ok())
      return parsed.status();
    batches.back().rows.push_back(std::move(*parsed));
  }
  if (batches.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": found no rows, expected at least one"));
  return batches;
}

/// Runs the batches and keeps the logits of every computed position if they are
/// asked for.
class Replayer {
public:
  Replayer(const Session &session, const Arguments &args)
      : session_(session), logits_(!args.output.empty()),
        prefillTokens_(args.prefillTokens), decodeFrom_(args.decodeFrom) {}

  absl::Status run(const Batch &batch) {
    BatchRequest request;
    request.rows = batch.rows;
    request.prefillTokens = prefillTokens_;
    for (RowRequest &row : request.rows)
      row.decodeFrom = decodeFrom_;
    size_t first = matrices_.size();
    if (logits_) {
      matrices_.resize(first + batch.rows.size());
      request.onLogits = [&](uint32_t row, uint32_t,
                             std::span<const float> logits) {
        std::vector<float> &values = matrices_[first + row].values;
        values.insert(values.end(), logits.begin(), logits.end());
        return absl::OkStatus();
      };
    }
    absl::StatusOr<BatchResult> result = session_.executor->run(request);
    if (!result.ok())
      return result.status();
    for (const std::vector<int32_t> &ids : result->newIds)
      std::cout << "[" << joinIds(ids) << "]\n";
    return absl::OkStatus();
  }

  /// Tensors logits.0, logits.1, ...: one a row of the file.
  absl::Status write(const std::string &path) {
    uint32_t vocab = session_.bundle->model().vocabSize;
    for (size_t i = 0; i != matrices_.size(); ++i) {
      matrices_[i].name = absl::StrCat("logits.", i);
      matrices_[i].columns = vocab;
    }
    return writeMatrices(path, matrices_);
  }

private:
  const Session &session_;
  const bool logits_;
  const uint32_t prefillTokens_, decodeFrom_;
  std::vector<Matrix> matrices_;
};

absl::Status replayCommand(const Arguments &args) {
  if (absl::Status s = checkApart(args.output, {args.bundle, args.requests});
      !s.ok())
    return s;
  absl::StatusOr<std::vector<Batch>> batches = readBatches(args.requests);
  if (!batches.ok())
    return batches.status();
  absl::StatusOr<Session> session = Session::open(args.bundle, args.device);
  if (!session.ok())
    return session.status();
  Replayer replayer(*session, args);
  for (const Batch &batch : *batches)
    if (absl::Status s = replayer.run(batch); !s.ok())
      return absl::Status(s.code(),
                          absl::StrCat(args.requests, ":", batch.line, ": ",
                                       std::string(s.message())));
  return args.output.empty() ? absl::OkStatus() : replayer.write(args.output);
}

} // namespace

Action addReplay(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "replay", "Run batches of requests from a file, greedily and past the "
                "end id; prints the new ids of every row");
  command->group(""); // for checks of a device, not for users
  addBundle(*command, args->bundle);
  command
      ->add_option("--requests", args->requests,
                   "One row a line: 1,2,3 or 1,2,3 +N to generate N ids; an "
                   "empty line ends a batch")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("-o", args->output,
                   "Also write every row's logits: tensors logits.0, logits.1, "
                   "... [positions, vocab], float32")
      ->type_name("OUT");
  cli::addDecimal(*command, "--prefill-tokens", args->prefillTokens,
                  "Known ids of a prefill pass at most; 0: as compiled")
      ->type_name("N");
  cli::addDecimal(*command, "--decode-from", args->decodeFrom,
                  "Known ids from this position on go through the decode "
                  "kernel")
      ->type_name("P");
  addDevice(*command, args->device);
  return [args] { return replayCommand(*args); };
}

} // namespace grok::grokrun
