/* SPDX-License-Identifier: Apache-2.0
 *
 * A backend moves bytes between two ranks. It knows nothing of operations: an exchange posts a
 * message by calling send or receive for the first time and goes on calling, which moves what can
 * be moved at once, until the message is done. Nothing waits but wait().
 *
 * A group is what ranks share before they exist, made by who starts them, or, where a library's
 * launcher starts them, by each; a link is one rank's end of it, used by one thread. Backends are
 * the files of collective/backends/; loop.c is the smallest. One that needs a library is behind a
 * plug-in (plugin.h), and its file says no more than how it is called and started.
 */
#ifndef COLLECTIVE_BACKEND_H
#define COLLECTIVE_BACKEND_H

#include "base/error.h"
#include "base/registry.h"
#include "collective/schedule.h"
#include "engine/run/comm.h"

/* Where bytes of a message go. Pieces come in order; all but the last are multiples of 8 bytes. */
typedef void take_piece(void *context, const void *piece, size_t offset, size_t bytes);

struct message {
    int peer, lane;
    uint32_t call; /* which operation it belongs to; both ends must agree in it, and in bytes */
    size_t bytes, done;
    bool begun;       /* for the backend */
    void *offered;    /* for the backend: where the bytes lie, if they are read there */
    const void *data; /* to send */
    bool stays;       /* data keeps its bytes until all are done, whatever is received meanwhile */
    take_piece *take; /* received */
    void *take_context; /* for take */
    void *into;         /* not NULL: received bytes may also go here at once, instead of to take */
    /* To send, if not NULL: what the receiver makes of the bytes is wanted here, too, and a backend
     * that reaches both memories may put it there. Received: where the sender wants it. */
    void *back;
    const void *made; /* received, if not NULL: what take makes of the bytes */
    bool returned;    /* by the backend: that lies at `back`, once all is done */
};

/* What a rank waits for, in the words of a message: "rank 2 to send". */
struct awaited {
    int peer;
    bool to_send; /* else to receive */
    size_t done, bytes;
    uint32_t call;
};

struct backend;
struct device;

struct group_options {
    uint64_t deadline_ns; /* without any progress, for each wait */
    uint64_t seed;        /* loop: the order of events */
    /* Filled in by group_make, for a backend of a device: the backend, ready, by which its ranks
     * find each other and hear of failures, and how a rank opens its device. */
    const struct backend *control;
    enum status (*device_open)(const char *name, struct device *device, struct error *err);
    void (*device_close)(struct device *device);
};

struct group; /* each backend defines its own */
struct link_state;

struct link {
    const struct backend *backend;
    struct group *group;
    int rank, ranks;
    struct link_state *state;
    int64_t segment_bytes; /* by open, in place of the backend's; 0: that */
};

/* How ranks begin that are started by a library's launcher, such as mpirun. Lists end with NULL. */
struct launcher {
    /* What it sets in each process; of several the first that is there counts. */
    const char *rank_variables[3], *ranks_variables[4];
    const char *programs[3];  /* the first that is found in PATH, with ... */
    const char *hosts_option; /* before "HOST:RANKS,..."; NULL: it takes none */
    const char *options[8];   /* ... these, the number of ranks and the program starts them here */
};

/* Operations that the backend's library has of its own. */
struct own_plan;
struct own_operations {
    /* blocks: start does not return before it is done, however long that takes. */
    enum status (*prepare)(struct link *link, const struct comm_call *call, bool blocks,
                           struct own_plan **out, struct error *err);
    void (*release)(struct own_plan *plan); /* NULL is fine */
    enum status (*start)(struct own_plan *plan, const void *from, void *to, struct error *err);
    enum status (*test)(struct own_plan *plan, bool *done, struct error *err);
    /* For memory of the device of the backend; NULL where it has none. Puts the operation into the
     * queue of a stream of that device, as the launch of a kernel would: a capture records it, and
     * such a plan is neither started nor tested. */
    enum status (*enqueue)(struct own_plan *plan, const void *from, void *to, void *stream,
                           struct error *err);
};

struct plugin_wanted;

