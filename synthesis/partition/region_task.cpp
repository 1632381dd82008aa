// The text of a part's task: the template in reference/python, with the whole task, its graph and what is cut out of it.
#include "synthesis/partition/cut.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

namespace pragma::synthesis {

namespace {

/// A string of Python's, whatever is in it: JSON's escapes of ASCII text are Python's too.
std::string literal(const json& value) { return json(value.dump(-1, ' ', true, json::error_handler_t::replace)).dump(); }

std::string argument(const std::string& id) {
  std::string name = "t_";
  for (const char c : id) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

} // namespace

expected<std::string> region_task(const task& whole, const json& document, const graph& g, const part& p, const std::string& about) {
  auto text = read_file(share_dir() / "python" / "region_task_template.py");
  if (!text) return fail(text.error());
  auto replay = read_file(share_dir() / "python" / "replay.py");
  if (!replay) return fail(replay.error());
  json nodes = json::array(), params = json::array(), all = json::array();
  for (const auto i : p.nodes) nodes.push_back(document.at("nodes").at(i));
  for (const auto k : p.params) params.push_back({g.params[k].id, whole.params.at(static_cast<size_t>(g.params[k].index)).name});
  json before = json::array(); // what its inputs come from
  std::set<std::string> wanted(p.inputs.begin(), p.inputs.end());
  for (size_t i = g.nodes.size(); i-- > 0;) {
    if (!wanted.count(g.nodes[i].id)) continue;
    for (const auto& id : references(g.nodes[i])) wanted.insert(id);
    before.push_back(document.at("nodes").at(i));
  }
  std::reverse(before.begin(), before.end());
  for (const auto& leaf : g.params)
    if (wanted.count(leaf.id)) all.push_back({leaf.id, whole.params.at(static_cast<size_t>(leaf.index)).name});
  for (const auto& entry : document.value("foreign", json::array()))
    if (wanted.count(entry.at("id").get<std::string>())) all.push_back({entry.at("id"), entry.at("foreign")});
  json inputs = json::array();
  for (const auto& leaf : g.inputs) inputs.push_back(leaf.id);
  const json settings = {{"whole", whole.source}, {"constants", document.value("constants", json::array())}, {"all_params", all}, {"all_inputs", inputs}, {"before", before},
                         {"params", params}, {"nodes", nodes}, {"inputs", p.inputs}, {"outputs", p.outputs}, {"scalars", whole.scalars}};
  std::vector<std::string> arguments;
  for (const auto& id : p.inputs) arguments.push_back(argument(id));
  const auto put = [&](const char* mark, const std::string& with) {
    const auto at = text->find(mark);
    if (at != std::string::npos) text->replace(at, std::string(mark).size(), with);
  };
  put("@ABOUT@", printable(about));
  for (int i = 0; i < 2; ++i) put("arguments_", join(arguments, ", "));
  put("\"@REPLAY@\"", literal(json(*replay)));
  put("\"@SETTINGS@\"", literal(settings)); // last: it holds the user's text
  return text;
}

} // namespace pragma::synthesis
