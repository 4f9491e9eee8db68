#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The report in headless Chromium at 1280 and 390 pixels, light and dark: no message on the console,
# nothing wider than the window, no two labels of a picture on top of each other, none cut off,
# enough contrast. Screenshots go to RIDGE_SHOTS (a folder) when it is set. A page is looked at
# inside a frame of the wanted width, since windows have a least width of their own.
. tests/lib/tap.sh

CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
if [ -z "$CHROMIUM" ] || ! command -v gnuplot >/dev/null; then
    echo "1..0 # SKIP needs chromium and gnuplot: apt-get install chromium gnuplot-nox"
    exit 77
fi

cat >"$tap_dir/probe.js" <<'EOF'
addEventListener("error", function (e) { found.push("error: " + e.message); });
var found = [];
function shown(r) { return r.width > 0 && r.height > 0; }
function luminance(colour) {
  var c = colour.match(/[\d.]+/g).slice(0, 3).map(function (v) {
    v /= 255;
    return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
  });
  return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
}
function contrast(a, b) {
  var x = luminance(a), y = luminance(b);
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}
function look_at_picture(svg, count) {
  var frame = svg.getBoundingClientRect(), name = svg.querySelector("title").id;
  if (!shown(frame)) return 0;
  var card = getComputedStyle(svg.closest("section")).backgroundColor;
  var texts = Array.prototype.map.call(svg.querySelectorAll("text"), function (t) {
    return { box: t.getBoundingClientRect(), text: t.textContent.trim(), node: t };
  }).filter(function (t) { return t.text && shown(t.box); });
  texts.forEach(function (a, i) {
    if (a.box.left < frame.left - 1 || a.box.right > frame.right + 1 ||
        a.box.top < frame.top - 2 || a.box.bottom > frame.bottom + 2)
      found.push(name + " cuts off \"" + a.text + "\"");
    if (a.box.height < 7) found.push(name + " has tiny text \"" + a.text + "\"");
    var style = getComputedStyle(a.node);
    if (style.stroke !== "none" && contrast(style.fill, card) < 4.5)
      found.push(name + " has faint text \"" + a.text + "\" " + style.fill);
    texts.slice(i + 1).forEach(function (b) {
      var w = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      var h = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (w > 1 && h > 2.5) found.push(name + ": \"" + a.text + "\" on \"" + b.text + "\"");
    });
  });
  return texts.length;
}
addEventListener("load", function () {
  var page = document.documentElement, labels = 0, pictures = 0;
  if (page.scrollWidth > page.clientWidth)
    found.push("the page is " + page.scrollWidth + " wide in " + page.clientWidth);
  document.querySelectorAll("svg").forEach(function (svg) {
    var n = svg.matches("figure svg") ? look_at_picture(svg) : 0;
    labels += n;
    pictures += n > 0;
  });
  document.querySelectorAll("p,td,th,dt,dd,h1,h2,h3,summary").forEach(function (e) {
    for (var b = e; b && getComputedStyle(b).backgroundColor === "rgba(0, 0, 0, 0)";) b = b.parentElement;
    if (b && shown(e.getBoundingClientRect()) &&
        contrast(getComputedStyle(e).color, getComputedStyle(b).backgroundColor) < 4.5)
      found.push("faint: " + e.tagName + " \"" + e.textContent.slice(0, 40) + "\"");
  });
  var head = document.querySelector("table.sortable th button");
  if (head) head.click();
  parent.postMessage("pictures " + pictures + ", labels " + labels + ", window " +
    page.clientWidth + ", findings " + found.length + "\n" + found.join("\n"), "*");
});
EOF

# The page with the probe inside, in a frame; dark: as if the reader had asked for it.
look() { # page, width, light or dark
    copy=$tap_dir/copy.html
    { printf '<script>'; cat "$tap_dir/probe.js"; printf '</script>'; } >"$tap_dir/probe.html"
    sed -e "/<head>/r $tap_dir/probe.html" "$1" >"$copy"
    [ "$3" = light ] || sed -i 's/prefers-color-scheme: dark/min-width: 1px/' "$copy"
    cat >"$tap_dir/frame.html" <<EOF
<html><body style="margin:0"><pre id="said">nothing was said</pre>
<script>onmessage = function (e) { document.getElementById("said").textContent = e.data; };</script>
<iframe src="copy.html" style="width:$2px;height:4000px;border:0"></iframe></body></html>
EOF
    nice -n 10 "$CHROMIUM" --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
        --user-data-dir="$tap_dir/profile" --enable-logging=stderr --virtual-time-budget=8000 \
        --window-size=1400,4000 --dump-dom "file://$tap_dir/frame.html" \
        >"$tap_dir/dom" 2>"$tap_dir/console"
    sed -n '/<pre id="said">/,/<\/pre>/p' "$tap_dir/dom" | sed 's/<[^>]*>//g' >"$output"
    grep 'CONSOLE' "$tap_dir/console" >"$errors"
    tap_what="$(basename "$(dirname "$1")"), $2 px, $3"
}

