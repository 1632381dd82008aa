#include "cli/html.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"

#include <cmath>

namespace pragma::html {

namespace {

// One accent for what matters, grey for the rest, green and red only for better and worse. Figures in tabular digits.
constexpr size_t most_beside = 2; ///< columns of a table that fit a telephone

constexpr std::string_view style = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2128;--soft:#5b6572;--line:#d8dee5;--box:#f5f7f9;--accent:#0b62c4;--good:#17803d;--bad:#c02626;--c1:#0b62c4;--c2:#17803d;--c3:#a15c00;--c4:#7a3fb8;--c5:#5b6572;--c6:#b0305f;--c7:#0f7f86;--c8:#8a8f98}
@media(prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e4e8ed;--soft:#99a4b1;--line:#333b45;--box:#1c2229;--accent:#63a8ff;--good:#5cc37a;--bad:#ff7a70;--c1:#63a8ff;--c2:#5cc37a;--c3:#e0a04a;--c4:#b891ea;--c5:#99a4b1;--c6:#e77ba4;--c7:#56c2c9;--c8:#77808c}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1060px;margin:0 auto;padding:28px 20px 60px;overflow-wrap:anywhere}
h1{font-size:17px;font-weight:600;margin:0;color:var(--soft);overflow-wrap:anywhere}
h2{font-size:18px;margin:40px 0 10px;padding-top:14px;border-top:1px solid var(--line)}
h3{font-size:15px;margin:18px 0 6px}
p{margin:6px 0;max-width:80ch}
.verdict{font-size:27px;line-height:1.25;font-weight:650;margin:4px 0 6px;text-wrap:balance}
.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}
.wide{overflow-x:auto;overflow-wrap:normal}
table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;font-weight:600;color:var(--soft);border-bottom:1px solid var(--line);padding:5px 14px 5px 0;vertical-align:bottom}
td{border-bottom:1px solid var(--line);padding:5px 14px 5px 0;vertical-align:top;overflow-wrap:break-word}
td.n,th.n{text-align:right;white-space:nowrap}
th button{border:0;background:none;padding:0;font:inherit;color:inherit;cursor:pointer;text-align:inherit}
td:last-child,th:last-child{padding-right:0}
pre{background:var(--box);border:1px solid var(--line);border-radius:6px;padding:10px 12px;margin:8px 0;overflow:auto;max-height:560px;font:12.5px/1.45 ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;tab-size:4}
code{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
details{border:1px solid var(--line);border-radius:6px;margin:8px 0;padding:0 12px}
details[open]{padding-bottom:10px}
summary{cursor:pointer;padding:8px 0;overflow-wrap:anywhere}
ul{margin:6px 0;padding-left:20px}
figure{margin:10px 0}
svg{display:block;width:100%;height:auto;font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
svg text{fill:var(--fg)}svg .s{fill:var(--soft)}svg .grid{stroke:var(--line);stroke-width:1}svg .axis{stroke:var(--soft);stroke-width:1}
.key{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;color:var(--soft);margin:6px 0}
.key i{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:6px;vertical-align:-1px}
.diff span{display:block;white-space:pre}.diff .a{color:var(--good);background:color-mix(in srgb,var(--good) 10%,transparent)}.diff .d{color:var(--bad);background:color-mix(in srgb,var(--bad) 10%,transparent)}.diff .h{color:var(--soft)}
.steps{display:grid;grid-template-columns:minmax(5em,max-content) 1fr max-content;gap:5px 10px;align-items:center;margin:12px 0;font-size:14px}
.steps i{display:block;height:18px;border-radius:2px;background:var(--accent);min-width:2px}.steps i.torch,.steps i.limit{background:var(--soft)}.steps i.final{background:var(--good)}
@media(max-width:560px){.steps{grid-template-columns:max-content minmax(60px,1fr) 40%}.steps .soft{display:block}main{padding:16px 12px 40px}.verdict{font-size:21px}.broad{display:none}table{font-size:13px}
table.stacks,.stacks tbody,.stacks tr,.stacks td{display:block}.stacks thead{display:none}.stacks tr{border-bottom:1px solid var(--line);padding:6px 0}
.stacks thead:has(button),.stacks thead:has(button) tr,.stacks thead th{display:block;border:0;padding:0}.stacks thead th{display:inline-block;padding:6px 14px 6px 0}
.stacks td,.stacks td.n{border:0;padding:1px 0;text-align:left;white-space:normal}.stacks td.none,.stacks td:empty{display:none}
.stacks td:first-child{display:inline-block;margin-right:1em;font-weight:600}.stacks td:nth-child(2){display:inline}.stacks td::before{content:attr(data-name) ": ";color:var(--soft);font-weight:400}
.stacks td:first-child::before,.stacks td[data-name=""]::before{content:none}}
@media(min-width:560.02px){.narrow{display:none}}
@media print{pre{max-height:none}details{border:0}}
)css";

const json empty_object = json::object(), empty_array = json::array();

/// As a Content-Security-Policy names a script.
std::string sha256_base64(std::string_view text) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto hex = sha256_hex(text);
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 6) { // three bytes are four digits; the last two bytes are three
    const auto part = hex.substr(i, 6);
    auto bits = std::stoul(part, nullptr, 16) << (part.size() == 6 ? 0 : 2);
    std::string group;
    for (size_t k = 0; k < (part.size() == 6 ? 4 : 3); ++k, bits >>= 6) group.insert(group.begin(), digits[bits & 63]);
    out += group;
  }
  return out + "=";
}

} // namespace

