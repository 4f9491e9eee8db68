/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/browsing.h"

#include "workloads/lib/lessons.h"

/* How probable it is that a user clicks on an item of the category, and on no other. */
static const double clicks = 0.97;

struct world {
    int64_t items, categories; /* no fewer items than categories */
};

static int32_t category_of(const struct world *w, int64_t item)
{
    return (int32_t)(item % w->categories);
}

static int32_t draw_of(struct draw *draw, const struct world *w, int32_t category)
{
    int64_t count = (w->items - category + w->categories - 1) / w->categories;
    return category + (int32_t)(draw_index(draw, count > 0 ? count : 1) * w->categories);
}

static void fill_user(const struct batch *batch, const struct world *w, int64_t n)
{
    int64_t steps = batch_range(batch, "history_length") - 1, categories = w->categories;
    int32_t *item = batch_input(batch, "mid_his"), *category = batch_input(batch, "cat_his");
    int32_t *other = batch_input(batch, "noclk_mid"), *of_other = batch_input(batch, "noclk_cat");
    struct draw draw = draw_begin(batch, n);
    int32_t likes = (int32_t)draw_index(&draw, categories);
    int64_t length = steps - draw_index(&draw, steps / 2);
    int64_t turn = draw_uniform(&draw) < 0.25 ? draw_index(&draw, length) : -1;
    ((int32_t *)batch_input(batch, "history_length"))[n] = (int32_t)length;
    ((int32_t *)batch_input(batch, "uid"))[n] =
        (int32_t)draw_index(&draw, batch_range(batch, "uid"));
    for (int64_t at = n * steps, t = 0; t < steps; t++, at++) {
        likes = t == turn ? (int32_t)draw_index(&draw, categories) : likes;
        item[at] = t < length ? draw_of(&draw, w, likes) : 0;
        category[at] = category_of(w, item[at]);
        for (int64_t k = at * BROWSING_OTHERS; k < (at + 1) * BROWSING_OTHERS; k++) {
            other[k] = (int32_t)draw_index(&draw, w->items);
            of_other[k] = category_of(w, other[k]);
        }
    }
    bool same = draw_uniform(&draw) < 0.5;
    int32_t shown = same ? draw_of(&draw, w, likes) : (int32_t)draw_index(&draw, w->items);
    ((int32_t *)batch_input(batch, "mid"))[n] = shown;
    ((int32_t *)batch_input(batch, "cat"))[n] = category_of(w, shown);
    bool liked = category_of(w, shown) == likes; /* as the last item of the history says */
    ((float *)batch_input(batch, "click"))[n] = (draw_uniform(&draw) < clicks) == liked;
    if (batch->bayes)
        batch->bayes[n] = (float)(liked ? clicks : 1 - clicks);
}

void browsing_fill(const struct batch *batch)
{
    struct world world = {batch_range(batch, "mid"), batch_range(batch, "cat")};
    for (int64_t n = 0; n < batch->size; n++)
        fill_user(batch, &world, n);
}
