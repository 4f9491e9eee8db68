/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/cosine_window.h"

COSINE_WINDOW_OP(hamming_window, "HammingWindow", 25.0 / 46, 21.0 / 46, 0);
