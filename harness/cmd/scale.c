/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge scale: a training on several ranks, and how its rate grows with them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/cpus.h"
#include "base/system/output.h"
#include "harness/bench/platform.h"
#include "harness/bench/scale_launch.h"
#include "harness/bench/step_simulate.h"
#include "harness/cli/command.h"
#include "harness/model/model_options.h"
#include "harness/scale/rank_list.h"
#include "harness/scale/scale_print.h"
#include "harness/scale/scale_store.h"
#include "harness/scale/scale_text.h"
#include "harness/train/notes.h"
#include "harness/watch/interrupt.h"

enum { POINTS_MAX = RANK_LIST_MAX, STEPS_SIMULATED = 2 };

struct scale_options_given {
    struct model_options model;
    const char *ranks, *save, *resume, *db, *backend, *algorithm, *tables, *moments, *data;
    const char *simulate, *platform, *wire, *hosts, *letters, *optimiser;
    struct option_seed seed;
    int64_t steps, unit_bytes, reader_threads, lanes;
    double rate, deadline_s, read_limit, step_s;
    bool tiny, json, points, weak, strong, no_thread, sync_norms;
};

static const struct option options[] = {
    {"ranks", 'n', OPTION_TEXT, offsetof(struct scale_options_given, ranks), "LIST",
     "numbers of processes, one training each (default 1,2)"},
    {"weak", 0, OPTION_FLAG, offsetof(struct scale_options_given, weak), NULL,
     "--batch is that of each rank (the default)"},
    {"strong", 0, OPTION_FLAG, offsetof(struct scale_options_given, strong), NULL,
     "--batch is that of all ranks together"},
    {"steps", 's', OPTION_COUNT, offsetof(struct scale_options_given, steps), "N", "default 20"},
    {"seed", 0, OPTION_SEED, offsetof(struct scale_options_given, seed), "N",
     "of samples and first weights (default 0)"},
    {"rate", 0, OPTION_POSITIVE, offsetof(struct scale_options_given, rate), "X",
     "learning rate that the schedule starts from; default: as published"},
    {"optimiser", 0, OPTION_TEXT, offsetof(struct scale_options_given, optimiser), "NAME",
     "in place of the published one, with its usual parameters"},
    {"tiny", 0, OPTION_FLAG, offsetof(struct scale_options_given, tiny), NULL,
     "a small form of the workload"},
    {"save", 0, OPTION_TEXT, offsetof(struct scale_options_given, save), "FILE",
     "writes a checkpoint at the end; with one number of ranks"},
    {"resume", 0, OPTION_TEXT, offsetof(struct scale_options_given, resume), "FILE",
     "goes on from a checkpoint whose steps had as many samples, with its seed, and its rate "
     "and steps unless --rate and --steps give others"},
    {"data", 0, OPTION_TEXT, offsetof(struct scale_options_given, data), "PATH",
     "learn from files, of a format that their names tell, or as FORMAT:PATH; each rank reads its "
     "own part of every batch"},
    {"letter-case", 0, OPTION_TEXT, offsetof(struct scale_options_given, letters), "HOW",
     "of text with a vocabulary: keep or lower capitals (default: keep them where it has any)"},
    {"reader-threads", 0, OPTION_THREADS, offsetof(struct scale_options_given, reader_threads), "N",
     "of each rank, that read samples ahead (default 1)"},
    {"read-limit", 0, OPTION_POSITIVE, offsetof(struct scale_options_given, read_limit), "MB/s",
     "each rank reads no faster than that, as if from a remote disk"},
    {"db", 0, OPTION_TEXT, offsetof(struct scale_options_given, db), "FILE",
     "keeps the result in this database, for reports, plots and comparisons"},
    {"backend", 0, OPTION_TEXT, offsetof(struct scale_options_given, backend), "NAME",
     "what moves the bytes (default shm)"},
    {"algorithm", 'a', OPTION_TEXT, offsetof(struct scale_options_given, algorithm), "NAME",
     "how gradients are summed (default: by size)"},
    {"unit", 0, OPTION_COUNT, offsetof(struct scale_options_given, unit_bytes), "BYTES",
     "of gradients that travel together (default 4194304; beyond 128 ranks 32768 per rank)"},
    {"tables", 0, OPTION_TEXT, offsetof(struct scale_options_given, tables), "HOW",
     "embedding tables: whole (default), rows: whole with gradients of rows, or split by columns"},
    {"moments", 0, OPTION_TEXT, offsetof(struct scale_options_given, moments), "HOW",
     "the optimiser's state: whole on each rank (the default), or split, each rank its part"},
    {"no-overlap", 0, OPTION_FLAG, offsetof(struct scale_options_given, no_thread), NULL,
     "gradients move only while a step waits for them, for comparison"},
    {"sync-batch-norm", 0, OPTION_FLAG, offsetof(struct scale_options_given, sync_norms), NULL,
     "batch normalisation, and Dice, by the samples of all ranks"},
    {"deadline", 0, OPTION_POSITIVE, offsetof(struct scale_options_given, deadline_s), "S",
     "seconds without a sign of life after which all ranks give up (default 60)"},
    {"hosts", 0, OPTION_TEXT, offsetof(struct scale_options_given, hosts), "FILE",
     "ranks on these hosts, started by the mpirun that is here; a line each: HOST or HOST:RANKS"},
    {"points", 0, OPTION_FLAG, offsetof(struct scale_options_given, points), NULL,
     "with ranks that --hosts has started: what they did, for who has started them"},
    {"simulate", 0, OPTION_TEXT, offsetof(struct scale_options_given, simulate), "LIST",
     "numbers of ranks that exist on paper, with --platform: nothing is trained"},
    {"platform", 0, OPTION_TEXT, offsetof(struct scale_options_given, platform), "FILE",
     "the network of --simulate: link_gbit_s, link_latency_us ... (docs/method.md)"},
    {"step-time", 0, OPTION_POSITIVE, offsetof(struct scale_options_given, step_s), "S",
     "of one rank by itself; default: as ranks of this workload in --db were measured"},
    {"wire", 0, OPTION_TEXT, offsetof(struct scale_options_given, wire), "TYPE",
     "the type in which gradients cross between ranks: f16 or bf16 (default: f32)"},
    {"lanes", 0, OPTION_COUNT, offsetof(struct scale_options_given, lanes), "N",
     "parts of an exchange that are under way at a time (default 1, at most 4)"},
    {"json", 0, OPTION_FLAG, offsetof(struct scale_options_given, json), NULL, "machine-readable"},
    RECOMPUTE_OPTIONS(struct scale_options_given),
    TRAINING_MODEL_OPTIONS(struct scale_options_given),
    {.name = NULL},
};

