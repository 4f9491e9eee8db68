/* SPDX-License-Identifier: Apache-2.0
 *
 * One case of the ONNX backend tests: a folder with model.onnx and test_data_set_0/{input,output}_i
 * .pb. The contents of inputs are given to the importer, which makes constants of those that decide
 * shapes; the others are inputs of the graph.
 */
#ifndef TESTS_LIB_ONNX_CASE_H
#define TESTS_LIB_ONNX_CASE_H

#include "engine/run/exe.h"

struct onnx_case;

/* UNSUPPORTED: the model cannot be imported, with the reason. op gets the operator of its only
 * node, or "" (also when it fails). */
enum status onnx_case_open(const char *folder, struct onnx_case **out, char op[64],
                           struct error *err);
const struct graph *onnx_case_graph(const struct onnx_case *c);
/* Compiles, runs twice, compares with the expected outputs: |got - want| <= 1e-7 + 1e-3 |want|, as
 * the ONNX test runner has it. */
enum status onnx_case_check(const struct onnx_case *c, const struct exe_options *options,
                            struct error *err);
void onnx_case_close(struct onnx_case *c);

#endif
