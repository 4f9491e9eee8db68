/* SPDX-License-Identifier: Apache-2.0
 *
 * Damages files in ways in which files are damaged: by accident and by intent. The damage depends
 * on the seed alone, so that what was found comes back. */
#ifndef TESTS_LIB_DAMAGE_H
#define TESTS_LIB_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data; /* malloc'd */
    size_t size;
};

/* Draws that follow from a seed. */
struct draws {
    uint64_t seed, next;
};
uint32_t draw(struct draws *draws, uint32_t below); /* [0, below); 0 of nothing */
/* The value next to this one, or one at the end of some range. */
uint64_t draw_extreme(struct draws *draws, uint64_t value);

/* NULL data: cannot be read, or is larger than 16 MB. */
struct bytes bytes_read(const char *path);
int bytes_write(const struct bytes *bytes, const char *path); /* 0: written */

/* Bits, bytes, cuts, pieces twice and pieces of `other`. */
void damage_bytes(struct bytes *bytes, const struct bytes *other, struct draws *draws);
/* A protobuf message: fields swapped, dropped, doubled, taken from `other` or set to the ends of
 * their range, with all lengths round them right. As bytes where it is no message. */
void damage_message(struct bytes *bytes, const struct bytes *other, struct draws *draws);
/* An ONNX model whose every part is a good one, but one says something that it must not: sizes and
 * attributes at the ends of their ranges, names that belong to others, nodes in a circle, other
 * operators and types, constants in place of inputs, functions and branches that nest without end.
 * path: of the sound file, beside which its inputs lie. False: there is no model in the bytes. */
bool damage_model(struct bytes *bytes, const char *path, struct draws *draws);
/* Writes a damaged copy of a database of results: pages changed and exchanged, text where numbers
 * belong, another schema, a log of another database beside it. */
void damage_database(struct bytes *bytes, const struct bytes *other, const char *path,
                     struct draws *draws);

#endif
