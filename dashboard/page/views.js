// What is shown, as functions from data to elements. Every text from a run, a model or a tool is set as text, never as markup.
"use strict";

/// h("p", {class: "soft"}, "text", element, ...)
function h(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) e.append(child);
  return e;
}

const show = {
  seconds(s) {
    if (!(s > 0)) return "-";
    for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]]) if (s >= size) return Number((s / size).toPrecision(3)) + " " + unit;
    return s + " s";
  },
  ratio: (i) => (i && i.value > 0 ? (i.low === undefined ? `${i.value.toFixed(2)}x so far` : `${i.value.toFixed(2)}x (${i.low.toFixed(2)} to ${i.high.toFixed(2)})`) : "not established"),
  quantity(value, unit) {
    if (typeof value !== "number" || !isFinite(value)) return "-";
    if (unit === "s") return show.seconds(value);
    const size = Math.abs(value), [scaled, letter] = size >= 1e9 ? [value / 1e9, " G"] : size >= 1e6 ? [value / 1e6, " M"] : size >= 1e4 ? [value / 1e3, " k"] : [value, ""];
    return Number(scaled.toPrecision(4)) + letter + (unit && unit !== "count" ? (unit === "%" ? "%" : " " + unit) : "");
  },
  finding: (f) => (f ? f.what + (f.level ? ` (${f.level})` : "") : ""),
};

/// A table whose heads sort it. columns: [{name, text(row), value?(row), n?}]. On a telephone a row's cells stand one below the other, each with its column's name.
function sortable(rows, columns, on_row) {
  let by = -1, down = false;
  const body = h("tbody");
  const fill = () => {
    const order = [...rows];
    if (by >= 0) {
      const key = columns[by].value || columns[by].text;
      order.sort((a, b) => {
        const x = key(a), y = key(b);
        return (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true })) * (down ? -1 : 1);
      });
    }
    body.replaceChildren(...order.map((r) => h("tr", {}, columns.map((c) => h("td", { "data-name": c.name, class: (c.n ? "n" : "") + (["", "-"].includes(c.text(r)) ? " none" : "") }, c.cell ? c.cell(r) : c.text(r))))));
  };
  const heads = columns.map((c, i) => h("th", { class: c.n ? "n" : undefined, scope: "col" }, h("button", { onclick: () => { down = by === i && !down; by = i; fill(); } }, c.name)));
  fill();
  return h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body));
}

/// A list of any length of which only what is seen exists.
function long_list(count, row_of) {
  const height = 30, spacer = h("div", { class: "spacer" }), box = h("div", { class: "rows", role: "listbox", "aria-label": "attempts" }, spacer);
  let from = -1, to = -1;
  const shown = new Map(); // number -> its row
  const draw = (force) => {
    if (force) box.style.height = Math.min(14, Math.max(1, count())) * height + 2 + "px";
    const first = Math.max(0, Math.floor(box.scrollTop / height) - 5), last = Math.min(count(), first + Math.ceil(box.clientHeight / height) + 10);
    if (!force && first === from && last === to) return;
    const before = from;
    from = first;
    to = last;
    if (force) spacer.style.height = count() * height + "px";
    for (const [i, row] of shown)
      if (force || i < first || i >= last) {
        row.remove();
        shown.delete(i);
      }
    const above = [], below = []; // in the order in which they are read
    for (let i = first; i < last; ++i) {
      if (shown.has(i)) continue;
      const row = row_of(i);
      row.style.top = i * height + "px";
      shown.set(i, row);
      (i < before && !force ? above : below).push(row);
    }
    spacer.after(...above);
    box.append(...below);
  };
  box.addEventListener("scroll", () => draw(false), { passive: true });
  box.redraw = () => draw(true);
  return box;
}

