# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Databases of made-up runs for tests of the command line, written with the sqlite3 program so that
# every number in them is known:
#
#     made_db FILE                              an empty database
#     made_run FILE N UUID [COLUMN=VALUE...]    run N on host "box"; build=, governor=, tag=, day=,
#                                               verdict=, host=
#     made_point FILE RUN POINT MS [KEY=VALUE]  60 samples around MS; status=, verdict=, seed=, threads=,
#                                               scenario=, rate=, flops=, error= (of verification),
#                                               visits= (3), hand_over= (us beside them)
#     made_turns FILE UUID UUID                 these runs were measured in turns
#     made_ceiling FILE RUN VALUE               the FMA peak with 2 threads

made_db() {
    {
        cat results/schema/*.sql
        echo "PRAGMA user_version = $(made_schema); PRAGMA application_id = $made_application;"
    } | sqlite3 "$1"
}
made_application=$(sed -n 's/.*STORE_APPLICATION *\(=\)* *\(0x[0-9A-Fa-f]*\).*/\2/p' results/sqlite.h)
made_application=$((made_application))

# The version that all schema files together make.
made_schema() {
    find results/schema -name '*.sql' | wc -l
}

made_run() {
    made_file=$1 made_id=$2 made_uuid=$3
    shift 3
    build=b1 governor=performance tag='' day=$made_id verdict=valid host=box
    for made_pair in "$@"; do
        eval "${made_pair%%=*}=\${made_pair#*=}"
    done
    sqlite3 "$made_file" "
        INSERT OR IGNORE INTO host (uid, label) VALUES ('uid-$host', '$host');
        INSERT OR IGNORE INTO env_set (hash) VALUES ('env-$governor');
        INSERT OR IGNORE INTO env_fact SELECT id, 'cpu_state', 'governor', '$governor', '', '/sys',
            'tuning', 'ok' FROM env_set WHERE hash = 'env-$governor';
        INSERT OR IGNORE INTO env_fact SELECT id, 'library', 'onednn', '3.0', '', 'maps',
            'tuning', 'ok' FROM env_set WHERE hash = 'env-$governor';
        INSERT OR IGNORE INTO build (uid, version, git, config, compiler, flags, features)
            VALUES ('$build', '0.1', 'c0ffee$build', 'release', 'gcc 12', '-O2', 'onednn');
        INSERT INTO run SELECT $made_id, '$made_uuid', h.id, e.id, b.id, 'ridge run', 'suite.toml',
            '', 'plan', 1, printf('2026-01-%02dT00:00:00.000Z', $day), NULL, $day, 'main', '$tag',
            'finished', '$verdict', iif('$verdict' = 'valid', '', 'the governor changed'), 1, 0, ''
            FROM host AS h, env_set AS e, build AS b
            WHERE h.uid = 'uid-$host' AND e.hash = 'env-$governor' AND b.uid = '$build';"
}

made_point() {
    made_file=$1 made_id=$2 made_name=$3 made_ms=$4
    shift 4
    status=ok verdict=valid seed=$made_id threads=2
    scenario=single_stream rate='' flops=1e9 error='' visits=3 hand_over=''
    for made_pair in "$@"; do
        eval "${made_pair%%=*}=\${made_pair#*=}"
    done
    awk -v run="$made_id" -v name="$made_name" -v ms="$made_ms" -v status="$status" \
        -v verdict="$verdict" -v seed="$seed" -v threads="$threads" -v scenario="$scenario" \
        -v rate="$rate" -v flops="$flops" -v error="$error" -v visits="$visits" \
        -v hand_over="$hand_over" 'BEGIN {
        canonical = "workload=" name " params= mode=inference device=cpu precision=f32 batch=8 threads=" \
            threads " scenario=" scenario " cache=warm providers="
        key = name "-" threads (scenario == "single_stream" ? "" : "-" scenario)
        reason = status == "ok" && verdict == "valid" ? "" : "made " status " " verdict
        print "BEGIN;"
        printf "INSERT OR IGNORE INTO point (key, canonical, workload, params, domain, mode, device, " \
            "precision, batch, threads, scenario, cache, providers) VALUES (\"%s\", \"%s\", \"%s\", " \
            "\"\", \"vision\", \"inference\", \"cpu\", \"f32\", 8, %d, \"%s\", \"warm\", " \
            "\"\");\n", key, canonical, name, threads, scenario
        printf "INSERT INTO result (run, sequence, point, status, verdict, reason, verify_how, " \
            "stop_reason, started_utc, wall_s, reproduce) SELECT %d, (SELECT count(*) FROM result " \
            "WHERE run = %d), id, \"%s\", \"%s\", \"%s\", \"\", \"\", \"\", 1, \"\" FROM point WHERE " \
            "key = \"%s\";\n", run, run, status, verdict, reason, key
        result = "(SELECT max(id) FROM result)"
        printf "INSERT INTO metric (result, name, unit, source, better, value, reason, formula, n) " \
            "VALUES (%s, \"flops\", \"1\", \"model\", \"lower\", " flops ", \"\", \"\", 0), " \
            "(%s, \"time_s\", \"s\", \"clock\", \"lower\", %.9g, \"\", \"\", 60);\n", result, result, ms / 1000
        if (rate != "")
            printf "INSERT INTO metric (result, name, unit, source, better, value, reason, formula, n) " \
                "VALUES (%s, \"%s\", \"1/s\", \"derived\", \"higher\", %s, \"\", \"\", 0);\n", result, \
                (scenario == "server" ? "server_rate" : "throughput"), rate
        if (error != "")
            printf "UPDATE result SET verify_error = %s, verify_bound = 1e-5 WHERE id = %s;\n", error, result
        printf "INSERT INTO op VALUES (%s, 0, \"conv1\", \"Conv\", \"[8]\", \"gemm%s\", \"native\");\n", \
            result, (ms > 11 ? "_slow" : "")
        printf "INSERT INTO metric (result, op, name, unit, source, better, value, reason, formula, n) " \
            "VALUES (%s, 0, \"time_s\", \"s\", \"clock\", \"lower\", %.9g, \"\", \"\", 60);\n", \
            result, ms / 1250
        state = 12345 + 7919 * seed
        for (k = 0; k < 60; k++) {
            sum = 0
            for (i = 0; i < 4; i++) {
                state = (state * 16807) % 2147483647
                sum += state / 2147483647 - 0.5
            }
            printf "INSERT INTO sample (result, idx, phase, time_ns, visit) VALUES (%s, %d, \"time\", " \
                "%d, %d);\n", result, k, ms * 1e6 * (1 + 0.01 * sum), int(k * visits / 60)
        }
        for (k = 0; k < visits; k++) {
            printf "INSERT INTO visit (result, round, started_utc, samples, median_s, steal_share, " \
                "wait_share, reason) VALUES (%s, %d, \"\", %d, %.9g, 0.001, 0.002, \"\");\n", \
                result, k, 60 / visits, ms / 1000
            if (hand_over != "")
                printf "INSERT INTO level VALUES (%s, %d, \"hand_over\", \"s\", \"lower\", %.9g, " \
                    "\"\");\n", result, k, hand_over * 1e-6 * (1 + 0.01 * k)
        }
        print "COMMIT;"
    }' | sed "s/\"/'/g" | sqlite3 "$made_file"
}

made_turns() {
    sqlite3 "$1" "UPDATE run SET turns_uuid = iif(uuid = '$2', '$3', '$2') WHERE uuid IN ('$2', '$3')"
}

made_ceiling() {
    sqlite3 "$1" "INSERT INTO ceiling (run, device, kind, name, level, precision, isa, pattern,
        threads, value, unit, reason, how, n) VALUES ($2, 'cpu', 'compute', 'fma f32 avx2', '', 'f32',
        'avx2', 'fma', 2, $3, 'FLOP/s', '', 'measured', 5);"
}
