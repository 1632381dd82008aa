#include "synthesis/triton/emit.hpp"

#include "base/text.hpp"
#include "synthesis/loops/alone.hpp"
#include "synthesis/triton/values.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace pragma::synthesis {

namespace {

/// Lines of a comment, broken at 110 columns.
std::string comment(const std::string& label, const std::string& text) {
  std::string out = "# " + label;
  size_t column = out.size();
  for (const auto& word : split(text, ' ')) {
    if (column + word.size() > 110) {
      out += "\n#   ";
      column = 4;
    }
    out += " " + word;
    column += word.size() + 1;
  }
  return out + "\n";
}

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool mentions(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !in_name(text[at - 1]), ends = at + name.size() == text.size() || !in_name(text[at + name.size()]);
    if (begins && ends) return true;
  }
  return false;
}

std::string indented(const std::string& lines, const std::string& by) {
  std::string out;
  for (const auto& l : split(lines, '\n'))
    if (!l.empty()) out += by + l + "\n";
  return out;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string s = "(";
  for (auto d : shape) s += std::to_string(d) + ", ";
  if (shape.size() > 1) s.resize(s.size() - 2);
  else if (shape.size() == 1) s.resize(s.size() - 1);
  return s + ")";
}

std::string axes_text(const region& r) {
  if (r.anchor) return r.anchor->op == operation::matmul ? "matrix product" : r.anchor->transposed ? "transposed convolution" : "convolution";
  std::string text;
  for (size_t a = 0; a < r.axes.size(); ++a) {
    text += (text.empty() ? "" : " x ") + std::to_string(r.axes[a].extent);
    if (r.axes[a].window) text += " (window)";
    else if (r.axes[a].reduced) text += static_cast<int>(a) == r.scan_axis ? " (scanned)" : " (reduced)";
  }
  return text.empty() ? "one element" : text;
}

std::string sizes(const triton_block& b, const std::vector<std::string>& names, const std::string& equals) {
  const int64_t values[] = {b.lanes, b.steps, b.columns};
  std::string s;
  for (size_t i = 0; i < names.size() && i < 3; ++i)
    if (!names[i].empty()) s += (s.empty() ? "" : ", ") + (equals == ": " ? "\"" + names[i] + "\"" : names[i]) + equals + std::to_string(values[i]);
  return s;
}

/// "memory0, memory1 = x0, scratch4", for those of the names of region_alone::program that `lines` mention.
std::string names_of_its_own(const region_alone& r, const loop_program& program, const std::string& lines) {
  std::vector<std::string> own, names;
  for (size_t i = 0; i < r.buffers.size(); ++i) {
    const auto& name = r.program.buffers[i].name;
    if (!mentions(lines, name)) continue;
    own.push_back(name);
    names.push_back(program.buffers[static_cast<size_t>(r.buffers[i])].name);
  }
  return own.empty() ? "" : join(own, ", ") + " = " + join(names, ", ") + "\n";
}

/// The kernels of each region. Of regions that are equal but for their tensors the first has the text, and all launch it.
std::vector<triton_kernel> kernels_of(const loop_program& program, const triton_schedule& s) {
  std::map<std::string, std::vector<size_t>> equal; // by the text of the region alone
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const auto own = alone(program, i);
    equal[emit_triton_region(own.program, own.program.regions.front(), s.regions.at(i), 0, 0).text].push_back(i);
  }
  std::vector<triton_kernel> kernels(program.regions.size());
  for (const auto& [text, members] : equal)
    for (const auto i : members) {
      if (members.size() == 1) {
        kernels[i] = emit_triton_region(program, program.regions[i], s.regions[i], i, i);
        continue;
      }
      const auto own = alone(program, i);
      kernels[i] = emit_triton_region(own.program, own.program.regions.front(), s.regions[i], members.front(), i);
      if (i != members.front()) kernels[i].text.clear();
      kernels[i].launch = names_of_its_own(own, program, kernels[i].launch) + kernels[i].launch;
      kernels[i].setup = names_of_its_own(own, program, kernels[i].setup) + kernels[i].setup;
    }
  return kernels;
}

std::string threads(const triton_block& b) { return "num_warps=" + std::to_string(b.warps) + ", num_stages=" + std::to_string(b.stages); }

} // namespace

