/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

enum { CODE_NO_FOLDER = 126, CODE_NO_GNUPLOT = 127 };

/* In the child: only calls that are safe after a fork. */
static void become_gnuplot(const char *folder, char **words, int output)
{
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (chdir(folder) != 0)
        _exit(CODE_NO_FOLDER);
    execvp(words[0], words);
    _exit(CODE_NO_GNUPLOT);
}

/* What it said, up to the size; the rest is read and dropped, so that it never waits for us. */
static void read_all(int fd, char *text, size_t size)
{
    char chunk[512];
    size_t used = 0;
    ssize_t got;
    while ((got = read(fd, chunk, sizeof(chunk))) > 0 || (got < 0 && errno == EINTR)) {
        size_t room = size - 1 - used;
        size_t keep = got < 0 ? 0 : (size_t)got < room ? (size_t)got : room;
        memcpy(text + used, chunk, keep);
        used += keep;
    }
    text[used] = '\0';
}

static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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

bool gnuplot_run(const char *folder, const char *stem, char *reason, size_t size)
{
    char script[300], said[1024];
    char program[] = "gnuplot";
    char *words[] = {program, script, NULL};
    int ends[2];
    reason[0] = '\0';
    snprintf(script, sizeof(script), "%s.gp", stem);
    if (pipe(ends) != 0) {
        snprintf(reason, size, "no pipe to gnuplot: %s", strerror(errno));
        return false;
    }
    pid_t child = fork();
    if (child == 0)
        become_gnuplot(folder, words, ends[1]);
    close(ends[1]);
    if (child > 0)
        read_all(ends[0], said, sizeof(said));
    close(ends[0]);
    int code = child > 0 ? wait_for(child) : -1;
    if (code == CODE_NO_GNUPLOT)
        snprintf(reason, size,
                 "gnuplot is not installed: apt-get install gnuplot-nox, then "
                 "`gnuplot %s` in %s",
                 script, folder);
    else if (code != 0)
        snprintf(reason, size, "gnuplot failed on %s/%s: %s", folder, script,
                 child > 0 ? last_line(said) : strerror(errno));
    return code == 0;
}
