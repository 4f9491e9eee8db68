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
 * the same. What was found is kept in $RIDGE_BUILD/test-logs. */
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

#include "base/registry.h"
#include "harness/cli/command.h"
#include "results/sqlite.h"
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

/* A command with its words; FILE, OTHER and OUT stand for paths. */
typedef const char *const words_of[WORDS_MAX];

static const words_of model_commands[] = {
    {"import", "FILE", "--json"},
    {"import", "FILE", "-o", "OUT/understood.onnx"},
    {"graph", "FILE"},
    {"explain", "FILE", "--no-tune", "-t", "1", "-p", "native", "--cache", "OUT/cache"},
    {"infer", "FILE", "--no-tune", "-t", "1", "-p", "native", "--cache", "OUT/cache"},
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
    bool silent, strange; /* it failed without a word; with a code that is none */
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
};

/* ---- a damaged copy ---- */

/* Writes a number's column as text, and such: what SQLite itself would refuse is put in behind its
 * back. */
static void damage_rows(const char *path, struct draws *d)
{
    static const char *const changes[] = {
        "UPDATE metric SET value = 'much'",
        "UPDATE sample SET time_ns = 'soon'",
        "UPDATE sample SET time_ns = -9223372036854775808",
        "UPDATE run SET started_utc = zeroblob(100000)",
        "UPDATE run SET uuid = x'00ff00ff'",
        "UPDATE result SET status = 'splendid'",
        "UPDATE result SET run = 77",
        "UPDATE metric SET value = 1e999, n = -1",
        "UPDATE point SET workload = char(27) || '[2J' || char(10) || workload",
        "UPDATE result SET sequence = 9223372036854775807 WHERE id = 1",
        "DELETE FROM point",
        "DELETE FROM env_set",
        "DROP TABLE sample",
        "UPDATE run SET order_key = 9223372036854775807, planned = -5",
        "UPDATE ceiling SET value = 0, threads = -1",
        "UPDATE op SET name = '', kind = ''",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = 0",
        "PRAGMA application_id = 7",
        "CREATE VIEW loop AS SELECT * FROM loop",
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END",
    };
    sqlite3 *db;
    char sql[256];
    if (sqlite3_open(path, &db) == SQLITE_OK) {
        sqlite3_exec(db,
                     "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
                     "'STRICT', '') WHERE type = 'table'; PRAGMA writable_schema = RESET;"
                     "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON",
                     NULL, NULL, NULL);
        for (uint32_t k = 0, count = 1 + draw(d, 3); k < count; k++)
            sqlite3_exec(db, changes[draw(d, ARRAY_COUNT(changes))], NULL, NULL, NULL);
        if (draw(d, 2)) /* the tables look as they should */
            sqlite3_exec(db,
                         "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql || "
                         "' STRICT' WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'",
                         NULL, NULL, NULL);
        else if (draw(d, 2)) {
            snprintf(sql, sizeof(sql),
                     "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET %s WHERE rowid = %u",
                     draw(d, 2) ? "rootpage = 3" : "sql = replace(sql, 'INTEGER', 'TEXT')",
                     1 + draw(d, 20));
            sqlite3_exec(db, sql, NULL, NULL, NULL);
        }
    }
    sqlite3_close(db);
}

/* Pages change places, or lose parts; rarely, what is at the head of the file. */
static void damage_pages(struct bytes *x, struct draws *d)
{
    enum { PAGE = 4096 };
    uint32_t pages = (uint32_t)(x->size / PAGE);
    for (uint32_t k = 0, count = 1 + draw(d, 4); pages > 1 && k < count; k++) {
        uint8_t *page = x->data + (size_t)draw(d, pages) * PAGE;
        if (draw(d, 3) == 0)
            memmove(page, x->data + (size_t)draw(d, pages) * PAGE, PAGE);
        else if (draw(d, 2))
            page[draw(d, 120)] = (uint8_t)draw(d, 256); /* its header and the first cells */
        else
            memset(page + draw(d, PAGE / 2), (int)draw(d, 256), PAGE / 2);
    }
}

static void write_log(const char *path, const struct bytes *other, struct draws *d)
{
    char log[620];
    static const uint8_t head[] = {0x37, 0x7f, 0x06, 0x82, 0x00, 0x2d, 0xe2, 0x18,
                                   0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00};
    snprintf(log, sizeof(log), "%s-%s", path, draw(d, 4) ? "wal" : "journal");
    size_t size = draw(d, 3) ? other->size : draw(d, 200);
    struct bytes made = {malloc(size + sizeof(head)), size < other->size ? size : other->size};
    if (made.data) {
        memcpy(made.data, other->data, made.size);
        if (made.size >= sizeof(head) && draw(d, 4))
            memcpy(made.data, head, sizeof(head));
        bytes_write(&made, log);
    }
    free(made.data);
}

