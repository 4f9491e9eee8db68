/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/program_probe.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/registry.h"
#include "base/text/json_read.h"
#include "harness/machine/build_files.h"
#include "harness/turns/asked_child.h"

enum { ANSWER_BYTES = 16384 };

static const double limit_s = 60;

/* Where in PATH a name without '/' is found. */
static const char *file_of(const char *program, struct arena *arena)
{
    const char *path = getenv("PATH");
    if (strchr(program, '/'))
        return program;
    for (const char *at = path ? path : ""; *at; at += strcspn(at, ":"), at += *at == ':') {
        const char *file = arena_printf(arena, "%.*s/%s", (int)strcspn(at, ":"), at, program);
        if (file && access(file, X_OK) == 0)
            return file;
    }
    return program;
}

static enum status hash_files(const char *program, struct arena *arena, char uid[HASH64_TEXT],
                              struct error *err)
{
    struct build_files files;
    TRY(build_files_find(file_of(program, arena), getenv("RIDGE_PLUGIN_PATH"), arena, &files, err));
    return build_files_uid(&files, uid, err);
}

static enum status read_answer(const char *answer, const char *program, struct arena *arena,
                               struct build_record *build, struct error *err)
{
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"version", &build->version}, {"commit", &build->git},
                 {"config", &build->config},   {"compiler", &build->compiler},
                 {"flags", &build->flags},     {"features", &build->features}};
    char *text = arena_alloc(arena, ANSWER_BYTES);
    if (!text)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < ARRAY_COUNT(texts); k++) {
        if (!json_read_text(answer, texts[k].key, text, ANSWER_BYTES) && k == 0)
            return FAIL(err, STATUS_FAILED,
                        "%s is no ridge: `%s version --json` does not name a version", program,
                        program);
        *texts[k].to = arena_strdup(arena, text);
        if (!*texts[k].to)
            return FAIL_NO_MEMORY(err);
    }
    if (json_read_text(answer, "uid", text, HASH64_TEXT) && text[0]) {
        memcpy(build->uid, text, strlen(text) + 1);
        return STATUS_OK;
    }
    return hash_files(program, arena, build->uid, err);
}

enum status program_probe(const char *program, const char *const *environment, struct arena *arena,
                          struct build_record *build, struct error *err)
{
    const char *const command[] = {program, "version", "--json", NULL};
    char *answer = arena_alloc(arena, ANSWER_BYTES);
    *build = (struct build_record){.version = ""};
    if (!answer)
        return FAIL_NO_MEMORY(err);
    if (asked_child_output(command, environment, limit_s, answer, ANSWER_BYTES, err) != STATUS_OK)
        return error_context(err, "asking %s what it is", program);
    return read_answer(answer, program, arena, build, err);
}
