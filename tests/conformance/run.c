/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the backend tests of ONNX: every model through the normal compilation, through the reference
 * alone, and through each kernel that computes one of its operators. Each case is a child process
 * with a time limit, so that a crash is one failure.
 *
 * A model that cannot be imported is "not supported", and so is one whose contents contradict it
 * (four of CastLike have a `like` of another shape than the model says). Those are listed in
 * not_supported.txt; one that is not listed is a failure, and so is a listed one that works: the
 * list can only shrink. wrong_data.txt does the same for cases that some version of ONNX shipped
 * with wrong results.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/system/clock.h"
#include "base/system/hash.h"
#include "base/text/options.h"
#include "base/text/table.h"
#include "engine/run/kernels.h"
#include "engine/run/plugin.h"
#include "tests/lib/onnx_case.h"

enum { JOBS_MAX = 16, OPS_MAX = 512, DEADLINE_S = 600, EXIT_SKIP = 77 };

static const char *const sets[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};
static const char default_data[] = "/usr/share/libonnx-testdata/data";
static const char default_list[] = "tests/conformance/not_supported.txt";
static const char wrong_data_list[] = "tests/conformance/wrong_data.txt";

struct settings {
    const char *filter, *list, *update;
    int64_t jobs, deadline_s;
    bool verbose, help;
};

static const struct option table[] = {
    {"filter", 'f', OPTION_TEXT, offsetof(struct settings, filter), "TEXT",
     "only cases whose SET/NAME contains TEXT"},
    {"jobs", 'j', OPTION_INT, offsetof(struct settings, jobs), "N", "at a time (default 2)"},
    {"time-limit", 't', OPTION_INT, offsetof(struct settings, deadline_s), "SECONDS",
     "per case (default 20)"},
    {"list", 'l', OPTION_TEXT, offsetof(struct settings, list), "FILE",
     "cases known not to be supported"},
    {"update-list", 'u', OPTION_TEXT, offsetof(struct settings, update), "FILE",
     "write that list anew to FILE"},
    {"verbose", 'v', OPTION_FLAG, offsetof(struct settings, verbose), NULL,
     "print every case and the table of operators"},
    {"help", 'h', OPTION_FLAG, offsetof(struct settings, help), NULL, "print this"},
    {.name = NULL},
};

/* What a child sends back. */
enum verdict { PASSED, WRONG, NOT_SUPPORTED };

struct report {
    enum verdict verdict;
    char op[64];
    char message[512];
};

struct test {
    const char *name; /* SET/NAME */
    bool listed, done;
    bool data_wrong; /* its output is one that wrong_data.txt lists */
    struct report report;
};

struct child {
    pid_t pid; /* 0: free */
    int pipe;
    size_t got; /* bytes of the report */
    int test;
    uint64_t started_ns;
    struct report report;
};

struct suite {
    struct settings settings;
    const char *data;
    struct arena arena;
    struct test *tests;
    size_t test_cap;
    int test_count, unknown_listed;
    bool other_data; /* than what the list was made from */
    struct child children[JOBS_MAX];
};

/* ---- in the child ---- */

static bool kernel_is_used(const struct kernel *kernel, const struct graph *g)
{
    if (kernel->isa > isa_detect() || (kernel->device && strcmp(kernel->device, "cpu") != 0))
        return false;
    for (int n = 0; n < g->node_count; n++)
        if (kernel_computes(kernel, g->nodes[n].op))
            return true;
    return false;
}

static enum status check_all(const struct onnx_case *c, struct error *err)
{
    struct exe_options options = {.threads = 2, .isa = isa_detect(), .only_variant = NONE};
    if (onnx_case_check(c, &options, err) != STATUS_OK)
        return error_context(err, "compiled");
    options.no_tune = options.no_fuse = true;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        if (!kernel_is_used(kernel, onnx_case_graph(c)))
            continue;
        options.only = kernel->name;
        if (onnx_case_check(c, &options, err) != STATUS_OK)
            return error_context(err, "%s", kernel->name);
    }
    return STATUS_OK;
}

static void run_case(const char *folder, struct report *report)
{
    struct onnx_case *c;
    struct error err = {0};
    enum status status = onnx_case_open(folder, &c, report->op, &err);
    bool refused = status == STATUS_UNSUPPORTED || status == STATUS_FAILED;
    report->verdict = refused ? NOT_SUPPORTED : WRONG;
    if (status == STATUS_OK)
        report->verdict = check_all(c, &err) == STATUS_OK ? PASSED : WRONG;
    onnx_case_close(c);
    snprintf(report->message, sizeof(report->message), "%s", err.message);
}