static void damage_database(struct bytes *x, const struct bytes *other, const char *path,
                            struct draws *d)
{
    uint32_t kind = draw(d, 6);
    if (kind < 2)
        damage_pages(x, d);
    else if (kind == 2)
        damage_bytes(x, other, d);
    bytes_write(x, path);
    if (kind == 3)
        write_log(path, other, d);
    else if (kind > 3)
        damage_rows(path, d);
}

/* Copy `index` at `path`; false: no such file can be read. */
static bool make_copy(const struct campaign *c, uint64_t index, const char *path)
{
    struct draws d = {c->seed * 1000003 + index, 0};
    struct bytes x = bytes_read(c->files[draw(&d, (uint32_t)c->file_count)]);
    struct bytes other = bytes_read(c->files[draw(&d, (uint32_t)c->file_count)]);
    bool fine = x.data && other.data;
    if (fine && c->models) {
        /* Once mostly: what is damaged more is refused early. */
        for (uint32_t k = 0, count = draw(&d, 3) ? 1 : 1 + draw(&d, 4); k < count; k++)
            (draw(&d, 4) ? damage_message : damage_bytes)(&x, &other, &d);
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

/* The words with paths in them; path has room for WORDS_MAX of them. */
static int fill_words(const struct campaign *c, const words_of *from, const char *file,
                      char (*room)[512], char **words)
{
    int count = 0;
    for (; count < WORDS_MAX && (*from)[count]; count++) {
        const char *word = (*from)[count];
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

static void run_commands(const struct campaign *c, const char *file, int said)
{
    limit();
    signal(SIGXFSZ, SIG_IGN);
    for (int k = 0; k < c->command_count; k++) {
        char room[WORDS_MAX][512], *words[WORDS_MAX];
        int count = fill_words(c, &c->commands[k], file, room, words);
        struct stat info;
        c->outcome->stage = k;
        alarm(c->limit_s); /* its signal ends the child: that is a hang */
        bool fresh = ftruncate(said, 0) == 0 && lseek(said, 0, SEEK_SET) == 0;
        int code = commands_dispatch(count, words);
        fflush(NULL);
        bool known = code >= 0 && code < CODES;
        c->outcome->codes[known ? code : CODES]++;
        c->outcome->strange = c->outcome->strange || !known;
        if (fresh && (code == EXIT_USAGE || code == EXIT_MISSING) && fstat(said, &info) == 0 &&
            info.st_size == 0)
            c->outcome->silent = true;
        if (c->outcome->silent || c->outcome->strange)
            _exit(0);
    }
    _exit(0);
}

static int in_child(const struct campaign *c, const char *file, bool draws_plots)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char path[600];
        setpgid(0, 0);
        if (!draws_plots) /* gnuplot takes ten times as long as all the rest */
            setenv("PATH", "/nonexistent", 1);
        snprintf(path, sizeof(path), "%s/said", c->folder);
        int nothing = open("/dev/null", O_RDWR), said = open(path, O_RDWR | O_CREAT, 0644);
        dup2(nothing, 0);
        dup2(nothing, 1);
        dup2(said, 2);
        run_commands(c, file, said);
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

static void report(struct campaign *c, uint64_t index, const char *file, int status)
{
    char what[512], kept[700];
    const char *build = getenv("RIDGE_BUILD");
    command_text(c, c->outcome->stage, what, sizeof(what));
    snprintf(kept, sizeof(kept), "%s/test-logs/damaged-%llu-%llu.%s", build ? build : ".",
             (unsigned long long)c->seed, (unsigned long long)index, c->models ? "onnx" : "db");
    struct bytes bytes = bytes_read(file);
    if (bytes.data)
        bytes_write(&bytes, kept);
    free(bytes.data);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("not ok - ridge%s: hangs; kept as %s\n", what, kept);
    else if (WIFSIGNALED(status))
        printf("not ok - ridge%s: signal %d; kept as %s\n", what, WTERMSIG(status), kept);
    else if (WEXITSTATUS(status))
        printf("not ok - ridge%s: ends with %d; kept as %s\n", what, WEXITSTATUS(status), kept);
    else
        printf("not ok - ridge%s: %s; kept as %s\n", what,
               c->outcome->silent ? "fails without a word" : "has a strange exit code", kept);
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

static void try_one(struct campaign *c, uint64_t index)
{
    char file[600];
    snprintf(file, sizeof(file), "%s/damaged.%s", c->folder, c->models ? "onnx" : "db");
    if (!make_copy(c, index, file))
        return;
    if (!c->models && index % 50 == 0)
        put_other(c);
    memset(c->outcome, 0, sizeof(*c->outcome));
    int status = in_child(c, file, index % 40 == 0);
    c->tried++;
    for (int k = 0; k <= CODES; k++)
        c->done[k] += c->outcome->codes[k];
    if (status || c->outcome->silent || c->outcome->strange)
        report(c, index, file, status);
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
    for (long k = 0; k < count; k++) {
        try_one(c, (uint64_t)k);
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
    printf(" bad: %ld\n", c->bad);
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
