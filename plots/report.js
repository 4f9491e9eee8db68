/* SPDX-License-Identifier: Apache-2.0
 * Sorts a table by the column that is clicked. The page says everything without it. */
"use strict";
document.querySelectorAll("table.sortable").forEach(function (table) {
  var heads = table.tHead.rows[0].cells;
  function key(row, column) {
    var cell = row.cells[column], number = cell.getAttribute("data-sort");
    return number === null ? cell.textContent.toLowerCase() : parseFloat(number);
  }
  function sort(column) {
    var head = heads[column], down = head.getAttribute("aria-sort") !== "descending";
    var rows = Array.prototype.slice.call(table.tBodies[0].rows);
    rows.sort(function (a, b) {
      var x = key(a, column), y = key(b, column);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    Array.prototype.forEach.call(heads, function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  }
  Array.prototype.forEach.call(heads, function (head, column) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", function () { sort(column); });
    head.textContent = "";
    head.appendChild(button);
  });
});