std::string escape(std::string_view text) {
  std::string out;
  const auto clean = printable(text);
  out.reserve(clean.size() + clean.size() / 8);
  for (const char c : clean) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string page(std::string_view title, const std::string& body, std::string_view script) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  // Should a hostile text ever get through, the browser still loads and runs nothing.
  out += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'" + (script.empty() ? std::string() : "; script-src 'sha256-" + sha256_base64(script) + "'") + "\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" + escape(title) + "</title>\n<style>";
  out += style;
  out += "</style>\n</head>\n<body>\n<main>\n" + body + "</main>\n";
  if (!script.empty()) ((out += "<script>") += script) += "</script>\n";
  return out + "</body>\n</html>\n";
}

std::string section(std::string_view id, std::string_view heading, const std::string& body) {
  if (body.empty()) return {};
  return "<section id=\"" + std::string(id) + "\">\n<h2>" + escape(heading) + "</h2>\n" + body + "</section>\n";
}

std::string details(const std::string& summary, const std::string& body, bool open) {
  return std::string("<details") + (open ? " open" : "") + "><summary>" + summary + "</summary>\n" + body + "</details>\n";
}

std::string pre(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return "<pre>" + escape(text) + "</pre>\n";
  return "<pre>" + escape(text.substr(0, max_bytes)) + "\n... (" + format_bytes(static_cast<double>(text.size() - max_bytes)) +
         " left out; run.json has all of it)</pre>\n";
}

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows, size_t first, size_t last) {
  if (rows.empty()) return {};
  const bool stacks = head.size() > most_beside;
  auto cells = [&](const std::vector<std::string>& row, const std::string& tag) {
    std::string out = "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const bool figure = i >= first && i < last, none = row[i] == "-";
      out += "<" + tag + (!figure && !none ? "" : figure && none ? " class=\"n none\"" : figure ? " class=\"n\"" : " class=\"none\"") + (stacks && tag == "td" && i < head.size() ? " data-name=\"" + head[i] + "\"" : "") + ">" + row[i] + "</" + tag + ">";
    }
    return out + "</tr>\n";
  };
  std::string out = std::string("<div class=\"wide\"><table") + (stacks ? " class=\"stacks\"" : "") + ">\n<thead>" + cells(head, "th") + "</thead>\n<tbody>\n";
  for (const auto& row : rows) out += cells(row, "td");
  return out + "</tbody>\n</table></div>\n";
}

std::string list(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string out = "<ul>\n";
  for (const auto& line : lines) out += "<li>" + escape(line) + "</li>\n";
  return out + "</ul>\n";
}

std::string times(double value) {
  return format_number(value, value >= 100 ? 0 : value >= 10 ? 1 : 2) + "x";
}

std::string with_interval(const interval& i) {
  const int digits = i.value >= 100 ? 0 : i.value >= 10 ? 1 : 2;
  return times(i.value) + " (" + format_number(i.low, digits) + " to " + format_number(i.high, digits) + ")";
}

std::string quantity(double value, const std::string& unit) {
  if (!std::isfinite(value)) return "-";
  if (unit == "s") return format_seconds(value);
  if (unit == "bytes") return format_bytes(value);
  if (unit == "line") return "line " + format_number(value, 0);
  const double size = std::fabs(value);
  std::string number;
  if (size >= 1e9) number = format_number(value / 1e9, 2) + " G";
  else if (size >= 1e6) number = format_number(value / 1e6, 2) + " M";
  else if (size >= 1e4) number = format_number(value / 1e3, 1) + " k";
  else if (size >= 100 || value == std::floor(value)) number = format_number(value, 0);
  else number = format_number(value, size >= 10 ? 1 : size >= 0.01 ? 2 : 5);
  if (unit.empty() || unit == "count") return number;
  return number + (unit == "%" ? "%" : " " + escape(unit));
}

std::string text_at(const json& object, std::string_view key) {
  if (!object.is_object()) return {};
  const auto it = object.find(std::string(key));
  if (it == object.end()) return {};
  if (it->is_string()) return it->get<std::string>();
  if (it->is_number() || it->is_boolean()) return it->dump();
  return {};
}

double number_at(const json& object, std::string_view key) {
  if (!object.is_object()) return 0;
  const auto it = object.find(std::string(key));
  const double value = it != object.end() && it->is_number() ? it->get<double>() : 0;
  return std::isfinite(value) ? value : 0;
}

const json& object_at(const json& object, std::string_view key) {
  if (!object.is_object()) return empty_object;
  const auto it = object.find(std::string(key));
  return it != object.end() && it->is_object() ? *it : empty_object;
}

const json& array_at(const json& object, std::string_view key) {
  if (!object.is_object()) return empty_array;
  const auto it = object.find(std::string(key));
  return it != object.end() && it->is_array() ? *it : empty_array;
}

std::vector<std::string> texts_at(const json& object, std::string_view key) {
  std::vector<std::string> out;
  for (const auto& value : array_at(object, key))
    if (value.is_string()) out.push_back(value.get<std::string>());
  return out;
}

} // namespace pragma::html
