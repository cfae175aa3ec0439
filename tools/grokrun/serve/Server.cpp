#include "tools/grokrun/serve/Server.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"

namespace grok::serve {
namespace {

/// How long a want of descriptors may last before it is looked at again.
constexpr std::chrono::milliseconds kAcceptPause{100};
/// How long clients have to read their answers when the server stops.
constexpr std::chrono::seconds kFlushTime{5};

/// What the request asked for, not what the executor failed at.
bool isOfRequest(const absl::Status &status) {
  return status.ok() || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status);
}

} // namespace

absl::Status Server::run(int stop) {
  while (!done())
    poll(stop);
  return failure_;
}

bool Server::done() const {
  if (!stopping_ || !pending_.empty())
    return false;
  bool unread = std::ranges::any_of(
      clients_, [](const auto &c) { return c.second.hasOutput(); });
  return !unread || (giveUp_ && Clock::now() >= *giveUp_);
}

/// The descriptors to wait for: stop, outbox, socket, then every client.
std::vector<pollfd> Server::watched(int stop) const {
  std::vector<pollfd> all{
      {stopping_ ? -1 : stop, POLLIN, 0},
      {outbox_.descriptor(), POLLIN, 0},
      {acceptAgain_ ? -1 : socket_.descriptor(), POLLIN, 0}};
  for (const auto &[client, connection] : clients_)
    all.push_back({connection.descriptor(),
                   short((connection.ended() ? 0 : POLLIN) |
                         (connection.hasOutput() ? POLLOUT : 0)),
                   0});
  return all;
}

/// Milliseconds that may pass without an event; -1: any.
int Server::timeout() const {
  std::optional<Clock::time_point> until = giveUp_ ? giveUp_ : acceptAgain_;
  for (const auto &[number, pending] : pending_)
    if (auto end = pending.deadline(); !pending.isEncoded && end)
      until = std::min(until.value_or(*end), *end);
  if (!until)
    return -1;
  auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now());
  return int(std::clamp<int64_t>(left.count(), 0, INT_MAX));
}

void Server::poll(int stop) {
  std::vector<pollfd> all = watched(stop);
  ::poll(all.data(), all.size(), timeout());
  if (acceptAgain_ && Clock::now() >= *acceptAgain_)
    acceptAgain_.reset();
  auto event = all.begin() + 3;
  for (auto &[client, connection] : clients_) {
    const short what = (event++)->revents;
    if (what & POLLOUT)
      connection.flush();
    if (what & POLLIN)
      readFrom(client, connection);
    // Without POLLIN there is nothing left to read, and nobody to write to.
    else if (what & (POLLHUP | POLLERR))
      connection.fail();
  }
  if (all[1].revents)
    takeEvents();
  endLateTexts();
  if (all[0].revents)
    beginStop();
  if (all[2].revents && !stopping_)
    acceptClients();
  dropClients();
  if (stopping_ && pending_.empty() && !giveUp_)
    giveUp_ = Clock::now() + kFlushTime;
}

void Server::beginStop() {
  stopping_ = true;
  // No more can connect, and those whom closing the socket would drop are told.
  ::shutdown(socket_.descriptor(), SHUT_RD);
  const uint64_t known = last_;
  acceptClients();
  for (auto at = clients_.upper_bound(known); at != clients_.end(); ++at)
    readFrom(at->first, at->second);
  acceptAgain_.reset();
  socket_.close();
}

void Server::acceptClients() {
  while (true) {
    Descriptor accepted(
        ::accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted.get() < 0) {
      if (errno == EINTR || errno == ECONNABORTED)
        continue;
      if (errno != EAGAIN) // no descriptor or no memory is left
        acceptAgain_ = Clock::now() + kAcceptPause;
      return;
    }
    Connection connection(std::move(accepted));
    if (clients_.size() < kMostClients)
      clients_.emplace(++last_, std::move(connection));
    else
      connection.write(refusalLine(
          nullptr, "too_many_clients",
          absl::StrCat("found ", clients_.size(),
                       " clients, expected fewer; connect again later")));
  }
}

