#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the script of the page does, in headless Chromium: tables sort by a click and filter by a
# word, rows and points light up together, folded parts open for printing. And that the page without
# a script says as much, and shows no control that does nothing.
. tests/lib/tap.sh

CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
if [ -z "$CHROMIUM" ] || ! command -v gnuplot >/dev/null; then
    echo "1..0 # SKIP needs chromium and gnuplot: apt-get install chromium gnuplot-nox"
    exit 77
fi

browser() { # options... page
    nice -n 10 "$CHROMIUM" --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
        --user-data-dir="$tap_dir/profile" --virtual-time-budget=5000 --window-size=1280,900 "$@"
}

cat >"$tap_dir/probe.js" <<'EOF'
var said = [];
addEventListener("error", function (e) { said.push("FAIL error: " + e.message); });
function expect(what, got, wanted) {
  said.push((got === wanted ? "pass " : "FAIL got \"" + got + "\" for ") + what);
}
function rows(table) { return Array.prototype.slice.call(table.tBodies[0].rows); }
function column(table, k) {
  return rows(table).map(function (r) { return r.cells[k].firstChild.textContent.trim(); });
}
function keys(table, k) {
  return rows(table).map(function (r) { return r.cells[k].getAttribute("data-sort"); });
}
function falls(list) {
  var missing = false;
  return list.every(function (v, k) {
    missing = missing || v === "";
    return missing ? v === "" : k === 0 || parseFloat(list[k - 1]) >= parseFloat(v);
  });
}
function by_heads(table) {
  var heads = table.querySelectorAll("thead th"), head = heads[1], button = head.querySelector("button");
  var before = column(table, 0).join();
  expect("no order is claimed at first", table.querySelectorAll("[aria-sort]").length, 0);
  button.focus();
  expect("the head takes the keyboard", document.activeElement, button);
  button.click();
  expect("numbers begin with the largest", falls(keys(table, 1)), true);
  expect("points without a number are last", keys(table, 1).pop(), "");
  expect("the order is announced", head.getAttribute("aria-sort"), "descending");
  button.click();
  expect("the second click turns it", head.getAttribute("aria-sort"), "ascending");
  expect("also then what has no number is last", keys(table, 1).pop(), "");
  expect("and the least is first", parseFloat(keys(table, 1)[0]) < parseFloat(keys(table, 1)[1]), true);
  heads[0].querySelector("button").click();
  expect("words begin with A", column(table, 0)[0], "alexnet");
  expect("only one head claims an order", table.querySelectorAll("[aria-sort]").length, 1);
  var names = column(table, 0);
  heads[7].querySelector("button").click();
  var valid = rows(table).filter(function (r) { return r.cells[7].textContent === "valid"; })
    .map(function (r) { return r.cells[0].firstChild.textContent.trim(); });
  expect("equal rows keep their order", valid.join(),
    names.filter(function (n) { return valid.indexOf(n) >= 0; }).join());
  expect("no row is lost", column(table, 0).sort().join(), before.split(",").sort().join());
}
function by_units() {
  var table = document.querySelector("#machine table"), values;
  table.querySelectorAll("thead button")[1].click();
  values = column(table, 1).filter(function (v) { return /iB$/.test(v); });
  expect("sizes with units are in order", values.join(), "48.0 KiB,1.25 MiB,48.0 MiB,16 GiB");
}
function by_words(table) {
  var line = table.parentNode.previousElementSibling, input = line.querySelector("input");
  function type(text) {
    input.value = text;
    input.dispatchEvent(new Event("input"));
    return rows(table).filter(function (r) { return r.getClientRects().length; }).length;
  }
  expect("a filter with a name", line.querySelector("label").contains(input), true);
  expect("one row has the word", type("mask_RCNN"), 1);
  expect("the count is announced", line.querySelector("[role=status]").textContent, "1 of 20 rows");
  expect("two words", type("resnet50 invalid"), 1);
  expect("none", type("no such thing"), 0);
  expect("all again", type(""), 20);
}
function by_pointing() {
  var row = document.getElementById("p3004"), point = document.querySelector("a.hit[data-row=p3004]");
  row.dispatchEvent(new Event("mouseenter"));
  expect("the row lights its point", point.classList.contains("on"), true);
  row.dispatchEvent(new Event("mouseleave"));
  expect("and no longer", point.classList.contains("on"), false);
  point.dispatchEvent(new Event("mouseenter"));
  expect("the point lights its row", row.classList.contains("on"), true);
  var at = point.querySelector("circle").getBoundingClientRect();
  scrollTo(0, scrollY + at.top - 300);
  at = point.querySelector("circle").getBoundingClientRect();
  var hit = document.elementFromPoint(at.left + at.width / 2, at.top + at.height / 2);
  expect("what is under the pointer is a marker", !!hit && !!hit.closest("a.hit"), true);
  expect("its title has four lines", point.querySelector("title").textContent.split("\n").length, 4);
  expect("it leads to the row", point.getAttribute("href"), "#p3004");
  location.hash = "#p3004";
  expect("the row that was chosen stands out", getComputedStyle(row.cells[0]).backgroundColor !==
    getComputedStyle(document.getElementById("p3003").cells[0]).backgroundColor, true);
}
function by_printing() {
  var closed = document.querySelectorAll("details:not([open])").length;
  dispatchEvent(new Event("beforeprint"));
  expect("nothing is folded on paper", document.querySelectorAll("details:not([open])").length, 0);
  dispatchEvent(new Event("afterprint"));
  expect("and as before afterwards", document.querySelectorAll("details:not([open])").length, closed);
  expect("something was folded", closed > 2, true);
}
addEventListener("load", function () {
  var table = document.querySelector("#results table");
  by_heads(table);
  by_units();
  by_words(table);
  by_pointing();
  by_printing();
  var pre = document.createElement("pre");
  pre.id = "said";
  pre.textContent = said.join("\n");
  document.body.insertBefore(pre, document.body.firstChild);
});
EOF
env WORKLOADS=17 RUNS=3 tests/lib/sample_db.sh "$tap_dir/many.db"
runs ridge report --db "$tap_dir/many.db" --output "$tap_dir/many"
html=$tap_dir/many/index.html
{ printf '<script>'; cat "$tap_dir/probe.js"; printf '</script>'; } >"$tap_dir/probe.html"
sed -e "/<head>/r $tap_dir/probe.html" "$html" >"$tap_dir/probed.html"
browser --dump-dom "file://$tap_dir/probed.html" >"$tap_dir/dom" 2>/dev/null
sed -n '/<pre id="said">/,/<\/pre>/p' "$tap_dir/dom" | sed 's/<[^>]*>//g' >"$tap_dir/said"
check "the script was watched" grep -q '^pass' "$tap_dir/said"
while read -r verdict what; do
    check "$what" test "$verdict" = pass
done <"$tap_dir/said"

# ---- without a script ----
sed '/^<script>/,/^<\/script>/d' "$html" >"$tap_dir/quiet.html"
check "no control without the script" sh -c "! grep -qE '<(button|input|select)|onclick' '$tap_dir/quiet.html'"
check "every result is there" test "$(grep -c '<tr id="p[0-9]*">' "$tap_dir/quiet.html")" -eq 20
check "folded parts open by themselves" test "$(grep -c '<details' "$tap_dir/quiet.html")" -ge 3

# ---- on paper ----
if command -v pdftotext >/dev/null; then
    for kind in many/index quiet; do
        browser --no-pdf-header-footer --print-to-pdf="$tap_dir/paper.pdf" \
            "file://$tap_dir/$kind.html" >/dev/null 2>&1
        pdftotext -layout "$tap_dir/paper.pdf" "$tap_dir/paper.txt"
        check "$kind on paper: the folded reasons" grep -q 'disturbed: 41 % of the samples' "$tap_dir/paper.txt"
        check "$kind on paper: the folded facts" grep -q 'spectre_v2' "$tap_dir/paper.txt"
        check "$kind on paper: no controls" sh -c "! grep -q 'Rows with' '$tap_dir/paper.txt'"
    done
fi
finish
