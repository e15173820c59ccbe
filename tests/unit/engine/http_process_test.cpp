// The HTTP API of a real process.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/unit/engine/stage_process.hpp"

namespace troika {
namespace {

using nlohmann::json;

class Http : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    replica_ = std::make_unique<Replica>(
        3, std::vector<std::string>{"--max-running", "2", "--context-length", "512"});
    ASSERT_TRUE(replica_->ready());
  }
  static void TearDownTestSuite() { replica_.reset(); }
  static int port() { return replica_->port(); }

  // The figure follows a disconnect without a fixed time; each look is a request of its own.
  static bool reaches(const std::string& name, long value) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      if (metric(port(), name) == value) return true;
      std::this_thread::yield();
    }
    return false;
  }

  static std::unique_ptr<Replica> replica_;
};

std::unique_ptr<Replica> Http::replica_;

std::vector<json> events(const std::string& body) {
  std::vector<json> out;
  for (std::size_t at = 0; at < body.size();) {
    const auto end = body.find("\n\n", at);
    if (end == std::string::npos) break;
    const auto line = body.substr(at, end - at);
    EXPECT_EQ(line.rfind("data: ", 0), 0U) << line;
    out.push_back(line == "data: [DONE]" ? json("DONE") : json::parse(line.substr(6)));
    at = end + 2;
  }
  return out;
}

TEST_F(Http, AStreamHasRoleTextFinishUsageAndDone) {
  const auto answer =
      post(port(), "/v1/chat/completions",
           R"({"stream":true,"stream_options":{"include_usage":true},"temperature":0,"max_tokens":12,
                               "ignore_eos":true,"messages":[{"role":"user","content":"What is a stage?"}]})");
  ASSERT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("text/event-stream"), std::string::npos);
  const auto list = events(answer.body);
  ASSERT_GE(list.size(), 5U);
  EXPECT_EQ(list.front()["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(list.back(), "DONE");
  EXPECT_EQ(list[list.size() - 2]["usage"]["completion_tokens"], 12);
  EXPECT_EQ(list[list.size() - 3]["choices"][0]["finish_reason"], "length");
  std::string text;
  for (const auto& event : list) {
    if (event.is_object() && !event["choices"].empty())
      text += event["choices"][0]["delta"].value("content", "");
  }
  const auto whole = post(port(), "/v1/chat/completions",
                          R"({"temperature":0,"max_tokens":12,"ignore_eos":true,
                              "messages":[{"role":"user","content":"What is a stage?"}]})");
  EXPECT_EQ(whole.json()["choices"][0]["message"]["content"], text);
}

TEST_F(Http, ADisconnectFreesTheSlotAndTheCache) {
  const auto aborted = metric(port(), "requests_aborted_total");
  {
    RawConnection stream(port());
    stream.send(post_text("/v1/chat/completions",
                          R"({"stream":true,"ignore_eos":true,"messages":[{"role":"user","content":"x"}]})"));
    ASSERT_TRUE(stream.read_until("delta"));
    EXPECT_TRUE(reaches("requests_running", 1));
  }
  EXPECT_TRUE(reaches("requests_aborted_total", aborted + 1));
  EXPECT_TRUE(reaches("requests_running", 0));
  EXPECT_TRUE(reaches("kv_tokens_used", 0));
}

TEST_F(Http, ADisconnectBeforeTheAnswerFreesTheSlotToo) {
  const auto aborted = metric(port(), "requests_aborted_total");
  {
    RawConnection whole(port());
    whole.send(post_text("/v1/completions", R"({"prompt":"x","max_tokens":500,"ignore_eos":true})"));
    EXPECT_TRUE(reaches("requests_running", 1));
  }
  EXPECT_TRUE(reaches("requests_aborted_total", aborted + 1));
  EXPECT_TRUE(reaches("kv_tokens_used", 0));
}

TEST_F(Http, MoreRequestsThanSlotsAllGetTheirAnswers) {
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < 7; ++i) {
    connections.push_back(std::make_unique<RawConnection>(port()));
    connections.back()->send(
        post_text("/v1/completions", R"({"prompt":"number )" + std::to_string(i % 2) +
                                         R"(","max_tokens":20,"temperature":0,"ignore_eos":true})"));
  }
  std::vector<std::string> texts;
  for (auto& connection : connections) {
    const auto all = connection->read_all();
    const auto document = json::parse(all.substr(all.find("\r\n\r\n") + 4), nullptr, false);
    ASSERT_TRUE(document.is_object()) << all;
    texts.push_back(document["choices"][0]["text"]);
  }
  for (std::size_t i = 2; i < texts.size(); ++i)
    EXPECT_EQ(texts[i], texts[i % 2]) << "the batch changed the answer";
  EXPECT_NE(texts[0], texts[1]);
}

