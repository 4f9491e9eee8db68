/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of one machine, forked from the one that made the group. They share one anonymous
 * mapping, which has no name and goes with the last of them, however it ends: a ring of bytes for
 * each pair of ranks and lane (channel.h), of which only what is used takes memory, and for each
 * rank a region to allocate from.
 *
 * What lies in a region is at the same address for all, so it is offered and read in place, and
 * what its reader makes of it goes back at once where that is wanted; other memory is read by
 * process_vm_readv, where the system lets ranks do that, if it is long enough to be worth the call.
 * What is left goes through the ring.
 *
 * A rank that has nothing to do spins for a moment, lets others run for a while, and then sleeps on
 * its bell, which whoever moves bytes from or to it rings. Ranks that wait show that they are
 * alive; so when a deadline passes, those who were silent are known.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/numbers/integers.h"
#include "base/system/clock.h"
#include "base/system/relax.h"
#include "collective/channel.h"

enum {
    CAPACITY = 128 << 10, /* of a ring: a few of them lie in a cache of the second level */
    SPINS = 100,          /* a moment: the peer may be waiting for this very CPU */
    AWAKE = 300,          /* until then let others run, then sleep */
    YIELD_NS = 200000,    /* or until then: where other programs want the CPU, one call may take
                             milliseconds, and who sleeps is the first to come back */
    LOOK_EVERY = 64,      /* attempts between two looks at the clock */
    SHARED_LEAST = 1024,  /* bytes that are offered: shorter ones are sooner copied */
    OTHER_LEAST = 4 << 10,
    PIECE = 32 << 10, /* read at a time to be combined: half of it stays in L1 */
    BACK = 8 << 10,   /* made of a message before it goes back */
    PULL = 1 << 20,   /* read at a time, before the rank looks at other lanes */
};

enum seat_state { SEAT_EMPTY, SEAT_TAKEN, SEAT_LEFT };

struct seat {
    _Alignas(CHANNEL_LINE) _Atomic uint32_t bell;
    _Atomic uint32_t sleeping;
    _Alignas(CHANNEL_LINE) _Atomic uint32_t state; /* enum seat_state */
    _Atomic uint64_t alive_ns;                     /* when it was last seen waiting */
    pid_t pid;
    char failure[400];
};

/* What is shared. Seats, one more than ranks for who made the group, and channels follow. */
struct shared {
    /* 1 + the seat whose text is what everybody fails with; 0: none. Each writes its own text
     * first, so that whoever is killed meanwhile leaves nothing half done. */
    _Alignas(CHANNEL_LINE) _Atomic uint32_t failed;
};

/* In each process alike, since it is made before they fork. */
struct group {
    int ranks;
    struct group_options options;
    size_t bytes;
    struct shared *shared;
    struct seat *seats;
    unsigned char *channels;
    unsigned char *regions; /* NULL: there are none */
    size_t region_bytes;    /* of each rank */
};

struct link_state {
    size_t allocated;       /* of this rank's region */
    struct waiting waiting; /* nothing has moved */
    bool announced;         /* that this rank will sleep */
    uint32_t bell;          /* as it was then */
    _Alignas(CHANNEL_LINE) unsigned char piece[PIECE];
};

static void ring_bell(struct seat *seat)
{
    atomic_fetch_add(&seat->bell, 1);
    syscall(SYS_futex, &seat->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The fence pairs with the one of a rank that announces its sleep and then looks once more. */
static void wake(struct seat *seat)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&seat->sleeping, memory_order_relaxed))
        ring_bell(seat);
}

/* As much address space for each rank as the machine has memory; what is not touched takes none. */
static void map_regions(struct group *group)
{
    size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, bytes * (size_t)group->ranks, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    group->regions = memory;
    group->region_bytes = bytes;
}

