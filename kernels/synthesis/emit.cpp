#include "kernels/synthesis/emit.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace pragma::synthesis {

namespace {

std::string c_type(dtype t) {
  switch (t) {
    case dtype::float64: return "double";
    case dtype::int64: return "int64_t";
    case dtype::int32: return "int32_t";
    case dtype::int16: return "int16_t";
    case dtype::int8: return "int8_t";
    case dtype::uint8: return "uint8_t";
    case dtype::boolean: return "bool";
    default: return "float";
  }
}

std::string literal(double v, dtype t) {
  if (!is_floating(t)) return std::to_string(static_cast<int64_t>(v));
  if (std::isnan(v)) return "NAN";
  if (std::isinf(v)) return v > 0 ? "INFINITY" : "-INFINITY";
  char b[40];
  std::snprintf(b, sizeof b, "%.17g", v);
  return b;
}

/// Lines of a comment, broken at 110 columns.
std::string comment(const std::string& label, const std::string& text) {
  std::string out = "// " + label;
  size_t column = out.size();
  for (const auto& word : split(text, ' ')) {
    if (column + word.size() > 110) {
      out += "\n//   ";
      column = 5;
    }
    out += " " + word;
    column += word.size() + 1;
  }
  return out + "\n";
}

std::set<int> buffers_used(const loop_program& p) {
  std::set<int> used;
  for (const auto& r : p.regions) {
    for (const auto& s : r.stores) used.insert(s.buffer);
    if (r.anchor) used.insert({r.anchor->a, r.anchor->b});
    std::vector<bool> live(r.exprs.size(), false);
    for (const auto& s : r.stores) live[static_cast<size_t>(s.value)] = true;
    for (size_t i = r.exprs.size(); i-- > 0;)
      if (live[i]) {
        for (int a : r.exprs[i].args) live[static_cast<size_t>(a)] = true;
        if (r.exprs[i].kind == expr_kind::load) used.insert(r.exprs[i].buffer);
      }
  }
  return used;
}

constexpr uint64_t most_static_bytes = uint64_t{1} << 30; ///< arrays lie within reach of 32-bit addresses, of which the libraries need some
constexpr uint64_t least_heap_bytes = uint64_t{64} << 20;

/// At least: what is narrower than a float is one in the source.
uint64_t bytes_of(const buffer& b) { return static_cast<uint64_t>(b.elements) * std::max<size_t>(sizeof(float), size_of(b.dtype)); }

/// Of everything between regions.
uint64_t scratch_bytes(const loop_program& p, const std::set<int>& used) {
  uint64_t total = 0;
  for (int b : used)
    if (const auto& buf = p.buffers[static_cast<size_t>(b)]; buf.kind == buffer_kind::scratch) total += bytes_of(buf);
  return total;
}

std::string axes_text(const region& r, const region_schedule& s) {
  std::string text;
  if (r.anchor) {
    const auto size = size_of_contraction(r);
    text = r.anchor->op == "matmul" ? "matrix product" : r.anchor->transposed ? "transposed convolution" : "convolution";
    return text + ", m x n x k = " + std::to_string(size.m) + " x " + std::to_string(size.n) + " x " + std::to_string(size.k);
  }
  for (size_t a = 0; a < r.axes.size(); ++a) {
    if (static_cast<int>(a) == r.item) continue;
    text += (text.empty() ? "" : " x ") + std::to_string(r.axes[a].extent);
    if (r.axes[a].window) text += " (window)";
    else if (r.axes[a].reduced) text += static_cast<int>(a) == r.scan_axis ? " (scanned)" : " (reduced)";
    if (static_cast<int>(a) == s.vector_axis) text += " (vectorised)";
  }
  return text.empty() ? "one element" : text;
}

} // namespace