void Server::readFrom(uint64_t client, Connection &connection) {
  for (const Connection::Line &line : connection.read())
    takeLine(client, connection, line);
}

void Server::takeLine(uint64_t client, Connection &connection,
                      const Connection::Line &line) {
  if (line.tooLong)
    return connection.write(
        refusalLine(nullptr, "line_too_long",
                    absl::StrCat("found a line of more than ", kMostLineBytes,
                                 " bytes, expected at most so many")));
  ParsedLine parsed = parseLine(line.text);
  const nlohmann::json id = parsed.id;
  absl::Status status = parsed.status;
  if (status.ok())
    status = submit(client, std::move(parsed));
  if (!status.ok())
    refuse(connection, id, status);
}

void Server::refuse(Connection &connection, const nlohmann::json &id,
                    const absl::Status &status) {
  connection.write(
      refusalLine(id, refusalCode(status), std::string(status.message())));
}

/// So that one client leaves places to the others.
absl::Status Server::checkShare(uint64_t client) const {
  if (!perClient_)
    return absl::OkStatus();
  const auto own = size_t(std::ranges::count_if(
      pending_, [&](const auto &p) { return p.second.client == client; }));
  if (own < perClient_)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("found ", own,
                   " requests of this client without an answer, expected "
                   "fewer; wait for one of them"));
}

/// Whether the encoder may have the text. One that is too long whatever its ids
/// are does not take its time.
absl::Status Server::checkText(const std::string &prompt) {
  if (!model_.tokenizer)
    return absl::InvalidArgumentError(model_.noTokenizer);
  std::optional<size_t> longest = model_.tokenizer->longestToken();
  if (longest && prompt.size() > *longest * model_.maxSeq)
    return absl::InvalidArgumentError(absl::StrCat(
        "key 'prompt': found ", prompt.size(), " bytes, expected at most ",
        *longest * model_.maxSeq, ", the length in use of ", model_.maxSeq,
        " ids with up to ", *longest, " bytes each; shorten the prompt"));
  return service_.checkRoom(size_t(std::ranges::count_if(
      pending_, [](const auto &p) { return !p.second.isEncoded; })));
}

absl::Status Server::submit(uint64_t client, ParsedLine parsed) {
  if (stopping_)
    return absl::UnavailableError(
        "found a server that is shutting down, expected one that takes "
        "requests; ask another one");
  if (absl::Status status = checkShare(client); !status.ok())
    return status;
  const bool isText = parsed.request.ids.empty();
  if (isText)
    if (absl::Status status = checkText(parsed.request.prompt); !status.ok())
      return status;
  const uint64_t number = ++last_;
  Pending &pending = pending_[number];
  pending.client = client;
  pending.id = std::move(parsed.id);
  pending.received = Clock::now();
  pending.wire = std::move(parsed.request);
  pending.isEncoded = !isText;
  if (isText) {
    encoder_.add(client, number, std::move(pending.wire.prompt));
    return absl::OkStatus();
  }
  if (!pending.wire.ignoreEos && model_.config.eosId >= 0)
    pending.stopIds = {int32_t(model_.config.eosId)};
  absl::Status status = start(number, pending);
  if (!status.ok())
    pending_.erase(number);
  return status;
}

/// What the encoder made of a request's text.
absl::Status Server::takeIds(uint64_t number, Pending &pending,
                             absl::StatusOr<std::vector<int32_t>> ids) {
  pending.isEncoded = true;
  if (!ids.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("key 'prompt': ", std::string(ids.status().message())));
  pending.wire.ids = *std::move(ids);
  if (!pending.wire.ignoreEos)
    pending.stopIds = model_.textStopIds;
  pending.text.emplace(*model_.tokenizer);
  pending.prompt = pending.wire.ids;
  return start(number, pending);
}

