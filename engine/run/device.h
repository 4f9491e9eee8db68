/* SPDX-License-Identifier: Apache-2.0
 *
 * A device: where an executable keeps its tensors and runs its kernels. A kind of device ("cpu",
 * "cuda") is a table of functions, found by its name; an opened device is a struct device.
 *
 * The CPU is the first instance (engine/run/devices/cpu.c), where most entries are trivial; others
 * come with plug-ins (engine/run/plugin.h; the smallest is tests/plugin_device/toy.c). Kernels say
 * which kind they are for (kernel.device).
 *
 * Rules for all kinds:
 *   - what takes a stream is put into its queue and returns at once; wait() ends when all of it is
 *     done. Memory of the host that takes part in a copy stands until then. A stream NULL is a
 *     queue that every device has without stream_new: device_upload uses it.
 *   - bind() makes the device the calling thread's: before the first other call in a thread, and
 *     after another device was used there.
 *   - nothing is allocated by copy, fill, event_record, replay and the launch of a kernel, so they
 *     may be called in a timed loop; between capture_begin and capture_end only they and launches
 *     are, and are recorded instead of run.
 *   - an error of work that was put into a queue comes out of wait() or of a later call.
 *   - all functions up to event_elapsed are needed; of those after it the comments say what it
 *     means that they are NULL. A device that can capture has all four functions for it.
 *   - tests/device/run proves these rules: docs/plugins.md.
 *   - STATUS_LOST says that all later calls for the device will fail in this process, as after a
 *     kernel that wrote where it must not. Giving back stays allowed.
 */
#ifndef ENGINE_RUN_DEVICE_H
#define ENGINE_RUN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "engine/graph/graph.h"

enum device_copy { COPY_TO_DEVICE, COPY_TO_HOST, COPY_WITHIN };

/* What is not known is 0 or empty. */
struct device_properties {
    char name[96];             /* "NVIDIA H200" */
    char driver[32];           /* highest version that the driver can serve: "13.0" */
    char runtime[32];          /* version that kernels were built with: "13.0" */
    char bus[32];              /* "0000:17:00.0" */
    int major, minor;          /* compute capability: 9.0 */
    int units;                 /* multiprocessors */
    size_t memory_bytes;       /* in all */
    size_t free_bytes;         /* when it was opened */
    size_t cache_bytes;        /* the cache that all units share */
    size_t shared_bytes;       /* of one unit, for a block that asks for it */
    double clock_hz;           /* highest, of the units */
    double memory_bytes_per_s; /* highest, by clock and width */
};

struct device_kind;
struct device_state; /* each kind defines its own */
struct device_graph; /* a captured list of work */

struct device {
    const struct device_kind *kind;
    int index; /* of several alike */
    struct device_state *state;
    struct device_properties properties;
};

/* Rows of scores of attention: x = softmax(x + mask) in place, along the last dimension. */
struct device_softmax {
    float *x;          /* [batch, heads, queries, keys] */
    const float *mask; /* NULL: none */
    int64_t batch, heads, queries, keys;
    int64_t mask_at[4]; /* its strides, elements; 0: broadcast */
    bool zero_empty;    /* a row whose mask is -inf throughout becomes zeros, not NaN */
};

/* Images with few channels as [images, positions, 16 bytes]: zeros after the channels. */
struct device_channels {
    const void *from;
    void *to;
    int64_t images, positions, channels;
    int64_t image_at, position_at, channel_at; /* strides of `from`, elements */
    int element;                               /* bytes: 2 or 4 */
};

struct device_kind {
    size_t size; /* sizeof(struct device_kind) where it was built: the struct grows at its end */
    const char *name;
    bool is_host; /* its memory is the host's: nothing is copied, kernels run in the caller */

    /* How many there are; 0 with the reason and what to do in why. Starts nothing that a fork would
     * break where that can be had. */
    int (*count)(struct error *why);
    /* device is zeroed but for kind and index; fills state and properties. */
    enum status (*open)(struct device *device, struct error *err);
    void (*close)(struct device *device);
    enum status (*bind)(const struct device *device, struct error *err);

    enum status (*alloc)(const struct device *device, size_t bytes, void **memory,
                         struct error *err); /* aligned to 256 bytes, on the host to 64; 0 bytes
                                                give some address */
    void (*free)(const struct device *device, void *memory);
    /* Of the host, for copies that run beside other work. */
    enum status (*alloc_host)(const struct device *device, size_t bytes, void **memory,
                              struct error *err);
    void (*free_host)(const struct device *device, void *memory);

    enum status (*stream_new)(const struct device *device, void **stream, struct error *err);
    void (*stream_free)(const struct device *device, void *stream);
    enum status (*wait)(const struct device *device, void *stream, struct error *err);
    enum status (*copy)(const struct device *device, void *to, const void *from, size_t bytes,
                        enum device_copy direction, void *stream, struct error *err);
    enum status (*fill)(const struct device *device, void *memory, int byte, size_t bytes,
                        void *stream, struct error *err);