static void child_main(const struct suite *suite, const struct test *test, int pipe)
{
    char folder[512];
    struct report report = {0};
    snprintf(folder, sizeof(folder), "%s/%s", suite->data, test->name);
    run_case(folder, &report);
    const char *at = (const char *)&report;
    for (size_t left = sizeof(report); left > 0;) {
        ssize_t wrote = write(pipe, at, left);
        if (wrote <= 0)
            _exit(1);
        at += wrote;
        left -= (size_t)wrote;
    }
    exit(0); /* not _exit: leak checkers report at exit */
}

/* ---- children ---- */

static enum status start_child(struct suite *suite, struct child *child, int test,
                               struct error *err)
{
    int ends[2];
    if (pipe(ends) != 0)
        return FAIL(err, STATUS_FAILED, "pipe: %s", strerror(errno));
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        return FAIL(err, STATUS_FAILED, "fork: %s", strerror(errno));
    if (pid == 0) {
        close(ends[0]);
        child_main(suite, &suite->tests[test], ends[1]);
    }
    close(ends[1]);
    *child =
        (struct child){.pid = pid, .pipe = ends[0], .test = test, .started_ns = clock_now_ns()};
    return STATUS_OK;
}

static void print_test(const struct suite *suite, const struct test *test)
{
    static const char *const words[] = {"ok", "not ok", "not supported"};
    enum verdict verdict = test->report.verdict;
    bool expected = verdict == PASSED || (verdict == NOT_SUPPORTED && test->listed) ||
                    (verdict == WRONG && test->data_wrong);
    if (!expected || suite->settings.verbose)
        printf("%s - %s%s%s\n",
               verdict == WRONG && test->data_wrong ? "data wrong" : words[verdict], test->name,
               test->report.message[0] ? ": " : "", test->report.message);
    fflush(stdout);
}

static void finish_child(struct suite *suite, struct child *child, bool late)
{
    int status = 0;
    struct test *test = &suite->tests[child->test];
    struct report *report = &test->report;
    if (late)
        kill(child->pid, SIGKILL);
    close(child->pipe);
    waitpid(child->pid, &status, 0);
    *report = child->report;
    if (child->got < sizeof(*report) || (WIFEXITED(status) && WEXITSTATUS(status) != 0) ||
        WIFSIGNALED(status)) {
        report->verdict = WRONG;
        if (late)
            snprintf(report->message, sizeof(report->message), "ran past its time");
        else if (WIFSIGNALED(status))
            snprintf(report->message, sizeof(report->message), "killed by signal %d",
                     WTERMSIG(status));
        else
            snprintf(report->message, sizeof(report->message), "ended with code %d",
                     WEXITSTATUS(status));
    }
    test->done = true;
    child->pid = 0;
    print_test(suite, test);
}

/* Reads what has come; true when the child is at its end. */
static bool read_child(struct child *child)
{
    char rest[64];
    size_t left = sizeof(child->report) - child->got;
    char *to = left ? (char *)&child->report + child->got : rest;
    ssize_t got = read(child->pipe, to, left ? left : sizeof(rest));
    child->got += got > 0 && left ? (size_t)got : 0;
    return got <= 0;
}

static void wait_children(struct suite *suite)
{
    struct pollfd fds[JOBS_MAX];
    int count = 0, which[JOBS_MAX];
    uint64_t limit_ns = (uint64_t)suite->settings.deadline_s * 1000000000u;
    for (int k = 0; k < suite->settings.jobs; k++) {
        if (!suite->children[k].pid)
            continue;
        which[count] = k;
        fds[count++] = (struct pollfd){.fd = suite->children[k].pipe, .events = POLLIN};
    }
    poll(fds, (nfds_t)count, 500);
    for (int k = 0; k < count; k++) {
        struct child *child = &suite->children[which[k]];
        bool late = clock_now_ns() - child->started_ns > limit_ns;
        if (late || (fds[k].revents && read_child(child)))
            finish_child(suite, child, late);
    }
}

static enum status run_tests(struct suite *suite, struct error *err)
{
    int next = 0, running = 1;
    while (running) {
        running = 0;
        for (int k = 0; k < suite->settings.jobs; k++) {
            struct child *child = &suite->children[k];
            if (!child->pid && next < suite->test_count)
                TRY(start_child(suite, child, next++, err));
            running += child->pid != 0;
        }
        if (running)
            wait_children(suite);
    }
    return STATUS_OK;
}

