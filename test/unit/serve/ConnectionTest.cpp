// One client's lines, however they are cut, and a client that does not read.
#include <sys/socket.h>

#include "tools/grokrun/serve/Connection.h"
#include "tools/grokrun/serve/Protocol.h"
#include "gtest/gtest.h"

namespace grok::serve {
namespace {

class ConnectionTest : public testing::Test {
protected:
  ConnectionTest() {
    int both[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
    client = Descriptor(both[0]);
    connection.emplace(Descriptor(both[1]));
  }
  void send(std::string_view bytes) {
    ASSERT_EQ(::send(client.get(), bytes.data(), bytes.size(), 0),
              ssize_t(bytes.size()));
  }
  /// The texts of the lines that are complete; "!" of one that is too long.
  std::vector<std::string> read() {
    std::vector<std::string> texts;
    for (const Connection::Line &line : connection->read())
      texts.push_back(line.tooLong ? "!" : line.text);
    return texts;
  }
  using Texts = std::vector<std::string>;

  Descriptor client;
  std::optional<Connection> connection;
};

TEST_F(ConnectionTest, LinesComeWholeHoweverTheyAreCut) {
  send("ab");
  EXPECT_EQ(read(), Texts{});
  send("c\n\nd\ne");
  EXPECT_EQ(read(), (Texts{"abc", "", "d"}));
  send("f\n");
  EXPECT_EQ(read(), Texts{"ef"});
  EXPECT_EQ(read(), Texts{}); // nothing there: no wait
  EXPECT_FALSE(connection->ended());
}

TEST_F(ConnectionTest, ALineThatIsTooLongIsSkippedToItsEnd) {
  const std::string part(1 << 15, 'x');
  Texts texts;
  for (size_t sent = 0; sent <= 2 * kMostLineBytes; sent += part.size()) {
    send(part);
    for (const std::string &text : read())
      texts.push_back(text);
  }
  EXPECT_EQ(texts, Texts{"!"});
  send("x\nnext\n");
  EXPECT_EQ(read(), Texts{"next"});
}

TEST_F(ConnectionTest, TheLongestLineIsTaken) {
  const std::string part(1 << 15, 'x');
  for (size_t sent = 0; sent != kMostLineBytes; sent += part.size()) {
    send(part);
    EXPECT_EQ(read(), Texts{});
  }
  send("\n");
  Texts texts = read();
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_EQ(texts[0].size(), kMostLineBytes);
}

TEST_F(ConnectionTest, AClientThatSendsNoMoreMayStillRead) {
  send("last\n");
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(read(), Texts{"last"});
  EXPECT_EQ(read(), Texts{});
  EXPECT_TRUE(connection->ended());
  EXPECT_FALSE(connection->broken());
  connection->write("answer\n");
  char bytes[16];
  EXPECT_EQ(::recv(client.get(), bytes, sizeof bytes, 0), 7);
}

TEST_F(ConnectionTest, AClientThatDoesNotReadIsGivenUpAtABound) {
  const std::string line(1 << 16, 'x');
  size_t written = 0;
  for (; !connection->broken(); written += line.size())
    connection->write(line);
  EXPECT_GT(written, kMostOutputBytes);
  EXPECT_LT(written, 2 * kMostOutputBytes); // the socket's own buffer is small
}

TEST_F(ConnectionTest, WhatWaitsIsWrittenInOrder) {
  std::string expected;
  for (int i = 0; i != 4000; ++i) {
    std::string line(200, char('a' + i % 26));
    connection->write(line);
    expected += line;
  }
  EXPECT_TRUE(connection->hasOutput());
  std::string got;
  while (got.size() < expected.size()) {
    char bytes[50000];
    ssize_t n = ::recv(client.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0)
      got.append(bytes, size_t(n));
    connection->flush();
  }
  EXPECT_EQ(got, expected);
  EXPECT_FALSE(connection->hasOutput());
}

TEST_F(ConnectionTest, AClientThatHasGoneIsNoticed) {
  client.reset();
  connection->write("answer\n");
  EXPECT_TRUE(connection->broken());
}

} // namespace
} // namespace grok::serve
