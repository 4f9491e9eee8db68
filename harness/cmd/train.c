/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge train: a workload learns. Progress goes to stderr, what it came to to stdout. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/output.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "base/text/utc.h"
#include "harness/campaign/train_record.h"
#include "harness/cli/command.h"
#include "harness/model/model_options.h"
#include "harness/train/dawnbench.h"
#include "harness/train/notes.h"
#include "harness/train/result_text.h"
#include "harness/train/trainer.h"
#include "harness/watch/interrupt.h"

struct train_options_given {
    struct model_options model;
    const char *optimiser, *save, *resume, *data, *letters, *sizes, *tsv, *db;
    struct option_seed seed;
    int64_t steps, eval_every, save_every, epochs, reader_threads;
    double rate, read_limit, until, price;
    int64_t micro_batches;
    bool tiny, json;
};

static const struct option options[] = {
    {"steps", 'n', OPTION_COUNT, offsetof(struct train_options_given, steps), "N",
     "default: as published, or 1000"},
    {"seed", 0, OPTION_SEED, offsetof(struct train_options_given, seed), "N",
     "of samples and first weights: the same seed gives the same losses (default 0)"},
    {"rate", 0, OPTION_POSITIVE, offsetof(struct train_options_given, rate), "X",
     "learning rate that the schedule starts from; default: as published"},
    {"optimiser", 0, OPTION_TEXT, offsetof(struct train_options_given, optimiser), "NAME",
     "instead of the published one, with its usual parameters"},
    {"tiny", 0, OPTION_FLAG, offsetof(struct train_options_given, tiny), NULL,
     "a small form of the workload that learns within seconds"},
    {"eval-every", 0, OPTION_COUNT, offsetof(struct train_options_given, eval_every), "N",
     "judge it by held-out samples every N steps; default: at the end"},
    RECOMPUTE_OPTIONS(struct train_options_given),
    {"micro-batches", 0, OPTION_COUNT, offsetof(struct train_options_given, micro_batches), "N",
     "take the batch of a step in N equal parts, whose gradients are averaged: for a batch that "
     "memory is too small for"},
    {"save", 0, OPTION_TEXT, offsetof(struct train_options_given, save), "FILE",
     "writes a checkpoint at the end, also of a training that is interrupted"},
    {"save-every", 0, OPTION_COUNT, offsetof(struct train_options_given, save_every), "N",
     "and every N steps"},
    {"resume", 0, OPTION_TEXT, offsetof(struct train_options_given, resume), "FILE",
     "goes on from a checkpoint, as if the training had never stopped, with its seed, and its rate "
     "and steps unless --rate and --steps give others"},
    {"data", 0, OPTION_TEXT, offsetof(struct train_options_given, data), "PATH",
     "learn from files, of a format that their names tell, or as FORMAT:PATH; see `ridge list "
     "data`"},
    {"letter-case", 0, OPTION_TEXT, offsetof(struct train_options_given, letters), "HOW",
     "of text with a vocabulary: keep or lower capitals (default: keep them where it has any)"},
    {"epochs", 0, OPTION_COUNT, offsetof(struct train_options_given, epochs), "N",
     "passes over the data, in place of --steps"},
    {"reader-threads", 0, OPTION_THREADS, offsetof(struct train_options_given, reader_threads), "N",
     "that read samples ahead (default 1); the samples are the same"},
    {"read-limit", 0, OPTION_POSITIVE, offsetof(struct train_options_given, read_limit), "MB/s",
     "read no faster than that, as if from a remote disk"},
    {"sizes", 0, OPTION_TEXT, offsetof(struct train_options_given, sizes), "LIST",
     "images that grow: 128:10,192:10,224:5 is a size and its epochs, or steps without --data"},
    {"until", 0, OPTION_POSITIVE, offsetof(struct train_options_given, until), "QUALITY",
     "end once held-out samples are judged so well: 0.93; judged after each epoch"},
    {"price", 0, OPTION_POSITIVE, offsetof(struct train_options_given, price), "X",
     "of the machine in dollars per hour: the summary says what the training cost"},
    {"tsv", 0, OPTION_TEXT, offsetof(struct train_options_given, tsv), "FILE",
     "time to accuracy in the form that DAWNBench takes"},
    {"db", 0, OPTION_TEXT, offsetof(struct train_options_given, db), "FILE",
     "keep what it came to in this database, beside the runs of `ridge run`"},
    {"json", 0, OPTION_FLAG, offsetof(struct train_options_given, json), NULL, "machine-readable"},
    TRAINING_MODEL_OPTIONS(struct train_options_given),
    {.name = NULL},
};

