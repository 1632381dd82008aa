#include "cli/charts.hpp"

#include "base/text.hpp"
#include "cli/html.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace pragma::html {

namespace {

constexpr double left = 62, top = 18, bottom = 44;

/// A drawing is made twice, for a screen and for a telephone; the page shows the one that fits.
struct sheet {
  const char* name;
  double width, right;                        ///< pixels; `right`: for words behind the drawing
  size_t most_labels;                         ///< of attempts below the drawing
  bool narrow() const { return width < 500; }
};
constexpr sheet sheets[] = {{"broad", 960, 150, 25}, {"narrow", 400, 130, 10}};

std::string num(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", std::isfinite(value) ? value : 0.0);
  return text;
}

/// A tick's label without noise: 0.5, 2, 100, 1 k.
std::string tick(double value) {
  char text[32];
  if (value >= 1e4) std::snprintf(text, sizeof text, "%gk", value / 1e3);
  else std::snprintf(text, sizeof text, "%g", value);
  return text;
}

/// A range of values mapped to pixels, linear or logarithmic.
struct axis {
  double low = 0, high = 1, from = 0, to = 1; ///< from: pixel of `low`
  bool log = false;

  double at(double value) const {
    const double share = log ? (std::log10(std::max(value, 1e-300)) - std::log10(low)) / (std::log10(high) - std::log10(low))
                             : (value - low) / (high - low);
    return from + std::clamp(share, -0.02, 1.02) * (to - from);
  }
  std::vector<double> ticks() const {
    std::vector<double> out;
    if (!std::isfinite(low) || !std::isfinite(high) || !(high > low) || (log && low <= 0)) return out;
    if (log) {
      const bool few = std::log10(high / low) > 3.2;
      for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high * 1.0001; decade *= 10)
        for (const double step : {1.0, 2.0, 5.0})
          if ((!few || step == 1.0) && decade * step >= low * 0.9999 && decade * step <= high * 1.0001) out.push_back(decade * step);
      return out;
    }
    const double rough = (high - low) / 5, unit = std::pow(10, std::floor(std::log10(rough)));
    double step = unit;
    for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0})
      if (unit * factor >= rough) {
        step = unit * factor;
        break;
      }
    for (double value = std::ceil(low / step) * step; value <= high * 1.0001; value += step) out.push_back(std::round(value / step) * step);
    return out;
  }
};

std::string line(double x1, double y1, double x2, double y2, const std::string& more) {
  return "<line x1=\"" + num(x1) + "\" y1=\"" + num(y1) + "\" x2=\"" + num(x2) + "\" y2=\"" + num(y2) + "\" " + more + "/>\n";
}
std::string text(double x, double y, const std::string& content, const std::string& more = "") {
  return "<text x=\"" + num(x) + "\" y=\"" + num(y) + "\" " + more + ">" + escape(content) + "</text>\n";
}
std::string dot(double x, double y, double r, const std::string& more, const std::string& title) {
  return "<circle cx=\"" + num(x) + "\" cy=\"" + num(y) + "\" r=\"" + num(r) + "\" " + more + "><title>" + escape(title) + "</title></circle>\n";
}
std::string svg(const sheet& on, double height, const std::string& label, const std::string& body) {
  return "<figure class=\"" + std::string(on.name) + "\"><svg viewBox=\"0 0 " + num(on.width) + " " + num(height) + "\" role=\"img\" aria-label=\"" + escape(label) + "\">\n" + body +
         "</svg></figure>\n";
}
std::string frame(const axis& x, const axis& y, const std::string& x_title, const std::string& y_title, const std::string& y_unit) {
  std::string out;
  for (const double t : y.ticks()) {
    out += line(x.from, y.at(t), x.to, y.at(t), "class=\"grid\"");
    out += text(x.from - 8, y.at(t) + 4, tick(t) + y_unit, "class=\"s\" text-anchor=\"end\"");
  }
  out += line(x.from, y.from, x.to, y.from, "class=\"axis\"");
  out += text((x.from + x.to) / 2, y.from + 36, x_title, "class=\"s\" text-anchor=\"middle\"");
  return out + text(2, top - 6, y_title, "class=\"s\"");
}

