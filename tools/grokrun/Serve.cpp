#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/OutputFile.h"
#include "tools/cli/Numbers.h"
#include "tools/cli/Signals.h"
#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Session.h"
#include "tools/grokrun/serve/Server.h"

namespace grok::grokrun {
namespace {

struct Arguments {
  std::string bundle, socket, permissions = "600", device = "auto";
  uint32_t queue = 64, perClient = 0;
  bool resident = false;
};

/// "660": three octal digits.
absl::StatusOr<mode_t> parsePermissions(const std::string &text) {
  mode_t mode = 0;
  for (char c : text)
    mode = mode * 8 + mode_t(c - '0');
  if (text.size() != 3 || text.find_first_not_of("01234567") != text.npos)
    return absl::InvalidArgumentError(
        absl::StrCat("--permissions: found '", text,
                     "', expected three octal digits as in 660"));
  return mode;
}

/// Without a tokenizer, the model takes ids only.
absl::StatusOr<serve::Model>
modelOf(const ModelConfig &config, uint32_t maxSeq,
        const absl::StatusOr<std::unique_ptr<Tokenizer>> &tokenizer) {
  serve::Model model{config, maxSeq, nullptr, {}, {}};
  if (!tokenizer.ok()) {
    model.noTokenizer = std::string(tokenizer.status().message());
    return model;
  }
  absl::StatusOr<std::vector<int32_t>> stop = textStopIds(config, **tokenizer);
  if (!stop.ok())
    return stop.status();
  model.tokenizer = tokenizer->get();
  model.textStopIds = *std::move(stop);
  return model;
}

absl::Status serveCommand(const Arguments &args) {
  absl::StatusOr<mode_t> mode = parsePermissions(args.permissions);
  if (!mode.ok())
    return mode.status();
  if (absl::Status s = checkApart(args.socket, {args.bundle}); !s.ok())
    return s;
  absl::StatusOr<Session> session = Session::open(
      args.bundle, args.device, args.resident ? "--resident" : nullptr);
  if (!session.ok())
    return session.status();
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      Tokenizer::open(*session->bundle);
  absl::StatusOr<serve::Model> model =
      modelOf(session->bundle->model(), session->executor->maxSeq(), tokenizer);
  if (!model.ok())
    return model.status();
  serve::Outbox outbox;
  const int stop = stopOnSignals();
  if (outbox.descriptor() < 0 || stop < 0)
    return absl::ResourceExhaustedError(
        "found no free file descriptor, expected two; raise the limit");
  service::Service service(*session->executor, session->bundle->model(),
                           args.queue);
  serve::SocketFile socket;
  if (absl::Status s = socket.open(args.socket, *mode); !s.ok())
    return s;
  std::fprintf(stderr, "serving %s at %s on %s\n", args.bundle.c_str(),
               args.socket.c_str(), session->executor->deviceName().c_str());
  return serve::Server(socket, service, outbox, *model, args.perClient)
      .run(stop);
}

} // namespace

Action addServe(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "serve", "Answer requests at a Unix socket until SIGINT or SIGTERM");
  addBundle(*command, args->bundle);
  command
      ->add_option("--socket", args->socket,
                   "Where to listen: a file that is made for it")
      ->type_name("PATH")
      ->required();
  command
      ->add_option("--permissions", args->permissions,
                   "Who may connect, as for chmod")
      ->type_name("MODE")
      ->capture_default_str();
  cli::addDecimal(*command, "--queue", args->queue,
                  "Requests that may wait while the batch is full; more are "
                  "refused")
      ->type_name("N");
  cli::addDecimal(*command, "--per-client", args->perClient,
                  "Requests of one client without an answer; 0: as many as "
                  "fit")
      ->type_name("N");
  addDevice(*command, args->device);
  command->add_flag("--resident", args->resident,
                    "A kernel stays on the GPU, which nobody else can use "
                    "then:\n"
                    "requests wait for no launch, but for one after prefill");
  return [args] { return serveCommand(*args); };
}

} // namespace grok::grokrun
