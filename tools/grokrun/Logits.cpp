#include <memory>

#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Ids.h"
#include "tools/grokrun/Output.h"
#include "tools/grokrun/Progress.h"
#include "tools/grokrun/Session.h"

namespace grok::grokrun {
namespace {

struct Arguments {
  std::string bundle, ids, output, device = "auto";
};

absl::Status logitsCommand(const Arguments &args) {
  if (absl::Status s = checkApart(args.output, {args.bundle, args.ids});
      !s.ok())
    return s;
  absl::StatusOr<std::vector<int32_t>> ids = readIds(args.ids);
  if (!ids.ok())
    return ids.status();
  absl::StatusOr<Session> session = Session::open(args.bundle, args.device);
  if (!session.ok())
    return session.status();
  BatchRequest request;
  request.rows = {{*ids, 0, 0}};
  if (absl::Status s = validateRequest(request, session->bundle->model(),
                                       session->executor->maxBatch(),
                                       session->executor->maxSeq());
      !s.ok())
    return s;
  absl::StatusOr<MatrixFile> file = MatrixFile::create(
      args.output, "logits", ids->size(), session->bundle->model().vocabSize);
  if (!file.ok())
    return file.status();
  Progress progress("logits");
  request.onLogits = [&](uint32_t, uint32_t position,
                         std::span<const float> logits) {
    progress.update(position + 1, ids->size());
    return file->addRow(logits);
  };
  if (absl::StatusOr<BatchResult> result = session->executor->run(request);
      !result.ok())
    return result.status();
  return file->commit();
}

} // namespace

Action addLogits(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "logits", "Write the logits of every position as safetensors");
  addBundle(*command, args->bundle);
  command->add_option("--ids", args->ids, "Token ids: 1,2,3 or a file")
      ->type_name("IDS")
      ->required();
  command
      ->add_option("-o", args->output,
                   "File to write: tensor logits [positions, vocab], float32")
      ->type_name("OUT")
      ->required();
  addDevice(*command, args->device);
  return [args] { return logitsCommand(*args); };
}

} // namespace grok::grokrun
