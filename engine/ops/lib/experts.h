/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that lie sorted by their expert, as ExpertSort says it, for the references of the operators
 * that read them. */
#ifndef ENGINE_OPS_LIB_EXPERTS_H
#define ENGINE_OPS_LIB_EXPERTS_H

#include "engine/graph/op.h"

/* Whether input `k` is a list of i64 of so many entries; FAILED: it is not. */
enum status experts_check_list(const struct infer *c, int k, int64_t entries, struct error *err);
/* Whether offsets begin with 0, never fall, and end with the number of rows. */
enum status experts_check_offsets(const struct node *node, const struct ref_tensor *offsets,
                                  int64_t rows, struct error *err);
/* Whether every entry of order is a place. */
enum status experts_check_order(const struct node *node, const struct ref_tensor *order,
                                struct error *err);

#endif
