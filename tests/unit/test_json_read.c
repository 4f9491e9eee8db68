/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/text/json_read.h"
#include "tests/lib/unit.h"

TEST(texts_are_found)
{
    static const char json[] =
        " {\n \"version\": \"0.1\", \"count\": 12, \"list\": [\"a\", {\"uid\":"
        " \"inner\"}],\n \"none\": null, \"flags\": \"-O2 \\\"x\\\" \\u00e9\\n\","
        " \"uid\":\"0123\" }\n";
    char text[32];
    assert_true(json_read_text(json, "version", text, sizeof(text)));
    assert_string_equal(text, "0.1");
    assert_true(json_read_text(json, "flags", text, sizeof(text)));
    assert_string_equal(text, "-O2 \"x\" \xc3\xa9\n");
    /* That of the inner object is another's. */
    assert_true(json_read_text(json, "uid", text, sizeof(text)));
    assert_string_equal(text, "0123");
}

TEST(other_things_are_refused)
{
    static const char *const broken[] = {
        "",
        "{",
        "[\"uid\", \"1\"]",
        "{\"uid\"",
        "{\"uid\": ",
        "{\"uid\": \"1",
        "12.5",
        "{\"uid\": 1}",
        "{\"uid\": null}",
        "{}",
        "{\"a\": [1, \"uid\": \"1\"}",
        "{\"uid\": \"\\x\"}",
        "{\"uid\": \"\\u12\"}",
        "{uid: \"1\"}",
        "{\"uid\": \"a text that is longer than its place\"}",
    };
    char text[8] = "before";
    for (size_t k = 0; k < sizeof(broken) / sizeof(*broken); k++) {
        assert_false(json_read_text(broken[k], "uid", text, sizeof(text)));
        assert_string_equal(text, "");
    }
}

/* Every beginning of a sound object is read without a step beyond its end (the sanitizers look). */
TEST(cut_off_anywhere)
{
    static const char json[] = "{\"a\": {\"b\": [1, \"\\u00e9\"]}, \"uid\": \"42\"}";
    for (size_t length = 0; length + 2 < sizeof(json); length++) {
        char part[sizeof(json)], text[8];
        memcpy(part, json, length);
        part[length] = '\0';
        bool whole = strstr(part, "\"42\"") != NULL;
        assert_int_equal(json_read_text(part, "uid", text, sizeof(text)), whole);
    }
}
