/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "collective/local_ranks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/cpus.h"

enum { LOOK_NS = 2 * 1000 * 1000 };

struct launch {
    const struct local_ranks *run;
    struct group *group;
    struct error *errors; /* shared: one for each rank */
    pid_t *pids;          /* 0: has ended, or was never started */
    int alive;
    uint64_t give_up_ns; /* when the rest is killed; 0: all is well */
    struct error first;  /* failure */
};

/* Each rank gets its part of this process's CPUs, where there are enough: ranks that share one do
 * not move at the same time. */
static void take_cpus(int rank, int ranks)
{
    struct cpus all, own = {0};
    int count = cpus_of_thread(&all) ? cpus_count(&all) : 0;
    if (count < ranks)
        return;
    for (int k = 0; k < count; k++)
        if (k * ranks / count == rank)
            cpus_add(&own, cpus_at(&all, k));
    cpus_bind(pthread_self(), &own);
}

static _Noreturn void rank_main(const struct launch *launch, int rank, pid_t parent)
{
    struct error *err = &launch->errors[rank];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it was killed meanwhile */
    take_cpus(rank, launch->run->ranks);
    enum status status = launch->run->body(launch->run->context, launch->group, rank, err);
    if (status != STATUS_OK && !err->message[0])
        FAIL(err, status, "failed without a reason");
    _exit(status == STATUS_OK ? 0 : 1);
}

/* Only the first failure counts; all ranks learn of it. */
static void note_failure(struct launch *launch, enum status code, const char *text)
{
    if (launch->first.code != STATUS_OK)
        return;
    FAIL(&launch->first, code, "%s", text);
    launch->run->backend->announce(launch->group, NOBODY, text);
    launch->give_up_ns = clock_now_ns() + launch->run->options.deadline_ns;
}

static enum status start_ranks(struct launch *launch, struct error *err)
{
    pid_t parent = getpid();
    for (int rank = 0; rank < launch->run->ranks; rank++) {
        pid_t child = fork();
        if (child == 0)
            rank_main(launch, rank, parent);
        if (child < 0)
            return FAIL(err, STATUS_FAILED, "no process for rank %d: %s", rank, strerror(errno));
        launch->pids[rank] = child;
        launch->alive++;
    }
    return STATUS_OK;
}

static void note_end(struct launch *launch, int rank, int state)
{
    const struct error *said = &launch->errors[rank];
    enum status code = said->code == STATUS_OK ? STATUS_FAILED : said->code;
    char text[sizeof(said->message) + 32];
    if (WIFSIGNALED(state))
        snprintf(text, sizeof(text), "rank %d was killed by signal %d (%s)", rank, WTERMSIG(state),
                 strsignal(WTERMSIG(state)));
    else if (WEXITSTATUS(state) == 0)
        return;
    else if (said->code == STATUS_OK)
        snprintf(text, sizeof(text), "rank %d left early", rank);
    else if (strncmp(said->message, "rank ", strlen("rank ")) == 0) /* it names another */
        snprintf(text, sizeof(text), "%s", said->message);
    else
        snprintf(text, sizeof(text), "rank %d: %s", rank, said->message);
    note_failure(launch, WIFSIGNALED(state) ? STATUS_FAILED : code, text);
}

static void collect(struct launch *launch)
{
    for (int rank = 0; rank < launch->run->ranks; rank++) {
        int state;
        pid_t ended = launch->pids[rank] ? waitpid(launch->pids[rank], &state, WNOHANG) : 0;
        bool lost = ended < 0 && errno == ECHILD; /* who ignores SIGCHLD is told of no end */
        if (ended <= 0 && !lost)
            continue;
        launch->pids[rank] = 0;
        launch->alive--;
        if (lost)
            note_failure(launch, STATUS_FAILED, "how a rank ended is not known");
        else
            note_end(launch, rank, state);
    }
}

static void kill_rest(struct launch *launch)
{
    for (int rank = 0; rank < launch->run->ranks; rank++)
        if (launch->pids[rank])
            kill(launch->pids[rank], SIGKILL);
}

static enum status run_ranks(struct launch *launch, struct error *err)
{
    if (start_ranks(launch, &launch->first) != STATUS_OK)
        kill_rest(launch);
    while (launch->alive > 0) {
        if (launch->run->stopped && launch->run->stopped()) {
            note_failure(launch, STATUS_FAILED, "interrupted");
            kill_rest(launch);
        }
        collect(launch);
        if (launch->give_up_ns && clock_now_ns() > launch->give_up_ns)
            kill_rest(launch);
        if (launch->alive > 0)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    if (launch->first.code != STATUS_OK)
        return FAIL(err, launch->first.code, "%s", launch->first.message);
    return STATUS_OK;
}

enum status local_ranks_run(const struct local_ranks *run, struct error *err)
{
    if (!run->backend->separate)
        return UNSUPPORTED(err, "%s has all ranks in one process", run->backend->name);
    size_t bytes = (size_t)run->ranks * sizeof(struct error);
    struct launch launch = {.run = run, .pids = calloc((size_t)run->ranks, sizeof(pid_t))};
    if (!launch.pids)
        return FAIL_NO_MEMORY(err);
    void *errors = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    enum status status = STATUS_OK;
    if (errors == MAP_FAILED)
        status = FAIL_NO_MEMORY(err);
    else
        status = group_make(run->backend, run->ranks, &run->options, &launch.group, err);
    if (status == STATUS_OK) {
        launch.errors = errors;
        status = run_ranks(&launch, err);
        run->backend->group_free(launch.group);
    }
    if (errors != MAP_FAILED)
        munmap(errors, bytes);
    free(launch.pids);
    return status;
}
