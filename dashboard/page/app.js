// Which view is on, and the stream that keeps it current.
"use strict";

(() => {
  const place = document.getElementById("view"), link = document.getElementById("link");
  const longest_log = 500;
  let stream = null, turn = 0, redraw_plots = () => {};

  async function get(address) {
    const answer = await fetch(address);
    const data = await answer.json();
    if (!answer.ok) throw new Error(data && data.error ? data.error.message + (data.error.hint ? ` (${data.error.hint})` : "") : "HTTP " + answer.status);
    return data;
  }

  function listen(query, handlers) {
    if (stream) stream.close();
    stream = new EventSource("/api/events" + query);
    stream.onopen = () => (link.textContent = "live");
    stream.onerror = () => (link.textContent = "the server is away; trying again");
    for (const [name, handle] of Object.entries(handlers)) stream.addEventListener(name, (e) => handle(JSON.parse(e.data)));
  }

  const put = (...parts) => place.replaceChildren(...parts.flat());

  async function all_runs() {
    let last = "";
    const draw = (runs) => {
      const text = JSON.stringify(runs);
      if (text === last || (place.contains(document.activeElement) && document.activeElement.tagName === "INPUT")) return;
      last = text;
      put(views.runs(runs));
    };
    draw(await get("/api/runs"));
    listen("", { runs: draw });
  }

  async function one_run(id, mine) {
    const data = await get("/api/runs/" + encodeURIComponent(id));
    if (mine !== turn) return;
    const attempts = data.attempts, head = h("div"), curve = h("canvas", { role: "img", "aria-label": "speed-up over attempts" }), roof = h("canvas", { role: "img", "aria-label": "roofline with the path of the kept versions" });
    const tree = h("div"), detail = h("div", { "aria-live": "polite" }), log = h("div", { id: "log", role: "log", tabindex: "0" });
    let run = data.run, chosen = 0, logged = false;
    const list = long_list(() => attempts.length, (i) => {
      const a = attempts[attempts.length - 1 - i]; // newest first
      return h("button", { class: "row", role: "option", "aria-selected": String(a.number === chosen), onclick: () => choose(a.number) }, h("span", {}, "#" + a.number),
        h("span", { class: a.stage === "not established" ? "soft" : a.stage !== "passed" ? "bad" : a.new_best ? "good" : "" }, a.stage === "not established" ? a.stage : a.stage !== "passed" ? "failed: " + a.stage : a.new_best ? "new best" : a.against_best ? a.against_best.value.toFixed(2) + "x of best" : "right"),
        h("span", {}, a.stage === "passed" ? show.ratio(a.speedup) : ""), h("span", { class: "soft" }, a.stage === "passed" ? show.finding(a.finding) + " " + (a.rationale || "") : a.reason));
    });
    async function choose(number) {
      chosen = number;
      list.redraw();
      try {
        const data_of = await get(`/api/runs/${encodeURIComponent(id)}/attempts/${number}`);
        if (chosen === number) detail.replaceChildren(...views.attempt(data_of));
      } catch (problem) {
        detail.replaceChildren(h("p", { class: "bad" }, problem.message));
      }
    }
    const draw = () => {
      const final = run.final && run.final.timing, environment = run.environment || {};
      head.replaceChildren(h("h1", {}, (run.task && run.task.name) || id), h("p", { class: "big" }, run.confirmed && final ? show.ratio(final.speedup) + " over Torch, confirmed" : run.state === "running" ? "running, " + attempts.length + (attempts.length === 1 ? " attempt" : " attempts") : "nothing established"),
        h("p", { class: "soft" }, [run.id, run.state, run.started, run.stop_reason, environment.cpu, environment.baseline].filter(Boolean).join("; ")));
      redraw_plots();
      tree.replaceChildren(views.tree(attempts));
      list.redraw();
    };
    redraw_plots = () => {
      plots.curve(curve, attempts);
      const kept = attempts.filter((a) => a.new_best && a.seconds > 0), first = kept[0];
      const path = (first && first.torch_seconds > 0 ? [{ name: "Torch", seconds: first.torch_seconds }] : []).concat(kept.map((a) => ({ name: "#" + a.number, seconds: a.seconds })));
      roof.hidden = !plots.roofline(roof, (run.environment || {}).limits || {}, (run.task || {}).flops, (run.task || {}).bytes, path);
    };
    put(head, curve, h("h2", {}, "Attempts"), list, detail, h("h2", {}, "Which version came from which"), tree, h("h2", {}, "Roofline, with the path of the kept versions"), roof, h("h2", {}, "Log"), log);
    draw();
    const add_to_log = (lines) => {
      const at_end = log.scrollTop + log.clientHeight > log.scrollHeight - 40; // who has scrolled up to read is left there
      log.append(...lines.slice(-longest_log).map(views.log_line));
      while (log.childElementCount > longest_log) log.firstElementChild.remove();
      if (at_end) log.scrollTop = log.scrollHeight;
    };
    /// Of a run without a log, which is of before there were logs: a line for each attempt.
    const told = (a) => ({ time: a.finished, attempt: a.number, stage: a.stage === "passed" || a.stage === "not established" ? a.stage : "failed at " + a.stage, text: a.stage === "passed" ? show.ratio(a.speedup) + (a.new_best ? ", new best" : "") : a.reason });
    add_to_log(attempts.map(told));
    listen(`?run=${encodeURIComponent(id)}&after=${attempts.length ? attempts[attempts.length - 1].number : 0}`, {
      run: (fresh) => {
        const known = attempts.length ? attempts[attempts.length - 1].number : 0;
        const more = fresh.attempts.filter((a) => a.number > known);
        attempts.push(...more);
        if (!logged) add_to_log(more.map(told));
        run = fresh.run;
        draw();
      },
      log: (lines) => {
        if (!logged || lines[0].n < logged) log.replaceChildren(); // the stream was begun anew, with all lines
        logged = lines[lines.length - 1].n + 1;
        add_to_log(lines);
      },
    });
  }

  async function route() {
    const mine = ++turn, [, view, id] = location.hash.split("/");
    redraw_plots = () => {};
    if (stream) stream.close();
    for (const a of document.querySelectorAll("nav a")) a.hash === "#/" + (view || "runs") ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
    try {
      if (view === "runs" && id) await one_run(decodeURIComponent(id), mine);
      else if (view === "suites") put(views.suites(await get("/api/suites")));
      else if (view === "cluster") put(views.cluster(await get("/api/cluster")));
      else if (view === "knowledge") put(views.knowledge((q) => get("/api/ask?q=" + encodeURIComponent(q))));
      else await all_runs();
      if (view && view !== "runs") listen("", {});
    } catch (problem) {
      put(h("h1", {}, "This could not be read"), h("p", { class: "bad" }, String(problem.message)));
    }
  }

  // The token was for the first request; the cookie that it gave does the rest.
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  window.addEventListener("hashchange", route);
  window.addEventListener("resize", () => redraw_plots());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw_plots());
  route();
})();
