"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  // Rows by statement, statements by line of the source.
  const rows = new Map(), ofLine = new Map(), order = [];
  const add = (map, key, value) => { const list = map.get(key); if (list) list.push(value); else map.set(key, [value]); };
  for (const row of document.querySelectorAll(".r[data-s]")) {
    const s = row.dataset.s;
    add(rows, s, row);
    if (row.closest("#ptx") && row.id) {
      order.push(s);
      if (row.dataset.l) add(ofLine, row.dataset.l, s);
    }
  }
  let lit = [], now = null;
  const clear = () => { for (const row of lit) row.classList.remove("on"); lit = []; now = null; };
  const show = (statements, from) => {
    clear();
    now = statements[0] ?? null;
    for (const s of statements) {
      for (const row of rows.get(s) ?? []) {
        lit.push(row);
        const line = row.dataset.l;
        if (line) { const source = document.getElementById("s" + line); if (source && !lit.includes(source)) lit.push(source); }
      }
    }
    const seen = new Set([from]);
    for (const row of lit) {
      row.classList.add("on");
      const column = row.closest("section");
      if (!seen.has(column.id)) {
        seen.add(column.id);
        const box = column.querySelector(".lines");
        if (column.offsetParent) box.scrollTop += row.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
      }
    }
    if (now) history.replaceState(null, "", "#p" + now);
  };
  document.querySelector("main").addEventListener("click", (event) => {
    if (String(getSelection())) return;
    const row = event.target.closest(".r");
    if (!row) return;
    const from = row.closest("section").id;
    if (row.dataset.s) { event.preventDefault(); show([row.dataset.s], from); }
    else if (row.dataset.l) { event.preventDefault(); show(ofLine.get(row.dataset.l) ?? [], from); }
  });
  for (const link of document.querySelectorAll("header nav a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      for (const row of document.querySelectorAll(`.h[data-e="${link.dataset.e}"]`)) {
        const box = row.closest(".lines");
        box.scrollTop += row.getBoundingClientRect().top - box.getBoundingClientRect().top;
      }
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { j: 1, k: -1 }[event.key];
    if (step && order.length) {
      const at = now === null ? (step > 0 ? -1 : order.length) : order.indexOf(now);
      const next = order[Math.min(Math.max(at + step, 0), order.length - 1)];
      show([next], "");
    } else if (event.key === "Escape") {
      clear();
      history.replaceState(null, "", location.pathname);
    } else if (event.key >= "1" && event.key <= "5") {
      document.querySelectorAll("fieldset input")[event.key - 1]?.click();
    }
  });
  const given = /^#[pi](\d+)$/.exec(location.hash);
  if (given) show([given[1]], "");
})();
