/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening shared libraries: which candidate is taken, what is said where there is none, and what
 * becomes of a table of functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/registry.h"
#include "base/system/library.h"
#include "tests/lib/unit.h"

struct maths {
    double (*square_root)(double);
    double (*round_down)(double);
};

static const struct library_symbol symbols[] = {
    {"sqrt", offsetof(struct maths, square_root)},
    {"floor", offsetof(struct maths, round_down)},
};

TEST(the_first_candidate_that_opens_is_taken)
{
    static const char *const candidates[] = {"libno_such_library.so.1", "/nonexistent/libm.so.6",
                                             "libm.so.6"};
    struct maths maths = {NULL, NULL};
    struct error why;
    void *library;
    assert_int_equal(library_open(candidates, ARRAY_COUNT(candidates), &library, &why), STATUS_OK);
    assert_null(library_fill(library, symbols, ARRAY_COUNT(symbols), &maths));
    assert_true(maths.square_root(49) == 7 && maths.round_down(2.5) == 2);
    assert_null(library_symbol(library, "no_such_function"));
    library_close(library);
}

TEST(a_missing_function_is_named)
{
    static const struct library_symbol wanted[] = {
        {"sqrt", offsetof(struct maths, square_root)},
        {"no_such_function", offsetof(struct maths, round_down)}};
    struct maths maths = {NULL, NULL};
    void *library;
    assert_int_equal(library_open_one("libm.so.6", &library, NULL), STATUS_OK);
    assert_string_equal(library_fill(library, wanted, ARRAY_COUNT(wanted), &maths),
                        "no_such_function");
    library_close(library);
}

/* A file that is there and cannot be used says more than those that are not there. */
TEST(the_reason_is_that_of_a_file_that_exists)
{
    char path[] = "/tmp/ridge_library_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0 && write(file, "no library", 10) == 10);
    close(file);
    const char *const candidates[] = {"libno_such_library.so.1", path, "/nonexistent/last.so"};
    struct error why;
    void *library;
    assert_int_equal(library_open(candidates, 3, &library, &why), STATUS_UNSUPPORTED);
    assert_null(library);
    assert_non_null(strstr(why.message, path));
    unlink(path);
    assert_int_equal(library_open(candidates, 3, &library, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.message, "/nonexistent/last.so"));
    assert_int_equal(library_open(candidates, 1, &library, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.message, "libno_such_library.so.1"));
}

TEST(a_folder_is_no_library)
{
    struct error why;
    void *library;
    assert_int_equal(library_open_one("/tmp", &library, &why), STATUS_UNSUPPORTED);
    assert_string_equal(why.message, "it is no regular file");
}
