"use strict";
(function () {
  document.documentElement.classList.add("js");
  // Tables that sort: a click or the key Enter on a heading; numbers by data-v, the greatest first, words from A on.
  document.querySelectorAll("table.sorts").forEach(function (table) {
    var body = table.tBodies[0];
    table.querySelectorAll("thead th").forEach(function (th, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = th.textContent;
      th.textContent = "";
      th.appendChild(button);
      var first = th.classList.contains("n") ? "descending" : "ascending";
      var other = first === "descending" ? "ascending" : "descending";
      button.addEventListener("click", function () {
        var now = th.getAttribute("aria-sort") === first ? other : first;
        table.querySelectorAll("th").forEach(function (each) { each.removeAttribute("aria-sort"); });
        th.setAttribute("aria-sort", now);
        var key = function (row) {
          var cell = row.cells[column], v = cell.getAttribute("data-v");
          return v === null ? cell.textContent : parseFloat(v);
        };
        var rows = Array.prototype.slice.call(body.rows);
        rows.sort(function (a, b) {
          var x = key(a), y = key(b);
          var order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
          return now === "descending" ? -order : order;
        });
        body.append.apply(body, rows);
      });
    });
  });
  // A line of the source lights the PTX that came from it, and the other way round.
  var lit = [];
  function light(rows) {
    lit.forEach(function (row) { row.classList.remove("lit"); });
    lit = rows;
    lit.forEach(function (row) { row.classList.add("lit"); });
  }
  // The row, in the middle of what scrolls around it, with everything unfolded that it lies in.
  function show(row) {
    for (var at = row.closest("details"); at; at = at.parentElement.closest("details")) { at.open = true; }
    row.scrollIntoView({ block: "center" });
  }
  document.addEventListener("click", function (event) {
    var row = event.target.closest("tr[data-s]");
    if (!row || String(getSelection())) { return; }
    var section = row.closest("section") || document;
    var all = Array.prototype.slice.call(section.querySelectorAll('tr[data-s="' + row.getAttribute("data-s") + '"]'));
    light(all);
    var side = row.closest(".src") ? ".ptx" : ".src";
    var there = all.filter(function (each) { return each.closest(side); })[0];
    if (there) {
      event.preventDefault();
      // On a narrow page one side lies above the other: what was clicked stays in sight there, unless it was a link.
      if (getComputedStyle(there.closest(side)).position === "sticky" || side === ".ptx" || event.target.closest("a")) { show(there); }
      else { there.closest(side).scrollTop += there.getBoundingClientRect().top - there.closest(side).getBoundingClientRect().top - 40; }
    }
  });
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") { light([]); } });
  function arrive() {
    var row = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (row) { show(row); }
  }
  addEventListener("hashchange", arrive);
  if (location.hash) { arrive(); }
})();
