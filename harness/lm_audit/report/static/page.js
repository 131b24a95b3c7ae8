"use strict";
// Everything here only adds to a page that already reads without it: filters, item tables, hover, charts on demand.
(() => {
  const root = document.documentElement;
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  async function unpack(id) {
    const bytes = Uint8Array.from(atob($("#" + id).textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  // Control and direction characters are written out, so that what is shown is what is there.
  const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{NChar}\u2028\u2029]/gu;
  const visible = (text) => text.replace(hidden, (c) => c === "\n" || c === "\t" || c === "\u200d" ? c : escapeOf(c));
  const escapeOf = (c) => {
    const code = c.codePointAt(0);
    return code < 0x100 ? "\\x" + code.toString(16).padStart(2, "0")
      : code < 0x10000 ? "\\u" + code.toString(16).padStart(4, "0") : "\\U" + code.toString(16).padStart(8, "0");
  };
  const shown = (value) => value === null || value === undefined ? "" : typeof value === "string" ? visible(value) : String(value);
  const brief = (n) => n === null ? "" : String(Number.isInteger(n) ? n : Number(n.toPrecision(4))).replace("-", "\u2212");
  const count = (n) => n.toLocaleString("en-US");

  // Links into a closed case open it.
  async function reveal() {
    const name = location.hash.length > 1 ? decodeURIComponent(location.hash.slice(1)) : "";
    const target = name && (document.getElementById(name) ?? await lateCase(name));
    if (target instanceof HTMLDetailsElement) { target.hidden = false; target.open = true; target.scrollIntoView(); }
  }
  addEventListener("hashchange", reveal);
  // Printed are the answer, the findings and the matrix; everything on request, by the button or the address.
  function printAll() {
    root.dataset.print = "all";
    $$("details").forEach((d) => { d.open = true; });
  }
  $("#print")?.addEventListener("click", () => { printAll(); print(); });
  addEventListener("afterprint", () => { delete root.dataset.print; });
  if (location.hash === "#print-all") printAll();

  // Filters over cases.
  const cases = $$("details.case");
  const search = $("#filter");
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pressed = (key) => $$(`#chips [data-${key}][aria-pressed="true"]`).map((b) => b.dataset[key]);
    const states = pressed("state"), models = pressed("model");
    const fitting = ({ text, state, model }) => words.every((w) => text.includes(w))
      && (!states.length || states.includes(state)) && (!models.length || models.includes(model));
    let left = 0;
    for (const one of cases) {
      const fits = fitting(one.dataset);
      one.hidden = !fits;
      left += fits;
    }
    left += queueLate(fitting);
    for (const section of $$("section.audit")) section.hidden = !$("details.case:not([hidden])", section) && !lateQueues.get(section.id)?.length;
    const all = cases.length + late.anchor.length;
    $("#filter-count").value = left === all ? `${count(left)} ${left === 1 ? "case" : "cases"}` : `${count(left)} of ${count(all)} cases`;
  }

  // Cases that are not in the document: packed, found by their index, inserted as they are scrolled or filtered to.
  const BATCH = 50;
  let late = { chunk: 1, section: [], anchor: [], state: [], model: [], text: [] };
  const lateQueues = new Map(), lateElements = new Map(), lateChunks = new Map(), ends = new Map($$(".more-cases").map((p) => [p.closest("section").id, p]));
  const lateReady = ends.size ? unpack("late").then((text) => { late = JSON.parse(text); filter(); }) : Promise.resolve();
  async function lateElement(at) {
    if (!lateElements.has(at)) {
      const chunk = Math.floor(at / late.chunk);
      if (!lateChunks.has(chunk)) lateChunks.set(chunk, unpack("late-" + chunk).then(JSON.parse));
      const holder = make("template");
      holder.innerHTML = (await lateChunks.get(chunk))[at % late.chunk];
      if (!lateElements.has(at)) {
        const one = holder.content.querySelector("details.case");
        $$(".tokens", one).forEach(slider);
        lateElements.set(at, one);
      }
    }
    return lateElements.get(at);
  }
  // What of them fits, section by section; the number of all.
  function queueLate(fitting) {
    for (const one of lateElements.values()) one.remove();
    for (const id of ends.keys()) lateQueues.set(id, []);
    for (let at = 0; at < late.anchor.length; at++) {
      if (fitting({ text: late.text[at], state: late.state[at], model: late.model[at] })) lateQueues.get(late.section[at]).push(at);
    }
    let total = 0;
    for (const [id, end] of ends) {
      const length = lateQueues.get(id).length;
      total += length;
      lateQueues.get(id).next = 0;
      end.hidden = !length;
      onEnd.unobserve(end);
      onEnd.observe(end);
    }
    return total;
  }
  async function insertLate(id, upTo) {
    const queue = lateQueues.get(id), end = ends.get(id);
    if (!queue || queue.busy) return;
    queue.busy = true;
    while (queue.next < Math.min(queue.length, upTo)) {
      const one = await lateElement(queue[queue.next]);
      if (lateQueues.get(id) !== queue) return; // Filtered anew meanwhile.
      $(".cases", end.parentElement).append(one);
      queue.next++;
    }
    queue.busy = false;
    const left = queue.length - queue.next;
    end.hidden = !left;
    end.textContent = `${count(left)} more case${left === 1 ? "" : "s"}, shown as you scroll or filter.`;
    onEnd.unobserve(end);
    if (left) onEnd.observe(end); // It may still be in sight.
  }
  const onEnd = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      const id = target.closest("section").id;
      if (isIntersecting) insertLate(id, (lateQueues.get(id)?.next ?? 0) + BATCH);
    }
  }, { rootMargin: "800px" });
  // A packed case that a link leads to stands last, until those before it have been scrolled to.
  async function lateCase(name) {
    await lateReady;
    const at = late.anchor.indexOf(name);
    if (at < 0) return null;
    const one = await lateElement(at);
    if (!one.isConnected) $(".cases", document.getElementById(late.section[at])).append(one);
    return one;
  }
  if (search) {
    let waiting;
    search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 60); });
    $("#chips").addEventListener("click", (event) => {
      const chip = event.target.closest("button");
      if (!chip) return;
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      filter();
    });
    addEventListener("keydown", (event) => {
      if (event.key === "/" && !event.target.closest("input, textarea, dialog")) { event.preventDefault(); search.focus(); }
    });
    filter();
  }

  // Hover: the words that Vega wrote on each mark.
  const hint = $("#hint");
  const TERMS = ".term, .lead, .few[title]";
  // What a number is: shown by hover and by keyboard focus, gone with Escape. Without scripts it is the title.
  function explain(target) {
    const text = target.dataset.hint ??= target.getAttribute("title") ?? "";
    target.removeAttribute("title");
    if (!text) return;
    hint.hidden = false;
    hint.textContent = text;
    target.setAttribute("aria-describedby", "hint");
    const box = target.getBoundingClientRect();
    const below = box.bottom + 8 + hint.offsetHeight < innerHeight;
    hint.style.left = Math.max(4, Math.min(box.left, innerWidth - hint.offsetWidth - 8)) + "px";
    hint.style.top = (below ? box.bottom + 8 : Math.max(4, box.top - hint.offsetHeight - 8)) + "px";
  }
  document.addEventListener("focusin", (event) => { if (event.target.matches?.(TERMS)) explain(event.target); });
  document.addEventListener("focusout", (event) => { event.target.removeAttribute?.("aria-describedby"); hint.hidden = true; });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hint.hidden = true; });
  function hover(event) {
    const term = event.target.closest?.(TERMS);
    if (term) { explain(term); return; }
    const mark = event.target.closest?.(".chart svg [aria-label]:not([aria-roledescription='axis'], [role='graphics-object'])");
    const label = mark?.getAttribute("aria-label");
    hint.hidden = !label;
    if (!label) return;
    hint.textContent = visible(label.replaceAll("; ", "\n"));
    const x = Math.min(event.clientX + 14, innerWidth - hint.offsetWidth - 8);
    const y = event.clientY + 18 + hint.offsetHeight > innerHeight ? event.clientY - hint.offsetHeight - 10 : event.clientY + 18;
    hint.style.left = Math.max(4, x) + "px";
    hint.style.top = y + "px";
  }
  addEventListener("pointermove", hover, { passive: true });
  addEventListener("scroll", () => { hint.hidden = true; }, { passive: true });

  // Coloured text: one frame at a time.
  $$(".tokens").forEach(slider);
  function slider(tokens) {
    const frames = $$(".frame", tokens), range = $("input", tokens);
    if (!range) return;
    const show = () => {
      frames.forEach((frame, i) => { frame.style.display = i === Number(range.value) ? "" : "none"; });
      $("output", tokens).value = `${frames[range.value].dataset.label} (${Number(range.value) + 1} of ${frames.length})`;
    };
    range.addEventListener("input", show);
    show();
  }

  // Charts that the browser draws: Vega is unpacked when the first one is opened.
  let charts;
  const library = () => charts ??= (async () => {
    const [code, specs] = await Promise.all([unpack("runtime"), unpack("charts")]);
    document.head.append(make("script", { textContent: code }));
    return JSON.parse(specs);
  })();
  async function draw(place, index) {
    try {
      const specs = await library();
      const options = { actions: false, ast: true, renderer: "svg", config: CONFIG, loader: { load: () => Promise.reject(new Error("no network")) } };
      await window.lmAuditEmbed(place, specs[index], options);
    } catch (error) {
      place.textContent = "This chart cannot be drawn: " + error.message;
    }
  }
  const CONFIG = {};
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-chart]");
    if (!button) return;
    draw($(".chart", button.parentElement), Number(button.dataset.chart));
    button.remove();
  });

  // A case is filled when it is first opened.
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("details.case[open]") && !event.target.dataset.filled) fill(event.target);
  }, true);
  function fill(one) {
    one.dataset.filled = "yes";
    for (const place of $$(".chart.lazy", one)) draw(place, Number(place.dataset.chart));
    for (const section of $$("section.items", one)) items(section);
  }

  // Item table: only the rows in sight are in the document.
  const ROW = 32;
  async function items(section) {
    const body = $(".items-body", section);
    body.textContent = "Unpacking\u2026";
    const { columns, data } = JSON.parse(await unpack(section.dataset.items));
    body.replaceChildren();
    new ItemTable(body, columns, data);
  }

  // What a table shows of its columns: the item, then numbers, then texts. A column that repeats one value over and over,
  // or that is another column again, is told once above the table; an opened item has all of them.
  function arranged(columns, data) {
    const same = [], kept = [], seen = new Set();
    columns.forEach((name, i) => {
      const values = data[i], copy = JSON.stringify(values);
      if (name !== "item" && values.length > 1 && values.every((v) => v === values[0])) { same.push([name, values[0]]); return; }
      if (name !== "item" && values.length > 1 && seen.has(copy)) return;
      seen.add(copy);
      kept.push(i);
    });
    const rank = (i) => columns[i] === "item" ? 0 : data[i].some((v) => typeof v === "number") ? 1 : typeof data[i].find((v) => v !== null) === "boolean" ? 2 : 3;
    return { same, kept: kept.sort((a, b) => rank(a) - rank(b) || a - b) };
  }

  class ItemTable {
    constructor(place, columns, data) {
      Object.assign(this, { columns, data, length: data[0]?.length ?? 0, sorted: null, down: false, current: -1 });
      this.numeric = data.map((values) => values.some((v) => typeof v === "number") && values.every((v) => v === null || typeof v === "number"));
      this.order = Array.from({ length: this.length }, (_, i) => i);
      const { same, kept } = arranged(columns, data);
      this.kept = kept;
      if (same.length) place.append(make("p", { className: "i-same" }, make("span", { textContent: "The same in every row:" }), ...same.map(([name, value]) => make("span", {}, make("b", { textContent: visible(name) + " " }), value === null ? "none" : shown(value).slice(0, 120)))));
      this.build(place);
      this.refresh();
    }

    build(place) {
      this.input = make("input", { type: "search", placeholder: "Search items", ariaLabel: "Search items" });
      this.tally = make("output");
      this.head = make("div", { className: "i-head", role: "row" });
      this.space = make("div", { className: "i-space" });
      this.view = make("div", { className: "i-view", tabIndex: 0, role: "grid", ariaLabel: "Items; arrow keys move, Enter opens" }, this.head, this.space);
      this.view.setAttribute("aria-rowcount", this.length + 1);
      this.template = this.kept.map((i) => this.width(this.data[i], i)).join(" ");
      this.head.style.gridTemplateColumns = this.template;
      this.kept.forEach((i) => {
        const name = this.columns[i];
        const button = make("button", { type: "button", textContent: visible(name), className: this.numeric[i] ? "n" : "", title: visible(name) });
        button.addEventListener("click", () => this.sort(i));
        this.head.append(make("div", { role: "columnheader" }, button));
      });
      let waiting;
      this.input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => this.refresh(), 80); });
      this.view.addEventListener("scroll", () => this.paint(), { passive: true });
      this.view.addEventListener("keydown", (event) => this.key(event));
      this.space.addEventListener("click", (event) => {
        const row = event.target.closest(".i-row");
        if (row) { this.current = Number(row.dataset.at); this.paint(); this.open(); }
      });
      place.append(make("div", { className: "i-tools" }, this.input, this.tally), this.view);
      new ResizeObserver(() => this.paint()).observe(this.view);
    }

    width(values, i) {
      if (this.numeric[i]) return Math.min(150, Math.max(84, this.columns[i].length * 7.6 + 30)) + "px";
      let longest = this.columns[i].length + 2;
      for (let at = 0; at < Math.min(values.length, 200); at++) longest = Math.max(longest, Math.min(52, shown(values[at]).length));
      return Math.max(90, longest * 7.3 + 22) + "px";
    }

    texts() {
      return this.haystack ??= Array.from({ length: this.length }, (_, row) => this.data.map((c) => shown(c[row])).join("\u0001").toLowerCase());
    }

    refresh() {
      const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const all = Array.from({ length: this.length }, (_, i) => i);
      this.order = words.length ? all.filter((row) => words.every((w) => this.texts()[row].includes(w))) : all;
      if (this.sorted !== null) this.arrange();
      this.current = -1;
      this.tally.value = words.length ? `${count(this.order.length)} of ${count(this.length)} rows` : `${count(this.length)} rows`;
      this.space.style.height = this.order.length * ROW + "px";
      this.view.scrollTop = 0;
      this.paint();
    }

    sort(column) {
      this.down = this.sorted === column ? !this.down : this.numeric[column];
      this.sorted = column;
      [...this.head.children].forEach((cell, i) => this.kept[i] === column ? cell.setAttribute("aria-sort", this.down ? "descending" : "ascending") : cell.removeAttribute("aria-sort"));
      this.refresh();
    }

    // Missing values come last in both directions.
    arrange() {
      const values = this.data[this.sorted], sign = this.down ? -1 : 1;
      const compare = this.numeric[this.sorted] ? (a, b) => a - b : new Intl.Collator("en", { numeric: true }).compare;
      this.order.sort((a, b) => {
        const x = values[a], y = values[b];
        if (x === null || y === null) return (x === null) - (y === null) || a - b;
        return sign * (this.numeric[this.sorted] ? compare(x, y) : compare(shown(x).slice(0, 200), shown(y).slice(0, 200))) || a - b;
      });
    }

    paint() {
      const first = Math.max(0, Math.floor(this.view.scrollTop / ROW) - 6);
      const last = Math.min(this.order.length, first + Math.ceil(this.view.clientHeight / ROW) + 14);
      const rows = [];
      for (let at = first; at < last; at++) rows.push(this.row(at));
      if (!this.order.length) rows.push(make("div", { className: "i-none", textContent: "Nothing matches." }));
      this.space.replaceChildren(...rows);
    }

    row(at) {
      const row = make("div", { className: at === this.current ? "i-row on" : "i-row", role: "row" });
      row.dataset.at = at;
      row.setAttribute("aria-rowindex", at + 2);
      row.style.transform = `translateY(${at * ROW}px)`;
      row.style.gridTemplateColumns = this.template;
      this.kept.forEach((i) => {
        const values = this.data[i], text = shown(values[this.order[at]]);
        row.append(make("span", { role: "gridcell", className: this.numeric[i] ? "n" : "", textContent: this.numeric[i] ? brief(values[this.order[at]]) : text.length > 300 ? text.slice(0, 300) + "\u2026" : text.replaceAll("\n", "\u23ce") }));
      });
      return row;
    }

    move(step) {
      this.current = Math.max(0, Math.min(this.order.length - 1, this.current + step));
      const top = this.current * ROW, height = this.view.clientHeight - this.head.offsetHeight;
      if (top < this.view.scrollTop) this.view.scrollTop = top;
      if (top + ROW > this.view.scrollTop + height) this.view.scrollTop = top + ROW - height;
      this.paint();
    }

    key(event) {
      const page = Math.floor(this.view.clientHeight / ROW) - 1;
      const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
      if (event.target !== this.view) return;
      if (event.key in steps) { event.preventDefault(); this.move(steps[event.key]); }
      if (event.key === "Enter" && this.current >= 0) { event.preventDefault(); this.open(); }
    }

    open() {
      const row = this.order[this.current];
      const name = this.columns.indexOf("item");
      $("h3", drawer).textContent = name < 0 ? `Row ${row + 1}` : shown(this.data[name][row]).slice(0, 160);
      $("dl", drawer).replaceChildren(...this.columns.flatMap((column, i) => this.pair(column, this.data[i][row])));
      $("dl", drawer).scrollTop = 0;
      opened = this;
      if (!drawer.open) drawer.showModal();
    }

    pair(column, value) {
      const text = shown(value);
      const kind = value === null ? "nil" : typeof value === "number" ? "n" : text.length > 120 || text.includes("\n") ? "long" : "";
      const dd = make("dd", { className: kind, textContent: value === null ? "none" : text || "(empty text)" });
      // What a model wrote for itself before it answered: any audit keeps it in a column of this name.
      if (column === "thought" && text.trim() && value !== null) {
        const fold = make("details");
        fold.append(make("summary", { textContent: `${count(text.length)} characters` }), make("div", { textContent: text }));
        dd.replaceChildren(fold);
      }
      return [make("dt", { textContent: visible(column) }), dd];
    }
  }

  // Drawer: one item in full.
  const drawer = $("#drawer");
  let opened = null;
  const step = (by) => { opened.move(by); opened.open(); };
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer || event.target.closest("[data-close]")) drawer.close();
    const button = event.target.closest("[data-step]");
    if (button) step(Number(button.dataset.step));
  });
  drawer.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (by && !event.target.closest("dd")) { event.preventDefault(); step(by); }
  });
  drawer.addEventListener("close", () => opened?.view.focus());

  // The section in sight is marked in the bar.
  const links = new Map($$(".bar-top nav a").map((a) => [a.getAttribute("href").slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) links.get(entry.target.id)?.classList.toggle("here", entry.isIntersecting);
  }, { rootMargin: "-45% 0px -50% 0px" });
  $$("main > section[id]").forEach((section) => seen.observe(section));
  reveal();
})();
