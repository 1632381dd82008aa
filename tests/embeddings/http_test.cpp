// An embeddings endpoint over a real socket: what a user notices when it behaves, and when it does not.
#include "base/files.hpp"
#include "embeddings/embedder.hpp"
#include "stub_server.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>

using namespace pragma;
using namespace pragma::test;

namespace {

const char* const secret = "sk-test-0b1c2d3e4f5a69788";

embedding_config config_for(const stub_server& server, int dimension = 3) {
  ::setenv("PRAGMA_TEST_EMBEDDING_KEY", secret, 1);
  embedding_config c;
  c.kind = "http";
  c.base_url = server.url();
  c.model = "stub-embedder";
  c.key_env = "PRAGMA_TEST_EMBEDDING_KEY";
  c.dimension = dimension;
  c.retries = 2;
  c.retry_seconds = 0.01;
  c.timeout_seconds = 10;
  return c;
}

stub_reply reply_of(const json& body) {
  stub_reply r;
  r.headers = {{"Content-Type", "application/json"}};
  r.body = body.dump();
  return r;
}

/// [length of the text, 1, 0, ...] for each text, listed backwards: only "index" says which is which.
stub_reply answer(const stub_request& request, size_t dimension = 3) {
  const auto input = json::parse(request.body)["input"];
  json data = json::array();
  for (size_t i = input.size(); i-- > 0;) {
    std::vector<double> numbers(dimension, 0.0);
    numbers[0] = static_cast<double>(input[i].get<std::string>().size());
    if (dimension > 1) numbers[1] = 1;
    data.push_back({{"index", i}, {"embedding", numbers}});
  }
  json body = {{"object", "list"}};
  body["data"] = std::move(data);
  return reply_of(body);
}

std::unique_ptr<embedder> embedder_of(const embedding_config& c, const std::atomic<bool>* cancel = nullptr) {
  auto e = http_embedder(c, cancel);
  if (!e) FAIL(render(e.error()));
  return std::move(*e);
}

error failure_of(stub_reply reply, int retries = 0) {
  stub_server server([&](const stub_request&, size_t) { return reply; });
  auto c = config_for(server);
  c.retries = retries;
  const std::vector<std::string> texts = {"one", "two"};
  auto rows = embedder_of(c)->embed(texts);
  REQUIRE_FALSE(rows);
  return rows.error();
}

} // namespace

TEST_CASE("vectors come back in the order of the texts, whatever the order of the answer, with length 1") {
  stub_server server([](const stub_request& r, size_t) { return answer(r); });
  const auto e = embedder_of(config_for(server));
  const std::vector<std::string> texts = {"a", "bbb", "", "ccccccc"};
  const auto rows = e->embed(texts);
  REQUIRE(rows);
  REQUIRE(rows->size() == 12);
  CHECK((*rows)[0] == Approx(1 / std::sqrt(2.0)));
  CHECK((*rows)[3] == Approx(3 / std::sqrt(10.0)));
  CHECK((*rows)[6] == 0); // an empty text was not sent: endpoints refuse it
  CHECK((*rows)[7] == 0);
  CHECK((*rows)[9] == Approx(7 / std::sqrt(50.0)));
  CHECK(e->name() == "http stub-embedder 3");

  const auto sent = server.requests().at(0);
  CHECK(sent.method == "POST");
  CHECK(sent.path == "/v1/embeddings");
  CHECK(sent.header("authorization") == std::string("Bearer ") + secret);
  const auto body = json::parse(sent.body);
  CHECK(body["model"] == "stub-embedder");
  CHECK(body["input"] == json::parse(R"(["a", "bbb", "ccccccc"])"));
}

TEST_CASE("many texts go in batches, the dimension is found by one probe") {
  stub_server server([](const stub_request& r, size_t) { return answer(r, 5); });
  auto c = config_for(server, 0);
  c.batch = 4;
  const auto e = embedder_of(c);
  CHECK(e->dimension() == 5);
  CHECK(server.requests().size() == 1);
  const auto rows = e->embed(std::vector<std::string>(10, "text"));
  REQUIRE(rows);
  CHECK(rows->size() == 50);
  CHECK(server.requests().size() == 4);
  CHECK(e->embed(std::vector<std::string>{})->empty());
}

TEST_CASE("a busy endpoint is asked again when it says") {
  stub_server server([](const stub_request& r, size_t n) { return n == 0 ? failure(429, "slow down", {{"Retry-After", "1"}}) : answer(r); });
  auto c = config_for(server);
  c.retry_seconds = 3600; // were this waited for, the test would time out
  const std::vector<std::string> texts = {"x"};
  REQUIRE(embedder_of(c)->embed(texts));
  const auto requests = server.requests();
  REQUIRE(requests.size() == 2);
  CHECK(std::chrono::duration<double>(requests[1].at - requests[0].at).count() >= 0.95);
}

TEST_CASE("an endpoint that asks to wait for an hour is not waited for") {
  stub_server server([](const stub_request&, size_t) { return failure(429, "quota", {{"Retry-After", "3600"}}); });
  const std::vector<std::string> texts = {"x"};
  const auto rows = embedder_of(config_for(server))->embed(texts);
  REQUIRE_FALSE(rows);
  CHECK(server.requests().size() == 1);
  CHECK(rows.error().message.find("quota") != std::string::npos);
  CHECK(rows.error().hint.find("wait") != std::string::npos);
}

