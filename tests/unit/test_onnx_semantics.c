/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are well formed and mean nothing, or something absurd: what is said of them.
 * `test_onnx_semantics --write FOLDER` writes them as NAME.onnx for tests of the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "engine/onnx/onnx.h"
#include "tests/lib/onnx_build.h"

enum { F32 = 1, I64 = 7 };

struct made {
    const char *name;
    void (*build)(struct builder *b);
    const char *says[4]; /* all of it stands in the error; none: the file is taken */
};

/* ---- files that are taken ---- */

/* Only the reference computes Det. */
static void det(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "64,3,3");
    build_node(b, "Det", "x", "d");
    build_close(b);
    build_node(b, "Relu", "d", "y");
    build_close(b);
    build_output(b, "y", F32, "64");
    build_end(b);
}

static const struct made models[] = {
    {"det", det, {NULL}},
};

/* ---- the tests ---- */

static void files_are_refused_with_the_reason(void **state)
{
    (void)state;
    for (int k = 0; k < ARRAY_COUNT(models); k++) {
        struct builder b = {0};
        struct graph *g;
        struct error err = {0};
        models[k].build(&b);
        enum status status = onnx_import_memory(b.bytes, b.size, "/tmp", "f.onnx", NULL, &g, &err);
        build_release(&b);
        bool taken = status == STATUS_OK;
        if (taken != !models[k].says[0])
            print_error("%s: %s\n", models[k].name, taken ? "was taken" : err.message);
        assert_true(taken == !models[k].says[0]);
        for (int s = 0; s < ARRAY_COUNT(models[k].says) && models[k].says[s]; s++) {
            if (!strstr(err.message, models[k].says[s]))
                print_error("%s: \"%s\" lacks \"%s\"\n", models[k].name, err.message,
                            models[k].says[s]);
            assert_non_null(strstr(err.message, models[k].says[s]));
        }
        if (taken)
            graph_free(g);
    }
}

static int write_all(const char *folder)
{
    for (int k = 0; k < ARRAY_COUNT(models); k++) {
        char path[512];
        struct builder b = {0};
        snprintf(path, sizeof(path), "%s/%s.onnx", folder, models[k].name);
        FILE *stream = fopen(path, "wb");
        if (!stream)
            return 2;
        models[k].build(&b);
        bool fine = fwrite(b.bytes, 1, b.size, stream) == b.size;
        build_release(&b);
        if (fclose(stream) != 0 || !fine)
            return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_all(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
