/* SPDX-License-Identifier: Apache-2.0
 *
 * For libraries that play a vendor's: what the CUDA plug-in of this process exports. */
#ifndef TESTS_LIB_DEVICE_SYMBOL_H
#define TESTS_LIB_DEVICE_SYMBOL_H

/* By name, as tests/gpu/host/ has them; NULL where the plug-in is not open or has no such symbol.
 */
void *device_symbol(const char *name);

#endif
