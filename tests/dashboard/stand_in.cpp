// The page with made-up runs, for the browser's test: prints its address; each line on stdin is one attempt more of the run that goes on.
#include "made_up.hpp"

#include <iostream>
#include <thread>

int main(int, char** argv) {
  using namespace pragma;
  web::listen_options options;
  options.secret = web::new_secret();
  auto where = web::listener::open(options);
  if (!where) {
    std::cerr << render(where.error()) << "\n";
    return exit_code(where.error().code);
  }
  test::made_up runs;
  dashboard::serve(*where, runs.source(), argv[1]);
  std::cout << where->address() << "/?token=" << options.secret << std::endl;
  std::atomic<bool> stop = false;
  std::thread server([&] { where->run(stop); });
  for (std::string line; std::getline(std::cin, line);) runs.go_on();
  stop = true;
  server.join();
}