/* ---- the job ---- */

/* Where samples come from, and until when. */
static enum status take_data(const struct train_options_given *o, struct train_job *job,
                             struct error *err)
{
    if ((o->epochs || o->sizes) && o->steps)
        return FAIL(err, STATUS_FAILED, "--steps and --%s contradict each other",
                    o->epochs ? "epochs" : "sizes");
    if (o->epochs && o->sizes)
        return FAIL(err, STATUS_FAILED, "--sizes says itself how long each size is trained");
    if (o->tsv)
        TRY(output_check_folder(o->tsv, err));
    job->data = o->data;
    TRY(train_letters_parse(o->letters, job, err));
    job->epochs = o->epochs;
    job->reader_threads = (int)o->reader_threads;
    job->read_limit = o->read_limit * 1e6;
    job->eval_epochs = o->until > 0 || o->tsv;
    if (o->until > 0)
        job->until = o->until;
    return o->sizes ? train_sizes_parse(o->sizes, job, err) : STATUS_OK;
}

static enum status make_job(const char *spec, const struct train_options_given *o,
                            struct train_job *job, char **owned, struct error *err)
{
    enum precision precision;
    TRY(precision_from_name(o->model.precision, &precision, err));
    if (precision != PRECISION_F32)
        return UNSUPPORTED(err, "--precision \"%s\": training is in f32", o->model.precision);
    TRY(train_job_of(spec, o->tiny, job, owned, err));
    int64_t batch = job->model.batch;
    job->model = o->model;
    job->model.batch = o->model.batch ? o->model.batch : batch;
    job->seed = (uint64_t)o->seed.value;
    job->eval_every = o->eval_every;
    job->save = o->save;
    job->save_every = o->save_every;
    job->resume = o->resume;
    job->micro_batches = o->micro_batches;
    if (o->save_every && !o->save)
        return FAIL(err, STATUS_FAILED, "--save-every needs --save FILE");
    if (o->save)
        TRY(output_check_folder(o->save, err));
    if (o->steps)
        job->recipe.schedule.steps = o->steps;
    if (o->rate > 0)
        job->recipe.schedule.rate = o->rate;
    TRY(take_data(o, job, err));
    return train_optimiser_parse(o->optimiser, &job->recipe, err);
}

/* What the checkpoint says of the training, and says so. */
static enum status resume(const struct train_options_given *o, struct train_job *job,
                          struct error *err)
{
    const struct train_given given = {
        .seed = o->seed.given, .rate = o->rate > 0, .steps = o->steps || o->epochs || o->sizes};
    struct train_resumed from;
    char text[512];
    if (!job->resume)
        return STATUS_OK;
    TRY(train_resume(job, &given, &from, err));
    train_resume_text(job, &given, &from, text, sizeof(text));
    fprintf(stderr, "%s\n", text);
    return STATUS_OK;
}

/* ---- progress ---- */

struct show {
    bool terminal;
    uint64_t shown_ns;
    int judged; /* that were printed */
    const struct quality *quality;
};

/* Ten times a second on a terminal, elsewhere a line for every tenth of the training. */
static bool is_due(struct show *s, const struct train_progress *p)
{
    int64_t done = p->so_far->steps;
    if (!s->terminal)
        return done * 10 / p->steps != (done - 1) * 10 / p->steps;
    uint64_t now = clock_now_ns();
    if (now - s->shown_ns < 100000000)
        return false;
    s->shown_ns = now;
    return true;
}

