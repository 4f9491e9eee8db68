/* SPDX-License-Identifier: Apache-2.0
 * Tables sort by a click on a head and show the rows with a word; a row and its point of a roofline
 * light up together; folded parts open for printing. The page says everything without this. */
"use strict";
(function () {
  var FILTER_ROWS = 8; /* shorter tables need no filter */
  var words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  var factors = { n: 1e-9, "\u00b5": 1e-6, "\u03bc": 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12,
    P: 1e15, Ki: 1024, Mi: 1048576, Gi: 1073741824, Ti: 1099511627776 };

  function all(selector, from) {
    return Array.prototype.slice.call((from || document).querySelectorAll(selector));
  }

  /* "12.3 ms" is 0.0123, "1.5 GiB" is 1610612736; null: no quantity. */
  function quantity(text) {
    var m = /^([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:(n|\u00b5|\u03bc|m|k|M|G|T|P|[KMGT]i)?(s|B|B\/s|Hz|J|FLOP|FLOP\/s|OP\/s|\/s)|%)?$/.exec(text);
    return m ? parseFloat(m[1]) * (factors[m[2]] || 1) : null;
  }

  /* What a cell sorts by: a number, a text, or null where there is nothing. */
  function key(cell) {
    var given = cell.getAttribute("data-sort"), text = cell.textContent.trim();
    if (given !== null) return given === "" ? null : parseFloat(given);
    if (text === "" || text === "\u2013") return null;
    var number = quantity(text);
    return number === null ? text : number;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return words.compare(a, b);
  }

  /* Equal rows keep their order; rows without a value are last in both directions. */
  function sort(table, column, down) {
    var body = table.tBodies[0], heads = table.tHead.rows[0].cells;
    var rows = Array.prototype.map.call(body.rows, function (row, place) {
      return { row: row, place: place, key: key(row.cells[column]) };
    });
    rows.sort(function (a, b) {
      if (a.key === null || b.key === null)
        return (a.key === null) - (b.key === null) || a.place - b.place;
      return (down ? compare(b.key, a.key) : compare(a.key, b.key)) || a.place - b.place;
    });
    rows.forEach(function (item) { body.appendChild(item.row); });
    Array.prototype.forEach.call(heads, function (head) { head.removeAttribute("aria-sort"); });
    heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  /* Numbers begin with the largest, texts with A. */
  function make_sortable(table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", function () {
        var now = head.getAttribute("aria-sort"), number = head.classList.contains("num");
        sort(table, column, now ? now === "ascending" : number);
      });
      head.textContent = "";
      head.appendChild(button);
    });
  }

  /* All words must be in the row, in any order and case. */
  function make_filter(table) {
    var rows = Array.prototype.slice.call(table.tBodies[0].rows);
    if (rows.length < FILTER_ROWS) return;
    var line = document.createElement("p"), label = document.createElement("label");
    var input = document.createElement("input"), count = document.createElement("span");
    line.className = "filter";
    label.textContent = "Rows with ";
    input.type = "search";
    count.setAttribute("role", "status");
    input.addEventListener("input", function () {
      var asked = input.value.toLowerCase().split(/\s+/), shown = 0;
      rows.forEach(function (row) {
        var text = row.textContent.toLowerCase();
        row.hidden = !asked.every(function (word) { return text.indexOf(word) >= 0; });
        shown += !row.hidden;
      });
      count.textContent = input.value.trim() ? shown + " of " + rows.length + " rows" : "";
    });
    label.appendChild(input);
    line.appendChild(label);
    line.appendChild(count);
    table.parentNode.parentNode.insertBefore(line, table.parentNode);
  }

  /* A point of a picture names its row in data-row. */
  function link_points() {
    function light(row, on) {
      all("[data-row=\"" + row + "\"]").forEach(function (point) {
        point.classList.toggle("on", on);
      });
    }
    var points = all("[data-row]"), seen = {};
    points.forEach(function (point) {
      var id = point.getAttribute("data-row"), row = document.getElementById(id);
      if (!row) return;
      point.addEventListener("mouseenter", function () { row.classList.add("on"); });
      point.addEventListener("mouseleave", function () { row.classList.remove("on"); });
      point.addEventListener("click", function () { row.hidden = false; });
      if (seen[id]) return;
      seen[id] = true;
      [["mouseenter", true], ["mouseleave", false], ["focusin", true], ["focusout", false]]
        .forEach(function (pair) {
          row.addEventListener(pair[0], function () { light(id, pair[1]); });
        });
    });
    function follow_target() {
      all(".chosen").forEach(function (point) { point.classList.remove("chosen"); });
      all("[data-row=\"" + location.hash.slice(1).replace(/[^\w-]/g, "") + "\"]")
        .forEach(function (point) { point.classList.add("chosen"); });
    }
    addEventListener("hashchange", follow_target);
    follow_target();
  }

  /* Folded parts are open on paper, and as they were afterwards. */
  function open_for_print() {
    var closed = [];
    addEventListener("beforeprint", function () {
      closed = all("details:not([open])");
      closed.forEach(function (part) { part.open = true; });
    });
    addEventListener("afterprint", function () {
      closed.forEach(function (part) { part.open = false; });
    });
  }

  all("table.sortable").forEach(function (table) {
    make_sortable(table);
    make_filter(table);
  });
  link_points();
  open_for_print();
}());