/// Sorted from the top, at least `gap` pixels apart, so that labels don't lie on each other.
void spread(std::vector<std::pair<double, std::string>>& labels, double gap) {
  std::sort(labels.begin(), labels.end());
  for (size_t i = 1; i < labels.size(); ++i) labels[i].first = std::max(labels[i].first, labels[i - 1].first + gap);
}

struct ceiling {
  std::string name;
  double gbs = 0;
};
/// The measured copy bandwidths, as many as there are: L1, L2, L3, memory (the last is always memory); of a device L2 and DRAM.
std::vector<ceiling> ceilings_of(const machine_limits& limits) {
  static const char* const names[] = {"L1", "L2", "L3"};
  std::vector<ceiling> out;
  if (limits.backend != "cpu") {
    static const char* const device_names[] = {"L2", "DRAM"};
    for (size_t i = 0; i < limits.copy_gbs.size() && i < std::size(device_names); ++i)
      if (limits.copy_gbs[i] > 0) out.push_back({device_names[i], limits.copy_gbs[i]});
    return out;
  }
  for (size_t i = 0; i < limits.copy_gbs.size(); ++i)
    if (limits.copy_gbs[i] > 0)
      out.push_back({i + 1 == limits.copy_gbs.size() ? "memory" : i < 3 ? names[i] : "L" + std::to_string(i + 1), limits.copy_gbs[i]});
  return out;
}

/// Places for the names of parallel sloping lines, given by their distances from the first one (pixels, across the lines, downwards).
/// A name lies above its line or below it; where both places are taken by a neighbour it moves down along its line.
struct name_place {
  bool below = false;
  int step = 0; ///< moved by so many lengths of a name
};
std::vector<name_place> places_along(const std::vector<double>& across) {
  constexpr double text_height = 15;
  constexpr int most_steps = 4;
  std::vector<name_place> places;
  for (size_t i = 0; i < across.size(); ++i) {
    const auto top_of = [&](size_t line, bool below) { return across[line] + (below ? 2 : -text_height - 2); };
    const auto is_free = [&](const name_place& p) {
      const double from = top_of(i, p.below), to = from + text_height;
      for (size_t other = 0; other < across.size(); ++other) {
        if (other != i && across[other] > from && across[other] < to) return false; // a line through the words
        if (other >= i || places[other].step != p.step) continue;
        const double taken = top_of(other, places[other].below);
        if (taken < to && from < taken + text_height) return false;
      }
      return true;
    };
    name_place chosen{false, static_cast<int>(i) % most_steps}; // no free place: at least beside its neighbours
    for (int n = 0; n < 2 * most_steps; ++n)
      if (const name_place p{n % 2 == 1, n / 2}; is_free(p)) {
        chosen = p;
        break;
      }
    places.push_back(chosen);
  }
  return places;
}

std::string dot_style(const roofline_dot& d) {
  if (d.reference) return "fill=\"var(--bg)\" stroke=\"var(--soft)\" stroke-width=\"2\"";
  return d.best ? "fill=\"var(--accent)\"" : "fill=\"var(--accent)\" fill-opacity=\"0.4\"";
}

