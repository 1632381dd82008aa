#include "cluster/node_bench.hpp"

#include "base/text.hpp"

#include <charconv>

namespace pragma {

namespace {

/// Each holds a reference process with Torch in it: some 300 MB and the task's tensors. On a device there are the processes of three candidates
/// beside it; where that gets too much, make_room().
constexpr size_t kept_benches = 4;

/// A reference that ran out of memory, or a process for candidates that did not start.
bool may_lack_room(const error& e) { return e.code == ec::limit_exceeded || e.code == ec::tool_failed; }

/// What another node may do better. The rest is the candidate's, the task's or the user's.
bool is_nodes_fault(const error& e) {
  switch (e.code) {
    case ec::io_error:
    case ec::tool_failed:
    case ec::not_found:
    case ec::locked:
    case ec::remote_failed:
    case ec::interrupted:
    case ec::no_compiler:
    case ec::busy:
    case ec::internal: return true;
    default: return false;
  }
}

template <class T> expected<json> as_json(const expected<T>& value) {
  if (!value) return fail(value.error());
  return json(*value);
}

} // namespace

std::shared_ptr<node_bench::bench> node_bench::bench_of(const std::string& run) {
  const std::lock_guard lock(mutex_);
  auto& mine = benches_[run];
  if (!mine) {
    mine = std::make_shared<bench>();
    mine->cancel = cancelled_;
    std::erase_if(all_, [](const auto& one) { return one.expired(); });
    all_.push_back(mine);
    mine->work = std::make_shared<workbench>(&mine->cancel);
  }
  mine->used = ++uses_;
  const auto found = mine;
  while (benches_.size() > kept_benches) // one that is at work lives on in its own hands
    benches_.erase(std::min_element(benches_.begin(), benches_.end(), [](const auto& a, const auto& b) { return a.second->used < b.second->used; }));
  return found;
}

void node_bench::forget(const std::string& run) {
  std::shared_ptr<bench> last; // ended outside the lock
  const std::lock_guard lock(mutex_);
  if (const auto found = benches_.find(run); found != benches_.end()) {
    last = std::move(found->second);
    last->cancel = true;
    benches_.erase(found);
  }
}

void node_bench::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (const auto& one : all_)
    if (const auto at_work = one.lock()) at_work->cancel = true;
}

void node_bench::begin() {
  const std::lock_guard lock(mutex_);
  cancelled_ = false;
  for (const auto& [run, one] : benches_) one->cancel = false; // nothing is under way
}

size_t node_bench::make_room(const std::string& device, const std::string& but_for_run) {
  std::vector<std::shared_ptr<bench>> gone; // ended outside the lock; one that is at work lives on in its own hands
  const std::lock_guard lock(mutex_);
  for (auto it = benches_.begin(); it != benches_.end();) {
    const bool here = it->first != but_for_run && it->second->device == device;
    if (here) gone.push_back(std::move(it->second));
    it = here ? benches_.erase(it) : std::next(it);
  }
  return gone.size();
}

expected<load_request> on_leased(load_request request, const std::string& device) {
  const auto colon = device.find(':');
  if (device.substr(0, colon) != request.backend)
    return fail(ec::invalid_argument, "the order is for backend " + printable(request.backend) + ", and its device is " + printable(device));
  request.device = 0;
  if (colon == std::string::npos) return request;
  const char* const end = device.data() + device.size();
  const auto read = std::from_chars(device.data() + colon + 1, end, request.device);
  if (read.ec != std::errc() || read.ptr != end || request.device < 0) return fail(ec::invalid_argument, "no device is called " + printable(device));
  return request;
}

expected<json> node_bench::do_order(const work_order& order, const std::string& device) {
  if (order.kind == "none") return json(true); // what it costs to ask (bench/cluster_overhead)
  const auto mine = bench_of(order.run);
  const auto load = [&]() -> expected<loaded_task> {
    auto file = keep_task_text(order.task, folder_);
    if (!file) return fail(file.error());
    auto request = on_leased(order.load, device);
    if (!request) return fail(request.error());
    request->path = file->string();
    {
      const std::lock_guard lock(mutex_);
      mine->device = device;
    }
    auto loaded = mine->work->load(*request);
    mine->loaded = loaded.has_value();
    return loaded;
  };
  {
    const std::lock_guard lock(mine->loading);
    if (order.kind == "load") return as_json(load());
    if (!mine->loaded || mine->device != device) // it may have lived on another device of this node
      if (auto loaded = load(); !loaded) return fail(loaded.error());
  }
  if (order.kind == "verify") return as_json(mine->work->verify(order.candidate));
  if (order.kind == "measure") return as_json(mine->work->measure(order.measure));
  if (order.kind == "confirm") return as_json(mine->work->confirm(order.candidate));
  return fail(ec::unsupported, "this node knows no work called " + printable(order.kind), "all members should run the same version");
}

work_answer node_bench::perform(const work_order& order, const std::string& device) {
  work_answer answer;
  answer.job = order.job;
  answer.ticket = order.ticket;
  answer.node = node_;
  answer.device = device;
  expected<json> done;
  try {
    done = do_order(order, device);
    if (!done && may_lack_room(done.error()) && device != "cpu" && make_room(device, order.run) > 0) done = do_order(order, device);
  } catch (const std::exception& e) { // of a library; an order must not take the node with it
    done = fail(ec::internal, std::string("unexpected: ") + e.what());
  }
  if (done && json::to_cbor(*done).size() > max_message_bytes * 3 / 4)
    done = fail(ec::limit_exceeded, "the answer to " + order.kind + " is longer than a message may be");
  if (done) {
    answer.result = std::move(*done);
  } else {
    answer.failure = failure::of(done.error());
    answer.node_at_fault = is_nodes_fault(done.error());
  }
  return answer;
}

} // namespace pragma
