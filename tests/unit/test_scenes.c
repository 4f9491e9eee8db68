/* SPDX-License-Identifier: Apache-2.0
 * Made-up images: scenes of objects, words and figures. A sample is the same in every batch, and
 * says what it should; mean average precision and the share of joints found by hand. */

#include <math.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "workloads/lib/vision/poses.h"
#include "workloads/lib/vision/scenes.h"
#include "workloads/lib/vision/words.h"

enum { SIZE = 48, BATCH = 6, CLASSES = 9, ROOM = 5, PIXELS = 3 * SIZE * SIZE };

struct samples {
    struct graph *g;
    float image[BATCH * PIXELS], objects[BATCH * SCENE_OBJECTS * SCENE_NUMBERS];
    int64_t label[BATCH * ROOM], length[BATCH];
};

static void make(struct samples *s, int64_t first, int64_t size, void (*fill)(const struct batch *))
{
    void *data[] = {s->image, s->objects, s->label, s->length};
    memset(s, 0, sizeof(*s));
    s->g = graph_new("samples");
    graph_input(s->g, "image", DTYPE_F32, shape_of(size, 3, SIZE, SIZE), (struct fill){0});
    scenes_objects(s->g, size, CLASSES);
    graph_input(s->g, "label", DTYPE_I64, shape_of(size, ROOM), (struct fill){0});
    graph_input(s->g, "label_length", DTYPE_I64, shape_of(size), (struct fill){0});
    fill(&(struct batch){.graph = s->g, .data = data, .seed = 5, .first = first, .size = size});
    graph_free(s->g);
}

TEST(samples_are_the_same_in_every_batch)
{
    static struct samples all, one;
    make(&all, 0, BATCH, scenes_fill);
    make(&one, 4, 1, scenes_fill);
    assert_memory_equal(all.image + 4 * PIXELS, one.image, PIXELS * sizeof(float));
    assert_memory_equal(all.objects + 4 * SCENE_OBJECTS * SCENE_NUMBERS, one.objects,
                        SCENE_OBJECTS * SCENE_NUMBERS * sizeof(float));
    make(&all, 0, BATCH, words_fill);
    make(&one, 4, 1, words_fill);
    assert_memory_equal(all.image + 4 * PIXELS, one.image, PIXELS * sizeof(float));
    assert_memory_equal(all.label + 4 * ROOM, one.label, ROOM * sizeof(int64_t));
    assert_int_equal(all.length[4], one.length[0]);
}

TEST(objects_lie_in_the_image)
{
    static struct samples s;
    make(&s, 0, BATCH, scenes_fill);
    for (int n = 0; n < BATCH; n++) {
        int count = 0;
        for (int k = 0; k < SCENE_OBJECTS; k++) {
            const float *o = s.objects + (n * SCENE_OBJECTS + k) * SCENE_NUMBERS;
            count += o[4] > 0;
            assert_true(o[4] == floorf(o[4]) && o[4] >= 0 && o[4] < CLASSES);
            assert_true(o[4] == 0 || (o[0] >= 0 && o[1] >= 0 && o[2] <= 1 && o[3] <= 1));
            assert_true(o[4] == 0 || (o[2] - o[0] > 0.1f && o[3] - o[1] > 0.1f));
        }
        assert_true(count > 0);
    }
}

TEST(words_fit_their_images)
{
    static struct samples s;
    make(&s, 0, BATCH, words_fill);
    for (int n = 0; n < BATCH; n++) {
        assert_true(s.length[n] > 0 && s.length[n] < ROOM && s.length[n] <= SIZE / 12);
        for (int k = 0; k < ROOM; k++) {
            int64_t label = s.label[n * ROOM + k];
            assert_true(k < s.length[n] ? label >= 0 && label < WORDS_SYMBOLS : label == -1);
        }
    }
}

static void make_poses(int64_t first, int64_t size, float *image, float *joints)
{
    void *data[] = {image, joints};
    struct graph *g = graph_new("poses");
    graph_input(g, "crop", DTYPE_F32, shape_of(size, 3, SIZE, SIZE), (struct fill){0});
    graph_input(g, "joints", DTYPE_F32, shape_of(size, POSE_JOINTS, POSE_NUMBERS),
                (struct fill){0});
    poses_fill(&(struct batch){.graph = g, .data = data, .first = first, .size = size});
    graph_free(g);
}

