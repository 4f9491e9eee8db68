/* SPDX-License-Identifier: Apache-2.0
 *
 * Without the settings below SimGrid's figures are those of an old cluster that it was calibrated
 * on, or include the time of this machine's CPU. */
#define _GNU_SOURCE
#include "harness/bench/smpi.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/system/plugin_files.h"
#include "harness/turns/asked_child.h"

enum { PATH_BYTES = 4096, SETTINGS = 5, WORDS = 24 + SMPI_ARGUMENTS, LIMIT_S = 3600 };

static void find_program(const char *folder, bool named, void *context)
{
    struct smpi *smpi = context;
    char path[PATH_BYTES + 64];
    (void)named;
    snprintf(path, sizeof(path), "%s/collective/simulated/ranks.so", folder);
    if (!smpi->program[0] && access(path, R_OK) == 0)
        snprintf(smpi->program, sizeof(smpi->program), "%s", path);
}

static enum status find_ranks(struct smpi *smpi, struct error *err)
{
    plugin_folders_each(find_program, smpi);
    const char *left_out = plugin_left_out("simgrid");
    if (!smpi->program[0])
        return UNSUPPORTED(err, "nothing to simulate with: %s",
                           left_out ? left_out : "plugins/collective/simulated/ranks.so: make");
    return STATUS_OK;
}

enum status smpi_ready(struct error *err)
{
    struct smpi smpi = {.ranks = 0};
    return find_ranks(&smpi, err);
}

static enum status make_folder(struct smpi *smpi, struct error *err)
{
    TRY(find_ranks(smpi, err));
    const char *parent = getenv("TMPDIR");
    snprintf(smpi->folder, sizeof(smpi->folder), "%s/ridge-simulation-XXXXXX",
             parent && *parent ? parent : "/tmp");
    if (!mkdtemp(smpi->folder))
        return FAIL(err, STATUS_FAILED, "no folder %s", smpi->folder);
    snprintf(smpi->network, sizeof(smpi->network), "%s/platform.xml", smpi->folder);
    snprintf(smpi->hosts, sizeof(smpi->hosts), "%s/hosts", smpi->folder);
    snprintf(smpi->input, sizeof(smpi->input), "%s/input", smpi->folder);
    return STATUS_OK;
}

static enum status write_network(const struct smpi *smpi, struct error *err)
{
    FILE *xml = fopen(smpi->network, "we"), *hosts = fopen(smpi->hosts, "we");
    bool good = xml && hosts;
    if (good) {
        platform_write_xml(&smpi->platform, smpi->ranks, xml);
        platform_write_hosts(&smpi->platform, smpi->ranks, hosts);
    }
    good = (!xml || fclose(xml) == 0) && good;
    good = (!hosts || fclose(hosts) == 0) && good;
    return good ? STATUS_OK : FAIL(err, STATUS_FAILED, "cannot write into %s", smpi->folder);
}

enum status smpi_open(const char *platform, int ranks, struct smpi *smpi, struct error *err)
{
    *smpi = (struct smpi){.ranks = ranks};
    TRY(platform_read(platform, &smpi->platform, err));
    TRY(make_folder(smpi, err));
    enum status status = write_network(smpi, err);
    if (status != STATUS_OK)
        smpi_close(smpi);
    return status;
}

void smpi_close(const struct smpi *smpi)
{
    unlink(smpi->network);
    unlink(smpi->hosts);
    unlink(smpi->input);
    rmdir(smpi->folder);
}

/* A connection carries at most window / round trip: SimGrid's bound for a flow. */
static void set_flow(const struct platform *p, char *text, size_t size)
{
    double window = p->flow_gbit_s * 1e9 / 8 * 4 * p->link_latency_us * 1e-6;
    snprintf(text, size, "--cfg=network/TCP-gamma:%.9g", p->flow_gbit_s > 0 ? window : 1e15);
}

enum status smpi_run(const struct smpi *smpi, const char *const *arguments, char *text, size_t size,
                     struct error *err)
{
    static const char *const environment[] = {NULL};
    static const char *const ends[] = {"os", "ois", "or"};
    char ranks[16], settings[SETTINGS][64];
    snprintf(ranks, sizeof(ranks), "%d", smpi->ranks);
    for (int k = 0; k < 3; k++)
        snprintf(settings[k], sizeof(settings[k]), "--cfg=smpi/%s:0:%.9g:0", ends[k],
                 smpi->platform.message_us * 1e-6);
    set_flow(&smpi->platform, settings[3], sizeof(settings[3]));
    const char *words[WORDS] = {"smpirun",
                                "-np",
                                ranks,
                                "-platform",
                                smpi->network,
                                "-hostfile",
                                smpi->hosts,
                                "--cfg=network/model:CM02",
                                "--cfg=network/crosstraffic:no",
                                "--cfg=smpi/async-small-thresh:65536",
                                "--cfg=smpi/simulate-computation:no",
                                "--cfg=smpi/test:1e-6",
                                "--cfg=smpi/iprobe:1e-6",
                                "--cfg=smpi/shared-malloc-blocksize:16777216",
                                settings[0],
                                settings[1],
                                settings[2],
                                settings[3],
                                "--log=root.thres:error",
                                smpi->program};
    int count = 20;
    while (*arguments && count < WORDS - 1)
        words[count++] = *arguments++;
    return asked_child_output(words, environment, LIMIT_S, text, size, err);
}