const views = {
  runs(runs) {
    if (!runs.length) return [h("h1", {}, "Runs"), h("p", {}, "No runs yet. Start one with: ", h("code", {}, "pragma optimize TASK.py"))];
    const filter = h("input", { type: "search", placeholder: "task, id or state", "aria-label": "filter runs" }), place = h("div");
    const fill = () => {
      const wanted = filter.value.toLowerCase();
      place.replaceChildren(sortable(runs.filter((r) => [r.task, r.id, r.state].join(" ").toLowerCase().includes(wanted)), [
        { name: "task", text: (r) => r.task, cell: (r) => h("a", { href: "#/runs/" + encodeURIComponent(r.id) }, r.task || r.id) },
        { name: "state", text: (r) => r.state, cell: (r) => h("span", { class: r.state === "running" ? "good" : r.state === "failed" ? "bad" : "" }, r.state) },
        { name: "over Torch (95%)", n: true, text: (r) => show.ratio(r.speedup), value: (r) => (r.speedup ? r.speedup.value : 0) },
        { name: "started", text: (r) => r.started },
        { name: "run", text: (r) => r.id },
      ]));
    };
    filter.addEventListener("input", fill);
    fill();
    return [h("h1", {}, "Runs"), h("div", { class: "bar" }, filter), place];
  },

  findings(list) {
    return (list || []).map((f) => h("div", {}, h("p", {}, h("b", {}, show.finding(f)), h("span", { class: "soft" }, ` confidence ${Number(f.confidence || 0).toFixed(2)}`)), h("p", {}, f.why),
      h("ul", {}, (f.proof || []).map((e) => h("li", {}, h("code", {}, e.metric), " ", show.quantity(e.value, e.unit), " ", e.text || ""))),
      (f.documentation || []).map((c) => h("p", { class: "soft" }, h("code", {}, c.metric), ": ", c.meaning, " [", c.entry, "; ", c.url, "]", c.quote ? ` "${c.quote}"` : "")),
      (f.remedies || []).length ? h("p", { class: "soft" }, "Try: ", f.remedies.join("; ")) : null));
  },

  metrics(now, before) {
    const others = new Map((before || []).map((m) => [m.name, m]));
    if (!(now || []).length) return h("p", { class: "soft" }, "This attempt was not profiled.");
    return sortable(now, [
      { name: "metric", text: (m) => m.name, cell: (m) => h("code", {}, m.name) },
      { name: "this", n: true, text: (m) => show.quantity(m.value, m.unit), value: (m) => m.value },
      { name: "compared with", n: true, text: (m) => (others.has(m.name) ? show.quantity(others.get(m.name).value, m.unit) : "-"), value: (m) => (others.has(m.name) ? others.get(m.name).value : 0) },
      { name: "how", text: (m) => `${m.how}, ${m.tool}` },
    ]);
  },

  attempt(data) {
    const it = data.attempt, code = it.code || {}, log = (it.verdict || {}).log, parts = [];
    parts.push(h("h2", { id: "attempt" }, "Attempt " + it.number), h("p", { class: it.stage === "passed" ? "" : "bad" }, it.stage === "passed" ? code.rationale || "" : `${it.stage === "not established" ? it.stage : "failed at " + it.stage}: ${it.reason}`));
    parts.push(...views.findings(it.findings));
    parts.push(h("details", { open: "" }, h("summary", {}, "Metrics" + (data.against ? ` beside attempt ${data.against.number}` : "")), views.metrics((code.measured || {}).metrics, data.against && data.against.metrics)));
    if (data.diff) parts.push(h("details", { open: "" }, h("summary", {}, `Changes since attempt ${data.against.number}`), h("pre", { class: "diff" }, data.diff.map((l) => h("span", { class: l.kind }, ({ added: "+ ", removed: "- ", gap: "  ... " }[l.kind] || "  ") + l.text)))));
    if ((it.reasoning || []).length) parts.push(h("details", {}, h("summary", {}, "The Conductor's reasoning"), h("pre", {}, it.reasoning.join("\n"))));
    if (log) parts.push(h("details", {}, h("summary", {}, "Build and run log"), h("pre", {}, log)));
    parts.push(h("details", {}, h("summary", {}, "Source"), h("pre", {}, code.source || "")));
    return parts;
  },

  log_line(line) {
    const at = line.time ? new Date(line.time) : null;
    return h("div", { class: "line" }, h("time", { datetime: line.time || "" }, at && !isNaN(at) ? at.toLocaleTimeString() : "-"), h("span", {}, line.attempt ? "#" + line.attempt : ""),
      h("b", { class: line.stage.startsWith("failed") ? "bad" : line.stage === "passed" ? "good" : "" }, line.stage), h("span", {}, line.text || ""));
  },

  /// Which kept version each attempt was compared with, and what came of it.
  tree(attempts) {
    const under = new Map();
    for (const a of attempts) {
      const key = a.compared_with || 0;
      if (!under.has(key)) under.set(key, []);
      under.get(key).push(a);
    }
    const deepest = 5; // indented; a long chain goes on below itself
    const branch = (key, depth) => {
      const all = under.get(key) || [], kept = all.filter((a) => a.new_best), lost = all.length - kept.length;
      return h("ul", { class: depth > deepest ? "tree flat" : "tree" }, lost ? h("li", { class: "soft" }, `${lost} that did not help`) : null,
        kept.map((a) => h("li", {}, h("b", {}, "attempt " + a.number), " ", a.against_best ? show.ratio(a.against_best) + " of the one before" : show.ratio(a.speedup) + " over Torch", h("span", { class: "soft" }, a.rationale ? ": " + a.rationale : "", a.finding ? "; what limits it: " + show.finding(a.finding) : ""), branch(a.number, depth + 1))));
    };
    return branch(0, 0);
  },

  suites(suites) {
    if (!suites.length) return [h("h1", {}, "Suites"), h("p", {}, "None named. Start the dashboard with ", h("code", {}, "--suite FOLDER"), " for each result folder of pragma bench.")];
    const place = h("div"), pick = (id) => h("select", { "aria-label": id }, suites.map((s, i) => h("option", { value: i }, s.name))), one = pick("suite"), two = pick("compared with");
    two.prepend(h("option", { value: -1, selected: "" }, "compare with ..."));
    const fill = () => {
      const other = new Map(((suites[two.value] || {}).tasks || []).map((t) => [t.name, t]));
      const columns = [
        { name: "task", text: (t) => t.name },
        { name: "state", text: (t) => t.status },
        { name: "over Torch (95%)", n: true, text: (t) => (t.status === "ok" ? show.ratio(t.speedup) : "-"), value: (t) => (t.status === "ok" && t.speedup ? t.speedup.value : 0) },
        { name: "kernel", n: true, text: (t) => show.seconds(t.candidate_seconds), value: (t) => t.candidate_seconds || 0 },
        { name: "why not", text: (t) => t.reason || "" },
      ];
      if (other.size) {
        const figure = (t) => (t && t.status === "ok" && t.speedup && t.speedup.low > 0 ? t.speedup : null);
        /// Both were timed against Torch, apart from each other: the interval holds those of both.
        const change = (t) => {
          const now = figure(t), then = figure(other.get(t.name));
          return now && then ? { value: now.value / then.value, low: now.low / then.high, high: now.high / then.low } : null;
        };
        columns.splice(3, 0, { name: "there", n: true, text: (t) => (figure(other.get(t.name)) ? show.ratio(figure(other.get(t.name))) : (other.get(t.name) || { status: "-" }).status), value: (t) => (figure(other.get(t.name)) || { value: 0 }).value },
          { name: "as fast as there", n: true, text: (t) => (change(t) ? show.ratio(change(t)) : "-"), value: (t) => (change(t) || { value: 0 }).value,
            cell: (t) => { const c = change(t); return c ? h("span", { class: c.low > 1 ? "good" : c.high < 1 ? "bad" : "soft" }, show.ratio(c) + (c.low <= 1 && c.high >= 1 ? ", no difference established" : "")) : "-"; } });
      }
      place.replaceChildren(sortable((suites[one.value] || suites[0]).tasks || [], columns));
    };
    one.addEventListener("change", fill);
    two.addEventListener("change", fill);
    fill();
    return [h("h1", {}, "Suites"), h("div", { class: "bar" }, one, two), place];
  },

  /// "RUN/NUMBER KIND" of a node's job in words.
  job(text) {
    const found = /\/?([^/]+)\/(\d+) (\w+)$/.exec(text);
    const words = { load: "loading the task of", verify: "building and checking", measure: "measuring", confirm: "confirming the best of" };
    return found ? `${words[found[3]] || found[3]} ${found[1]}, job ${found[2]}` : text;
  },

  cluster(status) {
    if (!status) return [h("h1", {}, "Cluster"), h("p", {}, "No head is configured: runs work in the process that starts them. To see a head's nodes: ", h("code", {}, "pragma dashboard --head HOST:PORT"), ".")];
    const devices = [], members = status.members || [];
    for (const m of members) {
      const n = m.node || {}, facts = n.facts || {}, leases = new Map((n.leases || []).map((l) => [l.device, l]));
      const held = new Set((n.leases || []).map((l) => l.job));
      for (const d of facts.devices || []) {
        const lease = leases.get(d.id);
        devices.push({ node: facts.name, device: d.id, model: d.model || "", tools: (d.tools || []).join(", ") || "none",
          doing: lease && lease.job ? views.job(lease.job) + ", for " + show.seconds(Math.max(0, status.up_seconds - lease.since)) : n.state === "quarantined" ? "quarantined: " + (n.reason || "") : "free" });
      }
      for (const job of n.jobs || []) if (!held.has(job)) devices.push({ node: facts.name, device: "a slot", model: "", tools: "", doing: views.job(job) });
    }
    const runs = (status.runs || []).filter((r) => r.state === "running" || r.state === "queued");
    return [h("h1", {}, "Cluster"),
      h("p", { class: "soft" }, `head ${status.listen || ""}, pragma ${status.version || ""}, up ${show.seconds(status.up_seconds)}`),
      h("p", { id: "queue" }, h("b", {}, `${status.in_flight || 0} jobs in flight, ${status.queued || 0} queued`), ` of ${status.assigned || 0} given out; mean wait ${show.seconds(status.mean_queue_seconds)}; ${status.requeued || 0} queued again`),
      h("h2", {}, "Devices and what they do"), devices.length ? sortable(devices, [
        { name: "node", text: (d) => d.node }, { name: "device", text: (d) => d.device }, { name: "doing", text: (d) => d.doing, cell: (d) => h("span", { class: d.doing === "free" ? "soft" : "" }, d.doing) },
        { name: "model", text: (d) => d.model }, { name: "tools", text: (d) => d.tools }]) : h("p", {}, "No device: ", h("code", {}, "pragma node --join HOST:PORT"), " on a machine with hardware."),
      h("h2", {}, "Nodes"), sortable(members, [
        { name: "node", text: (m) => m.node.facts.name }, { name: "state", text: (m) => m.node.state },
        { name: "done", n: true, text: (m) => String(m.node.done), value: (m) => m.node.done }, { name: "failed", n: true, text: (m) => String(m.node.failed), value: (m) => m.node.failed },
        { name: "round trip", n: true, text: (m) => (m.round_trip_ms > 0 ? show.seconds(m.round_trip_ms / 1e3) : "-"), value: (m) => m.round_trip_ms || 0 },
        { name: "heard", n: true, text: (m) => show.seconds(m.silent_seconds) + " ago", value: (m) => m.silent_seconds || 0 },
        { name: "lacks", text: (m) => (m.missing || []).join("; ") }]),
      h("h2", {}, "Queue"), runs.length ? sortable(runs, [
        { name: "task", text: (r) => r.task, cell: (r) => h("a", { href: "#/runs/" + encodeURIComponent(r.id) }, r.task || r.id) }, { name: "state", text: (r) => r.state },
        { name: "attempt", n: true, text: (r) => String(r.attempts), value: (r) => r.attempts }, { name: "owner", text: (r) => r.owner || "" }, { name: "priority", n: true, text: (r) => String(r.priority), value: (r) => r.priority }])
        : h("p", { class: "soft" }, "No run is under way.")];
  },

  knowledge(ask) {
    const input = h("input", { type: "search", placeholder: "which counter shows branch mispredictions", "aria-label": "question", size: 44 }), place = h("div");
    const form = h("form", { class: "bar" }, input, h("button", {}, "Ask"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      place.replaceChildren(h("p", { class: "soft" }, "looking ..."));
      try {
        const found = await ask(input.value);
        place.replaceChildren(found.covered ? "" : h("p", {}, "The compendium does not cover this. Nearest all the same:"), ...(found.entries || []).map((e) => h("div", { class: "card" }, h("b", {}, e.name), " ", h("span", { class: "soft" }, e.profiler || "concept"), h("p", {}, e.meaning || e.measurement), h("p", {}, e.reading || ""), (e.sources || []).slice(0, 2).map((s) => h("p", { class: "soft" }, s.url)))));
      } catch (problem) {
        place.replaceChildren(h("p", { class: "bad" }, String(problem.message)));
      }
    });
    return [h("h1", {}, "Knowledge base"), form, place];
  },
};