/* ---- what is asked for ---- */

static int most_of(const int *ranks, int count)
{
    int largest = 1;
    for (int k = 0; k < count; k++)
        largest = ranks[k] > largest ? ranks[k] : largest;
    return largest;
}

/* Where a launcher such as mpirun has started this process, its backend, and as many ranks. */
static enum status read_backend(const struct scale_options_given *o, struct scale_options *s,
                                struct error *err)
{
    const struct backend *backend = backend_find(o->backend ? o->backend : "shm");
    if (!backend)
        return FAIL(err, STATUS_FAILED, "--backend \"%.40s\" is not known", o->backend);
    const struct backend *starter = backend_starter(&s->rank, &s->ranks);
    TRY(backend_check_starter(err));
    s->launched = starter != NULL;
    if (starter && o->backend && backend != starter && !backend->device)
        return FAIL(err, STATUS_FAILED, "--backend %s, but ranks were started for %s", o->backend,
                    starter->name);
    if (starter && !(o->backend && backend->device))
        backend = starter;
    if (o->hosts && !s->launched)
        return scale_launch_backend(o->backend, &s->backend, err);
    if (!backend->launcher && !backend->separate)
        return UNSUPPORTED(err, "--backend %s: %s", backend->name, backend->summary);
    TRY(backend_ready(backend, &s->backend, err));
    if (backend->launcher && !s->launched)
        return FAIL(err, STATUS_FAILED, "ranks of %s are started by its own launcher: %s -n 2 ...",
                    backend->name, backend->launcher->programs[0]);
    return STATUS_OK;
}

