/* SPDX-License-Identifier: Apache-2.0
 *
 * The report while it is written: what was read from the store, where the page goes. Sections only
 * read grids and write HTML; page_text and what is built on it escape all that comes from data. */
#ifndef PLOTS_PAGE_H
#define PLOTS_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "plots/report.h"
#include "plots/text.h"

/* The steps of one result. */
struct page_step {
    int64_t result, first, count; /* in step_rows */
};

struct page {
    FILE *out;
    struct store *store;
    int64_t run;
    const char *folder; /* of the plots */
    struct report_outcome *outcome;
    const struct report_against *against; /* NULL: a report of one run */
    struct grid base_runs, base_bounds;   /* of the run compared with */
    struct grid runs, results, counted, bounds, offenders, kinds, roofs, ceilings, environment,
        unavailable, visits, notes;
    double visit_scale; /* of all strips of visits: so much of the median to each side */
    struct arena arena;
    struct page_step *steps; /* rows of `offenders` by result */
    int64_t *step_rows;
    int64_t step_count;   /* results that have steps */
    int64_t run_row;      /* of the run in `runs` */
    int64_t base_run_row; /* of the other in base_runs */
};

/* ---- HTML ---- */

__attribute__((format(printf, 2, 3))) void page_raw(struct page *page, const char *format, ...);
void page_text(struct page *page, const char *text);
/* <TAG>text</TAG>; a class may follow the tag: "p class=note". */
void page_element(struct page *page, const char *tag, const char *text);
/* A name and its value in a <dl>; a value of "" is unknown. */
void page_term(struct page *page, const char *name, const char *value);
/* Table cells: label is shown before the value on narrow screens; a number sorts by itself. */
void page_cell(struct page *page, const char *label, const char *text);
void page_number(struct page *page, const char *label, double sort_by, const char *text);
/* What a cell sorts by, for its data-sort: "" for NAN, which sorts last in both directions. */
struct short_text page_sort_key(double value);
void page_begin_table(struct page *page, const char *classes, const char *const *titles, int count);
void page_end_table(struct page *page);
/* A plot with its caption and the links to its files, or the reason why there is none. */
enum status page_figure(struct page *page, const char *plot, int64_t result, struct error *err);

/* Whether a result has pictures of its own: all of some dozens; of more, those with the most
 * recoverable seconds. page_figure draws nothing for the others. */
enum { PAGE_PICTURED_MAX = 40 };
bool page_is_pictured(const struct page *page, int64_t result);

/* Name of a result in the report, and of its section. */
void page_result_name(struct page *page, const struct grid *grid, int64_t row);
/* " . server", " . cold": what a reader would not assume; nothing otherwise. */
void page_unusual(struct page *page, const struct grid *grid, int64_t row);
/* Row of a fact of the environment, "category key"; -1 when it was not looked for. */
int64_t page_fact(const struct page *page, const char *name);
/* Its value; "" when it could not be read. */
const char *page_fact_text(const struct page *page, const char *name);
/* Rows of `offenders` of one result, the most recoverable first; NULL and 0: it has no steps. */
const int64_t *page_steps(const struct page *page, int64_t result, int *count);
/* Whether the k-th of those has a row in its workload's table: steps above their roof have nothing
 * to recover, but must be seen. */
bool page_shows_step(const struct page *page, const int64_t *rows, int k);
/* Makes page_steps possible, once `offenders` has been read. */
enum status page_index_steps(struct page *page, struct error *err);
/* Measured, right and not disturbed: the only results that are counted and ranked. */
bool page_is_valid(const struct grid *results, int64_t row);
/* Row of a result in a grid with a column `result`, -1 when absent. */
int64_t page_find(const struct grid *grid, int64_t result);

/* ---- beside a result (plots/page_notes.c) ---- */

/* A strip with the median of each visit; nothing for a result that was visited once. */
void page_visits(struct page *page, int64_t result);
double page_visit_scale(const struct page *page);
/* The notes of a result as a list, and in a row of a table how many there are; nothing without. */
void page_notes(struct page *page, int64_t result);
void page_note_mark(struct page *page, int64_t result);

/* ---- sections, in order ---- */

void section_head(struct page *page);
/* What does not let the run stand as it is: one line each, details folded. */
void section_alerts(struct page *page);
/* The first screen: what was measured on, how much of it is valid, how good, what would pay. */
void section_glance(struct page *page);
void section_headline(struct page *page);
enum status section_against(struct page *page, struct error *err);
enum status section_overview(struct page *page, struct error *err);
/* Trainings on several ranks of this machine, whichever run measured them. */
enum status section_scaling(struct page *page, struct error *err);
enum status section_collectives(struct page *page, struct error *err);
enum status section_workload(struct page *page, int64_t row, struct error *err);
/* Part of a result's section. */
enum status section_counted(struct page *page, int64_t result, struct error *err);
enum status section_phases(struct page *page, int64_t result, struct error *err);
/* found: it is of ranks that learn together. */
enum status section_ranks(struct page *page, int64_t result, bool *found, struct error *err);
void section_machine(struct page *page);
void section_unavailable(struct page *page);
void section_provenance(struct page *page);

#endif
