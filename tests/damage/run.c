/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged files against every command that reads them: none may crash, hang, end with a code that
 * ridge does not have, or fail without a word. Each file is tried in a child of its own, under 8 GB
 * of address space and 20 s per command.
 *
 *     run                                       a short look, for `make test`
 *     run models COUNT SEED FILE.onnx...        damaged copies of these
 *     run databases COUNT SEED FILE.db...
 *
 * RIDGE_LIMIT_S is another limit than 20 s, for a machine that is busy. Copy K of seed S is always
 * the same; RIDGE_FIRST is the first K. What was found is kept in $RIDGE_BUILD/test-logs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include "base/registry.h"
#include "harness/cli/command.h"
#include "tests/lib/damage.h"
#include "tests/lib/made_results.h"

enum { LIMIT_S = 20, WORDS_MAX = 14, CODES = 6, OTHER_BYTES = 4096 };
static const rlim_t limit_bytes = 8ull << 30;
/* A sanitizer reserves terabytes of address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
static bool leaks(void)
{
    return __lsan_do_recoverable_leak_check() != 0;
}
#else
static bool leaks(void)
{
    return false;
}
#endif

/* A command with its words; FILE, OTHER and OUT stand for paths. */
typedef const char *const words_of[WORDS_MAX];

static const words_of model_commands[] = {
    {"import", "FILE", "--json"},
    {"import", "FILE", "-o", "OUT/understood.onnx"},
    {"graph", "FILE"},
    {"explain", "FILE", "--no-tune", "-t", "1", "--cache", "OUT/cache", "-p", "native"},
    {"infer", "FILE", "--no-tune", "-t", "1", "--cache", "OUT/cache", "-p", "native"},
    {"verify", "FILE", "--no-tune", "-t", "1", "--cache", "OUT/cache", "-p", "native"},
};

static const words_of database_commands[] = {
    {"list", "runs", "--db", "FILE"},
    {"report", "--db", "FILE", "-o", "OUT/report"},
    {"compare", "latest~1", "latest", "--db", "FILE"},
    {"compare", "FILE", "OTHER"},
    {"history", "--db", "FILE"},
    {"history", "resnet50", "--db", "FILE", "--json"},
    {"export", "--format", "csv", "--run", "all", "--db", "FILE", "--steps"},
    {"export", "--format", "json", "--db", "FILE"},
    {"export", "--format", "openmetrics", "--db", "FILE"},
    {"plot", "roofline", "--svg", "--db", "FILE", "-o", "OUT/plots"},
    {"paper", "--db", "FILE"},
    {"ingest", "FILE", "--db", "OTHER"},
    {"list", "runs", "--db", "OTHER"},
};

/* What the child tells, even if it dies. */
struct outcome {
    int stage; /* the command that runs */
    int codes[CODES + 1];
    const char *fault; /* what is wrong with what it did, if it did not die */
};

struct campaign {
    const words_of *commands;
    int command_count;
    bool models;
    const char *const *files;
    int file_count;
    uint64_t seed;
    char *folder; /* of what is written */
    struct outcome *outcome;
    unsigned limit_s; /* of wall time, per command */
    long tried, done[CODES + 1], bad;
    double slowest_s; /* CPU time of all commands on one copy */
    uint64_t slowest;
};

/* ---- a damaged copy ---- */

/* Mostly as a model; what is no model any more, and the rest, as a message or as bytes. */
static void damage_once(struct bytes *x, const struct bytes *other, const char *sound,
                        struct draws *d)
{
    uint32_t kind = draw(d, 8);
    if (kind < 5 && damage_model(x, sound, d))
        return;
    (kind < 7 ? damage_message : damage_bytes)(x, other, d);
}

/* Copy `index` at `path`; false: no such file can be read. */
static bool make_copy(const struct campaign *c, uint64_t index, const char *path)
{
    struct draws d = {c->seed * 1000003 + index, 0};
    const char *sound = c->files[draw(&d, (uint32_t)c->file_count)];
    struct bytes x = bytes_read(sound);
    struct bytes other = bytes_read(c->files[draw(&d, (uint32_t)c->file_count)]);
    bool fine = x.data && other.data;
    if (fine && c->models) {
        /* Once mostly: what is damaged more is refused early. */
        for (uint32_t k = 0, count = draw(&d, 3) ? 1 : 1 + draw(&d, 4); k < count; k++)
            damage_once(&x, &other, sound, &d);
        fine = bytes_write(&x, path) == 0;
    } else if (fine) {
        damage_database(&x, &other, path, &d);
    }
    free(x.data);
    free(other.data);
    return fine;
}

/* ---- a child per copy ---- */

static void limit(void)
{
    struct rlimit space = {limit_bytes, limit_bytes}, none = {0, 0};
    if (!sanitized)
        setrlimit(RLIMIT_AS, &space);
    setrlimit(RLIMIT_CORE, &none);
}

