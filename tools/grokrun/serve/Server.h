// The event loop of grokrun serve: one thread that reads and writes all
// sockets and never waits for one of them; the service's thread computes, the
// encoder's turns texts into ids.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>

#include "runtime/service/Service.h"
#include "tools/grokrun/AnswerText.h"
#include "tools/grokrun/serve/Connection.h"
#include "tools/grokrun/serve/Encoder.h"
#include "tools/grokrun/serve/Outbox.h"
#include "tools/grokrun/serve/Protocol.h"
#include "tools/grokrun/serve/SocketFile.h"

namespace grok::serve {

/// Clients at a time, at most.
inline constexpr size_t kMostClients = 256;

struct Model {
  const ModelConfig &config;
  uint32_t maxSeq;                     // the length in use
  const grokrun::Tokenizer *tokenizer; // null: ids only
  std::string noTokenizer;             // why
  /// After which an answer to a text ends.
  std::vector<int32_t> textStopIds;
};

class Server {
public:
  /// `outbox` must outlive the service's requests, so it was made before it.
  /// `perClient`: requests of one client without an answer at most; 0: any.
  Server(SocketFile &socket, service::Service &service, Outbox &outbox,
         const Model &model, size_t perClient)
      : socket_(socket), service_(service), outbox_(outbox), model_(model),
        perClient_(perClient), encoder_(model.tokenizer, outbox) {}

  /// Serves until `stop` is readable, then answers what was accepted. The error
  /// of the executor, if one ended it.
  absl::Status run(int stop);

private:
  using Clock = service::Clock;
  /// A request without an answer.
  struct Pending {
    uint64_t client = 0;
    nlohmann::json id;
    Clock::time_point received;
    WireRequest wire;      // what the service hasn't got yet
    bool isEncoded = true; // false: the encoder has the text
    uint64_t number = 0;   // the service's
    std::vector<int32_t> stopIds;
    std::optional<grokrun::AnswerText> text; // of a prompt that was one
    std::vector<int32_t> prompt; // that text's, until its ids went into `text`
    std::string shown;           // of the answer so far

    std::optional<Clock::time_point> deadline() const {
      if (!wire.deadlineMs)
        return std::nullopt;
      return service::after(received, *wire.deadlineMs / 1e3);
    }
  };

  void poll(int stop);
  std::vector<pollfd> watched(int stop) const;
  int timeout() const;
  void acceptClients();
  void readFrom(uint64_t client, Connection &connection);
  void takeLine(uint64_t client, Connection &connection,
                const Connection::Line &line);
  absl::Status submit(uint64_t client, ParsedLine parsed);
  absl::Status checkShare(uint64_t client) const;
  absl::Status checkText(const std::string &prompt);
  absl::Status start(uint64_t number, Pending &pending);
  absl::Status takeIds(uint64_t number, Pending &pending,
                       absl::StatusOr<std::vector<int32_t>> ids);
  void endLateTexts();
  static void refuse(Connection &connection, const nlohmann::json &id,
                     const absl::Status &status);
  void cancel(uint64_t number, const Pending &pending);
  void takeEvents();
  void takeEvent(Event event, Pending &pending);
  absl::Status addText(Pending &pending, std::span<const int32_t> ids,
                       bool last, std::string &text) const;
  void dropClients();
  void beginStop();
  bool done() const;

  SocketFile &socket_;
  service::Service &service_;
  Outbox &outbox_;
  const Model &model_;
  const size_t perClient_;
  Encoder encoder_;
  uint64_t last_ = 0; // number given to a client or a request
  std::map<uint64_t, Connection> clients_;
  std::map<uint64_t, Pending> pending_;
  std::optional<Clock::time_point> acceptAgain_; // after a want of descriptors
  std::optional<Clock::time_point> giveUp_;      // while stopping, once all is
                                                 // answered: for slow readers
  bool stopping_ = false;
  absl::Status failure_;
};

} // namespace grok::serve