TEST_F(Http, BadRequestsGetErrorsInOpenAisForm) {
  const std::string many(2000, 'z');
  for (const auto& [path, body, status] : std::vector<std::tuple<std::string, std::string, int>>{
           {"/v1/chat/completions", "{", 400},
           {"/v1/chat/completions", "[]", 400},
           {"/v1/chat/completions", "{}", 400},
           {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"temperature":"hot"})",
            400},
           {"/v1/completions", "{}", 400},
           {"/v1/completions", R"({"prompt":")" + many + R"("})", 400},
           {"/v1/completions", R"({"prompt":"x","max_tokens":1000})", 400},
           {"/nothing", "{}", 404},
           {"/health", "{}", 405}}) {
    const auto answer = post(port(), path, body);
    EXPECT_EQ(answer.status, status) << path << body.substr(0, 60);
    EXPECT_TRUE(answer.json()["error"]["message"].is_string()) << answer.body;
    EXPECT_TRUE(answer.json()["error"].contains("code"));
  }
  const auto over = post(port(), "/v1/completions", R"({"prompt":"x","max_tokens":1000})");
  EXPECT_EQ(over.json()["error"]["code"], "context_length_exceeded");
  EXPECT_NE(over.json()["error"]["message"].get<std::string>().find("512"), std::string::npos);
  EXPECT_EQ(get(port(), "/v1/chat/completions").status, 405);
}

TEST_F(Http, GarbageOversizeAndSlowHeadersEndWithAnErrorNotACrash) {
  for (const std::string& bytes :
       {std::string("\x16\x03\x01 not http\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        "GET / HTTP/1.1\r\nX: " + std::string(40'000, 'y') + "\r\n\r\n",
        std::string("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")}) {
    RawConnection connection(port());
    connection.send(bytes);
    const auto answer = connection.read_all();
    EXPECT_EQ(answer.rfind("HTTP/1.1 4", 0), 0U) << answer.substr(0, 80);
  }
  EXPECT_EQ(get(port(), "/health").status, 200);
}

TEST_F(Http, AConnectionServesSeveralRequests) {
  RawConnection connection(port());
  const std::string body = R"({"prompt":"x","max_tokens":3,"stream":true})";
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  connection.send(request);
  ASSERT_TRUE(connection.read_until("[DONE]\n\n\r\n0\r\n\r\n"));
  connection.send("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(connection.read_until("\"tiny\""));
  connection.send("GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(connection.read_all().rfind("HTTP/1.1 200 OK"), std::string::npos);
}

TEST_F(Http, ServerInfoNamesThePartition) {
  const auto info = get(port(), "/server_info").json();
  EXPECT_EQ(info["pp_layer_partition"], json({2, 2, 1}));
  EXPECT_EQ(info["pp_size"], 3);
  EXPECT_EQ(info["model"], "tiny");
  EXPECT_EQ(info["replica"], "a");
  EXPECT_EQ(info["epoch"], 7);
  EXPECT_EQ(info["context_length"], 512);
  EXPECT_EQ(info["max_running_requests"], 2);
  EXPECT_GT(info["max_total_num_tokens"], 512);
  const auto models = get(port(), "/v1/models").json();
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  const auto metrics = get(port(), "/metrics");
  for (const char* name :
       {"prompt_tokens_total", "generation_tokens_total", "requests_total", "requests_aborted_total",
        "requests_running", "requests_waiting", "kv_tokens_used", "kv_tokens_capacity"}) {
    EXPECT_NE(metrics.body.find(std::string("\n# TYPE troika_stage_") + name), std::string::npos) << name;
    EXPECT_GE(metric(port(), name), 0) << name;
  }
}

TEST_F(Http, StopStringsEndTheText) {
  const auto whole = post(port(), "/v1/completions",
                          R"({"prompt":"The","max_tokens":60,"temperature":0,"ignore_eos":true})");
  const auto text = whole.json()["choices"][0]["text"].get<std::string>();
  ASSERT_GT(text.size(), 20U);
  std::size_t at = 10;
  while ((static_cast<unsigned char>(text[at]) & 0x80U) != 0 ||
         (static_cast<unsigned char>(text[at + 1]) & 0x80U) != 0)
    ++at;
  const auto stop = text.substr(at, 2);
  const auto stopped = post(
      port(), "/v1/completions",
      json{{"prompt", "The"}, {"max_tokens", 60}, {"temperature", 0}, {"ignore_eos", true}, {"stop", stop}}
          .dump());
  EXPECT_EQ(stopped.json()["choices"][0]["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped.json()["choices"][0]["finish_reason"], "stop");
}

}  // namespace
}  // namespace troika