/* ---- which tests ---- */

static enum status add_test(struct suite *suite, const char *set, const char *name,
                            struct error *err)
{
    char *full = arena_printf(&suite->arena, "%s/%s", set, name);
    if (!full)
        return FAIL_NO_MEMORY(err);
    if (suite->settings.filter && !strstr(full, suite->settings.filter))
        return STATUS_OK;
    suite->tests = arena_grow(&suite->arena, suite->tests, &suite->test_cap,
                              (size_t)suite->test_count + 1, sizeof(*suite->tests));
    if (!suite->tests)
        return FAIL_NO_MEMORY(err);
    suite->tests[suite->test_count++] = (struct test){.name = full};
    return STATUS_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct test *)a)->name, ((const struct test *)b)->name);
}

static enum status find_tests(struct suite *suite, struct error *err)
{
    for (int k = 0; k < ARRAY_COUNT(sets); k++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", suite->data, sets[k]);
        DIR *folder = opendir(path);
        if (!folder)
            return UNSUPPORTED(err, "%s: %s (package libonnx-testdata)", path, strerror(errno));
        enum status status = STATUS_OK;
        for (struct dirent *entry; status == STATUS_OK && (entry = readdir(folder));)
            if (strncmp(entry->d_name, "test_", 5) == 0)
                status = add_test(suite, sets[k], entry->d_name, err);
        closedir(folder);
        TRY(status);
    }
    qsort(suite->tests, (size_t)suite->test_count, sizeof(*suite->tests), by_name);
    return STATUS_OK;
}

/* Another version of ONNX has other cases, about which the list says nothing. */
static void compare_cases(struct suite *suite, const char *line)
{
    int cases;
    if (suite->settings.filter || sscanf(line, "# Cases: %d", &cases) != 1 ||
        cases == suite->test_count)
        return;
    suite->other_data = true;
    printf("# %d cases, but the list was made for %d, so it is not used\n", suite->test_count,
           cases);
}

/* The first word of each line is a name; the rest explains. */
static enum status read_list(struct suite *suite, struct error *err)
{
    char line[512];
    FILE *stream = fopen(suite->settings.list, "r");
    if (!stream)
        return FAIL(err, STATUS_FAILED, "%s: %s", suite->settings.list, strerror(errno));
    while (fgets(line, sizeof(line), stream)) {
        compare_cases(suite, line);
        line[strcspn(line, " \t\n")] = 0;
        if (!line[0] || line[0] == '#')
            continue;
        struct test key = {.name = line};
        struct test *test =
            bsearch(&key, suite->tests, (size_t)suite->test_count, sizeof(*suite->tests), by_name);
        if (test)
            test->listed = true;
        else if (!suite->settings.filter && !suite->other_data) {
            printf("not ok - %s is listed, but there is no such case\n", line);
            suite->unknown_listed++;
        }
    }
    fclose(stream);
    return STATUS_OK;
}

/* Lines of a name, the hash of the output that is wrong, and why it is. */
static enum status read_wrong_data(struct suite *suite, struct error *err)
{
    char line[512], name[256], hash[HASH64_TEXT];
    FILE *stream = fopen(wrong_data_list, "r");
    if (!stream)
        return FAIL(err, STATUS_FAILED, "%s: %s", wrong_data_list, strerror(errno));
    while (fgets(line, sizeof(line), stream)) {
        if (line[0] == '#' || sscanf(line, "%255s %16s", name, hash) != 2)
            continue;
        struct test key = {.name = name};
        struct test *test =
            bsearch(&key, suite->tests, (size_t)suite->test_count, sizeof(*suite->tests), by_name);
        if (!test)
            continue;
        char path[1024], found[HASH64_TEXT];
        uint64_t value;
        struct error ignored;
        snprintf(path, sizeof(path), "%s/%s/test_data_set_0/output_0.pb", suite->data, name);
        if (hash64_file(path, &value, &ignored) != STATUS_OK)
            continue;
        hash64_hex(value, found);
        test->data_wrong = strcmp(found, hash) == 0;
    }
    fclose(stream);
    return STATUS_OK;
}

