/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/text/table.h"
#include "tests/lib/unit.h"

TEST(columns_are_as_wide_as_their_widest_cell)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    struct table t = {.column_count = 0};
    table_column(&t, "name", TABLE_LEFT);
    table_column(&t, "ms", TABLE_RIGHT);
    table_column(&t, "note", TABLE_LEFT);
    for (int k = 0; k < 2; k++) {
        table_cell(&t, "%s", k ? "bert_large" : "n\xc3\xa9t"); /* one letter of two bytes */
        table_cell(&t, "%.1f", k ? 12345.6 : 1.0);
        table_cell(&t, "%s", k ? "x" : "");
    }
    table_print(&t, stream);
    table_release(&t);
    fclose(stream);
    assert_string_equal(text, "name             ms  note\n"
                              "n\xc3\xa9t             1.0  \n"
                              "bert_large  12345.6  x\n");
    free(text);
}

TEST(a_table_may_be_empty)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    struct table t = {.column_count = 0};
    table_column(&t, "name", TABLE_LEFT);
    table_print(&t, stream);
    table_release(&t);
    fclose(stream);
    assert_string_equal(text, "name\n");
    free(text);
}
