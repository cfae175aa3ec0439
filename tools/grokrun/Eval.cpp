#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/cli/Numbers.h"
#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Ids.h"
#include "tools/grokrun/Output.h"
#include "tools/grokrun/Progress.h"
#include "tools/grokrun/Session.h"

namespace grok::grokrun {
namespace {

struct Arguments {
  std::string bundle, ids, histogram, device = "auto";
  uint32_t window = 512;
  bool json = false;
};

/// -log softmax(logits)[target].
double negativeLogLikelihood(std::span<const float> logits, int32_t target) {
  double top = *std::max_element(logits.begin(), logits.end()), sum = 0;
  for (float x : logits)
    sum += std::exp(x - top);
  return top + std::log(sum) - logits[size_t(target)];
}

/// Windows of `window` inputs at multiples of it, each input predicting the id
/// after it; what does not fill a window is left out.
class Evaluation {
public:
  Evaluation(const Session &session, const std::vector<int32_t> &ids,
             uint32_t window, bool histogram)
      : session_(session), ids_(ids), window_(window),
        windows_((ids.size() - 1) / window), losses_(windows_ * window) {
    if (histogram)
      histogram_.resize(session.bundle->model().numExperts);
  }

  absl::Status run() {
    Progress progress("eval");
    for (uint64_t first = 0; first < windows_;
         first += session_.executor->maxBatch()) {
      uint64_t rows =
          std::min<uint64_t>(windows_ - first, session_.executor->maxBatch());
      if (absl::Status s = runBatch(first, rows); !s.ok())
        return s;
      progress.update(first + rows, windows_);
    }
    return absl::OkStatus();
  }

  uint64_t windows() const { return windows_; }
  uint64_t tokens() const { return losses_.size(); }
  double meanLoss() const {
    double sum = 0;
    for (double loss : losses_)
      sum += loss;
    return sum / double(losses_.size());
  }
  const std::vector<uint64_t> &histogram() const { return histogram_; }

private:
  absl::Status runBatch(uint64_t first, uint64_t rows) {
    BatchRequest request;
    for (uint64_t r = 0; r != rows; ++r) {
      auto begin = ids_.begin() + ptrdiff_t((first + r) * window_);
      request.rows.push_back({{begin, begin + window_}, 0, 0});
    }
    request.onLogits = [&](uint32_t row, uint32_t position,
                           std::span<const float> logits) {
      uint64_t at = (first + row) * window_ + position;
      losses_[at] = negativeLogLikelihood(logits, ids_[at + 1]);
      return absl::OkStatus();
    };
    if (!histogram_.empty())
      request.onRouting = [&](uint32_t, uint32_t, uint32_t,
                              std::span<const uint32_t> experts) {
        for (uint32_t e : experts)
          ++histogram_[e];
      };
    return session_.executor->run(request).status();
  }

  const Session &session_;
  const std::vector<int32_t> &ids_;
  const uint32_t window_;
  const uint64_t windows_;
  std::vector<double> losses_;
  std::vector<uint64_t> histogram_;
};

absl::Status checkIds(const std::vector<int32_t> &ids, uint32_t window,
                      const Session &session) {
  if (window == 0 || window > session.executor->maxSeq())
    return absl::InvalidArgumentError(absl::StrFormat(
        "--window: found %d, expected 1 to %d, the length in use", window,
        session.executor->maxSeq()));
  if (ids.size() <= window)
    return absl::InvalidArgumentError(absl::StrFormat(
        "--ids: found %d ids, expected at least %d: a window of %d and the id "
        "after it",
        ids.size(), window + 1, window));
  // The last target is looked up but never an input.
  uint32_t vocab = session.bundle->model().vocabSize;
  if (uint32_t(ids.back()) >= vocab)
    return absl::InvalidArgumentError(absl::StrFormat(
        "--ids: found id %d, expected 0 to %d", ids.back(), vocab - 1));
  return absl::OkStatus();
}

void print(const Evaluation &evaluation, const Session &session, bool json) {
  if (json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    out["nll_per_token"] = evaluation.meanLoss();
    out["tokens"] = evaluation.tokens();
    out["windows"] = evaluation.windows();
    out["device"] = session.executor->deviceName();
    std::cout << out.dump() << "\n";
    return;
  }
  std::cout << absl::StrFormat(
      "nll per token: %.6f (%d tokens in %d windows, perplexity %.3f)\n",
      evaluation.meanLoss(), evaluation.tokens(), evaluation.windows(),
      std::exp(evaluation.meanLoss()));
}

absl::Status evalCommand(const Arguments &args) {
  if (absl::Status s = checkApart(args.histogram, {args.bundle, args.ids});
      !s.ok())
    return s;
  absl::StatusOr<std::vector<int32_t>> ids = readIds(args.ids);
  if (!ids.ok())
    return ids.status();
  // Only the CPU executor reports which experts were chosen.
  bool histogram = !args.histogram.empty();
  std::string device = histogram && args.device == "auto" ? "cpu" : args.device;
  absl::StatusOr<Session> session = Session::open(args.bundle, device);
  if (!session.ok())
    return session.status();
  if (absl::Status s = checkIds(*ids, args.window, *session); !s.ok())
    return s;
  Evaluation evaluation(*session, *ids, args.window, histogram);
  if (absl::Status s = evaluation.run(); !s.ok())
    return s;
  if (histogram) {
    nlohmann::json out = {{"histogram", evaluation.histogram()}};
    if (absl::Status s = writeTextFile(args.histogram, out.dump() + "\n");
        !s.ok())
      return s;
  }
  print(evaluation, *session, args.json);
  return absl::OkStatus();
}

} // namespace

Action addEval(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "eval", "Mean negative log-likelihood per token of a text's ids");
  addBundle(*command, args->bundle);
  command->add_option("--ids", args->ids, "Token ids: a file, or 1,2,3")
      ->type_name("IDS")
      ->required();
  cli::addDecimal(*command, "--window", args->window,
                  "Inputs of a window; positions begin at 0 in each")
      ->type_name("N");
  command
      ->add_option("--expert-histogram", args->histogram,
                   "Write how often each expert was chosen (auto: on the CPU)")
      ->type_name("OUT");
  addDevice(*command, args->device);
  command->add_flag("--json", args->json,
                    "Print nll_per_token, tokens, windows and device");
  return [args] { return evalCommand(*args); };
}

} // namespace grok::grokrun