static enum status read_names(const struct scale_options_given *o, struct scale_options *s,
                              struct error *err)
{
    if (!o->simulate)
        TRY(read_backend(o, s, err));
    s->algorithm = o->algorithm ? algorithm_find(o->algorithm) : NULL;
    if (o->algorithm && !s->algorithm)
        return FAIL(err, STATUS_FAILED, "--algorithm \"%.40s\" is not known", o->algorithm);
    if (s->algorithm && !(s->algorithm->operations & OPERATION_BIT(COMM_ALL_REDUCE)))
        return FAIL(err, STATUS_FAILED, "--algorithm %s has no schedule for all_reduce",
                    o->algorithm);
    return STATUS_OK;
}

static const char *const table_names[] = {
    [TABLES_WHOLE] = "whole", [TABLES_ROWS] = "rows", [TABLES_SPLIT] = "split"};

static enum status read_strategy(const struct scale_options_given *o, struct train_job *job,
                                 struct error *err)
{
    int k = 0;
    while (o->tables && k < ARRAY_COUNT(table_names) && strcmp(o->tables, table_names[k]) != 0)
        k++;
    job->tables = (enum table_strategy)k;
    if (k == ARRAY_COUNT(table_names))
        return FAIL(err, STATUS_FAILED, "--tables \"%.40s\": take whole, rows or split", o->tables);
    job->part_updates = o->moments && strcmp(o->moments, "split") == 0;
    if (o->moments && !job->part_updates && strcmp(o->moments, "whole") != 0)
        return FAIL(err, STATUS_FAILED, "--moments \"%.40s\": take whole or split", o->moments);
    return STATUS_OK;
}

/* How gradients cross. */
static enum status check_wire(const struct scale_options_given *o, struct error *err)
{
    if (o->wire && strcmp(o->wire, "f16") != 0 && strcmp(o->wire, "bf16") != 0)
        return FAIL(err, STATUS_FAILED, "--wire \"%.20s\": take f16 or bf16", o->wire);
    if (o->lanes > LANES_MAX)
        return FAIL(err, STATUS_FAILED, "--lanes %" PRId64 ": at most %d", o->lanes, LANES_MAX);
    return STATUS_OK;
}

static enum status read_job(const char *spec, const struct scale_options_given *o,
                            struct scale_options *s, char **owned, struct error *err)
{
    enum precision precision;
    struct train_job *job = &s->job;
    TRY(precision_from_name(o->model.precision, &precision, err));
    if (precision != PRECISION_F32)
        return UNSUPPORTED(err, "--precision \"%s\": training is in f32", o->model.precision);
    if (o->weak && o->strong)
        return FAIL(err, STATUS_FAILED, "--weak or --strong, not both");
    TRY(train_job_of(spec, o->tiny, job, owned, err));
    int64_t batch = job->model.batch;
    job->model = o->model;
    job->model.batch = o->model.batch ? o->model.batch : batch ? batch : workload_of(spec)->batch;
    job->seed = (uint64_t)o->seed.value;
    job->save = o->save;
    job->resume = o->resume;
    job->unit_bytes = o->unit_bytes;
    job->wire = o->wire;
    s->lanes = (int)o->lanes;
    TRY(check_wire(o, err));
    job->sync_norms = o->sync_norms;
    TRY(train_optimiser_parse(o->optimiser, &job->recipe, err));
    TRY(read_strategy(o, job, err));
    job->data = o->data;
    TRY(train_letters_parse(o->letters, job, err));
    job->reader_threads = (int)o->reader_threads;
    job->read_limit = o->read_limit * 1e6;
    job->recipe.schedule.steps = o->steps ? o->steps : SCALE_STEPS_USUAL;
    if (o->rate > 0)
        job->recipe.schedule.rate = o->rate;
    if (o->save)
        TRY(output_check_folder(o->save, err));
    s->no_thread = o->no_thread;
    s->deadline_ns = (uint64_t)((o->deadline_s > 0 ? o->deadline_s : SCALE_DEADLINE_S) * 1e9);
    return read_names(o, s, err);
}