/* Joints that lie in the picture are said to, and no others; nearly all are seen. */
TEST(joints_say_whether_they_are_in_the_picture)
{
    enum { PERSON = POSE_JOINTS * POSE_NUMBERS };
    static float image[BATCH * PIXELS], joints[BATCH * PERSON], one[PIXELS], alone[PERSON];
    int seen = 0;
    make_poses(0, BATCH, image, joints);
    make_poses(2, 1, one, alone);
    assert_memory_equal(image + 2 * PIXELS, one, sizeof(one));
    assert_memory_equal(joints + 2 * PERSON, alone, sizeof(alone));
    for (int k = 0; k < BATCH * PERSON; k += POSE_NUMBERS) {
        bool inside =
            joints[k] >= 0 && joints[k] < SIZE && joints[k + 1] >= 0 && joints[k + 1] < SIZE;
        assert_true(inside ? joints[k + 2] == 1 || joints[k + 2] == 2 : joints[k + 2] == 0);
        seen += joints[k + 2] == 2;
    }
    assert_true(seen > BATCH * POSE_JOINTS / 2 && seen < BATCH * POSE_JOINTS);
}

/* A person 100 pixels high and 30 wide: joints within 10 pixels are found, those out of the picture
 * do not count. */
TEST(the_share_of_joints_found)
{
    enum { PERSON = POSE_JOINTS * POSE_NUMBERS };
    float truth[PERSON] = {0}, answer[PERSON] = {0};
    for (int k = 0; k < 4; k++) {
        float *t = truth + k * POSE_NUMBERS, *a = answer + k * POSE_NUMBERS;
        t[0] = a[0] = 30 * (float)(k % 2);
        t[1] = a[1] = 100 * (float)(k / 2);
        t[2] = (float)(1 + k % 2);
    }
    answer[0] = 6; /* 10 pixels away */
    answer[1] = 8;
    answer[3] += 10.1f;
    struct judged j = {answer, truth, DTYPE_F32, PERSON, PERSON};
    assert_true(fabs(quality_pck.of(&j) - 0.75) < 1e-12);
    memset(truth, 0, sizeof(truth));
    assert_true(isnan(quality_pck.of(&j)));
}

/* ---- mean average precision ---- */

enum { ROWS = 4, ROW = 7, IMAGES = 2 };

static double map_of_rows(const float rows[IMAGES][ROWS][ROW])
{
    float objects[IMAGES][SCENE_OBJECTS][SCENE_NUMBERS] = {
        {{0, 0, 0.5f, 0.5f, 1}, {0.5f, 0.5f, 1, 1, 2}},
        {{0.25f, 0.25f, 0.75f, 0.75f, 1}},
    };
    return quality_map.of(&(struct judged){.answers = &rows[0][0][0],
                                           .targets = objects,
                                           .target_type = DTYPE_F32,
                                           .answer_count = IMAGES * ROWS * ROW,
                                           .target_count = IMAGES * SCENE_OBJECTS * SCENE_NUMBERS});
}

TEST(precision_by_hand)
{
    /* All found: class 1 in both images, class 2 in one. */
    const float all[IMAGES][ROWS][ROW] = {
        {{0, 1, 0.9f, 0, 0, 0.5f, 0.5f}, {0, 2, 0.3f, 0.5f, 0.5f, 1, 0.9f}},
        {{1, 1, 0.2f, 0.25f, 0.25f, 0.75f, 0.75f}},
    };
    assert_true(fabs(map_of_rows(all) - 1) < 1e-12);
    /* Class 1: found, found again, found: precisions 1 and 2/3. Class 2: in the wrong image. */
    const float twice[IMAGES][ROWS][ROW] = {
        {{0, 1, 0.9f, 0, 0, 0.5f, 0.5f}, {0, 1, 0.8f, 0, 0, 0.5f, 0.45f}},
        {{1, 1, 0.7f, 0.25f, 0.25f, 0.75f, 0.75f}, {1, 2, 0.9f, 0.5f, 0.5f, 1, 1}},
    };
    assert_true(fabs(map_of_rows(twice) - (1 + 2.0 / 3) / 2 / 2) < 1e-12);
    /* Overlaps less than half: 0.3 of the height. */
    const float beside[IMAGES][ROWS][ROW] = {{{0, 1, 0.9f, 0, 0, 0.5f, 0.15f}}};
    assert_true(map_of_rows(beside) == 0);
}