struct backend {
    const char *name;
    const char *summary;
    bool separate;     /* each rank is a process of its own, made by fork after group_new */
    bool for_measures; /* its times mean something */
    int64_t
        segment_bytes; /* of each rank, in a schedule that goes on in segments; 0: the default */
    const struct launcher *launcher; /* NULL: ranks are made by this program */
    /* Each rank takes one device of this kind; NULL: none. Such a backend has whole operations
     * alone, no messages; under a launcher of another backend its ranks are those that were
     * started. */
    const char *device;
    const struct plugin_wanted *plugin; /* NULL: all is here; else backend_ready gets the rest */
    const struct own_operations *own;   /* NULL: none */
    void (*version)(char *text, size_t size); /* of its library; NULL: not known */
    /* With a launcher: by each rank, which stops here where the launcher started another number. */
    enum status (*group_new)(int ranks, const struct group_options *options, struct group **out,
                             struct error *err);
    void (*group_free)(struct group *group);
    /* Makes every wait of every rank fail with this text, which names who is at fault; from any
     * process of the group: `rank`, or NOBODY for who made it. The first one counts. */
    void (*announce)(struct group *group, int rank, const char *text);
    /* Memory of this rank that others read where it lies, until the link is closed. NULL: there is
     * no more of it; any other memory does, too. The hook may be NULL. */
    void *(*memory)(struct link *link, size_t bytes);
    /* By link_open, which has filled in all but `ranks` and `state`. */
    enum status (*open)(struct link *link, struct error *err);
    void (*close)(struct link *link);
    /* Moves on what is possible; at most until `limit` bytes of the message are done. To receive is
     * called with a limit of 0, too: what is to come may be asked for. */
    enum status (*send)(struct link *link, struct message *message, struct error *err);
    enum status (*receive)(struct link *link, struct message *message, size_t limit,
                           struct error *err);
    /* Called when nothing moves, `idle` times since something did, from 0 on. Returns early and
     * often; the caller tries again. FAILED past the deadline, or when another rank has failed. It
     * does not sleep where `awaited` names nobody: what a library completes wakes nobody. */
    enum status (*wait)(struct link *link, unsigned idle, const struct awaited *awaited,
                        struct error *err);
};

int backend_count(void);
const struct backend *backend_at(int index);
/* NULL when there is none of that name. */
const struct backend *backend_find(const char *name);

/* The backend with all its hooks: itself, or what its plug-in brings. UNSUPPORTED with the reason
 * and what to do, where it cannot be used here. */
enum status backend_ready(const struct backend *backend, const struct backend **out,
                          struct error *err);
/* The version of the library behind a backend, or "". */
void backend_version(const struct backend *backend, char *text, size_t size);
/* Whether this process is one of several that the backend's launcher started, and which one. */
bool backend_launched(const struct backend *backend, int *rank, int *ranks);
/* The backend whose launcher has started this process as one of several; NULL: none has. */
const struct backend *backend_starter(int *rank, int *ranks);
/* FAILED where Slurm's srun has started this process as one of several, and no MPI among them: each
 * would take itself for the only one. */
enum status backend_check_starter(struct error *err);
/* group_new of a backend that is ready, with all that it needs in its options. */
enum status group_make(const struct backend *backend, int ranks,
                       const struct group_options *options, struct group **out, struct error *err);

enum status link_open(const struct backend *backend, struct group *group, int rank,
                      struct link *out, struct error *err);
/* FAILED: the two ends of a message do not belong together. */
enum status message_mismatch(const struct link *link, const struct message *message, uint32_t call,
                             size_t bytes, struct error *err);
/* Since when a rank has waited. */
struct waiting {
    uint64_t since_ns, looked_ns;
};
/* How long, by `now`; begins with `idle` 0 (hook wait), and anew where this rank itself has stood
 * still meanwhile, as a job does that is suspended: who was with it has shown no life either, and
 * is not to be blamed for it. By who looks at least every eighth of the deadline. */
uint64_t waiting_ns(struct waiting *waiting, unsigned idle, uint64_t now, uint64_t deadline_ns);
/* "rank 0 waited 2.0 s for rank 1 to send (operation 7, 0 of 4096 bytes)" into text. */
void awaited_text(const struct link *link, const struct awaited *awaited, uint64_t waited_ns,
                  char *text, size_t size);

#endif
