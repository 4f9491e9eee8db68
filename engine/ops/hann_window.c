/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/cosine_window.h"

COSINE_WINDOW_OP(hann_window, "HannWindow", 0.5, 0.5, 0);
