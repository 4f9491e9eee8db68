/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* pipe2: an end that another gnuplot inherits would never be closed */
#include "plots/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"

bool gnuplot_terminal(FILE *script, const char *kind, double width, double height)
{
    if (strcmp(kind, "svg") == 0)
        fprintf(script,
                "set terminal svg size %.0f,%.0f dynamic noenhanced font 'Helvetica,13' "
                "background '#ffffff'\n",
                width, height);
    else if (strcmp(kind, "png") == 0) /* twice the pixels: sharp on paper and on good screens */
        fprintf(script,
                "set terminal pngcairo size %.0f,%.0f noenhanced font 'Helvetica,9.75' "
                "fontscale 2 linewidth 2 pointscale 2 background '#ffffff'\n",
                width * 2, height * 2);
    else if (strcmp(kind, "pdf") == 0) /* 96 pixels per inch */
        fprintf(script,
                "set terminal pdfcairo size %.3fin,%.3fin noenhanced font 'Helvetica,9.75' "
                "background '#ffffff'\n",
                width / 96, height / 96);
    else
        return false;
    return true;
}

enum { CODE_NO_FOLDER = 126, CODE_NO_GNUPLOT = 127, CODE_LATE = 1000, LIMIT_S = 60 };

/* In the child: only calls that are safe after a fork. A group of its own: what it starts ends with
 * it. */
static void become_gnuplot(const char *folder, char **words, int output)
{
    int nothing = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (chdir(folder) != 0)
        _exit(CODE_NO_FOLDER);
    execvp(words[0], words);
    _exit(CODE_NO_GNUPLOT);
}

/* What it printed, up to the size; the rest is read and dropped, so that it never has to wait.
 * False when it has not closed its output by the end of its time. */
static bool read_all(int fd, uint64_t end_ns, char *text, size_t size)
{
    char chunk[512];
    size_t used = 0;
    ssize_t got = 1;
    text[0] = '\0';
    while (got) {
        uint64_t now = clock_now_ns();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (now >= end_ns)
            return false;
        if (poll(&ready, 1, (int)((end_ns - now) / 1000000) + 1) <= 0)
            continue;
        got = read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno != EINTR)
            return true;
        size_t left = size - 1 - used;
        size_t keep = got < 0 ? 0 : (size_t)got < left ? (size_t)got : left;
        memcpy(text + used, chunk, keep);
        used += keep;
        text[used] = '\0';
    }
    return true;
}

/* Its exit code, -1 when a signal ended it. One that goes on after its time is ended. */
static int wait_for(pid_t child, uint64_t end_ns)
{
    int status = 0;
    bool late = false;
    for (pid_t ended = 0; ended != child;) {
        ended = waitpid(child, &status, late ? 0 : WNOHANG);
        if (ended < 0 && errno != EINTR)
            return -1;
        if (ended == 0 && clock_now_ns() >= end_ns) {
            late = true;
            kill(-child, SIGKILL);
            kill(child, SIGKILL); /* before it made its group */
        } else if (ended == 0) {
            poll(NULL, 0, 2);
        }
    }
    return late ? CODE_LATE : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Seconds that one plot may take; RIDGE_GNUPLOT_LIMIT_S is for tests and slow machines. */
static int limit_s(void)
{
    const char *text = getenv("RIDGE_GNUPLOT_LIMIT_S");
    long limit = text ? strtol(text, NULL, 10) : 0;
    return limit > 0 && limit < 86400 ? (int)limit : LIMIT_S;
}

/* One line of what gnuplot said: the one that names the error is the last that is not empty. */
static const char *last_line(char *text)
{
    size_t length = strlen(text);
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

static void explain(int code, const char *folder, const char *script, char *said, char *reason,
                    size_t size)
{
    if (code == CODE_NO_GNUPLOT)
        snprintf(reason, size,
                 "gnuplot is not installed: apt-get install gnuplot-nox, then "
                 "`gnuplot %s` in %s",
                 script, folder);
    else if (code == CODE_LATE)
        snprintf(reason, size,
                 "gnuplot did not finish %s/%s within %d s and was ended; the others are not tried",
                 folder, script, limit_s());
    else if (code != 0)
        snprintf(reason, size, "gnuplot failed on %s/%s: %s", folder, script, last_line(said));
}

void gnuplot_start(struct gnuplot *g, const char *folder, const char *stem, const char *picture)
{
    char place[PATH_MAX + 16];
    char program[] = "gnuplot", option[] = "-e";
    char *words[] = {program, option, place, g->script, NULL};
    int ends[2];
    const char *slash = strrchr(picture, '/');
    *g = (struct gnuplot){.folder = folder, .output = -1};
    snprintf(g->script, sizeof(g->script), "%s.gp", stem);
    snprintf(place, sizeof(place), "PICTURE = '%s'", slash ? slash + 1 : picture);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        g->error = errno;
        return;
    }
    g->end_ns = clock_now_ns() + (uint64_t)limit_s() * 1000000000;
    g->child = fork();
    if (g->child == 0)
        become_gnuplot(folder, words, ends[1]);
    g->error = g->child < 0 ? errno : 0;
    g->child = g->child < 0 ? 0 : g->child;
    close(ends[1]);
    g->output = ends[0];
}

enum gnuplot_result gnuplot_finish(struct gnuplot *g, char *reason, size_t size)
{
    char said[1024];
    reason[0] = '\0';
    if (g->child)
        read_all(g->output, g->end_ns, said, sizeof(said));
    if (g->output >= 0)
        close(g->output);
    if (!g->child) {
        snprintf(reason, size, "gnuplot cannot be started: %s", strerror(g->error));
        return GNUPLOT_FAILED;
    }
    int code = wait_for(g->child, g->end_ns);
    explain(code, g->folder, g->script, said, reason, size);
    return code == 0 ? GNUPLOT_DREW : code == CODE_LATE ? GNUPLOT_HANGS : GNUPLOT_FAILED;
}