static enum status shm_group_new(int ranks, const struct group_options *options, struct group **out,
                                 struct error *err)
{
    size_t channels = (size_t)ranks * ranks * LANES_MAX * channel_size(CAPACITY);
    size_t bytes = sizeof(struct shared) + (size_t)(ranks + 1) * sizeof(struct seat) + channels;
    struct group *group = calloc(1, sizeof(*group));
    if (!group)
        return FAIL_NO_MEMORY(err);
    unsigned char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(group);
        return FAIL(err, STATUS_FAILED, "%zu bytes of memory for %d ranks to share: %s", bytes,
                    ranks, strerror(errno));
    }
    *group = (struct group){.ranks = ranks, .options = *options, .bytes = bytes};
    group->shared = (struct shared *)(void *)memory;
    group->seats = (struct seat *)(void *)(group->shared + 1);
    group->channels = (unsigned char *)(group->seats + ranks + 1);
    map_regions(group);
    *out = group;
    return STATUS_OK;
}

static void shm_group_free(struct group *group)
{
    if (group)
        munmap(group->shared, group->bytes);
    if (group && group->regions)
        munmap(group->regions, group->region_bytes * (size_t)group->ranks);
    free(group);
}

static void shm_announce(struct group *group, int rank, const char *text)
{
    struct seat *seat = &group->seats[rank == NOBODY ? group->ranks : rank];
    uint32_t none = 0;
    if (atomic_load(&group->shared->failed))
        return; /* what others may be reading is not written again */
    snprintf(seat->failure, sizeof(seat->failure), "%s", text);
    atomic_compare_exchange_strong(&group->shared->failed, &none,
                                   (uint32_t)(seat - group->seats) + 1);
    for (int k = 0; k < group->ranks; k++)
        ring_bell(&group->seats[k]);
}

static enum status shm_open_link(struct link *link, struct error *err)
{
    struct link_state *state = aligned_alloc(CHANNEL_LINE, sizeof(*state));
    if (!state)
        return FAIL_NO_MEMORY(err);
    memset(state, 0, sizeof(*state));
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* else Yama refuses process_vm_readv */
    struct seat *seat = &link->group->seats[link->rank];
    seat->pid = getpid();
    atomic_store(&seat->alive_ns, clock_now_ns());
    atomic_store(&seat->state, SEAT_TAKEN);
    link->ranks = link->group->ranks;
    link->state = state;
    return STATUS_OK;
}

static void shm_close(struct link *link)
{
    if (link->state)
        atomic_store(&link->group->seats[link->rank].state, SEAT_LEFT);
    free(link->state);
    link->state = NULL;
}

static struct channel *channel_of(struct group *group, int from, int to, int lane)
{
    size_t index = ((size_t)from * group->ranks + to) * LANES_MAX + lane;
    return (struct channel *)(void *)(group->channels + index * channel_size(CAPACITY));
}

static void *shm_memory(struct link *link, size_t bytes)
{
    struct group *group = link->group;
    size_t *allocated = &link->state->allocated, page = (size_t)sysconf(_SC_PAGESIZE);
    size_t rounded = round_up(bytes, page);
    if (!group->regions || rounded > group->region_bytes - *allocated)
        return NULL;
    unsigned char *memory = group->regions + (size_t)link->rank * group->region_bytes + *allocated;
    *allocated += rounded;
    return memory;
}

/* Whether it is at the same address in each process. */
static bool is_shared(const struct group *group, const void *memory)
{
    const unsigned char *at = memory;
    return group->regions && at >= group->regions &&
           at < group->regions + group->region_bytes * (size_t)group->ranks;
}

static bool worth_offering(const struct link *link, const struct channel *channel,
                           const struct message *message)
{
    if (!message->stays || message->begun)
        return false;
    if (is_shared(link->group, message->data))
        return message->bytes >= SHARED_LEAST;
    return message->bytes >= OTHER_LEAST && !channel_refuses(channel);
}

static enum status shm_send(struct link *link, struct message *message, struct error *err)
{
    (void)err;
    struct channel *channel = channel_of(link->group, link->rank, message->peer, message->lane);
    bool moved;
    if (message->offered) /* who answers has nothing to be woken for */
        return channel_answered(channel, message) && message->done < message->bytes
                   ? shm_send(link, message, err)
                   : STATUS_OK;
    if (!is_shared(link->group, message->data) || !is_shared(link->group, message->back))
        message->back = NULL;
    if (worth_offering(link, channel, message))
        moved = channel_offer(channel, CAPACITY, message);
    else
        moved = channel_send(channel, CAPACITY, message, message->bytes);
    if (moved)
        wake(&link->group->seats[message->peer]);
    return STATUS_OK;
}

