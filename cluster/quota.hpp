// What users of a head may have at once: the file quotas.json in its folder, and constraints on nodes as users write them. No CAF.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"
#include "cluster/dispatcher.hpp"

#include <filesystem>
#include <map>

namespace pragma {

struct quotas {
  int running_per_user = 50;              ///< runs at once of one user; more wait in the queue; 0: no limit
  int running = 250;                      ///< ... of all: each costs the head a thread while its coder works
  int queued_per_user = 100;              ///< runs that wait of one user; more are refused
  int queued = 1000;                      ///< ... of all
  int devices_per_user = 0;               ///< leases at once of one user; 0: no limit
  int64_t tokens_per_run = 0;             ///< of language models; 0: no limit
};
PRAGMA_JSON(quotas, running_per_user, running, queued_per_user, queued, devices_per_user, tokens_per_run)

/// The defaults where there is no file; parse_error or invalid_argument for one with a mistake in it.
expected<quotas> read_quotas(const std::filesystem::path& file);

/// "mem>=64G,avx512,cuda>=9.0,tool=perf,arch=sm_90,node=rack1.host7" added to what a job needs. invalid_argument names the word that is none.
expected<job_needs> with_constraints(job_needs needs, const std::string& constraints);

} // namespace pragma