static enum status write_list(const struct suite *suite, struct error *err)
{
    FILE *stream = fopen(suite->settings.update, "w");
    if (!stream)
        return FAIL(err, STATUS_FAILED, "%s: %s", suite->settings.update, strerror(errno));
    fprintf(stream,
            "# Backend tests of ONNX that ridge does not run, and why. tests/conformance/run"
            " checks that\n# each of them is refused and all others pass;"
            " --update-list FILE writes this file.\n# Cases: %d\n",
            suite->test_count);
    for (int k = 0; k < suite->test_count; k++)
        if (suite->tests[k].report.verdict == NOT_SUPPORTED)
            fprintf(stream, "%s  # %s\n", suite->tests[k].name, suite->tests[k].report.message);
    return fclose(stream) == 0
               ? STATUS_OK
               : FAIL(err, STATUS_FAILED, "%s: %s", suite->settings.update, strerror(errno));
}

/* ---- results ---- */

struct tally {
    const char *op;
    int counts[3]; /* by verdict */
};

static void print_operators(const struct suite *suite)
{
    struct tally *tallies = calloc(OPS_MAX, sizeof(*tallies));
    struct table out = {0};
    int count = 0;
    for (int k = 0; tallies && k < suite->test_count; k++) {
        const struct report *report = &suite->tests[k].report;
        const char *op = report->op[0] ? report->op : "(several)";
        int at = 0;
        while (at < count && strcmp(tallies[at].op, op) != 0)
            at++;
        if (at == count && count < OPS_MAX)
            tallies[count++] = (struct tally){.op = op};
        if (at < count)
            tallies[at].counts[report->verdict]++;
    }
    table_column(&out, "operator", TABLE_LEFT);
    table_column(&out, "passed", TABLE_RIGHT);
    table_column(&out, "failed", TABLE_RIGHT);
    table_column(&out, "not supported", TABLE_RIGHT);
    for (int k = 0; k < count; k++) {
        table_cell(&out, "%s", tallies[k].op);
        for (int v = 0; v < 3; v++)
            table_cell(&out, "%d", tallies[k].counts[v]);
    }
    table_print(&out, stdout);
    table_release(&out);
    free(tallies);
}

/* Prints the sum; true when nothing failed. */
static bool sum_up(const struct suite *suite)
{
    int passed = 0, failed = suite->unknown_listed, skipped = 0;
    for (int k = 0; k < suite->test_count; k++) {
        const struct test *test = &suite->tests[k];
        bool refused = test->report.verdict == NOT_SUPPORTED;
        bool wrong = test->report.verdict == WRONG;
        if (test->data_wrong && !wrong) {
            failed++;
            printf("not ok - %s passes with data listed as wrong: remove it from %s\n", test->name,
                   wrong_data_list);
        } else if (test->report.verdict == PASSED && (!test->listed || suite->other_data)) {
            passed++;
        } else if ((refused && (test->listed || suite->other_data)) ||
                   (wrong && test->data_wrong)) {
            skipped++;
        } else {
            failed++;
            if (!wrong)
                printf("not ok - %s %s\n", test->name,
                       refused ? "is not supported, and not listed as such"
                               : "passes now: remove it from the list");
        }
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed == 0 && passed > 0;
}

static enum status run_suite(struct suite *suite, struct error *err)
{
    struct settings *s = &suite->settings;
    s->jobs = s->jobs < 1 ? 2 : s->jobs > JOBS_MAX ? JOBS_MAX : s->jobs;
    s->deadline_s = s->deadline_s < 1 ? DEADLINE_S : s->deadline_s;
    TRY(find_tests(suite, err));
    s->list = s->list ? s->list : default_list;
    if (!s->update)
        TRY(read_list(suite, err));
    TRY(read_wrong_data(suite, err));
    plugins_load(NULL);
    TRY(run_tests(suite, err));
    if (s->verbose)
        print_operators(suite);
    return s->update ? write_list(suite, err) : STATUS_OK;
}

int main(int argc, char **argv)
{
    struct suite suite = {0};
    struct error err = {0};
    enum status status = options_parse(table, &argc, argv, &suite.settings, &err);
    if (status == STATUS_OK && suite.settings.help) {
        char text[2048];
        options_usage(table, text, sizeof(text));
        printf("usage: %s [options] [DATA_FOLDER]\n%s", argv[0], text);
        return 0;
    }
    suite.data = argc > 1 ? argv[1] : default_data;
    if (status == STATUS_OK)
        status = run_suite(&suite, &err);
    bool fine = status == STATUS_OK && sum_up(&suite);
    arena_release(&suite.arena);
    if (status == STATUS_OK)
        return fine ? 0 : 1;
    fprintf(stderr, "%s: %s\n", argv[0], err.message);
    printf("skipped: %s\n", err.message);
    return status == STATUS_UNSUPPORTED ? EXIT_SKIP : 2;
}