/* Reads from the memory of another process: *got is 1, below 0 where that is not allowed, as the
 * first attempt shows, and 0 where the process ends: who waits for it will say so. */
static enum status read_other(const struct link *link, const struct message *message, void *to,
                              size_t bytes, int *got, struct error *err)
{
    struct iovec here = {to, bytes};
    struct iovec there = {(char *)message->offered + message->done, bytes};
    ssize_t read = process_vm_readv(link->group->seats[message->peer].pid, &here, 1, &there, 1, 0);
    *got = read == (ssize_t)bytes ? 1 : read < 0 && errno != ESRCH ? -1 : 0;
    if (*got >= 0 || message->done == 0)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "memory of rank %d: %zu bytes read, then: %s", message->peer,
                message->done, strerror(errno));
}

/* At most up to the limit; a message whose first bytes cannot be read has `*got` below 0. */
static enum status pull_other(struct link *link, struct message *message, size_t limit, int *got,
                              struct error *err)
{
    unsigned char *piece = link->state->piece;
    bool whole = message->into != NULL;
    size_t end = limit - message->done < PULL ? limit : message->done + PULL;
    *got = 0;
    while (message->done < end) {
        size_t bytes = end - message->done;
        if (!whole && bytes > PIECE)
            bytes = PIECE;
        void *to = whole ? (unsigned char *)message->into + message->done : piece;
        TRY(read_other(link, message, to, bytes, got, err));
        if (*got <= 0)
            return STATUS_OK;
        if (!whole)
            message->take(message->take_context, piece, message->done, bytes);
        message->done += bytes;
    }
    return STATUS_OK;
}

/* From memory of all ranks. What the bytes become goes back while it is in a cache. */
static void pull_shared(struct message *message, size_t limit)
{
    const unsigned char *from = message->offered;
    size_t end = limit - message->done < PULL ? limit : message->done + PULL;
    while (message->done < end) {
        size_t at = message->done, bytes = end - at;
        if (message->back && bytes > BACK)
            bytes = BACK;
        message->take(message->take_context, from + at, at, bytes);
        if (message->back)
            memcpy((char *)message->back + at, (const char *)message->made + at, bytes);
        message->done += bytes;
    }
}

/* Gets the bytes of an offer from where they lie. */
static enum status pull(struct link *link, struct channel *channel, struct message *message,
                        size_t limit, bool *moved, struct error *err)
{
    size_t before = message->done;
    int got = 0;
    if (is_shared(link->group, message->offered)) {
        pull_shared(message, limit);
    } else {
        TRY(pull_other(link, message, limit, &got, err));
    }
    if (message->done == message->bytes || got < 0)
        channel_answer(channel, message);
    *moved = message->done > before || got < 0;
    return STATUS_OK;
}

static enum status shm_receive(struct link *link, struct message *message, size_t limit,
                               struct error *err)
{
    struct channel *channel = channel_of(link->group, message->peer, link->rank, message->lane);
    bool moved = false;
    if (!message->offered)
        TRY(channel_receive(channel, CAPACITY, link, message, limit, &moved, err));
    if (message->offered)
        TRY(pull(link, channel, message, limit, &moved, err));
    if (moved)
        wake(&link->group->seats[message->peer]);
    return STATUS_OK;
}

/* The rank that has shown no life for longest, if for more than half the deadline, or the first one
 * that has never come; else NOBODY. */
static int silent_rank(const struct link *link, uint64_t now, uint64_t *silent_ns)
{
    const struct group *group = link->group;
    int worst = NOBODY;
    *silent_ns = group->options.deadline_ns / 2;
    for (int rank = 0; rank < group->ranks; rank++) {
        const struct seat *seat = &group->seats[rank];
        uint32_t state = atomic_load(&seat->state);
        uint64_t alive = atomic_load(&seat->alive_ns);
        if (state == SEAT_EMPTY)
            return rank;
        if (rank == link->rank || state == SEAT_LEFT || alive + *silent_ns > now)
            continue;
        worst = rank;
        *silent_ns = now - alive;
    }
    return worst;
}

