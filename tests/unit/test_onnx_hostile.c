/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that lie: they are refused with a reason. `test_onnx_hostile --write FOLDER` writes them as
 * seeds for tests/fuzz/fuzz_onnx.c. And weights that lie in another file. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/onnx_build.h"
#include "tests/lib/unit.h"
#include "workloads/onnx/onnx.h"

/* ---- external data ---- */

/* "w.bin" as a link: within the folder it is followed, out of it refused, by a folder's link too.
 */
static void external_data_stays_in_its_folder(const char *folder, const char *model)
{
    char path[64], inside[64], outside[64], target[64];
    struct graph *g;
    snprintf(path, sizeof(path), "%s/w.bin", folder);
    snprintf(inside, sizeof(inside), "%s/real.bin", folder);
    snprintf(outside, sizeof(outside), "%s.bin", folder); /* a name that begins as the folder's */
    snprintf(target, sizeof(target), "../%s", strrchr(outside, '/') + 1);
    assert_int_equal(rename(path, inside), 0);
    assert_int_equal(symlink("real.bin", path), 0);
    MUST(onnx_import, model, NULL, &g);
    graph_free(g);
    assert_int_equal(rename(inside, outside), 0);
    for (int relative = 0; relative < 2; relative++) {
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink(relative ? target : outside, path), 0);
        FAILS(STATUS_FAILED, "a link leads out of the model's folder", onnx_import, model, NULL,
              &g);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(outside, path), 0);
}

TEST(external_data_is_mapped)
{
    static const float weights[3] = {0, 10, 20};
    char folder[] = "/tmp/ridge-onnx-XXXXXX", path[64], model[64];
    struct builder b = {0};
    struct error err;
    struct graph *g;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/w.bin", folder);
    snprintf(model, sizeof(model), "%s/m.onnx", folder);
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    fwrite(weights, sizeof(float), 3, stream);
    fclose(stream);
    build_model(&b, 17);
    build_input(&b, "x", 1, "2");
    build_open(&b, 5);
    build_number(&b, 1, 2);
    build_number(&b, 2, 1);
    build_text(&b, 8, "w");
    for (int k = 0; k < 3; k++) {
        static const char *const keys[] = {"location", "offset", "length"};
        static const char *const values[] = {"w.bin", "4", "8"};
        build_open(&b, 13);
        build_text(&b, 1, keys[k]);
        build_text(&b, 2, values[k]);
        build_close(&b);
    }
    build_number(&b, 14, 1);
    build_close(&b);
    build_node(&b, "Add", "x w", "y");
    build_close(&b);
    build_output(&b, "y", 1, "2");
    build_end(&b);
    stream = fopen(model, "wb");
    assert_non_null(stream);
    fwrite(b.bytes, 1, b.size, stream);
    fclose(stream);
    build_release(&b);
    MUST(onnx_import, model, NULL, &g);
    assert_memory_equal(g->values[g->nodes[0].inputs[1]].data, weights + 1, 8);
    graph_free(g);
    external_data_stays_in_its_folder(folder, model);
    unlink(path);
    assert_int_not_equal(onnx_import(model, NULL, &g, &err), STATUS_OK);
    assert_non_null(strstr(err.message, "w.bin"));
    unlink(model);
    rmdir(folder);
}

TEST(hostile_files_are_refused)
{
    for (int k = 0; k < hostile_count(); k++) {
        struct builder b = {0};
        struct graph *g;
        struct error err = {0};
        hostile_build(k, &b);
        enum status status = onnx_import_memory(b.bytes, b.size, "/tmp", "f.onnx", NULL, &g, &err);
        build_release(&b);
        if (status == STATUS_OK)
            print_error("%s was taken\n", hostile_name(k));
        assert_int_not_equal(status, STATUS_OK);
        assert_null(g);
        assert_true(strlen(err.message) > strlen("f.onnx: "));
    }
}

static int write_hostile(const char *folder)
{
    for (int k = 0; k < hostile_count(); k++) {
        char path[512];
        struct builder b = {0};
        snprintf(path, sizeof(path), "%s/hostile_%02d", folder, k);
        FILE *stream = fopen(path, "wb");
        if (!stream)
            return 2;
        hostile_build(k, &b);
        if (b.size)
            fwrite(b.bytes, 1, b.size, stream);
        fclose(stream);
        build_release(&b);
    }
    return 0;
}

static int start(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_hostile(argv[2]);
    return UNIT_RUN;
}

const struct unit_fixture unit_fixture = {.start = start};
