/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints: all states of an executable in a file, from which a training goes on bit for bit as
 * if it had never stopped. The format is that of safetensors (base/text/safetensors.h), so that
 * other programs read it. A state has the name of its value, and notes say what the file is:
 *
 *   format    "ridge checkpoint 1"
 *   ridge     the version that wrote it
 *   workload  "ncf:factors=8", as on the command line
 *   recipe    optimiser and schedule, for people
 *   step      how many steps were made
 *   seed      of the data
 *   checksum  of all notes and tensors (base/system/hash.h), 16 hex digits
 *
 * and whatever else the writer adds. The file takes its place once it is whole and on the disk: a
 * process that is killed while it saves leaves the one before. */
#ifndef ENGINE_TRAIN_CHECKPOINT_H
#define ENGINE_TRAIN_CHECKPOINT_H

#include "base/system/file.h"
#include "base/text/safetensors.h"
#include "engine/train/shards.h"

enum { CHECKPOINT_NOTES = 24 };

struct checkpoint_about {
    const char *workload, *recipe;
    int64_t step;
    uint64_t seed;
    const struct safetensors_note *more; /* keys are none of the above */
    int more_count;                      /* at most CHECKPOINT_NOTES */
};

/* Of states of which each rank has a part (`shards`, NULL: there are none) the file has the whole:
 * then all ranks call it, and the first writes. */
enum status checkpoint_save(const char *path, struct exe *exe, const struct shards *shards,
                            const struct checkpoint_about *about, struct error *err);

struct checkpoint {
    struct file file;
    const char *path;
    struct safetensors contents;
    const char *version, *workload, *recipe; /* point into contents */
    int64_t step;
    uint64_t seed;
};

/* Reads a file and makes sure that it is whole. Close it in any case. */
enum status checkpoint_open(const char *path, struct checkpoint *checkpoint, struct error *err);
void checkpoint_close(struct checkpoint *checkpoint);
/* The same of a file that lies in memory, which is not closed with it. */
enum status checkpoint_parse(const void *bytes, size_t size, const char *path,
                             struct checkpoint *checkpoint, struct error *err);

/* Gives every state of the executable what the file has for it, and every part what it has for the
 * whole. FAILED, and nothing is changed, when the two do not have the same states: the file is of
 * another model. */
enum status checkpoint_restore(const struct checkpoint *checkpoint, struct exe *exe,
                               const struct shards *shards, struct error *err);

/* The type of a tensor of the file; DTYPE_NONE: ridge has none like it. */
enum dtype checkpoint_dtype(const struct safetensor *tensor);

#endif