/* Where nobody in particular is waited for, any rank that has left did not do its part. */
static int left_rank(const struct link *link, const struct awaited *awaited)
{
    const struct group *group = link->group;
    for (int rank = 0; rank < group->ranks; rank++)
        if ((awaited->peer == NOBODY || awaited->peer == rank) &&
            atomic_load(&group->seats[rank].state) == SEAT_LEFT)
            return rank;
    return NOBODY;
}

static void blame(struct link *link, const struct awaited *awaited, uint64_t now)
{
    uint64_t silent_ns, waited_ns = now - link->state->waiting.since_ns;
    int rank = silent_rank(link, now, &silent_ns), left = left_rank(link, awaited);
    char text[400], waited[200];
    awaited_text(link, awaited, waited_ns, waited, sizeof(waited));
    if (rank != NOBODY && atomic_load(&link->group->seats[rank].state) == SEAT_EMPTY)
        snprintf(text, sizeof(text), "rank %d has never come; %s", rank, waited);
    else if (rank != NOBODY)
        snprintf(text, sizeof(text),
                 "rank %d has shown no life for %.1f s: it has ended, is stopped, or computes for "
                 "longer than the deadline of %.1f s; %s",
                 rank, (double)silent_ns * 1e-9, (double)link->group->options.deadline_ns * 1e-9,
                 waited);
    else if (left != NOBODY)
        snprintf(text, sizeof(text), "rank %d has left; %s", left, waited);
    else if (awaited->peer == NOBODY)
        snprintf(text, sizeof(text), "all ranks are alive, but one did not do its part; %s",
                 waited);
    else
        snprintf(text, sizeof(text), "rank %d is alive, but did not do its part; %s", awaited->peer,
                 waited);
    shm_announce(link->group, link->rank, text);
}

/* Until the bell rings, or an eighth of the deadline is over: ranks that wait show that they live.
 */
static void sleep_on_bell(struct link *link, struct seat *seat)
{
    uint64_t ns = link->group->options.deadline_ns / 8;
    struct timespec timeout = {.tv_sec = (time_t)(ns / 1000000000u),
                               .tv_nsec = (long)(ns % 1000000000u)};
    syscall(SYS_futex, &seat->bell, FUTEX_WAIT, link->state->bell, &timeout, NULL, 0);
}

static enum status shm_wait(struct link *link, unsigned idle, const struct awaited *awaited,
                            struct error *err)
{
    struct link_state *state = link->state;
    struct seat *seat = &link->group->seats[link->rank];
    uint32_t failed = atomic_load_explicit(&link->group->shared->failed, memory_order_acquire);
    if (failed)
        return FAIL(err, STATUS_FAILED, "%s", link->group->seats[failed - 1].failure);
    if (idle == 0 && state->announced) { /* something has moved before it slept */
        atomic_store(&seat->sleeping, 0);
        state->announced = false;
    }
    bool yields = idle < AWAKE;
    if (idle % LOOK_EVERY == 0 || idle > SPINS) {
        uint64_t now = clock_now_ns();
        atomic_store_explicit(&seat->alive_ns, now, memory_order_relaxed);
        uint64_t deadline_ns = link->group->options.deadline_ns;
        uint64_t waited_ns = waiting_ns(&state->waiting, idle, now, deadline_ns);
        if (waited_ns > deadline_ns)
            blame(link, awaited, now);
        yields = yields && waited_ns < YIELD_NS;
    }
    if (idle < SPINS) {
        relax();
    } else if (yields || awaited->peer == NOBODY) {
        sched_yield();
    } else if (!state->announced) { /* the caller looks once more before this rank sleeps */
        state->bell = atomic_load(&seat->bell);
        atomic_store(&seat->sleeping, 1);
        atomic_thread_fence(memory_order_seq_cst);
        state->announced = true;
    } else {
        sleep_on_bell(link, seat);
        atomic_store(&seat->sleeping, 0);
        state->announced = false;
    }
    return STATUS_OK;
}

REGISTER(backend, shm) = {
    .name = "shm",
    .summary = "processes of one machine, through memory that they share",
    .separate = true,
    .for_measures = true,
    .group_new = shm_group_new,
    .group_free = shm_group_free,
    .announce = shm_announce,
    .open = shm_open_link,
    .close = shm_close,
    .memory = shm_memory,
    .send = shm_send,
    .receive = shm_receive,
    .wait = shm_wait,
};
