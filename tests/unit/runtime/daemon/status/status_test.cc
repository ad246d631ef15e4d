// The status server, asked over HTTP, and the text for Prometheus.
#include <httplib.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <fstream>
#include <limits>
#include <thread>

#include "gossip/asio/address.h"
#include "runtime/daemon/status/prometheus_text.h"
#include "runtime/daemon/status/status_server.h"
#include "runtime/daemon/status/status_token.h"
#include "tests/unit/contains.h"
#include "tests/unit/scratch_folder.h"

namespace rumor::daemon {
namespace {

using rumor::test::contains;

std::unique_ptr<StatusServer> serve() {
  Result<std::unique_ptr<StatusServer>> server = StatusServer::start("127.0.0.1:0");
  BOOST_REQUIRE(server.ok());
  return std::move(server).value();
}

httplib::Client client_of(const StatusServer& server) {
  const Result<net::Address> address = net::parse_address(server.address());
  BOOST_REQUIRE(address.ok());
  BOOST_REQUIRE((*address).port != 0);
  return httplib::Client((*address).host, (*address).port);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(status)

BOOST_AUTO_TEST_CASE(what_is_published_is_served) {
  const auto server = serve();
  httplib::Client client = client_of(*server);
  for (const char* path : {"/status", "/metrics", "/history", "/events", "/figures", "/healthz"}) {
    const auto early = client.Get(path);
    BOOST_REQUIRE(early);
    BOOST_TEST(early->status == 503);
  }
  for (const std::string text : {"one", "two"}) {
    server->publish({"{\"n\":\"" + text + "\"}", "rumor_n " + text + "\n", [=] { return "updates of " + text; },
                     "[1]", "[2]", "[3]"});
    const auto status = client.Get("/status"), metrics = client.Get("/metrics"),
               health = client.Get("/healthz");
    BOOST_REQUIRE((status && metrics && health));
    BOOST_TEST(status->status == 200);
    BOOST_TEST(status->body == "{\"n\":\"" + text + "\"}");
    BOOST_TEST(status->get_header_value("Content-Type") == "application/json");
    BOOST_TEST(metrics->body == "rumor_n " + text + "\n");
    BOOST_TEST(metrics->get_header_value("Content-Type").starts_with("text/plain; version=0.0.4"));
    BOOST_TEST(health->body == "ok\n");
    BOOST_TEST(client.Get("/updates")->body == "updates of " + text);
    BOOST_TEST(client.Get("/history")->body == "[1]");
    BOOST_TEST(client.Get("/events")->body == "[2]");
    BOOST_TEST(client.Get("/figures")->body == "[3]");
  }
  BOOST_TEST(client.Get("/nothing")->status == 404);
  BOOST_TEST(client.Post("/status", "x", "text/plain")->status == 404);  // it only reads
}

BOOST_AUTO_TEST_CASE(the_page_stands_alone) {
  const auto server = serve();
  const auto page = client_of(*server).Get("/");
  BOOST_REQUIRE(page);
  BOOST_TEST(page->status == 200);
  BOOST_TEST(page->body.starts_with("<!doctype html>"));
  BOOST_TEST(page->body.ends_with("</html>\n"));
  BOOST_TEST(contains(page->body, "ask(\"/status\""));
  BOOST_TEST(contains(page->body, "prefers-color-scheme: dark"));
  for (const char* foreign : {"https://", "src=", "href=\"page", "innerHTML", "@import"})
    BOOST_TEST(!contains(page->body, foreign), foreign);
  const std::string policy = page->get_header_value("Content-Security-Policy");
  BOOST_TEST(contains(policy, "default-src 'none'; style-src 'sha256-"));
  BOOST_TEST(!contains(policy, "unsafe"));
}

BOOST_AUTO_TEST_CASE(only_this_machine_is_served) {
  for (const char* open : {"0.0.0.0:0", "[::]:0", "example.org:80"}) {
    const auto server = StatusServer::start(open);
    BOOST_REQUIRE(!server.ok());
    BOOST_TEST((server.error().code == Errc::usage));
    BOOST_TEST(contains(server.error().text, "127.0.0.1"));
  }
  BOOST_TEST(StatusServer::start("0.0.0.0:0", "a token of some length").ok());

  const auto server = serve();  // a web page that points its own name here learns nothing
  server->publish({"{}", ""});
  httplib::Client client = client_of(*server);
  BOOST_TEST(client.Get("/status", {{"Host", "evil.example:80"}})->status == 403);
  BOOST_TEST(client.Get("/status", {{"Host", "evil.example"}})->status == 403);
  BOOST_TEST(client.Get("/status", {{"Host", "localhost:9"}})->status == 200);
  BOOST_TEST(client.Get("/status", {{"Host", "[::1]"}})->status == 200);
}

BOOST_AUTO_TEST_CASE(who_has_the_token_is_served) {
  auto started = StatusServer::start("127.0.0.1:0", "0123456789abcdef");
  BOOST_REQUIRE(started.ok());
  (*started)->publish({"{}", "", {}, "", ""});
  httplib::Client client = client_of(**started);
  for (const char* path : {"/status", "/metrics", "/history", "/events", "/figures", "/updates", "/nothing"}) {
    const auto refused = client.Get(path);
    BOOST_TEST(refused->status == 401, path);
    BOOST_TEST(refused->get_header_value("WWW-Authenticate") == "Bearer");
    BOOST_TEST(contains(refused->body, "token"));
  }
  const auto bearer = [&](const std::string& token) {
    return client.Get("/status", {{"Authorization", "Bearer " + token}})->status;
  };
  BOOST_TEST(bearer("0123456789abcdef") == 200);
  for (const char* wrong : {"", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef0", "0123456789ABCDEF"})
    BOOST_TEST(bearer(wrong) == 401, wrong);
  BOOST_TEST(client.Get("/status", {{"Authorization", "Basic 0123456789abcdef"}})->status == 401);
  BOOST_TEST(client.Get("/status?token=0123456789abcdef")->status == 200);
  BOOST_TEST(client.Get("/status?token=0123456789abcde")->status == 401);
  BOOST_TEST(client.Get("/", {{"Host", "my.machine:80"}})->status == 200);  // it holds nothing of the run
  BOOST_TEST(client.Get("/healthz")->status == 200);
  client.set_default_headers({{"Host", "my.machine:80"}});
  BOOST_TEST(bearer("0123456789abcdef") == 200);  // the token keeps strangers out, whatever they call us
}

BOOST_AUTO_TEST_CASE(a_token_is_long_and_printable) {
  Scratch scratch;
  const auto read = [&](const std::string& text) {
    std::ofstream(scratch.path("token"), std::ios::binary) << text;
    return read_status_token(scratch.path("token"));
  };
  BOOST_TEST(*read("0123456789abcdef\n") == "0123456789abcdef");
  BOOST_TEST(*read("0123456789abcdef\r\nsecond line\n") == "0123456789abcdef");
  for (const std::string& bad : {std::string(), std::string("short\n"), std::string("with a blank in between\n"),
                                std::string("\n0123456789abcdef\n"), std::string(257, 'x')}) {
    const auto token = read(bad);
    BOOST_REQUIRE(!token.ok());
    BOOST_TEST((token.error().code == Errc::usage));
    BOOST_TEST(contains(token.error().text, "openssl rand"));
  }
  BOOST_TEST((read_status_token(scratch.path("none")).error().code == Errc::not_found));
}

BOOST_AUTO_TEST_CASE(a_port_in_use_is_named) {
  const auto first = serve();
  const auto second = StatusServer::start(first->address());
  BOOST_REQUIRE(!second.ok());
  BOOST_TEST(second.error().text == "cannot serve status on " + first->address() +
                                        ": address already in use; choose another with --status");
  BOOST_TEST((StatusServer::start("127.0.0.1").error().code == Errc::usage));
}

BOOST_AUTO_TEST_CASE(it_stops_quickly_and_frees_its_port) {
  auto server = serve();
  const std::string address = server->address();
  server->publish({"{}", ""});
  httplib::Client client = client_of(*server);
  client.set_keep_alive(true);  // a browser would; the server does not hold on to it
  BOOST_REQUIRE(client.Get("/status"));
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(300)));
  BOOST_TEST(StatusServer::start(address).ok());
}

BOOST_AUTO_TEST_CASE(a_dawdling_client_holds_nobody_up_for_long) {
  auto server = serve();
  server->publish({"{}", ""});
  asio::io_context io;
  asio::ip::tcp::socket silent(io), half(io);
  const auto port = (*net::parse_address(server->address())).port;
  silent.connect({asio::ip::make_address("127.0.0.1"), port});
  half.connect({asio::ip::make_address("127.0.0.1"), port});
  asio::write(half, asio::buffer(std::string("GET /sta")));
  BOOST_TEST(client_of(*server).Get("/status")->status == 200);
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(2500)));
}

BOOST_AUTO_TEST_CASE(publishing_and_reading_do_not_disturb_each_other) {
  const auto server = serve();
  server->publish({"[0,0]", ""});
  std::atomic<bool> stop = false;
  std::thread publisher([&] {
    for (int n = 1; !stop; ++n) {
      const std::string number = std::to_string(n);
      server->publish({"[" + number + "," + number + "]", number});
    }
  });
  httplib::Client client = client_of(*server);
  for (int i = 0; i < 50; ++i) {
    const auto answer = client.Get("/status");
    BOOST_REQUIRE(answer);
    const std::string& body = answer->body;
    const std::size_t comma = body.find(',');
    BOOST_TEST(body.substr(1, comma - 1) == body.substr(comma + 1, body.size() - comma - 2));
  }
  stop = true;
  publisher.join();
}

BOOST_AUTO_TEST_CASE(prometheus_text_follows_its_format) {
  PrometheusText out;
  out.gauge("rumor_links", "Admitted links.", 3);
  out.counter("rumor_sent_bytes_total", "Bytes \\ sent\nin all.", 1234567890123.0, {{"kind", "a\"b\\c\nd"}});
  out.counter("rumor_sent_bytes_total", "Bytes \\ sent\nin all.", 0.5, {{"kind", "x"}, {"peer", "y"}});
  out.gauge("rumor_loss", "Loss.", std::numeric_limits<double>::quiet_NaN());
  out.gauge("rumor_bound", "Bound.", -std::numeric_limits<double>::infinity());
  BOOST_TEST(out.text() ==
             "# HELP rumor_links Admitted links.\n"
             "# TYPE rumor_links gauge\n"
             "rumor_links 3\n"
             "# HELP rumor_sent_bytes_total Bytes \\\\ sent\\nin all.\n"
             "# TYPE rumor_sent_bytes_total counter\n"
             "rumor_sent_bytes_total{kind=\"a\\\"b\\\\c\\nd\"} 1234567890123\n"
             "rumor_sent_bytes_total{kind=\"x\",peer=\"y\"} 0.5\n"
             "# HELP rumor_loss Loss.\n"
             "# TYPE rumor_loss gauge\n"
             "rumor_loss NaN\n"
             "# HELP rumor_bound Bound.\n"
             "# TYPE rumor_bound gauge\n"
             "rumor_bound -Inf\n");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon
