"use strict";
(function () {
  // Tables that sort: a click or the key Enter on a heading; numbers by data-v.
  document.querySelectorAll("table.sorts").forEach(function (table) {
    var body = table.tBodies[0];
    table.querySelectorAll("thead th").forEach(function (th, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = th.textContent;
      th.textContent = "";
      th.appendChild(button);
      button.addEventListener("click", function () {
        var down = th.getAttribute("aria-sort") !== "descending";
        table.querySelectorAll("th").forEach(function (other) { other.removeAttribute("aria-sort"); });
        th.setAttribute("aria-sort", down ? "descending" : "ascending");
        var key = function (row) {
          var cell = row.cells[column], v = cell.getAttribute("data-v");
          return v === null ? cell.textContent : parseFloat(v);
        };
        var rows = Array.prototype.slice.call(body.rows);
        rows.sort(function (a, b) {
          var x = key(a), y = key(b);
          var order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
          return down ? -order : order;
        });
        rows.forEach(function (row) { body.appendChild(row); });
      });
    });
  });
  // A line of the source lights the PTX that came from it, and the other way round.
  function light(rows) {
    document.querySelectorAll("tr.lit").forEach(function (row) { row.classList.remove("lit"); });
    rows.forEach(function (row) { row.classList.add("lit"); });
  }
  document.querySelectorAll("tr[data-s]").forEach(function (row) {
    row.addEventListener("click", function (event) {
      var name = row.getAttribute("data-s");
      var all = Array.prototype.slice.call(document.querySelectorAll('tr[data-s="' + CSS.escape(name) + '"]'));
      light(all);
      var other = all.filter(function (r) { return r.closest("table") !== row.closest("table"); })[0];
      if (other) {
        other.scrollIntoView({ block: "nearest" });
        if (event.target.closest("a")) { event.preventDefault(); }
      }
    });
  });
})();