/* What the checkpoint says of the training. The first of launched ranks says so. */
static enum status resume(const struct scale_options_given *o, struct scale_options *s,
                          struct error *err)
{
    const struct train_given given = {
        .seed = o->seed.given, .rate = o->rate > 0, .steps = o->steps > 0};
    struct train_resumed from;
    char text[512];
    if (!s->job.resume)
        return STATUS_OK;
    TRY(train_resume(&s->job, &given, &from, err));
    train_resume_text(&s->job, &given, &from, text, sizeof(text));
    if (!o->points && (!s->launched || s->rank == 0)) /* ranks of --hosts: who started them did */
        fprintf(stderr, "%s\n", text);
    return STATUS_OK;
}

/* ---- at work ---- */

static enum status run_point(const struct scale_options_given *o, const struct scale_options *usual,
                             int ranks, struct scale_result *out, struct error *err)
{
    struct scale_options s = *usual;
    int cpus = cpus_allowed(), each = cpus / s.shares;
    if (o->hosts && !usual->launched)
        return scale_launch(usual->backend, o->hosts, ranks, out, err);
    s.ranks = ranks;
    if (o->strong && s.job.model.batch % ranks)
        return FAIL(err, STATUS_FAILED, "--strong: a batch of %" PRId64 " cannot be shared by %d",
                    s.job.model.batch, ranks);
    if (o->strong)
        s.job.model.batch /= ranks;
    if (!s.job.model.threads)
        s.job.model.threads = each > 1 ? each : 1;
    fflush(NULL); /* processes are forked: what is buffered would come out twice */
    if (!usual->launched)
        interrupt_install();
    enum status status = scale_run(&s, out, err);
    if (!usual->launched)
        interrupt_restore();
    if (status != STATUS_OK)
        return error_context(err, "%s on %d rank%s", s.job.spec, ranks, ranks > 1 ? "s" : "");
    return STATUS_OK;
}

static void print_all(const struct scale_options_given *o, const struct scaling *s, int largest)
{
    if (s->cpus && s->cpus < largest)
        fprintf(stderr, "%d ranks share %d CPU%s: these rates do not show how training scales\n",
                largest, s->cpus, s->cpus > 1 ? "s" : "");
    if (o->points)
        scale_result_write(&s->points[0], stdout);
    else if (o->json)
        scaling_print_json(s);
    else
        scaling_print_table(s);
}

static struct scaling scaling_asked(const struct scale_options_given *o,
                                    const struct scale_options *usual)
{
    const struct train_job *job = &usual->job;
    return (struct scaling){.workload = job->spec,
                            .strong = o->strong,
                            .data_path = o->data,
                            .letters = o->letters,
                            .reader_threads = job->reader_threads,
                            .read_limit = job->read_limit,
                            .algorithm = usual->algorithm ? usual->algorithm->name : NULL,
                            .tables = table_names[job->tables],
                            .moments = job->part_updates ? "split" : "whole",
                            .providers = o->model.providers,
                            .recompute = job->model.recompute,
                            .segments = job->model.segments,
                            .sync_norms = o->sync_norms,
                            .no_overlap = o->no_thread,
                            .optimiser = o->optimiser,
                            .wire = o->wire,
                            .lanes = (int)o->lanes,
                            .unit_bytes = o->unit_bytes,
                            .hosts = o->hosts,
                            .platform = o->platform,
                            .step_s = o->step_s,
                            .step_db = o->db};
}

/* model: how steps were compiled; NULL: none was. */
static enum status keep(const struct scaling *s, const struct model_options *model, const char *db,
                        struct error *err)
{
    struct arena arena = {.head = NULL};
    struct scaling named = *s;
    if (model)
        TRY(model_code_choice(model, &named.code, err));
    char *typed = command_typed(&arena);
    enum status status = typed ? scaling_store(&named, db, typed, err) : FAIL_NO_MEMORY(err);
    arena_release(&arena);
    return status;
}

