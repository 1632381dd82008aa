#include "cluster/placed.hpp"

namespace pragma {

namespace {

/// An order of a run, with an id of its own.
work_order order_for(run_place& place, const char* kind) {
  const std::lock_guard lock(place.mutex);
  work_order order;
  order.run = place.run;
  order.kind = kind;
  order.job = place.prefix + "/" + place.run + "/" + std::to_string(++place.jobs) + " " + kind;
  order.task = place.task;
  order.load = place.load;
  order.owner = place.owner;
  order.priority = place.priority;
  return order;
}

job_needs needs_of(run_place& place, bool exclusive) {
  const std::lock_guard lock(place.mutex);
  auto needs = place.needs;
  needs.exclusive = exclusive;
  return needs;
}

void remember_where(run_place& place, const work_answer& answer) {
  const auto where = answer.node + "/" + answer.device;
  std::string said;
  {
    const std::lock_guard lock(place.mutex);
    if (place.where == where || answer.node.empty()) return;
    said = place.where.empty() ? "measured on " + where : "moved from " + place.where + " to " + where + ": earlier times are of another machine";
    place.where = where;
  }
  if (place.say) place.say(said);
}

/// A run that waits for a node which is not there says so.
void say_where_possible(run_place& place, bool possible) {
  {
    const std::lock_guard lock(place.mutex);
    if (std::exchange(place.nowhere, !possible) || possible) return;
  }
  if (place.say) place.say("it waits: no node that is here has what it needs (" + place.needs_text + "); `pragma cluster status` says what each has");
}

/// Has a node do it and hands on what came back. In this process, so the wait needs no limit: the dispatcher gives up where it must.
template <class Result, class Self>
caf::typed_response_promise<Result> hand_out(Self self, cluster_actor cluster, std::shared_ptr<run_place> place, work_order order, bool exclusive,
                                             std::function<void(Result&)> adapt = {}) {
  auto promise = self->template make_response_promise<Result>();
  self->request(cluster, caf::infinite, ask_atom::value, needs_of(*place, exclusive)).then([place](bool possible) { say_where_possible(*place, possible); }, [](const caf::error&) {});
  self->request(cluster, caf::infinite, submit_atom::value, std::move(order), needs_of(*place, exclusive))
      .then(
          [promise, place, exclusive, adapt](const work_answer& answer) mutable {
            auto result = answer.failure.happened() ? expected<Result>(fail(answer.failure.what())) : from_json_value<Result>(answer.result, "the answer of node " + answer.node);
            if (!result) {
              promise.deliver(to_caf(result.error()));
              return;
            }
            if (exclusive) remember_where(*place, answer);
            if (adapt) adapt(*result);
            promise.deliver(std::move(*result));
          },
          [promise](const caf::error& e) mutable { promise.deliver(e); });
  return promise;
}

struct placed_verifier_state {
  static inline const char* name = "verifier";
};
struct placed_profiler_state {
  static inline const char* name = "profiler";
};

verifier_actor::behavior_type placed_verifier(verifier_actor::stateful_pointer<placed_verifier_state> self, cluster_actor cluster,
                                              std::shared_ptr<run_place> place) {
  return {
      [=](load_atom, const load_request& request) {
        {
          const std::lock_guard lock(place->mutex);
          place->load = request;
        }
        // Measures the machine's roofline, and where it happens the run's measurements will be.
        return hand_out<loaded_task>(self, cluster, place, order_for(*place, "load"), true, [place](loaded_task& loaded) { loaded.task.path = place->path; });
      },
      [=](verify_atom, const candidate& c) {
        auto order = order_for(*place, "verify");
        order.candidate = c;
        // On a device a candidate is checked on what others measure: it needs the lease, too. (Building one takes no device, and next to no time.)
        const bool on_device = order.load.where().on_device();
        return hand_out<verdict>(self, cluster, place, std::move(order), on_device);
      },
  };
}

profiler_actor::behavior_type placed_profiler(profiler_actor::stateful_pointer<placed_profiler_state> self, cluster_actor cluster,
                                              std::shared_ptr<run_place> place) {
  return {
      [=](measure_atom, const measure_request& request) {
        auto order = order_for(*place, "measure");
        order.measure = request;
        return hand_out<measurement>(self, cluster, place, std::move(order), true);
      },
      [=](confirm_atom, const candidate& c) {
        auto order = order_for(*place, "confirm");
        order.candidate = c;
        return hand_out<confirmation>(self, cluster, place, std::move(order), true);
      },
  };
}

} // namespace

verifier_actor spawn_placed_verifier(caf::actor_system& system, cluster_actor cluster, std::shared_ptr<run_place> place) {
  return system.spawn(placed_verifier, std::move(cluster), std::move(place));
}
profiler_actor spawn_placed_profiler(caf::actor_system& system, cluster_actor cluster, std::shared_ptr<run_place> place) {
  return system.spawn(placed_profiler, std::move(cluster), std::move(place));
}

} // namespace pragma
