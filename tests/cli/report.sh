#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page and the plots, from databases that tests/lib/sample_db.sh writes.
. tests/lib/tap.sh

page() { # what, knobs...
    which=$1
    shift
    env "$@" tests/lib/sample_db.sh "$tap_dir/$which.db"
    runs ridge report --db "$tap_dir/$which.db" --output "$tap_dir/$which"
    html=$tap_dir/$which/index.html
}

has() { # description, pattern
    check "$which: $1" grep -qE -- "$2" "$html"
}

lacks() {
    check "$which: no $1" sh -c '! grep -qE -- "$0" "$1"' "$2" "$html"
}

drawn() {
    command -v gnuplot >/dev/null
}

# Every element is closed in order, every attribute is quoted, every id is there once and every
# reference inside the page has its target. Stricter than browsers are.
strict() {
    perl - "$html" <<'EOF'
use strict; use warnings;
local $/; open my $f, '<', $ARGV[0] or die; my $t = <$f>;
my %void = map { $_ => 1 } qw(meta br);
my (@open, %id, @ref, $line);
$t =~ s/<!DOCTYPE html>//;
$t =~ s{<(style|script)>.*?</\1>}{}gs;
while ($t =~ /\G([^<]*)(<[^>]*>)?/gc) {
    my ($text, $tag) = ($1, $2);
    die "stray > or & near: " . substr($text, 0, 80) if $text =~ /&(?!(amp|lt|gt|quot|#39|#?\w+);)/;
    last unless defined $tag;
    if ($tag =~ m{^</([\w:-]+)>$}) {
        my $top = pop @open // '';
        die "</$1> closes <$top>" if $top ne $1;
        next;
    }
    $tag =~ m{^<([\w:-]+)((?:\s+[\w:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(/?)>$}s
        or die "malformed: $tag";
    my ($name, $attributes, $closed) = ($1, $2, $3);
    while ($attributes =~ /([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g) {
        my ($key, $value) = ($1, $2 // $3);
        die "id $value twice" if $key eq 'id' && $id{$value}++;
        push @ref, substr($value, 1) if $key =~ /href$/ && $value =~ /^#./;
        die "handler $key" if $key =~ /^on/;
        die "leaves the page: $value" if $key =~ /^(href|src|xlink:href)$/ && $value =~ m{//|:};
    }
    push @open, $name unless $closed || $void{$name};
}
die "open at the end: @open" if @open;
for (@ref) { die "no target for #$_" unless $id{$_} }
EOF
}

mkdir "$tap_dir/empty" # a PATH without gnuplot: pages without pictures, in a moment

page usual X=1
prints 'usual/index.html$'
check "usual: well-formed" strict
check "usual: a workload each" test "$(grep -c '<section class="workload' "$html")" -eq 7
lacks "other host" 'https?://|src=|@import|url\((.?)https?'
has "what is not valid takes one line" \
    '<details class="banner bad" id="not-valid"><summary><strong>3 of 7 points are not valid:</strong> 1 disturbed, 1 failed, 1 skipped</summary>'
has "the reasons are folded under it" '>resnet50:version=1.5, batch 32</a> disturbed: 41 % of the samples'
has "a failure with its reason" '>gnmt, batch 8</a> gnmt: out of memory while packing weights'
has "Winograd is explained" 'convolutions by Winograd'
lacks "counting error" 'COUNTING ERROR'
has "the sentence" '% of the time is in kernels below 30 % of their'
has "recoverable seconds" 'Top offenders by recoverable seconds'
has "counters that are missing, with reasons" 'no uncore counters in a virtual machine'
has "provenance" '3274a4953ee1'
has "environment" 'Xeon'
has "few runs are drawn, not judged" '<p class="note">3 valid runs: under 12 no change of level'
has "a cell without a number sorts last" 'data-label="Throughput" data-sort="">–<'
has "interval" '± 0.4 %, n = 60'
# resnet50 takes 103.6 ms in its latest run: the page, to three digits.
has "median" '<strong>104 ms</strong>'
check "usual: the number of the store" test "$(sqlite3 "$tap_dir/usual.db" \
    "SELECT round(1e3 * value) FROM metric WHERE result = 3001 AND op IS NULL AND name = 'time_s'")" = 104.0
# ---- the first screen ----
has "the processor and what of it was used" \
    '<strong>Intel.*</strong> · 1 socket, 2 cores, 2 hardware threads, 2 threads in use · 16 GiB memory · no accelerator found'
has "when and by which program" '>2026-09-13 00:26 UTC · Ridge 0.1.0, commit 3274a4953ee1 · '
has "how many points are valid" '<h3>Valid points</h3><p class="big">4 of 7</p>'
share=$(sqlite3 "$tap_dir/usual.db" "SELECT printf('%.1f %%', 100 * exp(avg(ln(m.value))))
    FROM result AS r JOIN metric AS m ON m.result = r.id
    WHERE r.run = 3 AND r.verdict = 'valid' AND r.status = 'ok' AND m.name = 'fraction_of_peak'")
has "the geometric mean share of peak of the valid points" "<h3>Share of peak</h3><p class=\"big\">$share<"
has "over how many" 'Geometric mean over 4 valid points \(n = 4\)'
check "usual: the three largest losses, largest first" sh -c "
    grep -c '^<li><strong>.*, <a href=\"#s[0-9]*-[0-9]*\">step #' '$html' | grep -qx 3
    grep '^<li><strong>' '$html' | head -1 | grep -q '<a href=\"#r3002\">bert_large</a>, batch 1, <a href=\"#s3002-'"
has "what passes did to the work" \
    '<dt>FLOPs that passes added or removed</dt><dd>-2.50 MFLOP: fold_batch_norm -2500000</dd>'
if drawn; then
    # Roofline, breakdown and spread; a roofline, a curve and two histories for each of five.
    check "usual: all plots inside" test "$(grep -o '<svg ' "$html" | wc -l)" -eq 46
    check "usual: each for readers who do not see it" test \
        "$(grep -oE 'role="(img|group)" aria-labelledby' "$html" | wc -l)" -eq 46
    # Points of a roofline can be hovered, and lead to their rows.
    has "a point names its numbers" \
        '<a class="hit" href="#p3001" data-row="p3001"><title>resnet50, batch 1$'
    has "its share of its roof" '^52.1 % of its roof, bound by latency$'
    has "its verdict" '^not valid: disturbed: 41 % of the samples'
    has "its rate and its intensity" '^79.2 GFLOP/s at 62.2 FLOP/B</title><circle cx='
    check "usual: each measured point, wide and narrow" test \
        "$(grep -c '<a class="hit" href="#p' "$html")" -eq 10
    has "a step leads to its row" '<a class="hit" href="#s3001-[0-9]+" data-row="s3001-[0-9]+"><title>step #[0-9]+ '
    has "a step without a row is hovered only" '<g class="hit"><title>step #'
    check "usual: the data stay" test -s "$tap_dir/usual/plots/roofline.dat"
    rm "$tap_dir/usual/plots/roofline.svg"
    check "usual: the script draws it again" sh -c "cd '$tap_dir/usual/plots' && gnuplot roofline.gp &&
        grep -q bert_large roofline.svg"
    lacks "fixed colour of text" "<text[^>]*fill=.black"
fi
if command -v xmllint >/dev/null; then
    xmllint --html --noout "$html" 2>&1 | grep 'error :' |
        grep -vE 'Tag (svg|g|path|use|title|desc|defs|circle|rect|text|polygon|header|main|section|figure|figcaption|details|summary|nav|time|linearGradient|ellipse|line|polyline) invalid' \
            >"$tap_dir/lint"
    check "usual: xmllint" test ! -s "$tap_dir/lint"
fi

# ---- visits and notes of a result ----
cp "$tap_dir/usual.db" "$tap_dir/visits.db"
sqlite3 "$tap_dir/visits.db" "
    INSERT INTO visit SELECT 3001, f.value, '2026-09-13T00:26:00.000Z', 20, t.value * (0.99 + 0.01 * f.value),
        NULL, NULL, NULL, NULL, NULL,
        CASE f.value WHEN 3 THEN 'set apart: disturbed: <made up>' WHEN 2 THEN 'no clock was read' ELSE '' END
    FROM metric AS t, generate_series(0, 3) AS f
    WHERE t.result = 3001 AND t.op IS NULL AND t.name = 'time_s';
    INSERT INTO visit SELECT 3004, 0, '', 20, value, NULL, NULL, NULL, NULL, NULL, 'set apart: only one'
    FROM metric WHERE result = 3004 AND op IS NULL AND name = 'time_s';
    UPDATE op SET provider = 'reference' WHERE result = 3002 AND idx IN (3, 4);
    UPDATE metric SET formula = 'note: 2 samples <are> set apart' WHERE result = 3002 AND op IS NULL
        AND name = 'time_s'"
runs env PATH="$tap_dir/empty" "$RIDGE" report --db "$tap_dir/visits.db" --output "$tap_dir/visits"
which=visits html=$tap_dir/visits/index.html
check "visits: well-formed" strict
has "a strip with the median of each visit" \
    'aria-label="medians of the visits: 103 ms, 104 ms, 105 ms, 106 ms \(set apart\)"'
has "its ticks have titles" '<path class="visit" d="M[0-9.]+ 2V12"><title>round 1: 103 ms, -1.0 %</title>'
has "a visit that does not count" '<path class="visit apart".*set apart: disturbed: &lt;made up&gt;'
has "how far those that count are apart" '<small>4 visits, 1 set apart, 2.0 % apart</small>'
check "visits: one visit is no spread" test "$(grep -o '<svg class="visits"' "$html" | wc -l)" -eq 1
has "a set-apart visit is a note" '<li>Round 4 is set apart: disturbed: &lt;made up&gt;</li>'
has "steps on the reference kernel are a note" \
    '<li>2 steps of 172 ran on the reference kernel, which is made to be right and not to be fast: [0-9.]+ % of the time'
has "a metric may carry a note" '<li>2 samples &lt;are&gt; set apart</li>'
has "the row says how many" '<a href="#n3002">2 notes</a>'
lacks "note of one visit" 'only one'
lacks "note of a visit that counts" 'no clock was read'

page hostile HOSTILE=1
check "hostile: well-formed" strict
lacks "foreign element" '<script>alert|<b onm'
has "names are shown as they are" 'wide_deep&lt;script&gt;'
check "hostile: no command was run" test ! -e "$tap_dir/hostile/plots/pwned"

# What a reader would not assume of a point stands beside its name.
cp "$tap_dir/usual.db" "$tap_dir/unusual.db"
sqlite3 "$tap_dir/unusual.db" "UPDATE point SET scenario = 'server', cache = 'cold' WHERE workload = 'ncf'"
run ridge report --db "$tap_dir/unusual.db" --output "$tap_dir/unusual"
which=unusual html=$tap_dir/unusual/index.html
has "the scenario in the table" '>ncf</a><small>batch 1024 · f32 · 2 threads · server · cold</small>'
has "and over the section" '<h3>ncf <small>batch 1024 · server · cold</small>'
drawn && check "unusual: and in the plot" grep -q 'ncf server cold' "$tap_dir/unusual/plots/roofline.dat"

# A server's percentiles are of queries and stood behind the median of an execution, under one name;
# the plot below had those of executions.
queue=$(sqlite3 "$tap_dir/unusual.db" "SELECT r.id FROM result AS r JOIN point AS p ON p.id = r.point
    WHERE r.run = 3 AND p.workload = 'ncf'")
sqlite3 "$tap_dir/unusual.db" "UPDATE sample SET queue_ns = 5000000000 WHERE result = $queue;
    INSERT INTO metric (result, name, unit, source, better, value, reason, formula, n)
    VALUES ($queue, 'latency_p50_s', 's', 'clock', 'lower', 5.01, '', '', 0);
    UPDATE metric SET value = 5.02 WHERE result = $queue AND name = 'latency_p90_s' AND op IS NULL"
run ridge report --db "$tap_dir/unusual.db" --output "$tap_dir/unusual"
has "a server's queries wait" 'Time of a query, with that in the queue: median / p90 / p99</dt><dd>5.01 s / 5.02 s / '
check "unusual: its executions have a fastest and a median only" sh -c "
    grep '<dt>Time of an execution: fastest / median</dt><dd>[^/]* / [^/]*</dd>' '$html' | wc -l | grep -qx 1"
if drawn; then
    run ridge plot latency --result "$queue" --db "$tap_dir/unusual.db" --output "$tap_dir/queue"
    check "the plot is of queries" grep -q 'time of one query.*\[s\]' "$tap_dir/queue/latency.gp"
    check "and its curve ends where the slowest of them does" \
        awk -F'\t' '$2 == 100 { slowest = $1 } END { exit !(slowest > 5 && slowest < 5.5) }' "$tap_dir/queue/latency.dat"
fi

# "gemm" and "rnn" were printed over each other, as "gemmrnn": where points crowd they are numbered.
if drawn; then
    cp "$tap_dir/usual.db" "$tap_dir/crowd.db"
    sqlite3 "$tap_dir/crowd.db" "UPDATE metric SET value = (SELECT value FROM metric AS o
            WHERE o.result = 3001 AND o.op IS NULL AND o.name = metric.name AND o.source = metric.source)
        WHERE result BETWEEN 3001 AND 3101 AND op IS NULL AND name IN ('time_s', 'flops', 'bytes_compulsory')
            AND value IS NOT NULL"
    runs ridge plot roofline --db "$tap_dir/crowd.db" --output "$tap_dir/crowd"
    check "crowd: numbers beside the points and in the legend" test \
        "$(grep -cE "^set label '[1-5]' at" "$tap_dir/crowd/roofline.gp")" -eq 10
    check "crowd: the names are in the legend, once" test \
        "$(grep -cE "^set label '(resnet50.*|bert_large|wide_deep|ncf)' at" "$tap_dir/crowd/roofline.gp")" -eq 5
    run ridge plot roofline --db "$tap_dir/crowd.db" --output "$tap_dir/again"
    check "crowd: the same again" cmp "$tap_dir/crowd/roofline.gp" "$tap_dir/again/roofline.gp"
fi

# Eleven banners pushed the results off the screen: it is one line, whatever the number.
env WORKLOADS=17 tests/lib/sample_db.sh "$tap_dir/alerts.db"
which=alerts html=$tap_dir/alerts/index.html
sqlite3 "$tap_dir/alerts.db" "UPDATE result SET verdict = 'invalid',
        reason = 'unstable: the median is known to +-9.0 % only after 60 samples'
    WHERE run = 3 AND point BETWEEN 3 AND 13;
    UPDATE result SET reason = 'visit 2 of 3: ' || reason WHERE run = 3 AND point BETWEEN 3 AND 5"
run env PATH="$tap_dir/empty" "$RIDGE" report --db "$tap_dir/alerts.db" --output "$tap_dir/alerts"
has "groups" '<strong>14 of 20 points are not valid:</strong> 11 unstable, 1 disturbed, 1 failed, 1 skipped<'
check "alerts: one banner of points" test "$(sed -n '1,/id="results"/p' "$html" | grep -c 'class="banner [a-z]*" id="not-valid"')" -eq 1
check "alerts: no other banner before the results but Winograd's" test \
    "$(sed -n '1,/id="results"/p' "$html" | grep -c 'class="banner')" -eq 2
check "alerts: each point is in the fold" test "$(grep -c '^<li><a href="#r' "$html")" -eq 14
has "they enter no mean" 'Geometric mean over 6 valid points'

page bare CEILINGS=0 STEPS=0 RUNS=1
has "no share without a peak" 'no valid point has both FLOPs and a measured peak'
has "no losses without ceilings" 'no valid point has both a time and the ceilings'
check "bare: well-formed" strict
has "says that there are no ceilings" 'measured no ceilings'
has "and with which words a run leaves them out" '<code>measure = false</code> under <code>\[ceilings\]</code>'
has "says that there are no steps" 'No steps were timed'

# A run whose points all failed had measured its ceilings, which the page denied.
cp "$tap_dir/usual.db" "$tap_dir/failed.db"
sqlite3 "$tap_dir/failed.db" "UPDATE result SET status = 'failed', reason = 'it broke' WHERE run = 3"
run ridge report --db "$tap_dir/failed.db" --output "$tap_dir/failed"
which=failed html=$tap_dir/failed/index.html
has "its ceilings are listed" 'All [0-9]+ ceilings'
lacks "word that there are none" 'measured no ceilings'

page many WORKLOADS=17 SAMPLES=1
check "many: well-formed" strict
check "many: a row each" test "$(grep -c '<tr id="p[0-9]*"><th scope="row"' "$html")" -eq 20

tests/lib/sample_db.sh "$tap_dir/above.db"
sqlite3 "$tap_dir/above.db" "UPDATE metric SET value = value / 100 WHERE result = 3002 AND op = 0 AND name = 'time_s'"
runs ridge report --db "$tap_dir/above.db" --output "$tap_dir/above"
which=above html=$tap_dir/above/index.html
has "a point above its roof is an error" 'COUNTING ERROR: 0 workloads and 1 step lie'
has "and is shown below the offenders" '<tr class="bad" id="s3002-0"><td data-label="Step" data-sort="0"'

sqlite3 "$tap_dir/above.db" "UPDATE result SET status = 'wrong', verify_error = 0.3,
    reason = 'relative error 0.3 is above 0.001' WHERE id = 3004;
    UPDATE run SET verdict = 'invalid', reason = 'the machine throttled' WHERE id = 3"
runs ridge report --db "$tap_dir/above.db" --output "$tap_dir/above"
has "a wrong result is counted as one" 'not valid:</strong> .*1 wrong result'
has "a wrong result" '>ncf, batch 1024</a> relative error 0.3'
has "an invalid run" 'INVALID RUN</strong> the machine throttled'
check "above: well-formed when wrong" strict

sqlite3 "$tap_dir/above.db" "DELETE FROM result WHERE run = 3; UPDATE run SET state = 'interrupted' WHERE id = 3"
runs ridge report --db "$tap_dir/above.db" --output "$tap_dir/above"
has "an unfinished run says so" 'did not finish'
check "above: well-formed without results" strict

runs ridge report --db "$tap_dir/usual.db" --output "$tap_dir/older" --run latest~2
check "an older run" grep -q '2026-09-11' "$tap_dir/older/index.html"

# ---- two runs ----
cp "$tap_dir/usual.db" "$tap_dir/other.db"
tests/lib/other_machine.sh "$tap_dir/other.db"
runs ridge report "$tap_dir/usual.db" "$tap_dir/other.db" --output "$tap_dir/two"
complains 'run 5f3a0003 of bench-07, 2026-09-13'
complains 'run 6f3a0003 of bench-99, 2026-10-13'
which=two html=$tap_dir/two/index.html
drawn && has "a point of two runs leads to its verdict" '<a class="hit" href="#c[0-9]" data-row="c[0-9]">'
check "two: well-formed" strict
has "both runs" '<dt>BASE</dt><dd>bench-07, 2026-09-13T00:26 UTC<br>run 5f3a0003'
has "the page is that of HEAD" '<h1>bench-99</h1>'
has "totals" '<strong>[0-9]+ invalid, 1 missing, [0-9]+ improved</strong>'
has "figures around the runs" '<td data-label="Around the runs">load average'
has "what differs" '<td data-label="Differs">machine</td><td data-label="BASE">bench-07</td>'
has "changed work" 'work of bert_large.*flops 3.86e10.*flops 4.246e10'
has "a change with its interval" '<strong>-45.0 %</strong><small>-4[0-9.]+ % to -4[0-9.]+ %'
# A faster machine that uses less of itself.
has "shares of both roofs" 'data-label="Of its roof"[^>]*>52.1 % → 37.9 %'
has "the words are explained" '<li><span class="chip good">improved</span> faster by more than the limit'
lacks "explanation of a word that is not used" '<li><span class="chip machine">'
has "verdicts" '<span class="chip good">improved</span>'
if drawn; then
    check "two: four points moved" test "$(sed -n '/^# moves/,/^$/p' "$tap_dir/two/plots/roofline_against.dat" | grep -c vision\\\|resnet\\\|bert\\\|wide)" -ge 3
    has "the roofs of BASE" '>BASE: DRAM 24.1 GB/s<'
fi
runs ridge report --run latest --against latest~1 --db "$tap_dir/usual.db" --output "$tap_dir/same"
which=same html=$tap_dir/same/index.html
check "same: well-formed" strict
has "the same machine" 'No other difference'
lacks "roof of BASE" 'BASE: DRAM'
refuses 'is in BASE and in HEAD' ridge report latest latest --db "$tap_dir/usual.db" --output "$tap_dir/same"
refuses 'say the other run once' ridge report latest~1 latest --against latest~2 --db "$tap_dir/usual.db"
run ridge report latest --run latest~1 --db "$tap_dir/usual.db"
exits 2
run ridge report a b c --db "$tap_dir/usual.db"
exits 2
refuses 'a page shows one run' ridge report latest,latest~1 --db "$tap_dir/usual.db"
runs ridge report "$tap_dir/other.db:latest~1" --output "$tap_dir/older"
complains 'run 6f3a0002 of bench-99'

# Without gnuplot: everything but the pictures, and what to do.
runs env PATH="$tap_dir/empty" "$RIDGE" report --db "$tap_dir/usual.db" --output "$tap_dir/without"
complains 'apt-get install gnuplot-nox'
which=without html=$tap_dir/without/index.html
check "without: well-formed" strict
has "says what to install" 'apt-get install gnuplot-nox'
check "without: the data are there" test -s "$tap_dir/without/plots/roofline.dat"

refuses 'absent.db' ridge report --db "$tap_dir/absent.db"
run ridge report --db "$tap_dir/usual.db" --run nonsense
exits 2
complains nonsense
refuses '/dev/null' ridge report --db "$tap_dir/usual.db" --output /dev/null/x
run ridge report resnet50
exits 2

# ---- ridge plot ----

runs ridge plot
prints '^roofline +run'
prints '^roofline_against +two runs'
runs ridge plot --json
holds 'length == 13 and all(.[]; .name and .title and .about)'
if drawn; then
    for name in breakdown history latency roofline roofline_ops spread; do
        runs ridge plot "$name" --db "$tap_dir/usual.db" --output "$tap_dir/plots"
        check "$name is drawn" grep -q '</svg>' "$tap_dir/plots/$name.svg"
        check "$name.gp and .dat" test -s "$tap_dir/plots/$name.gp" -a -s "$tap_dir/plots/$name.dat"
    done
    runs ridge plot roofline_against --against "$tap_dir/other.db" --db "$tap_dir/usual.db" \
        --output "$tap_dir/plots"
    check "two runs are drawn" grep -q 'BASE: L2' "$tap_dir/plots/roofline_against.svg"
    # Only the first of several was drawn.
    refuses 'is 2 runs, and a plot shows one other run' ridge plot roofline_against --db "$tap_dir/usual.db" \
        --against "latest~1,$tap_dir/other.db" --output "$tap_dir/plots"
    refuses 'name the other by --against' ridge plot roofline_against --db "$tap_dir/usual.db" --output "$tap_dir/plots"
    runs ridge plot roofline --png --db "$tap_dir/usual.db" --output "$tap_dir/plots"
    check "a PNG" sh -c "head -c 4 '$tap_dir/plots/roofline.png' | grep -q PNG"
    # A result of an earlier run was said to have no samples.
    runs ridge plot latency --result 2002 --db "$tap_dir/usual.db" --output "$tap_dir/plots"
    refuses 'no result 2002 to draw; it has 3001 \(resnet50\), 3002 \(bert_large\)' \
        ridge plot latency --result 2002 --run latest --db "$tap_dir/usual.db" --output "$tap_dir/plots"
    refuses 'has no result 9999 to draw' \
        ridge plot latency --result 9999 --db "$tap_dir/usual.db" --output "$tap_dir/plots"
    runs ridge plot latency --pdf --result 3002 --db "$tap_dir/usual.db" --output "$tap_dir/plots"
    check "a PDF" sh -c "head -c 5 '$tap_dir/plots/latency.pdf' | grep -q %PDF-"
fi
run env PATH="$tap_dir/empty" "$RIDGE" plot roofline --db "$tap_dir/usual.db" --output "$tap_dir/without"
exits 5
complains 'apt-get install gnuplot-nox'
refuses 'did you mean "roofline"' ridge plot rofline --db "$tap_dir/usual.db"
run ridge plot roofline --png --pdf --db "$tap_dir/usual.db"
exits 2

finish
