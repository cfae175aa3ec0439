// Lines of the protocol: what is read, and what is refused with which words.
#include "tools/grokrun/serve/Protocol.h"
#include "gtest/gtest.h"

namespace grok::serve {
namespace {

std::string errorOf(std::string_view line) {
  ParsedLine parsed = parseLine(line);
  EXPECT_EQ(parsed.status.code(), absl::StatusCode::kInvalidArgument) << line;
  return std::string(parsed.status.message());
}

TEST(ProtocolTest, ReadsEveryKey) {
  ParsedLine parsed = parseLine(
      R"({"id":"a","ids":[0,2147483647],"max_new_tokens":7,"deadline_ms":1.5,)"
      R"("stream":true,"ignore_eos":true,"temperature":0.5,"seed":18446744073709551615})");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  EXPECT_EQ(parsed.id, "a");
  const WireRequest &request = parsed.request;
  EXPECT_EQ(request.ids, (std::vector<int32_t>{0, 2147483647}));
  EXPECT_EQ(request.maxNew, 7u);
  EXPECT_EQ(request.deadlineMs, 1.5);
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.ignoreEos);
  EXPECT_EQ(request.temperature, 0.5f);
  EXPECT_EQ(request.seed, 18446744073709551615u);
}

TEST(ProtocolTest, EverythingButThePromptHasADefault) {
  for (const char *line :
       {R"({"prompt":"x"})", R"({"prompt":"x","id":null,"seed":null})"}) {
    ParsedLine parsed = parseLine(line);
    ASSERT_TRUE(parsed.status.ok()) << parsed.status;
    EXPECT_TRUE(parsed.id.is_null());
    EXPECT_EQ(parsed.request.prompt, "x");
    EXPECT_EQ(parsed.request.maxNew, 64u);
    EXPECT_FALSE(parsed.request.deadlineMs);
    EXPECT_FALSE(parsed.request.stream);
    EXPECT_FALSE(parsed.request.ignoreEos);
    EXPECT_EQ(parsed.request.temperature, 0);
  }
}

TEST(ProtocolTest, SaysWhatIsWrong) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "request:1:1: "},
      {"{", "request:1:2: "},
      {R"({"ids":[1]} x)", "request:1:13: "},
      {"[1]", "request: found an array of 1, expected an object"},
      {R"({"ids":[1],"ids":[2]})", "key 'ids': found a second time"},
      {"{}", "request: found neither 'ids' nor 'prompt', expected one of them"},
      {R"({"prompt":""})",
       "key 'prompt': found \"\", expected a text of one character or more"},
      {R"({"ids":[1],"prompt":""})", "key 'prompt': found \"\""},
      {R"({"ids":[1],"prompt":"x"})", "found both 'ids' and 'prompt'"},
      {R"({"ids":[]})", "key 'ids': found an array of 0, expected an array of "
                        "one token id or more"},
      {R"({"ids":[1,-2]})",
       "key 'ids': found -2, expected token ids, integers from 0 on"},
      {R"({"ids":[2147483648]})", "key 'ids': found 2147483648"},
      {R"({"ids":[1.5]})", "key 'ids': found 1.5"},
      {R"({"ids":"1"})", "key 'ids': found \"1\", expected an array"},
      {R"({"ids":[1],"max_new_tokens":-1})",
       "key 'max_new_tokens': found -1, expected an integer, 0 or more"},
      {R"({"ids":[1],"deadline_ms":0})",
       "key 'deadline_ms': found 0, expected a positive number, at most 1e+12"},
      {R"({"ids":[1],"deadline_ms":1e13})", "key 'deadline_ms': found 1e+13"},
      {R"({"ids":[1],"temperature":-1})",
       "key 'temperature': found -1, expected 0 (greedy) or a number from "
       "1e-06 "
       "to 1e+06"},
      {R"({"ids":[1],"temperature":1e-40})", "'temperature': found 1e-40, "},
      {R"({"ids":[1],"temperature":1e-320})",
       "'temperature': found 9.99989e-321"},
      {R"({"ids":[1],"temperature":1e38})", "'temperature': found 1e+38, "},
      {R"({"ids":[1],"stream":1})",
       "key 'stream': found 1, expected true or false"},
      {R"({"ids":[1],"id":[]})",
       "key 'id': found an array of 0, expected a string of at most 256 bytes "
       "or an integer"},
      {R"({"ids":[1],"max_tokens":3})",
       "request: found unknown key 'max_tokens'"}};
  for (auto [line, expected] : cases)
    EXPECT_NE(errorOf(line).find(expected), std::string::npos)
        << line << "\n  " << errorOf(line) << "\n  lacks: " << expected;
}

TEST(ProtocolTest, AWrongRequestKeepsItsName) {
  EXPECT_EQ(parseLine(R"({"id":7,"bogus":1})").id, 7);
  EXPECT_EQ(parseLine(R"({"id":"x","ids":3})").id, "x");
  EXPECT_TRUE(parseLine(R"({"id":1.5,"ids":[3]})").id.is_null());
  std::string longest(257, 'x');
  EXPECT_TRUE(parseLine(R"({"id":")" + longest + R"("})").id.is_null());
}

TEST(ProtocolTest, DeepNestingIsRefusedNotFollowed) {
  std::string deep(kMostLineBytes, '[');
  EXPECT_NE(errorOf(deep).find("request:1:"), std::string::npos);
}

TEST(ProtocolTest, WritesOneLineEach) {
  EXPECT_EQ(tokensLine(1, std::vector<int32_t>{5, 6}, std::nullopt),
            "{\"id\":1,\"event\":\"tokens\",\"ids\":[5,6]}\n");
  EXPECT_EQ(tokensLine("a", std::vector<int32_t>{5}, "x\n\xff"),
            "{\"id\":\"a\",\"event\":\"tokens\",\"ids\":[5],\"text\":\"x\\n"
            "\xef\xbf\xbd\"}\n");
  EXPECT_EQ(refusalLine(nullptr, "queue_full", "found"),
            "{\"id\":null,\"event\":\"error\",\"code\":\"queue_full\","
            "\"message\":\"found\"}\n");
}

TEST(ProtocolTest, AnswersSayHowTheyEnded) {
  service::Answer answer;
  answer.ids = {3, 2};
  answer.times = {0.001, 0.0025, 0.0040004};
  EXPECT_EQ(answerLine(1, answer, std::nullopt),
            "{\"id\":1,\"event\":\"done\",\"finish\":\"length\",\"ids\":[3,2],"
            "\"timings\":{\"queue_ms\":1.0,\"first_token_ms\":2.5,"
            "\"total_ms\":4.0}}\n");
  answer.stopped = true;
  EXPECT_NE(answerLine(1, answer, "t")
                .find("\"finish\":\"stop\",\"ids\":[3,2],"
                      "\"text\":\"t\""),
            std::string::npos);
  answer.status = absl::DeadlineExceededError("late");
  answer.times.firstId = 0;
  EXPECT_EQ(answerLine(1, answer, std::nullopt),
            "{\"id\":1,\"event\":\"error\",\"code\":\"deadline_exceeded\","
            "\"message\":\"late\",\"ids\":[3,2],\"timings\":{\"queue_ms\":1.0,"
            "\"first_token_ms\":null,\"total_ms\":4.0}}\n");
  answer.status = absl::InternalError("broken");
  EXPECT_NE(answerLine(1, answer, std::nullopt).find("\"code\":\"internal\""),
            std::string::npos);
}

} // namespace
} // namespace grok::serve
