// Documentation in local folders -> entries as JSON lines, the way `pragma kb build` makes them. For bench/extraction_counts, which
// compares them with what an independent reading of the same files finds, and for retrieval_quality.
//   build_corpus OUT.jsonl STARTER_FOLDER|- GLOSSARY.json NAME=FOLDER[@HARDWARE]...
#include "need.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "knowledge/build.hpp"

#include <cstdio>

using namespace pragma;
using bench::need;

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: build_corpus OUT.jsonl STARTER_FOLDER|- GLOSSARY.json NAME=FOLDER[@HARDWARE]...\n");
    return 2;
  }
  const auto dir = need(temp_dir::create("pragma-corpus"));
  auto store = need(knowledge_store::open(dir.path() / "store", knowledge_store::mode::read_write));
  knowledge_build_options options;
  options.starter = argv[2];
  if (options.starter == "-") {
    options.starter = dir.path() / "no-starter";
    std::filesystem::create_directories(options.starter);
  }
  options.indexes = dir.path() / "indexes";
  options.words = need(parse_glossary(need(read_file(argv[3])), argv[3]));
  for (int i = 4; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    const auto at = argument.find('@');
    if (equals == std::string::npos) {
      std::fprintf(stderr, "no NAME=FOLDER: %s\n", argument.c_str());
      return 2;
    }
    profiler_manifest m;
    m.name = argument.substr(0, equals);
    m.docs.local = {argument.substr(equals + 1, at == std::string::npos ? at : at - equals - 1)};
    if (at != std::string::npos) m.hardware = {argument.substr(at + 1)};
    m.origin = "user";
    need(store.put_manifest(m));
    options.profilers.push_back(std::move(m));
  }
  const auto built = need(build_knowledge(store, options));
  for (const auto& s : built.sources) {
    std::fprintf(stderr, "%s: %lld pages, %lld failed, %lld segments\n", s.profiler.c_str(), static_cast<long long>(s.crawl.fetched),
                 static_cast<long long>(s.crawl.failed), static_cast<long long>(s.segments));
    const auto& c = s.coverage;
    std::fprintf(stderr, "  %lld metrics, %lld options; %lld rows, %lld definitions, %lld records; %lld unread (%.1f %%)%s%s\n", static_cast<long long>(c.metrics),
                 static_cast<long long>(c.options), static_cast<long long>(c.rows), static_cast<long long>(c.definitions), static_cast<long long>(c.records),
                 static_cast<long long>(c.unread), 100 * c.unread_share(), s.problem.empty() ? "" : "; ", s.problem.c_str());
    for (const auto& line : s.failed) std::fprintf(stderr, "  failed %s\n", line.c_str());
  }
  std::string lines;
  need(store.each_entry([&](const entry& e) -> expected<void> {
    lines += json(e).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    return {};
  }));
  need(write_file_atomic(argv[1], lines));
  std::fprintf(stderr, "%lld entries\n", static_cast<long long>(built.compendium.entries));
  return 0;
}