static bool on_step(void *context, const struct train_progress *p)
{
    struct show *s = context;
    const struct train_result *r = p->so_far;
    if (s->judged < r->judged_count) {
        const struct train_judgement *j = &r->judged[s->judged++];
        char text[120];
        train_judgement_text(s->quality, j, text, sizeof(text));
        fprintf(stderr, "%sstep %lld, held out: %s\n", s->terminal ? "\r\033[K" : "",
                (long long)j->step, text);
    }
    if (is_due(s, p)) {
        double each = (double)r->time_ns * 1e-9 / (double)(r->steps - r->first);
        double left = each * (double)(p->steps - r->steps);
        fprintf(stderr, "%sstep %lld of %lld: loss %.4g, rate %.3g, %.4g samples/s, %.0f s left%s",
                s->terminal ? "\r\033[K" : "", (long long)r->steps, (long long)p->steps,
                r->losses[r->steps - r->first - 1], p->rate, train_samples_per_s(r), ceil(left),
                s->terminal ? "" : "\n");
        fflush(stderr);
    }
    return !interrupt_requested();
}

/* ---- what it came to ---- */

struct trained {
    struct trainer *trainer;
    const struct train_job *job;
    const struct train_options_given *given;
    const struct training *training;
    const struct quality *quality;
    const struct data_place *place;
    const struct data_set *data; /* NULL: nothing is read */
    int64_t steps;               /* wanted */
    char started_utc[UTC_TEXT];
    uint64_t began_ns;
};

/* Dollars. */
static double cost_of(const struct train_options_given *o, const struct train_result *r)
{
    return o->price * (double)r->time_ns * 1e-9 / 3600;
}

/* Of the words of text; NAN: the data are no text. */
static double unknown_share(const struct data_set *set)
{
    return set && set->words ? (double)set->unknown / (double)set->words : (double)NAN;
}

static double padding_share(const struct data_set *set)
{
    return set && set->words ? set->padding : (double)NAN;
}

static void print_data(struct table *table, const struct trained *of)
{
    const struct data_format *format = of->place->format;
    const struct data_set *set = of->data;
    char dropped[64] = "", words[100] = "";
    if (set && set->dropped)
        snprintf(dropped, sizeof(dropped), ", %lld left out", (long long)set->dropped);
    if (set && set->words)
        snprintf(words, sizeof(words), ", %.3g %% of %lld words unknown, samples %.0f %% padding",
                 100 * unknown_share(set), (long long)set->words, 100 * padding_share(set));
    table_cell(table, format ? "data" : "learnt");
    if (set)
        table_cell(table, "%s: %lld samples, %lld held out%s%s", set->format->name,
                   (long long)set->count[DATA_LEARNT], (long long)set->count[DATA_HELD_OUT],
                   dropped, words);
    else
        table_cell(table, "%s", format ? format->name : of->training->lesson);
}

static void print_input(struct table *table, const struct train_result *r)
{
    double wait = train_input_wait(r), time_s = (double)r->time_ns * 1e-9;
    table_cell(table, "waiting for input");
    table_cell(table, "%.1f %%%s", 100 * (time_s > 0 ? wait : 0),
               wait > TRAIN_INPUT_BOUND ? ": input is what limits this training" : "");
    if (r->epoch_samples) {
        table_cell(table, "read");
        table_cell(table, "%.4g MB, %.4g MB/s", (double)r->read_bytes * 1e-6,
                   (double)r->read_bytes * 1e-6 / time_s);
    }
}

static void print_losses_text(struct table *table, const struct train_result *r)
{
    char text[24];
    double last = train_last_loss(r);
    table_cell(table, "first loss");
    table_cell(table, "%s", train_loss_text(r->losses[0], text, sizeof(text)));
    table_cell(table, "last loss");
    table_cell(table, "%s%s", train_loss_text(last, text, sizeof(text)),
               isfinite(last) ? " (mean of the last tenth of the steps)" : "");
}

