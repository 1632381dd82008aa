// Plots on a canvas, in the page's colours. No library: two plots, and nothing is fetched from elsewhere.
"use strict";

const plots = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /// A canvas at the screen's resolution, cleared; gives its context and size in CSS pixels.
  function begin(canvas) {
    const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    const to = canvas.getContext("2d");
    to.scale(scale, scale);
    to.clearRect(0, 0, width, height);
    to.font = "12px system-ui, sans-serif";
    return { to, width, height };
  }

  function ticks(low, high, log) {
    const out = [];
    if (log) {
      for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e)
        for (const m of [1, 2, 5]) if (m * 10 ** e >= low && m * 10 ** e <= high) out.push(m * 10 ** e);
      return out.length > 9 ? out.filter((v) => Math.abs(Math.log10(v) % 1) < 1e-9) : out;
    }
    const raw = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((m) => m * unit >= raw) * unit;
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) out.push(v);
    return out;
  }
  const label = (v) => (v >= 1e6 ? v.toExponential(0) : String(Number(v.toPrecision(3))));

  function axis(low, high, from, to, log) {
    const f = log ? Math.log10 : (v) => v;
    return { low, high, from, to, log, at: (v) => from + ((f(v) - f(low)) / (f(high) - f(low) || 1)) * (to - from) };
  }

  function frame({ to, width, height }, y, unit) {
    to.strokeStyle = colour("--line");
    to.fillStyle = colour("--soft");
    to.textAlign = "right";
    for (const t of ticks(y.low, y.high, y.log)) {
      to.beginPath();
      to.moveTo(54, y.at(t));
      to.lineTo(width - 10, y.at(t));
      to.stroke();
      to.fillText(label(t) + unit, 50, y.at(t) + 4);
    }
  }

  /// Speed-up of each attempt with its interval, the best so far as a step line, failed ones as marks at the foot.
  function curve(canvas, attempts) {
    const at = begin(canvas), { to, width, height } = at;
    const timed = attempts.filter((a) => a.speedup && a.speedup.value > 0);
    let low = 1, high = 1;
    for (const a of timed) {
      low = Math.min(low, a.speedup.low > 0 ? a.speedup.low : a.speedup.value);
      high = Math.max(high, a.speedup.high, a.speedup.value);
    }
    const log = high / low > 20, y = axis(log ? low / 1.3 : 0, high * 1.12, height - 26, 14, log);
    const x = axis(0.4, Math.max(1, attempts.length) + 0.6, 58, width - 12, false);
    frame(at, y, "x");
    to.setLineDash([2, 4]);
    to.strokeStyle = colour("--soft");
    to.beginPath();
    to.moveTo(58, y.at(1));
    to.lineTo(width - 12, y.at(1));
    to.stroke();
    to.setLineDash([]);
    const dense = attempts.length > 400;
    let best = 0;
    const steps = [];
    attempts.forEach((a, i) => {
      const px = x.at(i + 1);
      if (a.speedup && a.speedup.value > 0) {
        to.strokeStyle = to.fillStyle = colour("--accent");
        if (!dense) {
          to.beginPath();
          to.moveTo(px, y.at(Math.max(a.speedup.low, y.low || 1e-9)));
          to.lineTo(px, y.at(a.speedup.high));
          to.stroke();
        }
        const r = dense ? 1 : a.new_best ? 5 : 3;
        to.beginPath();
        to.arc(px, y.at(a.speedup.value), r, 0, 7);
        a.new_best || dense ? to.fill() : to.stroke();
        if (a.new_best) {
          best = a.speedup.value;
          steps.push([px, y.at(best)]);
        }
      } else {
        to.fillStyle = colour("--bad");
        to.fillRect(px - 1.5, height - 34, 3, 7);
      }
    });
    to.strokeStyle = colour("--good");
    to.lineWidth = 2;
    to.beginPath();
    steps.forEach(([px, py], i) => {
      if (i === 0) return to.moveTo(px, py);
      to.lineTo(px, steps[i - 1][1]);
      to.lineTo(px, py);
    });
    if (steps.length) to.lineTo(width - 12, steps[steps.length - 1][1]);
    to.stroke();
    to.lineWidth = 1;
    to.fillStyle = colour("--soft");
    to.textAlign = "center";
    for (const t of ticks(1, Math.max(2, attempts.length), false)) if (t >= 1 && t % 1 === 0) to.fillText(String(t), x.at(t), height - 8);
    return { best, timed: timed.length };
  }

  /// The measured roofline with the path of the versions that were kept: over intensity where the task computes, else bandwidths alone.
  function roofline(canvas, limits, flops, bytes, path) {
    const bandwidths = (limits.copy_gbs || []).filter((v) => v > 0), points = path.filter((p) => p.seconds > 0);
    if (!bandwidths.length || !points.length || !(bytes > 0)) return false;
    const names = limits.backend && limits.backend !== "cpu" ? ["L2", "DRAM"] : ["L1", "L2", "L3", "memory"];
    const name_of = (i) => (i + 1 === bandwidths.length && names.length > 2 ? "memory" : names[i] || "L" + (i + 1));
    if (flops > 0 && limits.peak_gflops > 0) over_intensity(begin(canvas), bandwidths, limits.peak_gflops, flops, bytes, points, name_of);
    else over_versions(begin(canvas), bandwidths, bytes, points, name_of);
    return true;
  }

  /// Names beside their heights, moved up where they would lie on each other, readable over lines. items: [[y, text, colour]]
  function beside(to, px, items) {
    let last = Infinity;
    to.textAlign = "left";
    to.strokeStyle = colour("--bg");
    to.lineWidth = 4;
    for (const [y, text, ink] of items.sort((a, b) => b[0] - a[0])) {
      last = Math.min(y + 4, last - 14);
      to.strokeText(text, px, last);
      to.fillStyle = colour(ink || "--soft");
      to.fillText(text, px, last);
    }
    to.lineWidth = 1;
  }

  function over_intensity(at, bandwidths, peak, flops, bytes, points, name_of) {
    const { to, width, height } = at, right = width - 12, intensity = flops / bytes, rates = points.map((p) => flops / p.seconds / 1e9);
    const low = Math.min(...rates, ...bandwidths.map((b) => b * intensity)) / 3, ridge = peak / Math.min(...bandwidths);
    const y = axis(low, Math.max(peak, ...rates) * 2, height - 30, 14, true), x = axis(Math.min(intensity, peak / Math.max(...bandwidths)) / 6, Math.max(intensity, ridge) * 4, 58, right, true);
    frame(at, y, "");
    to.save();
    to.beginPath();
    to.rect(58, 0, right - 58, height - 30);
    to.clip();
    to.strokeStyle = colour("--soft");
    for (const b of bandwidths) {
      to.beginPath();
      to.moveTo(x.at(x.low), y.at(b * x.low));
      to.lineTo(x.at(peak / b), y.at(peak));
      to.lineTo(right, y.at(peak));
      to.stroke();
    }
    to.setLineDash([3, 3]);
    to.beginPath();
    to.moveTo(x.at(intensity), 0);
    to.lineTo(x.at(intensity), height);
    to.stroke();
    to.restore();
    to.fillStyle = colour("--soft");
    to.textAlign = "center";
    to.fillText(`${label(intensity)} FLOP a byte (dashed); heights in GFLOP/s`, (58 + right) / 2, height - 8);
    to.strokeStyle = to.fillStyle = colour("--accent");
    to.lineWidth = 2;
    to.beginPath();
    rates.forEach((r, i) => (i ? to.lineTo(x.at(intensity), y.at(r)) : to.moveTo(x.at(intensity), y.at(r))));
    to.stroke();
    to.lineWidth = 1;
    rates.forEach((r, i) => {
      to.fillStyle = i === 0 && points[0].name === "Torch" ? colour("--soft") : i + 1 === rates.length ? colour("--good") : colour("--accent");
      to.beginPath();
      to.arc(x.at(intensity), y.at(r), 4.5, 0, 7);
      to.fill();
    });
    const ends = [0, rates.length - 1].filter((i, k, all) => all.indexOf(i) === k);
    beside(to, x.at(intensity) + 10, ends.map((i) => [y.at(rates[i]), `${points[i].name}: ${label(rates[i])} GFLOP/s`, "--fg"])
      .concat(bandwidths.map((b, i) => [y.at(Math.min(peak, b * intensity)), `${name_of(i)} ${label(b)} GB/s`]), [[y.at(peak) - 4, `peak ${label(peak)} GFLOP/s`]]));
  }

  function over_versions(at, bandwidths, bytes, points, name_of) {
    const { to, width, height } = at;
    const gbs = points.map((p) => bytes / p.seconds / 1e9);
    const y = axis(Math.min(...gbs, ...bandwidths) / 1.6, Math.max(...gbs, ...bandwidths) * 1.6, height - 26, 14, true);
    const x = axis(0, points.length + 1, 58, width - 110, false);
    frame(at, y, "");
    to.textAlign = "left";
    for (const v of bandwidths) {
      to.strokeStyle = colour("--soft");
      to.beginPath();
      to.moveTo(58, y.at(v));
      to.lineTo(width - 110, y.at(v));
      to.stroke();
    }
    beside(to, width - 104, bandwidths.map((v, i) => [y.at(v), `${name_of(i)} ${label(v)} GB/s`]));
    to.strokeStyle = to.fillStyle = colour("--accent");
    to.beginPath();
    points.forEach((p, i) => (i ? to.lineTo(x.at(i + 1), y.at(gbs[i])) : to.moveTo(x.at(1), y.at(gbs[0]))));
    to.stroke();
    points.forEach((p, i) => {
      to.beginPath();
      to.arc(x.at(i + 1), y.at(gbs[i]), 4.5, 0, 7);
      to.fill();
      if (points.length < 25) {
        to.textAlign = "center";
        to.fillText(p.name, x.at(i + 1), height - 8);
      }
    });
  }
  return { curve, roofline };
})();
