/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "tests/lib/unit.h"

TEST(the_message_says_what_and_where)
{
    struct error err = {.code = STATUS_OK};
    int line = __LINE__ + 1;
    enum status status = FAIL(&err, STATUS_UNSUPPORTED, "axis %d of %s", 3, "Softmax");
    assert_int_equal(status, STATUS_UNSUPPORTED);
    assert_int_equal(err.code, STATUS_UNSUPPORTED);
    assert_int_equal(err.line, line);
    assert_non_null(strstr(err.file, "test_error.c"));
    assert_string_equal(err.message, "axis 3 of Softmax");
}

TEST(context_goes_in_front)
{
    struct error err = {.code = STATUS_OK};
    FAIL(&err, STATUS_FAILED, "no such file");
    assert_int_equal(error_context(&err, "model %s", "a.onnx"), STATUS_FAILED);
    assert_string_equal(err.message, "model a.onnx: no such file");
}

TEST(long_messages_are_cut)
{
    struct error err = {.code = STATUS_OK};
    char text[2 * sizeof(err.message)];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    FAIL(&err, STATUS_FAILED, "%s", text);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    error_context(&err, "in front");
    assert_int_equal(strncmp(err.message, "in front: xxx", 13), 0);
    assert_true(strlen(err.message) < sizeof(err.message));
    error_context(&err, "%s", text); /* too long itself: the cause stays */
    assert_int_equal(strncmp(err.message, "in front: xxx", 13), 0);
}

/* A function that calls itself was reported as 30 contexts and half a word of the reason. */
TEST(the_cause_is_not_cut_off_by_contexts)
{
    struct error err = {.code = STATUS_OK};
    FAIL(&err, STATUS_FAILED, "function \"F\" calls itself");
    for (int k = 0; k < 100; k++)
        error_context(&err, "F node \"y%d\"", k);
    error_context(&err, "model.onnx");
    assert_int_equal(strncmp(err.message, "model.onnx: ...: F node \"y", 26), 0);
    const char *end =
        err.message + strlen(err.message) - strlen("\"y0\": function \"F\" calls itself");
    assert_string_equal(end, "\"y0\": function \"F\" calls itself");
}

TEST(nobody_needs_to_listen)
{
    assert_int_equal(FAIL(NULL, STATUS_INVALID, "%d", 1), STATUS_INVALID);
    assert_int_equal(error_context(NULL, "%d", 1), STATUS_FAILED);
    assert_int_equal(FAIL_NO_MEMORY(NULL), STATUS_NO_MEMORY);
}

static enum status first_failure(int *calls, enum status status)
{
    ++*calls;
    return status;
}

static enum status tries_three(int *calls)
{
    TRY(first_failure(calls, STATUS_OK));
    TRY(first_failure(calls, STATUS_UNSUPPORTED));
    TRY(first_failure(calls, STATUS_OK));
    return STATUS_OK;
}

TEST(try_returns_at_the_first_failure)
{
    int calls = 0;
    assert_int_equal(tries_three(&calls), STATUS_UNSUPPORTED);
    assert_int_equal(calls, 2);
}