static void print_text(const struct trained *of, const struct train_result *r)
{
    struct table table = {.incomplete = false};
    const struct train_job *job = of->job;
    double step_ms = (double)r->time_ns * 1e-6 / (double)(r->steps - r->first);
    char parts[48] = "";
    if (job->micro_batches > 1)
        snprintf(parts, sizeof(parts), " in %lld parts", (long long)job->micro_batches);
    table_column(&table, "", TABLE_LEFT);
    table_column(&table, job->spec, TABLE_LEFT);
    print_data(&table, of);
    table_cell(&table, "optimiser");
    table_cell(&table, "%s, rate %g", job->recipe.optimiser, job->recipe.schedule.rate);
    table_cell(&table, "steps");
    table_cell(&table, "%lld to %lld, of batch %lld%s", (long long)r->first + 1,
               (long long)r->steps, (long long)r->batch, parts);
    print_losses_text(&table, r);
    for (int k = 0; k < r->judged_count; k++) {
        char text[120];
        train_judgement_text(of->quality, &r->judged[k], text, sizeof(text));
        table_cell(&table, "held out, step %lld", (long long)r->judged[k].step);
        table_cell(&table, "%s", text);
    }
    table_cell(&table, "mean step");
    table_cell(&table, "%.4g ms, %.4g samples/s", step_ms, train_samples_per_s(r));
    table_cell(&table, "memory of a step");
    table_cell(&table, "%.4g MB beside weights and states%s", (double)r->arena_bytes * 1e-6,
               job->model.recompute ? ", activations recomputed" : "");
    print_input(&table, r);
    if (of->given->until > 0) {
        table_cell(&table, "wanted");
        table_cell(&table, "%g: %s after %.4g s", of->given->until,
                   r->reached ? "reached" : "not reached", (double)r->time_ns * 1e-9);
    }
    if (of->given->price > 0) {
        table_cell(&table, "cost");
        table_cell(&table, "$%.4g at $%g per hour", cost_of(of->given, r), of->given->price);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static void print_losses(struct json *json, const struct train_result *r)
{
    json_open(json, "losses", '[');
    for (int64_t k = 0; k < r->steps - r->first; k++)
        json_number(json, NULL, r->losses[k]);
    json_close(json);
}

static void print_judged(struct json *json, const struct train_result *r)
{
    json_open(json, "held_out", '[');
    for (int k = 0; k < r->judged_count; k++) {
        json_open(json, NULL, '{');
        json_int(json, "step", r->judged[k].step);
        json_number(json, "epoch", r->judged[k].epoch);
        json_number(json, "time_s", (double)r->judged[k].time_ns * 1e-9);
        json_number(json, "loss", r->judged[k].loss);
        json_number(json, "quality", r->judged[k].quality);
        json_number(json, "quality_also", r->judged[k].also);
        json_number(json, "quality_bayes", r->judged[k].bayes);
        json_close(json);
    }
    json_close(json);
}

static void print_json(const struct trained *of, const struct train_result *r)
{
    struct json json;
    const struct train_job *job = of->job;
    const struct quality *q = of->quality;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_text(&json, "workload", job->spec);
    json_text(&json, "lesson", of->place->format ? NULL : of->training->lesson);
    json_text(&json, "data", of->place->format ? of->place->format->name : NULL);
    json_int(&json, "epoch_samples", r->epoch_samples);
    json_int(&json, "left_out", of->data ? of->data->dropped : 0);
    json_number(&json, "unknown_words_share", unknown_share(of->data));
    json_number(&json, "padding_share", padding_share(of->data));
    json_text(&json, "optimiser", job->recipe.optimiser);
    json_number(&json, "rate", job->recipe.schedule.rate);
    json_int(&json, "seed", (int64_t)job->seed);
    json_int(&json, "batch", r->batch);
    json_int(&json, "micro_batches", job->micro_batches > 1 ? job->micro_batches : 1);
    json_int(&json, "first_step", r->first);
    json_int(&json, "steps", r->steps);
    json_int(&json, "steps_wanted", of->steps);
    json_number(&json, "loss_first", r->losses[0]);
    json_number(&json, "loss_last", train_last_loss(r));
    json_text(&json, "quality", q ? q->name : NULL);
    json_text(&json, "quality_also", q && q->also ? q->also->name : NULL);
    print_judged(&json, r);
    json_bool(&json, "reached", r->reached);
    json_number(&json, "time_s", (double)r->time_ns * 1e-9);
    json_number(&json, "samples_per_s", train_samples_per_s(r));
    json_int(&json, "arena_bytes", (int64_t)r->arena_bytes);
    json_bool(&json, "recompute", job->model.recompute);
    json_number(&json, "input_wait_s", (double)r->waited_ns * 1e-9);
    json_number(&json, "input_wait_share", train_input_wait(r));
    json_text(&json, "bound", train_input_wait(r) > TRAIN_INPUT_BOUND ? "input" : NULL);
    json_int(&json, "read_bytes", r->read_bytes);
    json_number(&json, "cost_dollars", of->given->price > 0 ? cost_of(of->given, r) : (double)NAN);
    print_losses(&json, r);
    json_close(&json);
}

static enum status keep(const struct trained *of, const struct train_result *r,
                        const struct error *failure, struct error *err)
{
    struct arena arena = {0};
    struct train_facts facts = {.job = of->job,
                                .trainer = of->trainer,
                                .result = r,
                                .command = command_typed(&arena),
                                .optimiser = of->given->optimiser,
                                .sizes = of->given->sizes,
                                .started_utc = of->started_utc,
                                .wall_s = (double)(clock_now_ns() - of->began_ns) * 1e-9,
                                .price = of->given->price,
                                .failure = failure};
    enum status status =
        facts.command ? train_store(of->given->db, &facts, err) : FAIL_NO_MEMORY(err);
    arena_release(&arena);
    return status;
}

/* failure: of the training; NULL: none. */
static enum status report(const struct trained *of, const struct train_result *r,
                          const struct error *failure, struct error *err)
{
    bool stepped = r->steps > r->first;
    if (stepped && of->given->json)
        print_json(of, r);
    else if (stepped)
        print_text(of, r);
    if (stepped && of->given->tsv)
        TRY(dawnbench_write(of->given->tsv, of->data, of->quality, r, err));
    return of->given->db && (stepped || failure) ? keep(of, r, failure, err) : STATUS_OK;
}

static enum status learn(const struct train_job *job, const struct train_options_given *o,
                         bool *cut_short, struct error *err)
{
    struct trainer *trainer;
    struct train_result result = {.steps = 0};
    struct show show = {.terminal = isatty(STDERR_FILENO)};
    struct trained of = {.job = job, .given = o, .began_ns = clock_now_ns()};
    utc_now(of.started_utc);
    TRY(trainer_open(job, &trainer, err));
    of.trainer = trainer;
    of.training = trainer_of(trainer);
    of.quality = trainer_quality(trainer);
    of.place = trainer_place(trainer);
    of.data = trainer_data(trainer);
    of.steps = trainer_steps(trainer);
    show.quality = of.quality;
    interrupt_install();
    enum status status = trainer_run(trainer, on_step, &show, &result, err);
    interrupt_restore();
    if (show.terminal)
        fprintf(stderr, "\r\033[K");
    *cut_short = result.steps < of.steps && !result.reached;
    struct error why;
    enum status reported = report(&of, &result, status == STATUS_OK ? NULL : err, &why);
    if (status == STATUS_OK && reported != STATUS_OK) {
        status = reported;
        *err = why;
    }
    trainer_close(trainer);
    return status;
}

static int train_main(int word_count, char **words, const void *values)
{
    const struct train_options_given *o = values;
    struct train_job job;
    struct error err = {0};
    char *owned = NULL;
    bool cut_short = false;
    if (word_count > 1) {
        FAIL(&err, STATUS_FAILED, "one workload at a time; \"%s\" is too much", words[1]);
        return command_fail(&err);
    }
    enum status status = make_job(words[0], o, &job, &owned, &err);
    if (status == STATUS_OK)
        status = resume(o, &job, &err);
    if (status == STATUS_OK)
        status = learn(&job, o, &cut_short, &err);
    free(owned);
    if (status != STATUS_OK)
        return command_fail(&err);
    if (cut_short)
        fprintf(stderr, "ridge: interrupted before the last step\n");
    return cut_short ? EXIT_INCONCLUSIVE : EXIT_FINE;
}

REGISTER(command, train) = {
    .name = "train",
    .summary = "train a workload, and say what it learnt",
    .usage = "WORKLOAD [options]",
    .help =
        "Samples are made up, with something in them to be learnt; a network that was trained is\n"
        "judged by samples that it has not seen. Optimiser, rate and schedule are those that were\n"
        "published with the workload; --rate, --steps and --optimiser change them. Samples are\n"
        "read ahead on threads of their own; how long steps wait for them is part of the\n"
        "result.\n\n"
        "--data learns from files instead: MNIST, CIFAR-10, folders of JPEG, census income,\n"
        "MovieLens, Cora, text, translations. Their samples are shuffled anew in every epoch, by\n"
        "the seed; the network is judged by the part held out for that, or by every tenth.\n",
    .options = options,
    .values_size = sizeof(struct train_options_given),
    .words_min = 1,
    .main = train_main,
};
