/* SPDX-License-Identifier: Apache-2.0
 *
 * A backend moves bytes between two ranks. It knows nothing of operations: an exchange posts a
 * message by calling send or receive for the first time and goes on calling, which moves what can
 * be moved at once, until the message is done. Nothing waits but wait().
 *
 * A group is what ranks share before they exist, made by who starts them; a link is one rank's end
 * of it, used by one thread. Backends are the files of collective/backends/; loop.c is the
 * smallest.
 */
#ifndef COLLECTIVE_BACKEND_H
#define COLLECTIVE_BACKEND_H

#include "base/error.h"
#include "base/registry.h"
#include "collective/schedule.h"

/* Where bytes of a message go. Pieces come in order; all but the last are multiples of 8 bytes. */
typedef void take_piece(void *context, const void *piece, size_t offset, size_t bytes);

struct message {
    int peer, lane;
    uint32_t call; /* which operation it belongs to; both ends must agree in it, and in bytes */
    size_t bytes, done;
    bool begun;         /* for the backend */
    const void *data;   /* to send */
    take_piece *take;   /* received */
    void *take_context; /* for take */
};

/* What a rank waits for, in the words of a message: "rank 2 to send". */
struct awaited {
    int peer;
    bool to_send; /* else to receive */
    size_t done, bytes;
    uint32_t call;
};

struct group_options {
    uint64_t deadline_ns; /* without any progress, for each wait */
    uint64_t seed;        /* loop: the order of events */
};

struct group; /* each backend defines its own */
struct link_state;

struct link {
    const struct backend *backend;
    struct group *group;
    int rank, ranks;
    struct link_state *state;
};

struct backend {
    const char *name;
    const char *summary;
    bool separate;     /* each rank is a process of its own, made by fork after group_new */
    bool for_measures; /* its times mean something */
    enum status (*group_new)(int ranks, const struct group_options *options, struct group **out,
                             struct error *err);
    void (*group_free)(struct group *group);
    /* Makes every wait of every rank fail with this text, which names who is at fault; from any
     * process of the group: `rank`, or NOBODY for who made it. The first one counts. */
    void (*announce)(struct group *group, int rank, const char *text);
    /* By link_open, which has filled in all but `ranks` and `state`. */
    enum status (*open)(struct link *link, struct error *err);
    void (*close)(struct link *link);
    /* Moves on what is possible; at most until `limit` bytes of the message are done. */
    enum status (*send)(struct link *link, struct message *message, struct error *err);
    enum status (*receive)(struct link *link, struct message *message, size_t limit,
                           struct error *err);
    /* Called when nothing moves, `idle` times since something did, from 0 on. Returns early and
     * often; the caller tries again. FAILED past the deadline, or when another rank has failed. */
    enum status (*wait)(struct link *link, unsigned idle, const struct awaited *awaited,
                        struct error *err);
};

int backend_count(void);
const struct backend *backend_at(int index);
/* NULL when there is none of that name. */
const struct backend *backend_find(const char *name);

enum status link_open(const struct backend *backend, struct group *group, int rank,
                      struct link *out, struct error *err);
/* FAILED: the two ends of a message do not belong together. */
enum status message_mismatch(const struct link *link, const struct message *message, uint32_t call,
                             size_t bytes, struct error *err);
/* "rank 0 waited 2.0 s for rank 1 to send (operation 7, 0 of 4096 bytes)" into text. */
void awaited_text(const struct link *link, const struct awaited *awaited, uint64_t waited_ns,
                  char *text, size_t size);

#endif
