/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/lib/unit.h"
#include "workloads/training.h"

static double auc_of(int64_t count, const float *answers, const float *targets)
{
    return quality_auc.of(&(struct judged){answers, targets, DTYPE_F32, .answer_count = count,
                                           .target_count = count});
}

TEST(auc_counts_pairs_in_the_right_order)
{
    const float right[] = {0, 0, 1, 1}, wrong[] = {1, 1, 0, 0}, mixed[] = {0, 1, 0, 1};
    const float scores[] = {-2, -1, 0.5f, 3};
    assert_true(auc_of(4, scores, right) == 1);
    assert_true(auc_of(4, scores, wrong) == 0);
    assert_true(auc_of(4, scores, mixed) == 0.75);
}

TEST(auc_of_equal_scores_is_a_half)
{
    const float targets[] = {0, 1, 1, 0, 1}, same[] = {2, 2, 2, 2, 2}, some[] = {1, 1, 3, 0, 0};
    assert_true(auc_of(5, same, targets) == 0.5);
    /* pairs: (1: 1, half), (1: 0, whole), (3: two), (0: none, half) of six */
    assert_true(fabs(auc_of(5, some, targets) - (0.5 + 1 + 2 + 0 + 0.5) / 6) < 1e-12);
}

TEST(auc_of_one_class_is_not_known)
{
    const float ones[] = {1, 1}, scores[] = {1, 2};
    assert_true(isnan(auc_of(2, scores, ones)));
    assert_true(isnan(auc_of(0, scores, ones)));
}

TEST(auc_of_scores_that_are_not_numbers_ends_and_is_not_known)
{
    const float targets[] = {0, 1, 1, 0}, scores[] = {1, (float)NAN, 2, (float)NAN};
    assert_true(isnan(auc_of(4, scores, targets)));
}

TEST(accuracy_is_the_share_of_rows_whose_largest_answer_is_the_target)
{
    const float answers[] = {1, 2, 0, 5, 4, 3, 0, 0, 9};
    const int64_t wide[] = {1, 1, 2};
    const int32_t narrow[] = {1, 0, 2};
    struct judged judged = {answers, wide, DTYPE_I64, .answer_count = 9, .target_count = 3};
    assert_true(fabs(quality_accuracy.of(&judged) - 2.0 / 3) < 1e-12);
    judged.targets = narrow;
    judged.target_type = DTYPE_I32;
    assert_true(quality_accuracy.of(&judged) == 1);
}
