// Writes made-up reports into the folder that is named, for the browser's test.
#include "base/files.hpp"
#include "cli/report.hpp"
#include "made_up_report.hpp"

#include <iostream>

int main(int, char** argv) {
  using namespace pragma;
  auto full_of_markup = test::sample();
  for (auto& it : full_of_markup["iterations"]) it["log"] = it["reason"] = it["code"]["source"] = it["code"]["rationale"] = test::hostile;
  full_of_markup["run"]["task"]["name"] = full_of_markup["run"]["task"]["source"] = full_of_markup["run"]["stop_reason"] = test::hostile;
  auto unconfirmed = test::sample();
  unconfirmed["run"].erase("final");
  std::vector<iteration_record> many;
  for (int i = 1; i <= 120; ++i) many.push_back(i % 9 == 4 ? test::failed(i, verdict_stage::compare, "a wrong element") : test::attempt(i, 1 + 0.02 * i, i % 3 == 0));
  const std::pair<const char*, std::string> pages[] = {{"report.html", render_html_report(test::sample())}, {"hostile.html", render_html_report(full_of_markup)},
                                                       {"unconfirmed.html", render_html_report(unconfirmed)}, {"many.html", render_html_report(test::document_of(many, 120))},
                                                       {"bench.html", render_suite_html(test::sample_suite("a folder"))}, {"bench-hostile.html", render_suite_html(test::sample_suite(test::hostile))}};
  for (const auto& [name, page] : pages)
    if (auto written = write_file_atomic(std::filesystem::path(argv[1]) / name, page); !written) {
      std::cerr << render(written.error()) << "\n";
      return exit_code(written.error().code);
    }
}
