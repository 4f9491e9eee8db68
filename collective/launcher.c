/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/plugin_open.h"

static bool is_in_path(const char *program)
{
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at;) {
        char file[4096];
        size_t length = strcspn(at, ":");
        snprintf(file, sizeof(file), "%.*s/%s", (int)length, at, program);
        if (access(file, X_OK) == 0)
            return true;
        at += length + (at[length] != '\0');
    }
    return false;
}

enum status launcher_command_init(struct launcher_command *command, const struct backend *backend,
                                  int ranks, const char *hosts, struct error *err)
{
    const struct launcher *launcher = backend->launcher;
    const char *program = NULL;
    for (int k = 0; launcher->programs[k] && !program; k++)
        program = is_in_path(launcher->programs[k]) ? launcher->programs[k] : NULL;
    if (!program)
        return FAIL(err, STATUS_FAILED, "no %s in PATH, which starts ranks of %s: %s",
                    launcher->programs[0], backend->name, backend->plugin->fix);
    *command = (struct launcher_command){.words = {program}, .count = 1};
    if (hosts) {
        command->words[command->count++] = launcher->hosts_option;
        command->words[command->count++] = hosts;
    }
    for (int k = 0; launcher->options[k]; k++)
        command->words[command->count++] = launcher->options[k];
    snprintf(command->ranks, sizeof(command->ranks), "%d", ranks);
    command->words[command->count++] = command->ranks;
    return STATUS_OK;
}
