// Where a head listens, and how it is reached.
#include "cluster/address.hpp"

#include <catch2/catch.hpp>

using namespace pragma;

TEST_CASE("a port where nobody listens is refused, however often it is tried: now and then the system gives it out for the attempt itself") {
  uint16_t port = 40000; // even, as those are that connect() is given
  while (!listen_on({"127.0.0.1", port})) port = static_cast<uint16_t>(port + 2);
  int reached = 0;
  for (int i = 0; i < 60000; ++i) {
    const auto socket = connect_to({"127.0.0.1", port}, 5);
    reached += socket.has_value();
    if (!socket && !refused(socket.error())) FAIL(socket.error().message);
  }
  CHECK(reached == 0);
}