/* The words with paths in them; room for WORDS_MAX of them. Plug-ins compute one copy of eight. */
static int fill_words(const struct campaign *c, const words_of *from, const char *file,
                      bool plugins, char (*room)[512], char **words)
{
    int count = 0;
    for (; count < WORDS_MAX && (*from)[count]; count++) {
        const char *word = (*from)[count];
        if (plugins && strcmp(word, "-p") == 0)
            break;
        words[count] = room[count];
        if (strcmp(word, "FILE") == 0)
            snprintf(room[count], sizeof(room[count]), "%s", file);
        else if (strcmp(word, "OTHER") == 0)
            snprintf(room[count], sizeof(room[count]), "%s/other.db", c->folder);
        else if (strncmp(word, "OUT/", 4) == 0)
            snprintf(room[count], sizeof(room[count]), "%s%s", c->folder, word + 3);
        else
            snprintf(room[count], sizeof(room[count]), "%s", word);
    }
    return count;
}

/* NULL: the command did what it may do. */
static const char *fault_of(int code, off_t said_bytes)
{
    if (code < 0 || code >= CODES)
        return "has a strange exit code";
    if ((code == EXIT_USAGE || code == EXIT_MISSING) && said_bytes == 0)
        return "fails without a word";
    return NULL;
}

static void run_commands(const struct campaign *c, uint64_t index, const char *file, int said)
{
    limit();
    signal(SIGXFSZ, SIG_IGN);
    for (int k = 0; k < c->command_count; k++) {
        char room[WORDS_MAX][512], *words[WORDS_MAX];
        int count = fill_words(c, &c->commands[k], file, index % 8 == 0, room, words);
        struct stat info = {.st_size = 1};
        c->outcome->stage = k;
        alarm(c->limit_s); /* its signal ends the child: that is a hang */
        bool fresh = ftruncate(said, 0) == 0 && lseek(said, 0, SEEK_SET) == 0;
        int code = commands_dispatch(count, words);
        fflush(NULL);
        c->outcome->codes[code >= 0 && code < CODES ? code : CODES]++;
        if (fresh)
            fstat(said, &info);
        c->outcome->fault = fault_of(code, info.st_size);
        if (c->outcome->fault)
            _exit(0);
    }
    if (leaks())
        c->outcome->fault = "leaks";
    _exit(0);
}

static int in_child(const struct campaign *c, uint64_t index, const char *file)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char path[600];
        setpgid(0, 0);
        if (index % 100) /* gnuplot takes ten times as long as all the rest */
            setenv("PATH", "/nonexistent", 1);
        snprintf(path, sizeof(path), "%s/said", c->folder);
        int nothing = open("/dev/null", O_RDWR), said = open(path, O_RDWR | O_CREAT, 0644);
        dup2(nothing, 0);
        dup2(nothing, 1);
        dup2(said, 2);
        run_commands(c, index, file, said);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0)
        ;
    if (child > 0)
        kill(-child, SIGKILL); /* whom it may have left behind */
    return status;
}

static void command_text(const struct campaign *c, int stage, char *text, size_t size)
{
    text[0] = 0;
    for (int k = 0; k < WORDS_MAX && c->commands[stage][k]; k++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, " %s", c->commands[stage][k]);
    }
}

/* What the command wrote to its standard error, such as a sanitizer's report. */
static void print_said(const struct campaign *c)
{
    enum { LINES = 25 };
    char path[600], line[300];
    snprintf(path, sizeof(path), "%s/said", c->folder);
    FILE *said = fopen(path, "r");
    for (int k = 0; said && k < LINES && fgets(line, sizeof(line), said); k++)
        printf("# %.*s\n", (int)strcspn(line, "\n"), line);
    if (said)
        fclose(said);
}

static void keep(const struct campaign *c, uint64_t index, const char *file, char *kept,
                 size_t size)
{
    const char *build = getenv("RIDGE_BUILD");
    snprintf(kept, size, "%s/test-logs/damaged-%llu-%llu.%s", build ? build : ".",
             (unsigned long long)c->seed, (unsigned long long)index, c->models ? "onnx" : "db");
    struct bytes bytes = bytes_read(file);
    if (bytes.data)
        bytes_write(&bytes, kept);
    free(bytes.data);
}

/* Weights may have become so large that f32 cannot hold what follows from them and f64 can:
 * somebody has to look. */
static void report_wrong(const struct campaign *c, uint64_t index, const char *file)
{
    char kept[700];
    keep(c, index, file, kept, sizeof(kept));
    printf("# ridge verify calls a result wrong; kept as %s\n", kept);
    fflush(stdout);
}

static void report(struct campaign *c, uint64_t index, const char *file, int status)
{
    char what[512], kept[700];
    command_text(c, c->outcome->stage, what, sizeof(what));
    keep(c, index, file, kept, sizeof(kept));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("not ok - ridge%s: hangs; kept as %s\n", what, kept);
    else if (WIFSIGNALED(status))
        printf("not ok - ridge%s: signal %d; kept as %s\n", what, WTERMSIG(status), kept);
    else if (WEXITSTATUS(status))
        printf("not ok - ridge%s: ends with %d; kept as %s\n", what, WEXITSTATUS(status), kept);
    else
        printf("not ok - ridge%s: %s; kept as %s\n", what, c->outcome->fault, kept);
    print_said(c);
    fflush(stdout);
    c->bad++;
}

