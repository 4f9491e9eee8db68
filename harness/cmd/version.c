/* SPDX-License-Identifier: Apache-2.0
 * The smallest command, and the template for a new one. */
#include <stdbool.h>
#include <stdio.h>

#include "base/build_info.h"
#include "base/text/json.h"
#include "harness/cli/command.h"
#include "harness/machine/environment.h"

struct values {
    bool json;
};

static const struct option options[] = {
    {"json", 0, OPTION_FLAG, offsetof(struct values, json), NULL, "print JSON"},
    {0},
};

static int print_json(void)
{
    struct arena arena = {0};
    struct build_record build;
    struct error err = {0};
    struct json j;
    enum status status = build_probe(&build, &arena, &err);
    arena_release(&arena);
    if (status != STATUS_OK)
        return command_fail(&err);
    json_begin(&j, stdout);
    json_open(&j, NULL, '{');
    json_text(&j, "version", build_info.version);
    json_text(&j, "commit", build_info.commit);
    json_text(&j, "config", build_info.config);
    json_text(&j, "compiler", build_info.compiler);
    json_text(&j, "flags", build_info.flags);
    json_text(&j, "isas", build_info.isas);
    json_text(&j, "features", build_info.features);
    json_text(&j, "uid", build.uid); /* of the executable and its plug-ins */
    json_close(&j);
    return EXIT_FINE;
}

static int version(int word_count, char **words, const void *values)
{
    const struct values *v = values;
    if (word_count) {
        fprintf(stderr, "ridge version: takes no word, got \"%s\"\n", words[0]);
        return EXIT_USAGE;
    }
    if (v->json)
        return print_json();
    printf("ridge %s (%s, %s)\n%s\n", build_info.version, build_info.commit, build_info.config,
           build_info.compiler);
    return EXIT_FINE;
}

REGISTER(command, version) = {
    .name = "version",
    .summary = "print version, commit and compiler",
    .usage = "[--json]",
    .options = options,
    .values_size = sizeof(struct values),
    .main = version,
};
