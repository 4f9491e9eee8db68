/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/turns/asked_child.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/system/clock.h"
#include "base/system/last_words.h"
#include "harness/watch/interrupt.h"

/* After an interrupt: who gives samples is ended at once; another command has ranks to end, whose
 * memory it then removes (Open MPI's mpirun takes a second). */
enum { STOP_LIMIT_MS = 5000, STOP_SAMPLES_MS = 200, STOP_COMMAND_MS = 4000, STOP_STEP_MS = 2 };

/* ---- starting ---- */

static bool same_key(const char *a, const char *b)
{
    size_t key = strcspn(a, "=");
    return strncmp(a, b, key + 1) == 0;
}

/* The caller's environment, extended or overridden by `more`. posix_spawn takes char *const[] and
 * changes none of the strings. */
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
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    code = posix_spawn_file_actions_adddup2(&actions, other, STDIN_FILENO);
    if (!code)
        code = posix_spawn_file_actions_adddup2(&actions, other, STDOUT_FILENO);
    if (!code && child->errors >= 0)
        code = posix_spawn_file_actions_adddup2(&actions, child->errors, STDERR_FILENO);
    if (!code)
        code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    if (!code)
        code = posix_spawnp(&child->pid, command[0], &actions, &attributes, command, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static void forget_errors(struct asked_child *child)
{
    if (child->errors >= 0)
        close(child->errors);
    child->errors = -1;
}

static enum status start(struct asked_child *child, const char *const *command,
                         const char *const *environment, struct error *err)
{
    struct arena arena = {0};
    int ends[2], code = ENOMEM;
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
        forget_errors(child);
        return FAIL(err, STATUS_FAILED, "cannot start %s: %s", child->name, strerror(code));
    }
    child->socket = ends[0];
    return STATUS_OK;
}

enum status asked_child_start(struct asked_child *child, const char *const *command,
                              const char *const *environment, struct error *err)
{
    *child = (struct asked_child){.socket = -1, .errors = -1, .exit_code = -1, .name = command[0]};
    return start(child, command, environment, err);
}

enum status asked_child_start_kept(struct asked_child *child, const char *const *command,
                                   const char *const *environment, struct error *err)
{
    *child = (struct asked_child){.socket = -1, .exit_code = -1, .name = command[0]};
    child->errors = memfd_create("standard error", MFD_CLOEXEC);
    return start(child, command, environment, err);
}

/* ---- talking ---- */

static enum status fail_ended(const struct asked_child *child, struct error *err)
{
    char said[400];
    last_words(child->errors, said, sizeof(said));
    if (child->errors >= 0)
        return FAIL(err, STATUS_FAILED, "%s (process %d) ended while a sample was expected%s%s",
                    child->name, (int)child->pid, said[0] ? ": " : "", said);
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
        if (interrupt_requested())
            return FAIL(err, STATUS_FAILED, "interrupted while %s was waited for", child->name);
        int polled = poll(&ready, 1, left);
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled <= 0)
            return FAIL(err, STATUS_FAILED, "%s (process %d) did not answer within %.3g s",
                        child->name, (int)child->pid, limit_s);
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

static enum status ask(struct asked_child *child, const char *request, double limit_s, double *ms,
                       struct error *err)
{
    char line[sizeof(child->buffer)], *end;
    ssize_t length = (ssize_t)strlen(request);
    if (send(child->socket, request, (size_t)length, MSG_NOSIGNAL) != length)
        return fail_ended(child, err);
    TRY(read_line(child, limit_s, line, err));
    *ms = strtod(line, &end);
    if (end == line || *end || !(*ms > 0) || isinf(*ms))
        return FAIL(err, STATUS_FAILED, "%s printed \"%s\" instead of a time in ms", child->name,
                    line);
    return STATUS_OK;
}

enum status asked_child_sample(struct asked_child *child, double limit_s, double *ms,
                               struct error *err)
{
    return ask(child, "\n", limit_s, ms, err);
}

enum status asked_child_block(struct asked_child *child, int64_t runs, double limit_s, double *ms,
                              struct error *err)
{
    char request[32];
    snprintf(request, sizeof(request), "%lld\n", (long long)runs);
    return ask(child, request, limit_s, ms, err);
}

/* ---- stopping ---- */

/* A wrapper may have ended without its program: the whole group is ended with its leader. */
static enum status kill_group(struct asked_child *child, struct error *err)
{
    int state;
    kill(-child->pid, SIGKILL);
    waitpid(child->pid, &state, 0);
    return FAIL(err, STATUS_FAILED, "%s did not end with its input; it was killed", child->name);
}

static enum status stop(struct asked_child *child, int interrupted_ms, struct error *err)
{
    int state = 0;
    pid_t ended = 0;
    if (child->socket < 0)
        return STATUS_OK;
    close(child->socket);
    child->socket = -1;
    forget_errors(child);
    if (interrupt_requested()) /* a launcher ends its ranks with it */
        kill(-child->pid, SIGTERM);
    for (int ms = 0; ended == 0 && ms < STOP_LIMIT_MS; ms += STOP_STEP_MS) {
        if (interrupt_requested() && ms >= interrupted_ms)
            break;
        const struct timespec step = {.tv_nsec = STOP_STEP_MS * 1000000L};
        ended = waitpid(child->pid, &state, WNOHANG);
        if (ended == 0)
            nanosleep(&step, NULL);
    }
    if (ended == 0)
        return kill_group(child, err);
    child->exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "%s ended with %s %d", child->name,
                WIFSIGNALED(state) ? "signal" : "exit code",
                WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state));
}

enum status asked_child_stop(struct asked_child *child, struct error *err)
{
    return stop(child, STOP_SAMPLES_MS, err);
}

/* ---- a command as a whole ---- */

/* Until the end; false when the limit came first. */
static bool read_all(struct asked_child *child, double limit_s, char *text, size_t size)
{
    uint64_t end = clock_now_ns() + (uint64_t)(limit_s * 1e9);
    size_t used = 0;
    for (;;) {
        uint64_t now = clock_now_ns();
        struct pollfd ready = {.fd = child->socket, .events = POLLIN};
        int polled = now < end && !interrupt_requested()
                         ? poll(&ready, 1, (int)((end - now) / 1000000 + 1))
                         : 0;
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled <= 0)
            return false;
        char *to = used + 1 < size ? text + used : child->buffer; /* more than asked for is lost */
        size_t left = used + 1 < size ? size - 1 - used : sizeof(child->buffer);
        ssize_t got = recv(child->socket, to, left, 0);
        if (got <= 0)
            return true;
        used += to == child->buffer ? 0 : (size_t)got;
        text[used] = '\0';
    }
}

enum status asked_child_output(const char *const *command, const char *const *environment,
                               double limit_s, char *text, size_t size, struct error *err)
{
    struct asked_child child;
    char said[400];
    text[0] = '\0';
    TRY(asked_child_start_kept(&child, command, environment, err));
    bool whole = read_all(&child, limit_s, text, size);
    last_words(child.errors, said, sizeof(said));
    enum status status = stop(&child, STOP_COMMAND_MS, err);
    if (!whole && interrupt_requested())
        return FAIL(err, STATUS_FAILED, "interrupted while %s was waited for", command[0]);
    if (!whole)
        return FAIL(err, STATUS_FAILED, "%s %s did not end within %.3g s", command[0], command[1],
                    limit_s);
    return status == STATUS_OK || !said[0] ? status : error_context(err, "%s", said);
}
