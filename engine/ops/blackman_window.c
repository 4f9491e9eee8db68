/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/cosine_window.h"

COSINE_WINDOW_OP(blackman_window, "BlackmanWindow", 0.42, 0.5, 0.08);