/* ---- on paper ---- */

static enum status check_simulated(const struct scale_options_given *o, struct error *err)
{
    bool simulated = o->simulate;
    if (simulated != (o->platform != NULL))
        return FAIL(err, STATUS_FAILED,
                    "--simulate RANKS and --platform FILE go together; docs/method.md says what "
                    "the file holds");
    if (!simulated && o->step_s != 0)
        return FAIL(err, STATUS_FAILED, "--step-time belongs to --simulate");
    if (!simulated)
        return STATUS_OK;
    if (o->ranks || o->backend || o->save || o->resume || o->strong || o->sync_norms || o->data ||
        o->hosts || o->tables || o->moments || o->model.recompute)
        return FAIL(
            err, STATUS_FAILED,
            "--simulate takes no --ranks, --hosts, --backend, --save, --resume, --strong, --data, "
            "--tables, --moments, --recompute or --sync-batch-norm");
    if (o->step_s == 0 && !o->db)
        return FAIL(err, STATUS_FAILED,
                    "--simulate takes the time of a step from --db FILE, where ranks of the same "
                    "workload were measured, or from --step-time");
    return STATUS_OK;
}

static enum status simulate_points(const struct scale_options_given *o,
                                   const struct scale_options *usual, const struct lone_step *step,
                                   const int *ranks, int count, struct scale_result *points,
                                   struct error *err)
{
    struct step_simulation s = {.platform = o->platform,
                                .step = step,
                                .batch = usual->job.model.batch,
                                .steps = o->steps ? o->steps : STEPS_SIMULATED,
                                .algorithm = usual->algorithm,
                                .wire = o->wire ? dtype_from_name(o->wire) : DTYPE_NONE,
                                .no_overlap = o->no_thread,
                                .unit_bytes = o->unit_bytes,
                                .schedule = {.lanes = (int)o->lanes}};
    for (int k = 0; k < count; k++) {
        s.ranks = ranks[k];
        TRY(step_simulate(&s, &points[k], err));
    }
    return STATUS_OK;
}

static enum status simulate_all(const char *spec, const struct scale_options_given *o, char **owned,
                                struct error *err)
{
    struct scale_options usual = {.ranks = 1};
    struct scale_result points[POINTS_MAX + 1] = {{0}};
    int ranks[POINTS_MAX + 1], count;
    struct platform platform;
    struct lone_step step;
    char network[192], how[256];
    TRY(rank_list_with_one(o->simulate, "--simulate", ranks, &count, err));
    TRY(read_job(spec, o, &usual, owned, err));
    TRY(platform_read(o->platform, &platform, err));
    platform_text(&platform, network, sizeof(network));
    snprintf(how, sizeof(how), "%s wire=%s lanes=%d overlap=%s unit=%" PRId64, network,
             o->wire ? o->wire : "f32", (int)o->lanes, o->no_thread ? "no" : "yes", o->unit_bytes);
    if (o->step_s > 0)
        TRY(lone_step_planned(&usual.job, o->step_s, &step, err));
    else
        TRY(lone_step_measured(o->db, usual.job.spec, usual.job.model.batch, &step, err));
    fprintf(stderr, "simulated, not measured: steps of %.4g ms on what SimGrid makes of %s\n",
            step.compute_s * 1e3, o->platform);
    struct scaling all = scaling_asked(o, &usual);
    all.backend = "simulated";
    all.network = how;
    all.points = points;
    all.count = count;
    enum status status = simulate_points(o, &usual, &step, ranks, count, points, err);
    if (status == STATUS_OK)
        print_all(o, &all, 0);
    if (status == STATUS_OK && o->db)
        status = keep(&all, NULL, o->db, err);
    for (int k = 0; k < all.count; k++)
        scale_result_release(&points[k]);
    lone_step_release(&step);
    return status;
}

