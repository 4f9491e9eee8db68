/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/asked_child.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"

extern char **environ;

enum { STOP_LIMIT_MS = 5000, STOP_STEP_MS = 2 };

/* ---- starting ---- */

static bool same_key(const char *a, const char *b)
{
    size_t key = strcspn(a, "=");
    return strncmp(a, b, key + 1) == 0;
}

/* The caller's environment with `more` instead of or beside it. posix_spawn takes char *const[]
 * and changes none of the strings. */
static char **environment_with(struct arena *arena, const char *const *more)
{
    size_t count = 0, extra = 0, out = 0;
    while (environ[count])
        count++;
    while (more && more[extra])
        extra++;
    char **all = arena_array(arena, count + extra + 1, sizeof(*all));
    for (size_t k = 0; all && k < count; k++) {
        bool replaced = false;
        for (size_t i = 0; i < extra; i++)
            replaced = replaced || same_key(more[i], environ[k]);
        if (!replaced)
            all[out++] = environ[k];
    }
    for (size_t i = 0; all && i < extra; i++) {
        all[out] = arena_strdup(arena, more[i]);
        if (!all[out++])
            return NULL;
    }
    return all;
}

static char **copy_words(struct arena *arena, const char *const *words)
{
    size_t count = 0;
    while (words[count])
        count++;
    char **copy = arena_array(arena, count + 1, sizeof(*copy));
    for (size_t k = 0; copy && k < count; k++)
        if (!(copy[k] = arena_strdup(arena, words[k])))
            return NULL;
    return copy;
}

static int spawn(struct asked_child *child, int other, char **command, char **environment)
{
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = posix_spawn_file_actions_adddup2(&actions, other, STDIN_FILENO);
    if (!code)
        code = posix_spawn_file_actions_adddup2(&actions, other, STDOUT_FILENO);
    if (!code)
        code = posix_spawnp(&child->pid, command[0], &actions, NULL, command, environment);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

enum status asked_child_start(struct asked_child *child, const char *const *command,
                              const char *const *environment, struct error *err)
{
    struct arena arena = {0};
    int ends[2], code = ENOMEM;
    *child = (struct asked_child){.socket = -1, .name = command[0]};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return FAIL(err, STATUS_FAILED, "%s: no socket: %s", child->name, strerror(errno));
    char **words = copy_words(&arena, command);
    char **variables = environment_with(&arena, environment);
    if (words && variables)
        code = spawn(child, ends[1], words, variables);
    arena_release(&arena);
    close(ends[1]);
    if (code) {
        close(ends[0]);
        return FAIL(err, STATUS_FAILED, "cannot start %s: %s", child->name, strerror(code));
    }
    child->socket = ends[0];
    return STATUS_OK;
}

/* ---- talking ---- */

static enum status fail_ended(const struct asked_child *child, struct error *err)
{
    return FAIL(err, STATUS_FAILED,
                "%s (process %d) ended while a sample was expected; its own "
                "message is above",
                child->name, (int)child->pid);
}

/* Moves the first line of the buffer into `line`; false when there is none yet. */
static bool take_line(struct asked_child *child, char *line)
{
    char *end = memchr(child->buffer, '\n', child->used);
    if (!end)
        return false;
    size_t length = (size_t)(end - child->buffer);
    memcpy(line, child->buffer, length);
    line[length] = 0;
    child->used -= length + 1;
    memmove(child->buffer, end + 1, child->used);
    return true;
}

static enum status read_line(struct asked_child *child, double limit_s, char *line,
                             struct error *err)
{
    uint64_t end = clock_now_ns() + (uint64_t)(limit_s * 1e9);
    while (!take_line(child, line)) {
        uint64_t now = clock_now_ns();
        struct pollfd ready = {.fd = child->socket, .events = POLLIN};
        if (child->used == sizeof(child->buffer))
            return FAIL(err, STATUS_FAILED, "%s printed a line that is no sample", child->name);
        int left = now < end ? (int)((end - now) / 1000000 + 1) : 0;
        int polled = poll(&ready, 1, left);
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled <= 0)
            return FAIL(err, STATUS_FAILED, "%s (process %d) said nothing for %.3g s", child->name,
                        (int)child->pid, limit_s);
        ssize_t got = recv(child->socket, child->buffer + child->used,
                           sizeof(child->buffer) - child->used, 0);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return fail_ended(child, err);
        child->used += got > 0 ? (size_t)got : 0;
    }
    return STATUS_OK;
}

enum status asked_child_ready(struct asked_child *child, double limit_s, struct error *err)
{
    char line[sizeof(child->buffer)];
    TRY(read_line(child, limit_s, line, err));
    if (strcmp(line, "ready") != 0)
        return FAIL(err, STATUS_FAILED, "%s printed \"%s\" instead of \"ready\"", child->name,
                    line);
    return STATUS_OK;
}

enum status asked_child_sample(struct asked_child *child, double limit_s, double *ms,
                               struct error *err)
{
    char line[sizeof(child->buffer)], *end;
    if (send(child->socket, "\n", 1, MSG_NOSIGNAL) != 1)
        return fail_ended(child, err);
    TRY(read_line(child, limit_s, line, err));
    *ms = strtod(line, &end);
    if (end == line || *end || !(*ms > 0) || isinf(*ms))
        return FAIL(err, STATUS_FAILED, "%s printed \"%s\" instead of a time in ms", child->name,
                    line);
    return STATUS_OK;
}

/* ---- stopping ---- */

enum status asked_child_stop(struct asked_child *child, struct error *err)
{
    int state = 0;
    pid_t ended = 0;
    if (child->socket < 0)
        return STATUS_OK;
    close(child->socket);
    child->socket = -1;
    for (int ms = 0; ended == 0 && ms < STOP_LIMIT_MS; ms += STOP_STEP_MS) {
        const struct timespec step = {.tv_nsec = STOP_STEP_MS * 1000000L};
        ended = waitpid(child->pid, &state, WNOHANG);
        if (ended == 0)
            nanosleep(&step, NULL);
    }
    if (ended == 0) {
        kill(child->pid, SIGKILL);
        waitpid(child->pid, &state, 0);
        return FAIL(err, STATUS_FAILED, "%s did not end with its input; it was killed",
                    child->name);
    }
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "%s ended with %s %d", child->name,
                WIFSIGNALED(state) ? "signal" : "exit code",
                WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state));
}
