/* SPDX-License-Identifier: Apache-2.0
 *
 * What a fuzz target gives: the entry point of libFuzzer, and seeds of its own. replay.c calls both
 * where there is no libFuzzer; with clang, `-fsanitize=fuzzer` brings a main instead of it. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const char fuzz_extension[]; /* of seed files: ".onnx" */
/* Seed number index, malloc'd; NULL when there are no more. */
uint8_t *fuzz_seed(int index, size_t *size);

#endif
