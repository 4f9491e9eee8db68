/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases among simulated ranks: smpirun with plugins/collective/simulated/ranks.so
 * (collective/simulate/main.c), on a network written out from a few numbers. Without the settings
 * below SimGrid's figures are those of an old cluster that it was calibrated on, or include the
 * time of this machine's CPU. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/plugin_files.h"
#include "collective/timing_text.h"
#include "harness/bench/bench.h"
#include "harness/bench/platform.h"
#include "harness/turns/asked_child.h"

enum { PATH_BYTES = 4096, OUTPUT_BYTES = 4 << 20, LIMIT_S = 3600 };

/* As much as all ranks together may have before they share one memory. */
#define OWN_MEMORY_BYTES (INT64_C(2) << 30)

struct paths {
    char folder[64], platform[96], hosts[96], cases[96], program[PATH_BYTES + 64];
};

static void find_program(const char *folder, bool named, void *context)
{
    struct paths *paths = context;
    char path[PATH_BYTES + 64];
    (void)named;
    snprintf(path, sizeof(path), "%s/collective/simulated/ranks.so", folder);
    if (!paths->program[0] && access(path, R_OK) == 0)
        snprintf(paths->program, sizeof(paths->program), "%s", path);
}

static enum status make_paths(struct paths *paths, struct error *err)
{
    plugin_folders_each(find_program, paths);
    const char *left_out = plugin_left_out("simgrid");
    if (!paths->program[0])
        return UNSUPPORTED(err, "nothing to simulate with: %s",
                           left_out ? left_out : "plugins/collective/simulated/ranks.so: make");
    snprintf(paths->folder, sizeof(paths->folder), "/tmp/ridge-simulation-XXXXXX");
    if (!mkdtemp(paths->folder))
        return FAIL(err, STATUS_FAILED, "no folder %s", paths->folder);
    snprintf(paths->platform, sizeof(paths->platform), "%s/platform.xml", paths->folder);
    snprintf(paths->hosts, sizeof(paths->hosts), "%s/hosts", paths->folder);
    snprintf(paths->cases, sizeof(paths->cases), "%s/cases", paths->folder);
    return STATUS_OK;
}

static void remove_paths(const struct paths *paths)
{
    unlink(paths->platform);
    unlink(paths->hosts);
    unlink(paths->cases);
    rmdir(paths->folder);
}

/* Nothing is computed, so nothing is copied alone; and SimGrid's MPI_Iallreduce in place is wrong.
 */
static bool is_simulated(const struct timing_case *c)
{
    bool own = c->algorithm && c->algorithm->own == OWN_STARTED;
    return !c->copies && !(own && c->in_place);
}

static enum status write_files(const struct bench *bench, const struct bench_part *part,
                               const struct platform *platform, const struct paths *paths,
                               struct error *err)
{
    FILE *xml = fopen(paths->platform, "we"), *hosts = fopen(paths->hosts, "we");
    FILE *cases = fopen(paths->cases, "we");
    bool good = xml && hosts && cases;
    if (good) {
        platform_write_xml(platform, bench->timing.ranks, xml);
        platform_write_hosts(platform, bench->timing.ranks, hosts);
        for (int k = 0; k < part->count; k++)
            if (is_simulated(&part->cases[k]))
                timing_case_write(cases, k, &part->cases[k]);
    }
    good = (!xml || fclose(xml) == 0) && good;
    good = (!hosts || fclose(hosts) == 0) && good;
    good = (!cases || fclose(cases) == 0) && good;
    return good ? STATUS_OK : FAIL(err, STATUS_FAILED, "cannot write into %s", paths->folder);
}

static enum status run(const struct bench *bench, const struct platform *platform,
                       const struct paths *paths, char *text, struct error *err)
{
    static const char *const environment[] = {NULL};
    const struct schedule_options *o = &bench->timing.schedule;
    char ranks[16], lanes[16], segment[32], node_ranks[16], costs[3][64];
    static const char *const ends[] = {"os", "ois", "or"};
    bool shared = bench->to * 2 * bench->timing.ranks > OWN_MEMORY_BYTES;
    snprintf(ranks, sizeof(ranks), "%d", bench->timing.ranks);
    snprintf(lanes, sizeof(lanes), "%d", o->lanes);
    snprintf(segment, sizeof(segment), "%" PRId64, o->segment_bytes);
    snprintf(node_ranks, sizeof(node_ranks), "%d",
             o->node_ranks ? o->node_ranks : (int)platform->ranks_per_host);
    for (int k = 0; k < 3; k++)
        snprintf(costs[k], sizeof(costs[k]), "--cfg=smpi/%s:0:%.9g:0", ends[k],
                 platform->message_us * 1e-6);
    const char *const words[] = {"smpirun",
                                 "-np",
                                 ranks,
                                 "-platform",
                                 paths->platform,
                                 "-hostfile",
                                 paths->hosts,
                                 "--cfg=network/model:CM02",
                                 "--cfg=network/crosstraffic:no",
                                 "--cfg=smpi/async-small-thresh:65536",
                                 "--cfg=smpi/simulate-computation:no",
                                 "--cfg=smpi/test:1e-6",
                                 "--cfg=smpi/iprobe:1e-6",
                                 "--cfg=smpi/shared-malloc-blocksize:16777216",
                                 costs[0],
                                 costs[1],
                                 costs[2],
                                 "--log=root.thres:error",
                                 paths->program,
                                 paths->cases,
                                 ranks,
                                 shared ? "1" : "0",
                                 lanes,
                                 segment,
                                 node_ranks,
                                 NULL};
    return asked_child_output(words, environment, LIMIT_S, text, OUTPUT_BYTES, err);
}

enum status bench_simulate(const struct bench *bench, const struct bench_part *part,
                           struct timing *results, struct error *err)
{
    struct platform platform;
    struct paths paths = {.program = ""};
    TRY(platform_read(bench->platform, &platform, err));
    TRY(make_paths(&paths, err));
    char *text = malloc(OUTPUT_BYTES);
    enum status status =
        text ? write_files(bench, part, &platform, &paths, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK)
        status = run(bench, &platform, &paths, text, err);
    if (status == STATUS_OK)
        status = bench_read_lines(text, part, results, err);
    remove_paths(&paths);
    free(text);
    return status;
}
