#include "actors/resident.hpp"

#include "base/files.hpp"
#include "base/hash.hpp"
#include "devices/device_lease.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <thread>

namespace pragma {

namespace {

/// The task file and what may stand beside it.
std::string content_of(const std::string& path) {
  const auto text = read_file(path);
  const auto sidecar = read_file(std::filesystem::path(path).replace_extension(".json"));
  return sha256_hex((text ? *text : "") + '\0' + (sidecar ? *sidecar : ""));
}

} // namespace

/// One task and the thread that all its processes were started by: they die with it.
struct resident::task_thread {
  struct job {
    examine_request request;
    std::function<void(const std::string&)> on_step;
    const std::atomic<bool>* cancelled = nullptr;
    bool over = false;
    expected<result> answer = fail(ec::interrupted, "cancelled");
  };

  explicit task_thread(load_request request, std::string about, double idle) : load(std::move(request)), key(std::move(about)), idle_seconds(idle) {
    thread = std::thread([this] { work(); });
  }
  ~task_thread() {
    {
      const std::lock_guard lock(mutex);
      leaving = true;
    }
    changed.notify_all();
    thread.join();
  }

  expected<result> ask(const std::shared_ptr<job>& wanted) {
    std::unique_lock lock(mutex);
    jobs.push_back(wanted);
    changed.notify_all();
    while (!wanted->over) {
      changed.wait_for(lock, std::chrono::milliseconds(50));
      if (wanted->over || !*wanted->cancelled) continue;
      if (current == wanted) cancel = true; // the workbench looks at it
      else if (std::erase(jobs, wanted) > 0) return fail(ec::interrupted, "cancelled before it began");
    }
    return std::move(wanted->answer);
  }

  bool busy() {
    const std::lock_guard lock(mutex);
    return current || !jobs.empty();
  }

  void work() {
    std::unique_lock lock(mutex);
    while (!leaving) {
      if (jobs.empty()) {
        if (changed.wait_for(lock, std::chrono::duration<double>(idle_seconds)) == std::cv_status::timeout && jobs.empty()) bench.reset();
        continue;
      }
      current = jobs.front();
      jobs.pop_front();
      cancel = false;
      lock.unlock();
      auto answer = guarded(*current);
      lock.lock();
      current->answer = std::move(answer);
      current->over = true;
      current.reset();
      changed.notify_all();
    }
  }

  /// The next question finds a thread that lives, whatever a library throws.
  expected<result> guarded(const job& wanted) {
    try {
      return one(wanted);
    } catch (const std::exception& e) {
      bench.reset();
      return fail(ec::internal, std::string("the examination failed: ") + e.what());
    }
  }

  expected<result> one(const job& wanted) {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    const auto about = content_of(load.path);
    const bool warm = bench && about == content;
    if (!warm) {
      bench = std::make_unique<workbench>(&cancel, true, lease_file({}));
      if (wanted.on_step) wanted.on_step("starting the Torch reference and reading the task");
      auto read = load_checked(*bench, load);
      if (!read) {
        bench.reset();
        return fail(read.error());
      }
      loaded = std::move(*read);
      content = about;
    }
    auto found = pragma::examine(*bench, loaded, load, wanted.request, wanted.on_step);
    if (!found) return fail(cancel ? error{ec::interrupted, "cancelled", ""} : found.error());
    return result{std::move(*found), warm, std::chrono::duration<double>(clock::now() - start).count()};
  }

  const load_request load;
  const std::string key;
  const double idle_seconds;
  std::atomic<bool> cancel = false;
  std::unique_ptr<workbench> bench;     ///< of the thread alone, as are the two below
  loaded_task loaded;
  std::string content;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<job>> jobs;
  std::shared_ptr<job> current;
  bool leaving = false;
  std::thread thread;
};

resident::resident(options limits) : limits_(limits) {}
resident::~resident() = default;

std::shared_ptr<resident::task_thread> resident::thread_of(const load_request& load, error& refused) {
  const auto key = json(load).dump(-1, ' ', false, json::error_handler_t::replace);
  std::shared_ptr<task_thread> dropped; // its processes end after the lock is given back
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& t) { return t->key == key; });
  if (known != tasks_.end()) {
    std::rotate(tasks_.begin(), known, known + 1);
    return tasks_.front();
  }
  if (tasks_.size() >= limits_.most_tasks) {
    const auto idle = std::find_if(tasks_.rbegin(), tasks_.rend(), [](const auto& t) { return t.use_count() == 1 && !t->busy(); });
    if (idle == tasks_.rend()) {
      refused = {ec::limit_exceeded, std::to_string(tasks_.size()) + " tasks are being worked on, and no more are kept loaded", "wait for one of them"};
      return nullptr;
    }
    dropped = *idle;
    tasks_.erase(std::next(idle).base());
  }
  tasks_.insert(tasks_.begin(), std::make_shared<task_thread>(load, key, limits_.idle_seconds));
  return tasks_.front();
}

expected<resident::result> resident::examine(const load_request& load, const examine_request& request, const std::atomic<bool>& cancelled,
                                             const std::function<void(const std::string&)>& on_step) {
  error refused;
  const auto thread = thread_of(load, refused);
  if (!thread) return fail(refused);
  auto wanted = std::make_shared<task_thread::job>();
  wanted->request = request;
  wanted->on_step = on_step;
  wanted->cancelled = &cancelled;
  return thread->ask(wanted);
}

} // namespace pragma