/// Gives a request that has its ids to the service.
absl::Status Server::start(uint64_t number, Pending &pending) {
  service::Request request;
  request.ids = std::move(pending.wire.ids);
  request.maxNew = pending.wire.maxNew;
  request.stopIds = pending.stopIds;
  request.temperature = pending.wire.temperature;
  request.seed = pending.wire.seed;
  request.deadline = pending.deadline();
  request.received = pending.received;
  if (pending.wire.stream)
    request.onIds = [&outbox = outbox_, number](std::span<const int32_t> ids) {
      outbox.post({number, {ids.begin(), ids.end()}, {}, {}});
    };
  request.onAnswer = [&outbox = outbox_, number](service::Answer answer) {
    outbox.post({number, {}, std::move(answer), {}});
  };
  return service_.submit(std::move(request), pending.number);
}

/// The service keeps the deadlines of the requests that it has.
void Server::endLateTexts() {
  std::erase_if(pending_, [&](auto &item) {
    auto &[number, pending] = item;
    if (pending.isEncoded || !pending.deadline() ||
        *pending.deadline() > Clock::now())
      return false;
    encoder_.drop(pending.client, number);
    service::Answer answer;
    answer.status = service::deadlineExceeded(0, pending.wire.maxNew);
    answer.times.answered = service::secondsSince(pending.received);
    clients_.at(pending.client).write(answerLine(pending.id, answer, ""));
    return true;
  });
}

void Server::takeEvents() {
  for (Event &event : outbox_.take()) {
    auto pending = pending_.find(event.request);
    if (event.answer && !isOfRequest(event.answer->status) && failure_.ok()) {
      failure_ = event.answer->status;
      beginStop();
    }
    if (pending == pending_.end()) // its client has gone
      continue;
    if (event.prompt) {
      absl::Status status =
          takeIds(event.request, pending->second, *std::move(event.prompt));
      if (!status.ok()) {
        refuse(clients_.at(pending->second.client), pending->second.id, status);
        pending_.erase(pending);
      }
      continue;
    }
    const bool last = event.answer.has_value();
    takeEvent(std::move(event), pending->second);
    if (last)
      pending_.erase(pending);
  }
}

/// Adds to `text` what the ids say; a stop id says nothing.
absl::Status Server::addText(Pending &pending, std::span<const int32_t> ids,
                             bool last, std::string &text) const {
  if (!ids.empty() &&
      std::ranges::find(pending.stopIds, ids.back()) != pending.stopIds.end())
    ids = ids.first(ids.size() - 1);
  // The answer's text goes on from the prompt's, which is not shown.
  absl::StatusOr<std::string> more =
      pending.text->add(std::exchange(pending.prompt, {}), false);
  if (more.ok())
    more = pending.text->add(ids, last);
  if (!more.ok())
    return more.status();
  text = *std::move(more);
  pending.shown += text;
  return absl::OkStatus();
}

void Server::takeEvent(Event event, Pending &pending) {
  Connection &connection = clients_.at(pending.client);
  std::optional<std::string> text;
  if (pending.text) {
    // Ids that were streamed are in the text already.
    std::span<const int32_t> ids = event.ids;
    if (event.answer && !pending.wire.stream)
      ids = event.answer->ids;
    text.emplace();
    if (absl::Status status =
            addText(pending, ids, event.answer.has_value(), *text);
        !status.ok() && event.answer && event.answer->status.ok())
      event.answer->status = std::move(status);
  }
  if (!event.answer)
    return connection.write(tokensLine(pending.id, event.ids, text));
  if (text)
    text = pending.shown;
  connection.write(answerLine(pending.id, *event.answer, text));
}

void Server::cancel(uint64_t number, const Pending &pending) {
  if (pending.isEncoded)
    service_.cancel(pending.number);
  else
    encoder_.drop(pending.client, number);
}

/// Clients that have gone, and those that are done.
void Server::dropClients() {
  std::erase_if(clients_, [&](const auto &item) {
    const auto &[client, connection] = item;
    auto isOf = [&](const auto &p) { return p.second.client == client; };
    if (connection.broken()) {
      for (const auto &p : pending_)
        if (isOf(p))
          cancel(p.first, p.second);
      std::erase_if(pending_, isOf);
      return true;
    }
    return connection.ended() && !connection.hasOutput() &&
           std::ranges::none_of(pending_, isOf);
  });
}

} // namespace grok::serve
