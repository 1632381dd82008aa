// How many threads Torch has, as both timed sides and the check of drop-ins give it. Beside sandbox/allocator.hpp, for the same processes.
#pragma once

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pragma {

/// Variables of a process of Torch's from its start: its pools read them then, and not all of them follow torch.set_num_threads() (OpenBLAS's does not).
inline std::vector<std::pair<std::string, std::string>> environment_of_threads(int threads) {
  const auto count = std::to_string(std::max(1, threads));
  // libgomp's spinning fights OpenBLAS's own pool of threads; where one thread is timed, it takes the other processors after each oracle, which uses all of them.
  std::vector<std::pair<std::string, std::string>> env = {{"OMP_NUM_THREADS", count}, {"OPENBLAS_NUM_THREADS", count}, {"MKL_NUM_THREADS", count}, {"GOMP_SPINCOUNT", "1000"}};
  // OpenBLAS's threads look out for their next product for more than 100 ms: where every processor is asked for, they would take those of who is timed next. Products take as long without it.
  if (threads >= static_cast<int>(std::thread::hardware_concurrency())) env.emplace_back("OPENBLAS_THREAD_TIMEOUT", "4");
  return env;
}

} // namespace pragma
