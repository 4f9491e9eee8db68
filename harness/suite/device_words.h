/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for devices, as suite files and command lines give them: the CPU, "null", and one per
 * plug-in that brings a device, which bears the plug-in's name. Opens nothing. */
#ifndef HARNESS_SUITE_DEVICE_WORDS_H
#define HARNESS_SUITE_DEVICE_WORDS_H

#include "base/arena.h"
#include "base/error.h"

/* Those of this tree, and the plug-ins of others that lie in the plug-in folders. -1: out of
 * memory. */
int device_words(struct arena *arena, const char *const **words);
/* FAILED for what is none of them, nor one of several alike ("cuda:1"). */
enum status device_word_check(const char *text, struct error *err);

#endif