std::string emit_source(const loop_program& program, const schedule& s, const std::string& title) {
  const auto nest = [&](size_t i, const std::string& followers) {
    const auto& r = program.regions[i];
    std::string block = "  // Region " + std::to_string(i + 1) + ": " + axes_text(r, s.regions[i]) + "\n  {\n";
    const auto text = emit_region(program, r, s.regions[i], s, i, followers);
    for (const auto& l : split(text, '\n'))
      if (!l.empty()) block += (l[0] == '#' ? "" : "  ") + l + "\n";
    return block + "  }\n";
  };
  std::string body;
  for (size_t i = 0; i < program.regions.size(); ++i) {
    if (program.regions[i].host >= 0) continue;
    std::string followers;
    for (size_t j = i + 1; j < program.regions.size(); ++j)
      if (program.regions[j].host == static_cast<int>(i)) followers += nest(j, "");
    body += nest(i, followers);
  }
  const bool streams = body.find("stream(") != std::string::npos || body.find("stream_rows(") != std::string::npos;
  if (streams) body += "  stream_fence();\n";
  const auto used = buffers_used(program);
  std::string pointers, statics;
  bool allocated = false;
  const bool heap = scratch_bytes(program, used) > most_static_bytes;
  for (int b : used) {
    const auto& buf = program.buffers[static_cast<size_t>(b)];
    const auto type = c_type(buf.dtype);
    switch (buf.kind) {
      case buffer_kind::input:
      case buffer_kind::param:
        pointers += "  const " + type + "* " + buf.name + " = static_cast<const " + type + "*>(args->" +
                    (buf.kind == buffer_kind::input ? "inputs[" : "params[") + std::to_string(buf.index) + "].data);\n";
        break;
      case buffer_kind::output:
        pointers += "  " + type + "* " + buf.name + " = static_cast<" + type + "*>(args->outputs[" + std::to_string(buf.index) + "].data);\n";
        break;
      case buffer_kind::scratch:
        if (const auto bytes = bytes_of(buf); heap && !buf.of_item && bytes >= least_heap_bytes) {
          allocated = true;
          statics += type + "* const " + buf.name + " = static_cast<" + type + "*>(std::aligned_alloc(64, " + std::to_string((bytes + 63) / 64 * 64) +
                     ")); // between regions: more than arrays may take\n";
          break;
        }
        statics += std::string("alignas(64) ") + (buf.of_item && s.threads > 1 ? "thread_local " : "") + type + " " + buf.name + "[" + std::to_string(std::max<int64_t>(1, buf.elements)) +
                   (buf.of_item ? "]; // between regions, one batch element\n" : "]; // between regions\n");
        break;
      case buffer_kind::constant:
        statics += "alignas(64) const " + type + " " + buf.name + "[" + std::to_string(std::max<int64_t>(1, buf.elements)) + "] = {";
        for (size_t i = 0; i < buf.values.size(); ++i) statics += (i ? ", " : "") + std::string(i % 12 == 11 ? "\n  " : "") + literal(buf.values[i], buf.dtype);
        statics += "};\n";
        break;
    }
  }
  std::string out = comment("Task:", title);
  out += comment("Reference:", join(program.ops, ", "));
  out += comment("Schedule:", json(s).dump());
  out += "// Written by PRAGMA's built-in coder (docs/synthesis.md).\n";
  out += "#include \"pragma_kernel.h\"\n\n#include <algorithm>\n#include <cmath>\n#include <cstdint>\n" + std::string(allocated ? "#include <cstdlib>\n" : "") + "#include <cstring>\n#include <limits>\n#include <type_traits>\n";
  out += "#include <utility>\n";
  if (streams) out += "#if defined(__SSE2__)\n#include <immintrin.h>\n#endif\n";
  out += "\nnamespace {\n\n" + helpers_for(body + statics, s.lanes) + "\n" + statics + (statics.empty() ? "" : "\n") + "} // namespace\n\n";
  out += "extern \"C\" void pragma_kernel(const pragma_args* args) {\n";
  if (s.threads > 1) out += "  [[maybe_unused]] const int threads = args->threads;\n";
  out += pointers + body;
  return out + "}\n";
}

} // namespace pragma::synthesis
