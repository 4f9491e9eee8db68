/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/machine/environment_print.h"

#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "base/text/json.h"
#include "base/text/table.h"

static const char *const class_names[FACT_CLASS_COUNT] = {"identity", "tuning", "volatile"};
static const char *const status_names[FACT_STATUS_COUNT] = {"ok", "denied", "absent"};

void environment_print(const struct environment *environment)
{
    struct table table = {0};
    static const char *const titles[] = {"category", "fact", "value", "class", "source"};
    for (int k = 0; k < ARRAY_COUNT(titles); k++)
        table_column(&table, titles[k], TABLE_LEFT);
    for (int k = 0; k < environment->fact_count; k++) {
        const struct fact *f = &environment->facts[k];
        table_cell(&table, "%s", f->category);
        table_cell(&table, "%s", f->key);
        if (f->status != FACT_OK)
            table_cell(&table, "(%s)", status_names[f->status]);
        else
            table_cell(&table, "%.60s%s%s%s", f->value, strlen(f->value) > 60 ? "..." : "",
                       f->unit[0] ? " " : "", f->unit);
        table_cell(&table, "%s", class_names[f->class]);
        table_cell(&table, "%s", f->source);
    }
    table_print(&table, stdout);
    table_release(&table);
    printf("environment %s, host %s (%s)\n", environment->hash, environment->host_label,
           environment->host_uid);
}

void environment_print_json(const struct environment *environment)
{
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_text(&json, "hash", environment->hash);
    json_text(&json, "host_uid", environment->host_uid);
    json_text(&json, "host_label", environment->host_label);
    json_open(&json, "facts", '[');
    for (int k = 0; k < environment->fact_count; k++) {
        const struct fact *f = &environment->facts[k];
        json_open(&json, NULL, '{');
        json_text(&json, "category", f->category);
        json_text(&json, "key", f->key);
        json_text(&json, "value", f->status == FACT_OK ? f->value : NULL);
        json_text(&json, "unit", f->unit);
        json_text(&json, "source", f->source);
        json_text(&json, "class", class_names[f->class]);
        json_text(&json, "status", status_names[f->status]);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}