    enum status (*event_new)(const struct device *device, void **event, struct error *err);
    void (*event_free)(const struct device *device, void *event);
    /* While a capture lasts: each replay records it anew. */
    enum status (*event_record)(const struct device *device, void *event, void *stream,
                                struct error *err);
    /* Between two events whose stream has been waited for. */
    enum status (*event_elapsed)(const struct device *device, void *from, void *to, double *ns,
                                 struct error *err);

    /* NULL where there is no such thing. A failed capture_end leaves the stream usable. */
    enum status (*capture_begin)(const struct device *device, void *stream, struct error *err);
    enum status (*capture_end)(const struct device *device, void *stream,
                               struct device_graph **graph, struct error *err);
    enum status (*replay)(const struct device *device, struct device_graph *graph, void *stream,
                          struct error *err);
    void (*graph_free)(const struct device *device, struct device_graph *graph);

    /* Puts y = act(y) of `count` neighbouring floats of the type into the stream: for kernels that
     * only call a library, whose epilogues have few activations. NULL where there is no such thing.
     * As a launch it allocates nothing, and is recorded by a capture. */
    enum status (*activate)(const struct device *device, const struct post *post, enum dtype type,
                            void *y, int64_t count, void *stream, struct error *err);

    /* Whether all work of the stream is done; never waits for it. NULL: only wait() knows. */
    enum status (*poll)(const struct device *device, void *stream, bool *done, struct error *err);
    /* What runs there never ends. From now on every call for the device fails with STATUS_LOST and
     * this reason instead of waiting, and nothing is given back. NULL: cannot be had. */
    void (*give_up)(const struct device *device, const char *why);

    /* What is put into the stream after follow begins after all that another stream had when it was
     * marked. In a capture the follower is captured, too. NULL: there is one queue. */
    enum status (*mark)(const struct device *device, void *event, void *stream, struct error *err);
    enum status (*follow)(const struct device *device, void *stream, void *event,
                          struct error *err);

    /* For kernels that only call a library, like activate. NULL where there is no such thing. */
    enum status (*softmax)(const struct device *device, const struct device_softmax *softmax,
                           void *stream, struct error *err);
    enum status (*pad_channels)(const struct device *device, const struct device_channels *channels,
                                void *stream, struct error *err);
};

/* For prepare() of a kernel: bytes of the host as new memory of the device, given back by
 * kind->free. Waits for the copy. */
static inline enum status device_upload(const struct device *device, const void *from, size_t bytes,
                                        void **memory, struct error *err)
{
    const struct device_kind *kind = device->kind;
    *memory = NULL;
    enum status status = kind->alloc(device, bytes, memory, err);
    if (status != STATUS_OK)
        return status;
    status = kind->copy(device, *memory, from, bytes, COPY_TO_DEVICE, NULL, err);
    if (status == STATUS_OK)
        status = kind->wait(device, NULL, err);
    if (status != STATUS_OK) {
        kind->free(device, *memory);
        *memory = NULL;
    }
    return status;
}

/* ---- host side: nothing below is for plug-ins ---- */

extern const struct device_kind device_kind_cpu;
/* Kinds built in, then those of loaded plug-ins. */
int device_kind_count(void);
const struct device_kind *device_kind_at(int index);

/* Whether a kind of this name is built in or brought by a plug-in: the one that bears its name is
 * opened, and where that is not enough, all. */
bool device_has_kind(const char *kind);
/* name: "cpu", "cuda", "cuda:1"; NULL: "cpu". UNSUPPORTED with the cause and what to do when there
 * is no such device; FAILED when the name is none. The plug-in that may bring it is opened. */
enum status device_check(const char *name, struct error *err);
/* Whether that is the host, by its kind's name alone. A kind that no plug-in brings is not. */
bool device_is_host(const char *name);
/* The same, and opens it. device is zeroed when it could not be. */
enum status device_open(const char *name, struct device *device, struct error *err);
void device_close(struct device *device); /* also of a zeroed one */
/* After a failure that is in err: whether the device was lost by it, which libraries do not tell
 * apart. Returns err's code, which is STATUS_LOST then. Does not wait. */
enum status device_blame(const struct device *device, void *stream, struct error *err);
/* "cuda:1" -> "cuda" and 1; FAILED when it is neither a name nor a name and a number. */
enum status device_parse(const char *name, char kind[32], int *index, struct error *err);
/* The one spelling of what several name: "cuda:0" -> "cuda", NULL -> "cpu". What is no name stays
 * as it is, as far as it fits. */
enum { DEVICE_NAME_SIZE = 64 };
void device_canonical(const char *name, char text[DEVICE_NAME_SIZE]);

#endif
