/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of every command that compiles a model: put MODEL_OPTIONS(struct values) into its option
 * table and `struct model_options model` first into its values. */
#ifndef HARNESS_MODEL_MODEL_OPTIONS_H
#define HARNESS_MODEL_MODEL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/options.h"
#include "engine/run/exe.h"
#include "harness/suite/code_choice.h"

struct model_options {
    int64_t batch, threads;
    const char *providers, *isa, *cache, *device; /* device NULL: "cpu" */
    const char *precision;                        /* NULL: "f32" */
    const char *mode;                             /* NULL: "inference" */
    double max_error;
    bool retune, no_tune, quick_tune, no_fuse, no_winograd, no_capture, no_memory_check;
    bool recompute;    /* a step of training computes activations again instead of keeping them */
    int64_t segments;  /* of that; 0: about the square root of the number of forward nodes */
    bool verifies;     /* no option: the float64 reference will run beside the executable */
    struct comm *comm; /* no option: to the ranks that the model runs on together; NULL: on one */
};

/* How models are compiled, for commands that take batch and threads from elsewhere. */
/* clang-format off */
#define MODEL_OPTION(type, kind, field, letter, name, argument, help)                              \
    {name, letter, OPTION_##kind, offsetof(type, model.field), argument, help}
#define COMPILE_OPTIONS(type)                                                                      \
    MODEL_OPTION(type, TEXT, isa, 0, "isa", "NAME",                                                \
                 "highest instruction set: scalar, avx2, avx512"),                                 \
    MODEL_OPTION(type, SHARE, max_error, 0, "max-error", "X",                                      \
                 "refuse kernels with a larger stated relative error"),                            \
    MODEL_OPTION(type, FLAG, no_winograd, 0, "no-winograd", NULL,                                  \
                 "the same as --max-error 1e-5"),                                                  \
    MODEL_OPTION(type, FLAG, retune, 0, "retune", NULL,                                            \
                 "time all kernels, ignoring the tuner's cache"),                                  \
    MODEL_OPTION(type, FLAG, no_tune, 0, "no-tune", NULL, "take the first kernel that accepts"),   \
    MODEL_OPTION(type, FLAG, quick_tune, 0, "quick-tune", NULL,                                    \
                 "time one variant of each kernel only"),                                          \
    MODEL_OPTION(type, FLAG, no_capture, 0, "no-capture", NULL,                                    \
                 "on a device, launch step by step instead of replaying a graph"),                 \
    MODEL_OPTION(type, FLAG, no_fuse, 0, "no-fuse", NULL, "compile the graph as it is"),           \
    MODEL_OPTION(type, FLAG, no_memory_check, 0, "no-memory-check", NULL,                          \
                 "compile even if less memory seems to be free than needed"),                      \
    MODEL_OPTION(type, TEXT, cache, 0, "cache", "FILE",                                            \
                 "tuner's cache (default: RIDGE_CACHE, or ~/.cache/ridge/tuner.txt)")

#define MODEL_OPTIONS_ON(type, devices, precisions)                                                \
    MODEL_OPTION(type, COUNT, batch, 'b', "batch", "N", "images, sequences or rows"),              \
    MODEL_OPTION(type, THREADS, threads, 't', "threads", "N", "default: every CPU"),               \
    MODEL_OPTION(type, TEXT, providers, 'p', "providers", "LIST",                                  \
                 "only kernels of these: native,onednn,openblas"),                                 \
    MODEL_OPTION(type, TEXT, device, 'd', "device", "NAME", devices),                              \
    MODEL_OPTION(type, TEXT, precision, 0, "precision", "NAME", precisions),                       \
    COMPILE_OPTIONS(type)
#define MODEL_OPTIONS(type)                                                                        \
    MODEL_OPTIONS_ON(type, "where it runs: cpu, cuda, cuda:1",                                     \
                     "f32, tf32, bf16, f16, i8, f8: what device and workload support")
/* Of commands that train and do nothing else. */
#define TRAINING_MODEL_OPTIONS(type)                                                               \
    MODEL_OPTIONS_ON(type, "cpu: training runs on no other device as yet",                         \
                     "f32: training is in no other as yet")
#define MODE_OPTION(type, field)                                                                   \
    {"mode",  0,         OPTION_TEXT, offsetof(type, field),                                       \
     "NAME", "inference, or training: a step, gradients and updates included"}
#define RECOMPUTE_OPTIONS(type)                                                                    \
    MODEL_OPTION(type, FLAG, recompute, 0, "recompute", NULL,                                      \
                 "of training: compute activations again in the backward pass instead of "         \
                 "keeping them: a fraction of the memory for about a third more work"),            \
    MODEL_OPTION(type, COUNT, segments, 0, "segments", "N",                                        \
                 "of --recompute: between them results are kept (default: about the square root "  \
                 "of the number of forward nodes)")
/* clang-format on */

/* Whether the mode of that name is training. */
enum status model_mode(const char *name, bool *training, struct error *err);

struct train_options;
/* How these options ask for a step of training to be built. */
enum status model_train_options(const struct model_options *m, struct train_options *options,
                                struct error *err);

/* Where the tuner keeps its winners: $RIDGE_CACHE, or the user's cache folder. */
const char *tuner_cache_path(char *path, size_t size);

/* Checked and completed; path: memory for the default cache path. */
enum status model_exe_options(const struct model_options *m, struct exe_options *options,
                              char *path, size_t path_size, struct error *err);

/* Whether --quick-tune has an effect: with --no-tune nothing is tuned. */
bool model_tunes_quickly(const struct model_options *m);
/* Those that make other code than usual, as the ids of points name them. */
enum status model_code_choice(const struct model_options *m, struct code_choice *choice,
                              struct error *err);

/* The graph of a model as it is named, in its mode, not compiled. precision: which it is built in
 * where it can be. */
enum status model_graph(const char *spec, const struct model_options *m, enum precision precision,
                        struct graph **graph, struct error *err);
/* The same for who reads no contents: of a training without the samples of its first batch, which
 * take as long to make as there are. */
enum status model_graph_bare(const char *spec, const struct model_options *m,
                             enum precision precision, struct graph **graph, struct error *err);
/* The precision of these options, refused where the model cannot run in it on their device. */
enum status model_precision(const char *spec, const struct model_options *m,
                            enum precision *precision, struct error *err);
/* The precision of that name for what only builds the graph: refused where the graph would be the
 * same as in f32, since an argument without effect gives a wrong answer. */
enum status model_graph_precision(const char *spec, const char *name, enum precision *precision,
                                  struct error *err);

/* Whether it fits into memory, as model_compile asks first: before other work on the graph. */
enum status model_admits(const struct graph *graph, const struct model_options *m,
                         struct error *err);
/* Compiles a graph, if it fits into memory: UNSUPPORTED, with the figures, if not
 * (harness/model/admission.h). The plug-ins are open (engine/run/provider.h). */
enum status model_compile(const struct graph *graph, const struct model_options *m,
                          struct exe **exe, struct error *err);

/* Opens the plug-ins, builds the graph and compiles it as model_compile does. exe_free and
 * graph_free when done. */
enum status model_open(const char *spec, const struct model_options *m, struct graph **graph,
                       struct exe **exe, struct error *err);

#endif
