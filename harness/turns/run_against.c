/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/run_against.h"

#include <stdio.h>

#include "harness/cli/command.h"
#include "harness/compare/comparison.h"
#include "harness/compare/kept_program.h"
#include "harness/turns/turns.h"
#include "harness/watch/interrupt.h"

static void print_end(const struct turns_result *r, const char *program, const char *db)
{
    if (r->note[0])
        fprintf(stderr, "ridge: %s\n", r->note);
    if (r->interrupted)
        fprintf(stderr, "ridge: interrupted; the comparison is of what was complete\n");
    if (r->left_out)
        fprintf(stderr, "ridge: %d point%s not compared; the first is %s\n", r->left_out,
                r->left_out == 1 ? " was" : "s were", r->why_left_out);
    fprintf(stderr, "runs %.8s (BASE, %s) and %.8s (HEAD, this program) are in %s\n", r->uuid[0],
            program, r->uuid[1], db);
}

static int compare(const struct turns_result *r, const char *db, bool json)
{
    struct comparison_set set;
    struct compare_rules rules = {.limit = 0};
    struct error err = {0};
    if (comparison_open(&set, r->uuid[0], r->uuid[1], db, &rules, &err) != STATUS_OK)
        return command_fail(&err);
    comparison_writer_find(json ? "json" : "text")->write(&set, stdout);
    int code = comparison_exit_code(&set);
    comparison_close(&set);
    return code;
}

static int exit_code(const struct turns_result *r, int code)
{
    return code == EXIT_FINE && (r->interrupted || r->changed) ? EXIT_INCONCLUSIVE : code;
}

int run_against(const struct plan *plan, const struct against_options *o)
{
    struct arena arena = {0};
    struct error err = {0};
    struct kept_program base;
    struct turns_result result;
    enum status status = kept_program_from_word(o->program, plan->db, &arena, &base, &err);
    if (status == STATUS_OK) {
        struct turns_options turns = {.program = base.path,
                                      .environment = base.environment,
                                      .model = o->model,
                                      .db = plan->db,
                                      .tag = o->tag,
                                      .command = o->command,
                                      .quiet = o->quiet,
                                      .redact = o->redact};
        interrupt_install();
        status = turns_run(plan, &turns, &result, &err);
    }
    int code = EXIT_MISSING;
    if (status != STATUS_OK)
        code = command_fail(&err);
    else
        print_end(&result, o->program, plan->db);
    /* A point that failed before the first pair has a verdict, too; a plan of skipped ones has
     * none. */
    if (status == STATUS_OK && (result.compared || result.failed))
        code = exit_code(&result, compare(&result, plan->db, o->json));
    arena_release(&arena);
    return code;
}