std::string bandwidth_plot(const sheet& on, const machine_limits& limits, double bytes, const std::vector<roofline_dot>& dots) {
  constexpr double height = 340;
  const auto ceilings = ceilings_of(limits);
  double low = 1e300, high = 0;
  for (const auto& c : ceilings) low = std::min(low, c.gbs), high = std::max(high, c.gbs);
  for (const auto& d : dots) low = std::min(low, bytes / d.seconds / 1e9), high = std::max(high, bytes / d.seconds / 1e9);
  const axis y{low / 1.6, high * 1.6, height - bottom, top, true};
  const axis x{0, static_cast<double>(dots.size()) + 1, left, on.width - on.right, false};
  std::string out = frame(x, y, "attempt", "GB/s (compulsory bytes of the task / time)", "");
  std::vector<std::pair<double, std::string>> labels;
  for (const auto& c : ceilings) {
    out += line(x.from, y.at(c.gbs), x.to, y.at(c.gbs), "stroke=\"var(--soft)\" stroke-width=\"1.5\"");
    labels.emplace_back(y.at(c.gbs) + 4, c.name + " " + quantity(c.gbs, "GB/s"));
  }
  spread(labels, 14);
  for (const auto& [at, name] : labels) out += text(x.to + 8, at, name, "class=\"s\"");
  const size_t stride = std::max<size_t>(1, dots.size() / on.most_labels); // of the names below: those of many attempts would lie on each other
  for (size_t i = 0; i < dots.size(); ++i) {
    const double px = x.at(static_cast<double>(i) + 1), gbs = bytes / dots[i].seconds / 1e9;
    out += dot(px, y.at(gbs), dots[i].best ? 7 : 5.5, dot_style(dots[i]), dots[i].label + ": " + quantity(gbs, "GB/s"));
    if (i % stride == 0) out += text(px, y.from + 17, dots[i].label, std::string("class=\"s\" text-anchor=\"middle\"") + (dots[i].best ? " font-weight=\"700\"" : ""));
  }
  return svg(on, height, "Bandwidth of each attempt against the measured bandwidths of this machine", out);
}

std::string curve(const sheet& on, const std::vector<iteration_record>& iterations) {
  constexpr double height = 330;
  double low = 1, high = 1;
  bool any = false;
  for (const auto& it : iterations) {
    const auto& s = it.code.measured.time.speedup;
    if (!it.passed() || s.value <= 0) continue;
    any = true;
    low = std::min(low, s.low > 0 ? s.low : s.value);
    high = std::max({high, s.value, s.high});
  }
  const bool log = high / low > 20;
  const axis y = log ? axis{low / 1.3, high * 1.3, height - bottom, top, true} : axis{0, high * 1.12, height - bottom, top, false};
  const double count = static_cast<double>(iterations.size());
  const axis x{0.4, count + 0.6, left, on.width - on.right, false};
  std::string out = frame(x, y, "attempt", "speed-up over Torch", "x");
  out += line(x.from, y.at(1), x.to, y.at(1), "stroke=\"var(--soft)\" stroke-width=\"1.5\" stroke-dasharray=\"2 4\"");
  const size_t stride = std::max<size_t>(1, iterations.size() / on.most_labels);
  std::string current, best, marks;
  double best_value = 0;
  bool pen_down = false;
  for (size_t i = 0; i < iterations.size(); ++i) {
    const auto& it = iterations[i];
    const double px = x.at(static_cast<double>(i) + 1);
    if (i % stride == 0) out += text(px, y.from + 17, std::to_string(it.number), "class=\"s\" text-anchor=\"middle\"");
    const auto& s = it.code.measured.time.speedup;
    if (it.passed() && s.value > 0) {
      current += (pen_down ? " L" : " M") + num(px) + " " + num(y.at(s.value));
      pen_down = true;
      marks += line(px, y.at(s.low), px, y.at(s.high), "stroke=\"var(--accent)\" stroke-width=\"2\" stroke-opacity=\"0.55\"");
      marks += dot(px, y.at(s.value), it.new_best ? 5.5 : 4, it.new_best ? "fill=\"var(--accent)\"" : "fill=\"var(--bg)\" stroke=\"var(--accent)\" stroke-width=\"2\"",
                   "attempt " + std::to_string(it.number) + ": " + with_interval(s) + (it.new_best ? ", new best" : ""));
    } else {
      const double cy = y.from - 8;
      marks += "<g stroke=\"var(--bad)\" stroke-width=\"2\"><title>" + escape("attempt " + std::to_string(it.number) + " failed at " + it.stage() + ": " + it.verdict.reason.substr(0, 300)) + "</title>" +
               line(px - 4, cy - 4, px + 4, cy + 4, "") + line(px - 4, cy + 4, px + 4, cy - 4, "") + "</g>\n";
    }
    // A step: the best stays the best until the next new one.
    const double before = best_value;
    if (it.new_best && s.value > 0) best_value = s.value;
    if (best_value > 0) {
      if (before <= 0) best += "M" + num(px) + " " + num(y.at(best_value));
      else best += " H" + num(px) + (best_value != before ? " V" + num(y.at(best_value)) : "");
    }
  }
  if (!current.empty()) out += "<path d=\"" + current.substr(1) + "\" fill=\"none\" stroke=\"var(--accent)\" stroke-width=\"1.2\" stroke-opacity=\"0.6\"/>\n";
  if (!best.empty()) out += "<path d=\"" + best + " H" + num(x.to) + "\" fill=\"none\" stroke=\"var(--good)\" stroke-width=\"2.5\"/>\n";
  out += marks;
  std::vector<std::pair<double, std::string>> labels = {{y.at(1) + 4, "Torch (1x)"}};
  if (best_value > 0) labels.emplace_back(y.at(best_value) + 4, "best " + times(best_value));
  spread(labels, 14);
  for (const auto& [at, name] : labels) out += text(x.to + 8, at, name);
  if (!any) out += text((x.from + x.to) / 2, (y.from + y.to) / 2, "no attempt was right", "class=\"s\" text-anchor=\"middle\"");
  return svg(on, height, "Speed-up over Torch of each attempt", out);
}

} // namespace

