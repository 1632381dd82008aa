#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
  // A head that the user works with is none of the tests' business.
  ::unsetenv("PRAGMA_HEAD");
  ::unsetenv("PRAGMA_TLS");
  return Catch::Session().run(argc, argv);
}
