/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for devices, as suite files and command lines give them: the CPU, "null", and those that
 * plug-ins bring, most of which bear the plug-in's name. */
#ifndef HARNESS_SUITE_DEVICE_WORDS_H
#define HARNESS_SUITE_DEVICE_WORDS_H

#include "base/arena.h"
#include "base/error.h"

/* Those of this tree, and the plug-ins of others that lie in the plug-in folders. -1: out of
 * memory. Opens nothing. */
int device_words(struct arena *arena, const char *const **words);
/* FAILED for what is none of them, nor one of several alike ("cuda:1"). Opens plug-ins for a
 * word that it does not know. */
enum status device_word_check(const char *text, struct error *err);

#endif