std::string speedup_curve(const std::vector<iteration_record>& iterations) {
  if (iterations.empty()) return {};
  std::string out;
  for (const auto& on : sheets) out += curve(on, iterations);
  return out + "<div class=\"key\"><span><i style=\"background:var(--accent)\"></i>this attempt, with 95% interval (filled: new best)</span>"
         "<span><i style=\"background:var(--good)\"></i>best so far</span><span><i style=\"background:var(--bad)\"></i>failed attempt</span></div>\n";
}

namespace {

/// Peaks above that of float32's own units, which the task's products may reach.
std::vector<std::pair<std::string, double>> matrix_units(const machine_limits& limits, product_precision products) {
  std::vector<std::pair<std::string, double>> units;
  const bool device = limits.backend != "cpu";
  if (device && limits.tf32_gflops > limits.peak_gflops) units.emplace_back("TF32 ", limits.tf32_gflops);
  if ((!device || products == product_precision::half) && limits.half_gflops > limits.peak_gflops) units.emplace_back(device ? "FP16 " : "tiles ", limits.half_gflops);
  return units;
}

std::string roofline(const sheet& on, const machine_limits& limits, const roofline_work& work, const std::vector<roofline_dot>& dots) {
  const auto ceilings = ceilings_of(limits);
  constexpr double height = 420;
  const double flops = work.flops, intensity = flops / work.bytes, peak = limits.peak_gflops;
  const auto units = matrix_units(limits, work.products);
  double x_low = intensity / 8, x_high = intensity * 8, y_low = peak, y_high = peak * 2;
  for (const auto& [name, gflops] : units) y_high = std::max(y_high, gflops * 2);
  for (const auto& c : ceilings) x_high = std::max(x_high, peak / c.gbs * 3);
  x_low = std::min(x_low, peak / ceilings.front().gbs / 4);
  for (const auto& d : dots) {
    y_low = std::min(y_low, flops / d.seconds / 1e9);
    y_high = std::max(y_high, flops / d.seconds / 1e9 * 1.5);
  }
  for (const auto& c : ceilings) y_low = std::min(y_low, c.gbs * intensity);
  y_low /= 3;
  const axis x{x_low, x_high, left, on.width - on.right, true}, y{y_low, y_high, height - bottom, top, true};
  std::string out = "<defs><clipPath id=\"roof-" + std::string(on.name) + "\"><rect x=\"" + num(x.from) + "\" y=\"" + num(y.to) + "\" width=\"" + num(x.to - x.from) +
                    "\" height=\"" + num(y.from - y.to) + "\"/></clipPath></defs>\n" +
                    frame(x, y, "floating-point operations per byte of compulsory traffic", "GFLOP/s", "");
  for (const double t : x.ticks())
    if (!on.narrow() || std::fabs(std::log10(t) - std::round(std::log10(t))) < 1e-9) out += text(x.at(t), y.from + 17, tick(t), "class=\"s\" text-anchor=\"middle\"");
  out += "<g clip-path=\"url(#roof-" + std::string(on.name) + ")\">\n" + line(x.at(intensity), y.from, x.at(intensity), y.to, "stroke=\"var(--line)\" stroke-dasharray=\"3 3\"");
  std::string labels;
  // All bandwidths have the same slope, so their distances are those along y, turned by it.
  const double slope = std::atan2((y.from - y.to) / std::log10(y.high / y.low), (x.to - x.from) / std::log10(x.high / x.low));
  std::vector<double> across;
  for (const auto& c : ceilings) across.push_back((y.at(c.gbs * intensity) - y.at(ceilings.front().gbs * intensity)) * std::cos(slope));
  const auto places = places_along(across);
  for (size_t i = 0; i < ceilings.size(); ++i) {
    const auto& c = ceilings[i];
    const double ridge = std::clamp(peak / c.gbs, x_low, x_high);
    // Drawn from the lower edge, where the line enters the picture, up to its ridge; its name lies along it.
    const double enter = std::max(x_low, y_low / c.gbs);
    const double x1 = x.at(enter), y1 = y.at(c.gbs * enter), x2 = x.at(ridge), y2 = y.at(c.gbs * ridge);
    out += line(x1, y1, x2, y2, "stroke=\"var(--soft)\" stroke-width=\"1.5\"");
    constexpr double name_length = 125, gap = 14; // pixels
    const double length = std::hypot(x2 - x1, y2 - y1);
    if (length <= 0 || on.narrow()) continue; // there the key names them
    const double back = (gap + places[i].step * name_length) / length;
    const double degrees = std::atan2(y2 - y1, x2 - x1) * 180 / 3.14159265358979;
    const double px = x2 - back * (x2 - x1), py = y2 - back * (y2 - y1);
    labels += "<g transform=\"translate(" + num(px) + " " + num(py) + ") rotate(" + num(degrees) + ")\">" +
              text(0, places[i].below ? 14 : -5, c.name + " " + quantity(c.gbs, "GB/s"), "class=\"s\" text-anchor=\"end\"") + "</g>\n";
  }
  out += line(x.at(peak / ceilings.front().gbs), y.at(peak), x.to, y.at(peak), "stroke=\"var(--soft)\" stroke-width=\"1.5\"") + "</g>\n" + labels;
  std::vector<std::pair<double, std::string>> peaks = {{y.at(peak) + 4, (units.empty() ? "peak " : "FP32 ") + quantity(peak, "GFLOP/s")}};
  for (const auto& [name, gflops] : units) {
    out += line(x.at(gflops / ceilings.front().gbs), y.at(gflops), x.to, y.at(gflops), "stroke=\"var(--soft)\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"");
    peaks.emplace_back(y.at(gflops) + 4, name + quantity(gflops, "GFLOP/s"));
  }
  spread(peaks, 14);
  for (const auto& [at, name] : peaks) out += text(x.to + 8, at, name, "class=\"s\"");
  std::vector<std::pair<double, std::string>> names;
  for (const auto& d : dots) {
    const double gflops = flops / d.seconds / 1e9;
    out += dot(x.at(intensity), y.at(gflops), d.best ? 7 : 5.5, dot_style(d), d.label + ": " + quantity(gflops, "GFLOP/s"));
    if (d.best || d.reference) names.emplace_back(y.at(gflops) + 4, (d.reference ? d.label : "attempt " + d.label + " (best)") + ", " + quantity(gflops, "GFLOP/s"));
  }
  spread(names, 14);
  const bool before = x.at(intensity) + 210 > on.width; // no room behind the dots
  for (const auto& [at, name] : names) out += text(x.at(intensity) + (before ? -13 : 13), at, name, std::string(before ? "text-anchor=\"end\" " : "") + "paint-order=\"stroke\" stroke=\"var(--bg)\" stroke-width=\"4\"");
  return svg(on, height, "Roofline of this machine with the attempts", out);
}

} // namespace

std::string roofline_plot(const machine_limits& limits, const roofline_work& work, const std::vector<roofline_dot>& all) {
  std::vector<roofline_dot> dots;
  for (const auto& d : all)
    if (d.seconds > 0) dots.push_back(d);
  const auto ceilings = ceilings_of(limits);
  if (dots.empty() || ceilings.empty() || work.bytes <= 0) return {};
  const bool by_bandwidth = work.flops <= 0 || limits.peak_gflops <= 0;
  std::string out, key;
  for (const auto& on : sheets) out += by_bandwidth ? bandwidth_plot(on, limits, work.bytes, dots) : roofline(on, limits, work, dots);
  if (by_bandwidth) return out;
  for (const auto& c : ceilings) key += (key.empty() ? "" : ", ") + c.name + " " + quantity(c.gbs, "GB/s");
  return out + "<p class=\"narrow soft\">Lines from above: " + escape(key) + "</p>\n";
}

std::string time_split(const std::vector<std::pair<std::string, double>>& parts) {
  double whole = 0;
  for (const auto& [name, seconds] : parts) whole += std::max(0.0, seconds);
  if (whole <= 0) return {};
  constexpr double height = 34;
  std::string bars, key = "<div class=\"key\">";
  double at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, seconds] = parts[i];
    if (seconds <= 0) continue;
    const double share = seconds / whole;
    const std::string colour = "var(--c" + std::to_string(i % 8 + 1) + ")";
    const std::string words = name + " " + format_seconds(seconds) + " (" + format_number(100 * share, share < 0.1 ? 1 : 0) + "%)";
    bars += "<rect x=\"" + num(at * sheets[0].width) + "\" y=\"4\" width=\"" + num(std::max(0.5, share * sheets[0].width - 1.5)) + "\" height=\"26\" fill=\"" + colour + "\"><title>" + escape(words) + "</title></rect>\n";
    key += "<span><i style=\"background:" + colour + "\"></i>" + escape(words) + "</span>";
    at += share;
  }
  return "<figure><svg viewBox=\"0 0 " + num(sheets[0].width) + " " + num(height) + "\" role=\"img\" aria-label=\"Where the time of the run went\">\n" + bars + "</svg></figure>\n" + key + "</div>\n";
}