TEST_CASE("a passing failure is retried, a lasting one is told with the number of tries") {
  for (const int status : {500, 502, 503, 504}) {
    stub_server server([=](const stub_request& r, size_t n) { return n == 0 ? failure(status, "oops") : answer(r); });
    const std::vector<std::string> texts = {"x"};
    CHECK(embedder_of(config_for(server))->embed(texts));
    CHECK(server.requests().size() == 2);
  }
  stub_reply reset;
  reset.reset = true;
  stub_server once_reset([&](const stub_request& r, size_t n) { return n == 0 ? reset : answer(r); });
  const std::vector<std::string> texts = {"x"};
  CHECK(embedder_of(config_for(once_reset))->embed(texts));

  const auto e = failure_of(failure(500, "always broken"), 2);
  CHECK(e.code == ec::remote_failed);
  CHECK(e.message.find("always broken") != std::string::npos);
  CHECK(e.message.find("3 tries") != std::string::npos);
}

TEST_CASE("a refused key is not retried, and never shown") {
  stub_server server([](const stub_request&, size_t) { return failure(401, std::string("bad key ") + secret); });
  const std::vector<std::string> texts = {"x"};
  const auto rows = embedder_of(config_for(server))->embed(texts);
  REQUIRE_FALSE(rows);
  CHECK(server.requests().size() == 1);
  CHECK(render(rows.error()).find(secret) == std::string::npos);
  CHECK(render(rows.error()).find("PRAGMA_TEST_EMBEDDING_KEY") != std::string::npos);
}

TEST_CASE("an endpoint that says nothing is a timeout, and a cancel ends the wait") {
  stub_reply silent;
  silent.hang = true;
  stub_server server([&](const stub_request&, size_t) { return silent; });
  auto c = config_for(server);
  c.timeout_seconds = 0.2;
  c.retries = 0;
  const std::vector<std::string> texts = {"x"};
  CHECK(embedder_of(c)->embed(texts).error().code == ec::timeout);

  c.timeout_seconds = 60;
  std::atomic<bool> cancel{false};
  const auto e = embedder_of(c, &cancel);
  std::thread canceller([&] {
    server.wait_for_requests(2, 30);
    cancel = true;
  });
  CHECK(e->embed(texts).error().code == ec::interrupted);
  canceller.join();
}

TEST_CASE("answers that are none are refused with what is wrong") {
  stub_reply html;
  html.body = "<html>not an API</html>";
  CHECK(failure_of(html).message.find("JSON") != std::string::npos);
  stub_reply cut;
  cut.body = R"({"data": [{"index": 0, "embedding": [1, 2)";
  CHECK(failure_of(cut).message.find("JSON") != std::string::npos);
  CHECK(failure_of(reply_of(json::parse(R"({"result": 1})"))).message.find("data") != std::string::npos);
  auto vectors = [](std::vector<std::pair<int, std::vector<double>>> rows) {
    json data = json::array();
    for (const auto& [index, numbers] : rows) data.push_back({{"index", index}, {"embedding", numbers}});
    json body = json::object();
    body["data"] = std::move(data);
    return reply_of(body);
  };
  CHECK(failure_of(vectors({{0, {1, 2, 3}}})).message.find("2 texts were sent, 1 vectors") != std::string::npos);
  CHECK(failure_of(vectors({{0, {1, 2, 3}}, {1, {1, 2}}})).message.find("2 dimensions, 3 were expected") != std::string::npos);
  CHECK(failure_of(vectors({{0, {1, 2, 3}}, {0, {1, 2, 3}}})).message.find("two vectors have the index 0") != std::string::npos);
  CHECK(failure_of(vectors({{0, {1, 2, 3}}, {7, {1, 2, 3}}})).message.find("index 7") != std::string::npos);
  CHECK(failure_of(vectors({{0, {1, 2, 3}}, {-1, {1, 2, 3}}})).message.find("index -1") != std::string::npos);
  CHECK(failure_of(reply_of(json::parse(R"({"data": [{"embedding": [1, 2, "x"]}, {"embedding": [1, 2, 3]}]})"))).message.find("finite") != std::string::npos);
  CHECK(failure_of(reply_of(json::parse(R"({"data": [1, 2]})"))).message.find("embedding") != std::string::npos);
}

TEST_CASE("without any index the order is that of the texts") {
  stub_server server({reply_of(json::parse(R"({"data": [{"embedding": [1, 0, 0]}, {"embedding": [0, 1, 0]}]})"))});
  const std::vector<std::string> texts = {"one", "two"};
  const auto rows = embedder_of(config_for(server))->embed(texts);
  REQUIRE(rows);
  CHECK((*rows)[0] == 1);
  CHECK((*rows)[4] == 1);
}

TEST_CASE("an answer far longer than its vectors is cut off") {
  stub_reply endless;
  endless.body = std::string(8 << 20, ' ');
  CHECK(failure_of(endless).code == ec::limit_exceeded);
}

TEST_CASE("the shipped example of embedding settings is valid and names every key") {
  auto text = read_file(std::filesystem::path(TESTS_DIR) / ".." / "configs" / "embeddings.json.example");
  REQUIRE(text);
  auto config = parse_embedding_config(*text, "embeddings.json.example");
  if (!config) FAIL(render(config.error()));
  const auto example = json::parse(*text);
  const json all = embedding_config{};
  for (const auto& [key, value] : all.items()) CHECK(example.contains(key));
}