static enum status scale_all(const char *spec, const struct scale_options_given *o, char **owned,
                             struct error *err)
{
    struct scale_options usual = {.ranks = 1};
    struct scale_result points[POINTS_MAX] = {{0}};
    struct data_place place = {.format = NULL};
    char version[64];
    int ranks[POINTS_MAX], count;
    TRY(check_simulated(o, err));
    if (o->simulate)
        return simulate_all(spec, o, owned, err);
    TRY(rank_list_read(o->ranks ? o->ranks : "1,2", "--ranks", ranks, &count, err));
    TRY(read_job(spec, o, &usual, owned, err));
    if (o->data)
        TRY(data_find(o->data, &place, err));
    if (o->points && !(o->hosts && usual.launched))
        return FAIL(err, STATUS_FAILED, "--points is for ranks that --hosts has started");
    if (o->hosts && usual.launched && !o->points)
        return FAIL(err, STATUS_FAILED, "--hosts starts ranks, but these were started already");
    if (usual.launched && o->ranks && !o->points && (count > 1 || ranks[0] != usual.ranks))
        return FAIL(err, STATUS_FAILED, "--ranks %s, but %d were started", o->ranks, usual.ranks);
    if (usual.launched)
        ranks[0] = usual.ranks, count = 1;
    if (o->save && count > 1)
        return FAIL(err, STATUS_FAILED, "--save needs one number of ranks: --ranks 4");
    TRY(resume(o, &usual, err));
    usual.shares = most_of(ranks, count);
    backend_version(usual.backend, version, sizeof(version));
    enum status status = STATUS_OK;
    for (int k = 0; k < count && status == STATUS_OK; k++)
        status = run_point(o, &usual, ranks[k], &points[k], err);
    struct scaling all = scaling_asked(o, &usual);
    all.seed = usual.job.seed;
    all.data = place.format ? place.format->name : NULL;
    all.backend = usual.backend->name;
    all.library = version;
    all.quick_tune = model_tunes_quickly(&usual.job.model);
    all.cpus = usual.launched || o->hosts ? 0 : cpus_allowed();
    all.points = points;
    all.count = count;
    bool speaks = status == STATUS_OK && (!usual.launched || usual.rank == 0);
    if (speaks)
        print_all(o, &all, usual.shares);
    if (speaks && o->db && !o->points)
        status = keep(&all, &usual.job.model, o->db, err);
    for (int k = 0; k < count; k++)
        scale_result_release(&points[k]);
    return status;
}

static int scale_main(int word_count, char **words, const void *values)
{
    struct error err = {0};
    char *owned = NULL;
    if (word_count > 1) {
        FAIL(&err, STATUS_FAILED, "one workload at a time; \"%s\" is too much", words[1]);
        return command_fail(&err);
    }
    enum status status = scale_all(words[0], values, &owned, &err);
    free(owned);
    int code = status == STATUS_OK ? EXIT_FINE : command_fail(&err);
    return status != STATUS_OK && interrupt_requested() ? EXIT_INCONCLUSIVE : code;
}

REGISTER(command, scale) = {
    .name = "scale",
    .summary = "train a workload on several ranks, and show how its rate grows",
    .usage = "WORKLOAD [options]",
    .help =
        "Ranks are processes of this machine, or those that mpirun or srun has started. Each\n"
        "computes the same step on samples of its own; gradients are summed over all of them\n"
        "while the backward pass still computes. N ranks of batch b see the samples that one rank\n"
        "of batch N b would, and learn the same. Every rank has the same share of the CPUs,\n"
        "whatever their number. \"moving\" is the time in which gradients were on their way,\n"
        "\"exposed\" that in which a step stood still for them; a step's time is the median of\n"
        "all but the first tenth. Bytes and messages are per step, of the busiest rank. \"of\n"
        "ideal\" compares the rate per rank with that of the fewest.\n"
        "--hosts starts ranks on other hosts by the mpirun of an MPI that is here; ridge and "
        "files\n"
        "have the same paths on all of them. Ctrl-C ends them all.\n"
        "--simulate says what the same steps would take on ranks and a network that exist on\n"
        "paper, if each rank computed as long as one did here: nothing of that is measured.\n",
    .options = options,
    .values_size = sizeof(struct scale_options_given),
    .words_min = 1,
    .main = scale_main,
};