namespace {

std::string bars_on(const sheet& on, const std::vector<bar>& bars) {
  double low = 1, high = 1;
  for (const auto& b : bars)
    if (b.value > 0) low = std::min(low, b.value), high = std::max(high, b.value);
  if (bars.empty() || low == high) return {};
  constexpr double row = 30;
  const double names = on.narrow() ? 120 : 170;
  const double height = top + row * static_cast<double>(bars.size()) + bottom;
  const axis x{low / 1.15, high * 1.15, names, on.width - on.right, true};
  const double foot = height - bottom;
  std::string out;
  for (const double t : x.ticks()) {
    out += line(x.at(t), top, x.at(t), foot, "class=\"grid\"");
    out += text(x.at(t), foot + 17, tick(t) + "x", "class=\"s\" text-anchor=\"middle\"");
  }
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = top + row * static_cast<double>(i) + 5;
    out += text(names - 10, y + 15, bars[i].label, "text-anchor=\"end\"");
    if (bars[i].value > 0) {
      const double from = std::min(x.at(1), x.at(bars[i].value)), to = std::max(x.at(1), x.at(bars[i].value));
      out += "<rect x=\"" + num(from) + "\" y=\"" + num(y) + "\" width=\"" + num(std::max(1.0, to - from)) + "\" height=\"20\" fill=\"var(" + (bars[i].value >= 1 ? "--accent" : "--bad") + ")\"/>\n";
    }
    out += text(std::max(x.at(1), bars[i].value > 0 ? x.at(bars[i].value) : 0) + 8, y + 15, bars[i].note);
  }
  out += line(x.at(1), top, x.at(1), foot, "class=\"axis\"");
  out += text((x.from + x.to) / 2, foot + 36, "speed-up over Torch, geometric mean", "class=\"s\" text-anchor=\"middle\"");
  return svg(on, height, "Speed-up per category", out);
}

} // namespace

std::string speedup_bars(const std::vector<bar>& bars) {
  std::string out;
  for (const auto& on : sheets) out += bars_on(on, bars);
  return out;
}

} // namespace pragma::html
