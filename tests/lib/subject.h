/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operator tests put to the proof: a case as a graph of one node, perhaps with a fused
 * epilogue, and what every output must be according to the operator's reference.
 */
#ifndef TESTS_LIB_SUBJECT_H
#define TESTS_LIB_SUBJECT_H

#include "engine/graph/op.h"
#include "engine/run/exe.h"

struct subject {
    const struct op *op;
    const struct op_case *c;
    const char *posts; /* name of the epilogue; NULL: none */
    enum dtype floats; /* what f32 becomes where the operator bears it: f32, f16 or bf16 */
    bool tf32;         /* products of f32 may round their factors */
    struct graph *g;
    struct ref_tensor *want; /* per graph output, rounded to its type */
    double norm; /* with posts: of output 0 before them, as far as its errors pass them */
};

/* s has op, c and floats. posts: index of an epilogue of tests/lib/posts.h, or NONE; UNSUPPORTED
 * when the case bears none, or has nothing that becomes `floats`. Close it in any case. */
enum status subject_open(struct subject *s, int posts, struct error *err);
void subject_close(struct subject *s);

/* Compares row-major data with what output `output` must be. own: the relative error that what
 * computed it asks for. *part gets the error as a part of what is allowed. */
enum status subject_check(const struct subject *s, int output, const void *data, double own,
                          double *part, struct error *err);
/* The same for an executable, which may have cut the padding off outputs of data-dependent size. */
enum status subject_check_exe(const struct subject *s, int output, const struct exe *exe,
                              double *part, struct error *err);

#endif
