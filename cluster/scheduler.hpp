// The head's agent for users: queues, begins and resumes runs within quotas, tells their news, hands out their records, answers questions.
#pragma once

#include "cluster/wire.hpp"
#include "embeddings/embedder.hpp"
#include "knowledge/library.hpp"
#include "knowledge/run_store.hpp"

#include "cluster/quota.hpp"

#include <filesystem>
#include <memory>

namespace pragma {

struct scheduler_options {
  std::shared_ptr<run_store> store;
  std::filesystem::path tasks;            ///< folder for the texts of tasks
  std::filesystem::path transcripts;      ///< ... and of what models were asked
  library_paths library = library_paths::usual();
  embedding_config embedding;
  const std::atomic<bool>* cancel = nullptr;
  quotas limits;
};

/// `cluster` is filled in before the first message. recover_atom goes on with the runs that an earlier head left.
scheduler_actor spawn_scheduler(caf::actor_system& system, scheduler_options options, std::shared_ptr<cluster_actor> cluster);

} // namespace pragma