std::string triton_decorators(const triton_region_schedule& s, const std::vector<std::string>& names) {
  if (s.alternatives.empty()) return "@triton.jit\n";
  std::string out = "@triton.autotune(\n    configs=[\n";
  std::vector<std::string> given;
  const auto add = [&](const triton_block& b) {
    const auto text = "        triton.Config({" + sizes(b, names, ": ") + "}, " + threads(b) + "),\n";
    if (std::find(given.begin(), given.end(), text) == given.end()) given.push_back(text);
  };
  add(s.block);
  for (const auto& b : s.alternatives) add(b);
  for (const auto& text : given) out += text;
  return out + "    ],\n    key=[],\n)\n@triton.jit\n";
}

std::string triton_launch_end(const triton_region_schedule& s, const std::vector<std::string>& names) {
  if (!s.alternatives.empty()) return ")";
  const auto text = sizes(s.block, names, "=");
  return ", " + text + (text.empty() ? "" : ", ") + threads(s.block) + ")";
}

emitted_source emit_triton(const loop_program& program, const triton_schedule& s, const std::string& title) {
  std::string kernels, launches, setups;
  std::set<std::string> helpers;
  const auto all = kernels_of(program, s);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& k = all[i];
    if (!k.text.empty()) kernels += "\n\n# Region " + std::to_string(i + 1) + ": " + axes_text(program.regions[i]) + "\n" + k.text;
    launches += k.launch;
    setups += k.setup;
    helpers.insert(k.helpers.begin(), k.helpers.end());
  }
  std::string helper_text;
  for (const auto& h : helpers) helper_text += "\n\n" + triton_helper(h);

  std::string names, constants, parameters, packed, results;
  for (const auto& b : program.buffers) {
    const bool launched = mentions(launches, b.name), set_up = mentions(setups, b.name);
    const auto type = triton_values::torch_name(b.dtype);
    switch (b.kind) {
      case buffer_kind::input:
        if (launched) names += b.name + " = tensors[" + std::to_string(b.index) + "]\n";
        break;
      case buffer_kind::param:
        if (launched) names += b.name + " = self.params[" + std::to_string(b.index) + "]\n";
        if (set_up) packed += b.name + " = params[" + std::to_string(b.index) + "]\n";
        break;
      case buffer_kind::output: {
        const auto& shape = program.output_shapes.at(static_cast<size_t>(b.index));
        names += b.name + " = torch.empty(" + shape_text(shape) + ", dtype=" + type + ", device=device)\n";
        results += (results.empty() ? "" : ", ") + b.name;
        break;
      }
      case buffer_kind::scratch:
        if (launched) names += b.name + " = torch.empty(" + std::to_string(std::max<int64_t>(1, b.elements)) + ", dtype=" + type + ", device=device)\n";
        break;
      case buffer_kind::constant:
        if (!launched) break;
        constants += "self." + b.name + " = None\n";
        std::string values;
        for (size_t i = 0; i < b.values.size(); ++i) values += (i ? ", " : "") + triton_values::literal(b.values[i], b.dtype);
        names += "if self." + b.name + " is None:\n    self." + b.name + " = torch.tensor([" + values + "], dtype=" + type + ", device=device)\n" + b.name + " = self." + b.name + "\n";
        break;
    }
  }

  const auto header = comment("Task:", title) + comment("Reference:", join(program.ops, ", ")) + comment("Schedule:", json(s).dump()) +
                      "# Written by PRAGMA's built-in coder (docs/synthesis.md).\n";
  std::string out = "import torch\nimport torch.nn as nn\nimport triton\nimport triton.language as tl\n";
  if (mentions(kernels + helper_text, "libdevice")) out += "from triton.language.extra import libdevice\n";
  out += "\nPRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict\n";
  out += helper_text + kernels;
  out += "\n\nclass ModelNew(nn.Module):\n    def __init__(self, *args, **kwargs):\n        super().__init__()\n        self.params = []\n" + indented(constants, "        ");
  out += "\n    def load_params(self, params):\n        self.params = list(params)\n";
  if (!setups.empty()) out += "        device = params[0].device\n" + indented(packed + setups, "        ");
  out += "\n    @classmethod\n    def from_state(cls, params):\n        model = cls()\n        model.load_params([p.detach().contiguous() for p in params])\n        return model\n";
  out += "\n    def forward(self, *inputs):\n        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]\n        device = tensors[0].device\n" + indented(names + launches, "        ") + "        return " + results + "\n";
  return {header + out, out};
}

} // namespace pragma::synthesis