static void put_other(const struct campaign *c)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/other.db", c->folder);
    struct bytes sound = bytes_read(c->files[0]);
    if (sound.data)
        bytes_write(&sound, path);
    free(sound.data);
}

static void remove_copy(const char *file)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (int k = 0; k < ARRAY_COUNT(ends); k++) {
        char path[600];
        snprintf(path, sizeof(path), "%s%s", file, ends[k]);
        unlink(path);
    }
}

/* CPU time of all that has ended. */
static double children_s(void)
{
    struct rusage used = {.ru_maxrss = 0};
    getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static void try_one(struct campaign *c, uint64_t index)
{
    char file[600];
    snprintf(file, sizeof(file), "%s/damaged.%s", c->folder, c->models ? "onnx" : "db");
    if (!make_copy(c, index, file))
        return;
    if (!c->models && index % 50 == 0)
        put_other(c);
    memset(c->outcome, 0, sizeof(*c->outcome));
    double before_s = children_s();
    int status = in_child(c, index, file);
    double took_s = children_s() - before_s;
    if (took_s > c->slowest_s) {
        c->slowest_s = took_s;
        c->slowest = index;
    }
    c->tried++;
    for (int k = 0; k <= CODES; k++)
        c->done[k] += c->outcome->codes[k];
    if (status || c->outcome->fault)
        report(c, index, file, status);
    else if (c->models && c->outcome->codes[EXIT_WRONG])
        report_wrong(c, index, file);
    remove_copy(file);
}

/* ---- campaigns ---- */

static bool run_campaign(struct campaign *c, long count)
{
    c->commands = c->models ? model_commands : database_commands;
    c->command_count = c->models ? ARRAY_COUNT(model_commands) : ARRAY_COUNT(database_commands);
    const char *seconds = getenv("RIDGE_LIMIT_S");
    c->limit_s = seconds ? (unsigned)strtoul(seconds, NULL, 10) : LIMIT_S;
    c->folder = made_folder();
    c->outcome =
        mmap(NULL, sizeof(*c->outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!c->folder || c->outcome == MAP_FAILED || !c->file_count) {
        printf("not ok - nothing to damage\n");
        return false;
    }
    const char *first = getenv("RIDGE_FIRST");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    for (long k = 0; k < count; k++) {
        try_one(c, from + (uint64_t)k);
        if (count > 1000 && k % 1000 == 999) {
            printf("# %ld of %ld\n", k + 1, count);
            fflush(stdout);
        }
    }
    printf("# %ld damaged %s of %d sound ones, seed %llu: exit codes", c->tried,
           c->models ? "models" : "databases", c->file_count, (unsigned long long)c->seed);
    for (int k = 0; k <= CODES; k++)
        if (c->done[k])
            printf(" %d: %ld,", k, c->done[k]);
    printf(" bad: %ld; %.3g s of CPU time, at most %.3g s (copy %llu)\n", c->bad, children_s(),
           c->slowest_s, (unsigned long long)c->slowest);
    munmap(c->outcome, sizeof(*c->outcome));
    made_folder_remove(c->folder);
    return true;
}

/* ---- a short look ---- */

static bool look_at_models(struct campaign *c)
{
    static const char *const files[] = {
        "tests/fuzz/seeds/onnx/dyn_reshape", "tests/fuzz/seeds/onnx/function",
        "tests/fuzz/seeds/onnx/if_dyn",      "tests/fuzz/seeds/onnx/loop",
        "tests/fuzz/seeds/onnx/scan",        "tests/fuzz/seeds/onnx/shapes",
    };
    *c = (struct campaign){
        .models = true, .files = files, .file_count = ARRAY_COUNT(files), .seed = 1};
    return run_campaign(c, 100);
}

static bool look_at_databases(struct campaign *c)
{
    char path[600];
    const char *files[] = {path};
    char *folder = made_folder();
    if (!folder)
        return false;
    snprintf(path, sizeof(path), "%s/sound.db", folder);
    char command[800];
    snprintf(command, sizeof(command), "RUNS=2 SAMPLES=10 tests/lib/sample_db.sh %s", path);
    bool fine = system(command) == 0;
    *c = (struct campaign){.files = files, .file_count = 1, .seed = 1};
    fine = fine && run_campaign(c, 20);
    made_folder_remove(folder);
    return fine;
}

int main(int argc, char **argv)
{
    struct campaign c[2] = {{.bad = 0}, {.bad = 0}};
    bool fine;
    if (argc > 4) {
        c[0] = (struct campaign){.models = strcmp(argv[1], "models") == 0,
                                 .seed = strtoull(argv[3], NULL, 10),
                                 .files = (const char *const *)argv + 4,
                                 .file_count = argc - 4};
        fine = run_campaign(&c[0], strtol(argv[2], NULL, 10));
    } else {
        fine = look_at_models(&c[0]) && look_at_databases(&c[1]);
    }
    long tried = c[0].tried + c[1].tried, bad = c[0].bad + c[1].bad + !fine;
    printf("%ld passed, %ld failed\n", tried - (bad < tried ? bad : tried), bad);
    return bad ? 1 : 0;
}
