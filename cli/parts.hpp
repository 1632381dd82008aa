// A run of a whole task: by one kernel, or, where none can compute all of it or none is as fast as Torch's libraries, by kernels for its parts and Torch between
// them. docs/decisions/0031.
#pragma once

#include "cli/engine.hpp"

namespace pragma::cli {

/// Gives who watches a run; asked once for each: the whole's (no title), then those of its parts ("part 1 of 2").
using watch_run = std::function<std::function<void(const run_event&)>(const std::string& title, int attempts)>;

/// engine::run(); then its parts, where that is the way. left_as_it_is: no part of the task is faster with a kernel of ours.
expected<run_result> run_whole(engine& machine, const run_request& request, const watch_run& watch, const std::atomic<bool>& cancel = cancelled());

/// What an error says to who wants a task made faster, before or after it was loaded: left_as_it_is where Torch runs it and no kernel could be called or checked
/// (torch_only), else the error itself.
error for_optimizing(const error& e);

/// Whether parts of a task are tried for which the built-in coder refused to write one kernel, as `why` says; run_whole() decides by the same. left_as_it_is: there is
/// nothing to try, or the request forbids what parts are judged by.
expected<void> can_be_cut(const task& t, const load_request& load, const error& why);

} // namespace pragma::cli
