/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread does between two looks at a word that another one will write. */
#ifndef BASE_SYSTEM_RELAX_H
#define BASE_SYSTEM_RELAX_H

#include <stdatomic.h>

#if defined(__x86_64__)
static inline void relax(void)
{
    __builtin_ia32_pause();
}
#else
static inline void relax(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}
#endif

#endif