shot() { # page, width, name
    [ "${RIDGE_SHOTS:-}" ] || return 0
    mkdir -p "$RIDGE_SHOTS"
    sed -i 's/height:4000px/height:12000px/; s/<pre id="said">/<pre id="said" hidden>/' "$tap_dir/frame.html"
    nice -n 10 "$CHROMIUM" --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
        --user-data-dir="$tap_dir/profile" --virtual-time-budget=8000 \
        --window-size="$(($2 < 500 ? 500 : $2)),12000" --screenshot="$RIDGE_SHOTS/$3.png" \
        "file://$tap_dir/frame.html" >/dev/null 2>&1
}

clean() {
    prints "pictures [1-9][0-9]*, labels [1-9][0-9]+, window $1, findings 0\$"
    check "$tap_what: silent console" test ! -s "$errors"
}

# What it looks for it finds: a label moved onto another, a thing too wide, an error.
env tests/lib/sample_db.sh "$tap_dir/usual.db"
runs ridge report --db "$tap_dir/usual.db" --output "$tap_dir/usual"
mkdir "$tap_dir/bad"
sed -e 's|<text>DRAM 24.1 GB/s</text>|<text>DRAM 24.1 GB/s</text><text>mmmmmm</text>|' \
    -e 's|<main>|<main><div style="width:1500px">x</div><script>nowhere()</script>|' \
    "$tap_dir/usual/index.html" >"$tap_dir/bad/index.html"
look "$tap_dir/bad/index.html" 1280 light
prints 'page is [0-9]+ wide in 1280'
prints '"DRAM 24.1 GB/s" on "mmmmmm"'
prints 'error: .*nowhere'

look_everywhere() { # name of a report
    for width in 1280 390; do
        for theme in light dark; do
            look "$tap_dir/$1/index.html" "$width" "$theme"
            clean "$width"
            shot "$tap_dir/$1/index.html" "$width" "$1-$width-$theme"
        done
    done
}

cp "$tap_dir/usual.db" "$tap_dir/other.db"
tests/lib/other_machine.sh "$tap_dir/other.db"
runs ridge report "$tap_dir/usual.db" "$tap_dir/other.db" --output "$tap_dir/two"
look_everywhere two

# 37 points, most of them where a few have room: numbers and a legend. Strips of visits beside them.
cp "$tap_dir/usual.db" "$tap_dir/crowd.db"
tests/lib/more_points.sh "$tap_dir/crowd.db" 8
sqlite3 "$tap_dir/crowd.db" "INSERT INTO visit
    SELECT r.id, f.value, r.started_utc, 20, t.value * (0.98 + 0.01 * f.value), NULL, NULL, NULL, NULL, NULL,
        iif(f.value = 3, 'set apart: disturbed: made up', '')
    FROM result AS r JOIN metric AS t ON t.result = r.id AND t.op IS NULL AND t.name = 'time_s',
        generate_series(0, 3) AS f
    WHERE r.run = 3"
runs ridge report --db "$tap_dir/crowd.db" --output "$tap_dir/crowd"
check "the crowd is numbered" grep -q "^set label '30' at" "$tap_dir/crowd/plots/roofline.gp"
look_everywhere crowd

for knobs in "X=1 usual" "WORKLOADS=17 many" "HOSTILE=1 hostile" "CEILINGS=0 bare" \
    "SAMPLES=5000 tails"; do
    name=${knobs#* }
    env "${knobs% *}" tests/lib/sample_db.sh "$tap_dir/$name.db"
    runs ridge report --db "$tap_dir/$name.db" --output "$tap_dir/$name"
    look_everywhere "$name"
done
finish
