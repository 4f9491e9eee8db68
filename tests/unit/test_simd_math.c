/* SPDX-License-Identifier: Apache-2.0
 *
 * Accuracy and special values of engine/kernels/lib/simd_math.h, for the instruction set that this
 * file is compiled for. The bounds are those stated in its head. */
#include <math.h>

#include "engine/kernels/lib/simd_math.h"
#include "tests/lib/unit.h"

typedef vf vector_function(vf x);

/* vf_exp is inlined everywhere; a table needs functions with an address. */
#define ADDRESSABLE(name)                                                                          \
    static vf call_##name(vf x)                                                                    \
    {                                                                                              \
        return vf_##name(x);                                                                       \
    }
ADDRESSABLE(exp)
ADDRESSABLE(exp_fast)
ADDRESSABLE(expm1)
ADDRESSABLE(log)
ADDRESSABLE(log1p)
ADDRESSABLE(tanh)
ADDRESSABLE(erf)
ADDRESSABLE(sigmoid)
ADDRESSABLE(silu)
ADDRESSABLE(gelu_erf)
ADDRESSABLE(gelu_tanh)
ADDRESSABLE(sin)
ADDRESSABLE(cos)

static double true_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double true_silu(double x)
{
    return x / (1 + exp(-x));
}

static double true_gelu_erf(double x)
{
    return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

static double true_gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double ulp_of(double value)
{
    int exponent;
    frexp(value, &exponent);
    return fmax(ldexp(1, exponent - 24), 0x1p-149);
}

static double eval(vector_function *f, float x)
{
    float y[VL];
    vf_store(y, f(vf_set1(x)));
    return y[0];
}

struct sweep {
    vector_function *f;
    double (*truth)(double x);
    double low, high; /* both of one sign when logarithmic */
    bool logarithmic;
    double ulps; /* bound; 0: the absolute bound holds */
    double absolute;
};

static float point(const struct sweep *s, int k, int count)
{
    double t = (k + 0.5) / count;
    if (!s->logarithmic)
        return (float)(s->low + (s->high - s->low) * t);
    return (float)(s->low * pow(s->high / s->low, t));
}

static void check_sweep(const struct sweep *s)
{
    enum { POINTS = 1 << 21 };
    double worst_ulps = 0, worst = 0;
    for (int k = 0; k < POINTS; k += VL) {
        float x[VL], y[VL];
        for (int lane = 0; lane < VL; lane++)
            x[lane] = point(s, k + lane, POINTS);
        vf_store(y, s->f(vf_load(x)));
        for (int lane = 0; lane < VL; lane++) {
            double truth = s->truth(x[lane]), error = fabs(y[lane] - truth);
            worst_ulps = fmax(worst_ulps, error / ulp_of(truth));
            worst = fmax(worst, error / fmax(1, fabs(x[lane])));
        }
    }
    if (s->ulps > 0 && !(worst_ulps <= s->ulps))
        fail_msg("[%g, %g]: %g ulp, bound %g", s->low, s->high, worst_ulps, s->ulps);
    if (s->absolute > 0 && !(worst <= s->absolute))
        fail_msg("[%g, %g]: %g, bound %g", s->low, s->high, worst, s->absolute);
}

TEST(accuracy)
{
    static const struct sweep sweeps[] = {
        {call_exp, exp, -104, 88.7, .ulps = 1.1},
        {call_exp, exp, 1e-9, 1, true, .ulps = 1.1},
        {call_exp_fast, exp, -87.3, 0, .ulps = 2.4},
        {call_exp_fast, exp, -104, -87.3, .absolute = 2e-38},
        {call_expm1, expm1, -18, 88.7, .ulps = 1.6},
        {call_expm1, expm1, -1e-30, -1, true, .ulps = 1.6},
        {call_expm1, expm1, 1e-30, 1, true, .ulps = 1.6},
        {call_log, log, 1e-44, 3.4e38, true, .ulps = 1},
        {call_log, log, 0.5, 2, .ulps = 1},
        {call_log1p, log1p, 1e-30, 1e30, true, .ulps = 1.4},
        {call_tanh, tanh, -10, 10, .ulps = 6.2},
        {call_tanh, tanh, 1e-30, 9, true, .ulps = 6.2},
        {call_erf, erf, -5, 5, .ulps = 7.5},
        {call_erf, erf, 1e-30, 4, true, .ulps = 7.5},
        {call_sigmoid, true_sigmoid, -87, 30, .ulps = 3.6},
        {call_silu, true_silu, -87, 30, .ulps = 3.6},
        {call_gelu_erf, true_gelu_erf, -10, 10, .absolute = 2.5e-7},
        {call_gelu_tanh, true_gelu_tanh, -10, 10, .absolute = 2.5e-7},
        {call_sin, sin, -3.14159, 3.14159, .ulps = 1.7},
        {call_cos, cos, -3.14159, 3.14159, .ulps = 1.7},
        {call_sin, sin, -20000, 20000, .absolute = 1e-7},
        {call_cos, cos, -20000, 20000, .absolute = 1e-7},
    };
    for (int k = 0; k < ARRAY_COUNT(sweeps); k++)
        check_sweep(&sweeps[k]);
}

TEST(nan_stays)
{
    static vector_function *const all[] = {
        call_exp,  call_exp_fast, call_expm1,    call_log,       call_log1p, call_tanh, call_erf,
        call_silu, call_sigmoid,  call_gelu_erf, call_gelu_tanh, call_sin,   call_cos,
    };
    for (int k = 0; k < ARRAY_COUNT(all); k++)
        if (!isnan(eval(all[k], NAN)))
            fail_msg("function %d turns NaN into %g", k, eval(all[k], NAN));
    for (int act = 0; act < FN_COUNT; act++) {
        float y[VL];
        vf_store(y, vf_act(vf_set1(NAN), (enum function)act, 0.25f, 6.0f));
        if (!isnan(y[0]))
            fail_msg("activation %d turns NaN into %g", act, (double)y[0]);
    }
}

TEST(special_values)
{
    static const struct {
        vector_function *f;
        float x;
        double y;
    } rows[] = {
        {call_exp, INFINITY, INFINITY},
        {call_exp, -INFINITY, 0},
        {call_exp, 88.73f, INFINITY},
        {call_exp, -104, 0},
        {call_exp, 0, 1},
        {call_exp, 1e-42f, 1},
        {call_exp_fast, -INFINITY, 0},
        {call_exp_fast, 0, 1},
        {call_exp_fast, -3.4e38f, 0},
        {call_expm1, INFINITY, INFINITY},
        {call_expm1, -INFINITY, -1},
        {call_expm1, 0, 0},
        {call_log, INFINITY, INFINITY},
        {call_log, 0, -INFINITY},
        {call_log, -0.0f, -INFINITY},
        {call_log, 1, 0},
        {call_log1p, 0, 0},
        {call_log1p, INFINITY, INFINITY},
        {call_tanh, INFINITY, 1},
        {call_tanh, -INFINITY, -1},
        {call_tanh, 20, 1},
        {call_tanh, 0, 0},
        {call_erf, INFINITY, 1},
        {call_erf, -INFINITY, -1},
        {call_erf, 6, 1},
        {call_erf, 0, 0},
        {call_sigmoid, INFINITY, 1},
        {call_sigmoid, -INFINITY, 0},
        {call_sigmoid, 0, 0.5},
        {call_sigmoid, -200, 0},
        {call_gelu_erf, INFINITY, INFINITY},
        {call_gelu_erf, 50, 50},
        {call_gelu_erf, -50, 0},
        {call_gelu_tanh, INFINITY, INFINITY},
        {call_gelu_tanh, 50, 50},
        {call_gelu_tanh, -50, 0},
        {call_sin, 0, 0},
        {call_cos, 0, 1},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++)
        if (eval(rows[k].f, rows[k].x) != rows[k].y)
            fail_msg("row %d, x = %g: %g instead of %g", k, (double)rows[k].x,
                     eval(rows[k].f, rows[k].x), rows[k].y);
    assert_true(isnan(eval(call_log, -1)));
    assert_true(isnan(eval(call_log, -INFINITY)));
    assert_true(isnan(eval(call_gelu_erf, -INFINITY))); /* -inf times 0, as in the definition */
    assert_true(isnan(eval(call_sin, INFINITY)));
}

static double act_of(float x, enum function act, float a, float b)
{
    float y[VL];
    vf_store(y, vf_act(vf_set1(x), act, a, b));
    return y[0];
}

TEST(activations)
{
    for (float x = -9; x <= 9; x += 0.37f) {
        double d = x;
        assert_true(act_of(x, FN_COPY, 0, 0) == d);
        assert_true(act_of(x, FN_RELU, 0, 0) == fmax(d, 0));
        assert_true(act_of(x, FN_CLIP, -2, 6) == fmin(fmax(d, -2), 6));
        assert_true(act_of(x, FN_LEAKY_RELU, 0.25f, 0) == (d < 0 ? 0.25 * d : d));
        assert_true(fabs(act_of(x, FN_SIGMOID, 0, 0) - true_sigmoid(d)) < 2e-7);
        assert_true(fabs(act_of(x, FN_TANH, 0, 0) - tanh(d)) < 4e-7);
        assert_true(fabs(act_of(x, FN_GELU_ERF, 0, 0) - true_gelu_erf(d)) < 3e-6);
        assert_true(fabs(act_of(x, FN_GELU_TANH, 0, 0) - true_gelu_tanh(d)) < 3e-6);
        assert_true(fabs(act_of(x, FN_SILU, 0, 0) - true_silu(d)) < 2e-6);
        double line = fmin(fmax(0.25 * d + 0.5, 0), 1), swish = d * fmin(fmax(d / 6 + 0.5, 0), 1);
        assert_true(fabs(act_of(x, FN_HARD_SIGMOID, 0.25f, 0.5f) - line) < 2e-7);
        assert_true(fabs(act_of(x, FN_HARD_SWISH, 0, 0) - swish) < 2e-6);
        assert_true(fabs(act_of(x, FN_ELU, 2, 0) - (d < 0 ? 2 * expm1(d) : d)) < 4e-7);
    }
}

#if defined(__aarch64__) || defined(__AVX2__)
/* (1 + 2^-12)^2 has one bit more than a float. */
TEST(multiply_adds_round_once)
{
    vf x = vf_set1(1 + 0x1p-12f), square = vf_set1(1 + 0x1p-11f);
    assert_true(vf_max_of(vf_fma(x, x, vf_neg(square))) == 0x1p-24f);
    assert_true(vf_max_of(vf_fnma(x, x, square)) == -0x1p-24f);
}
#endif

TEST(masks_and_bools)
{
    uint8_t back[16];
    float x[VL];
    unsigned bits = 0;
    for (int k = 0; k < VL; k++) {
        x[k] = k % 3 == 1 ? -1.0f : 1.0f;
        bits |= (unsigned)(k % 3 == 1) << k;
    }
    vm negative = vf_lt(vf_load(x), vf_zero()), positive = vf_lt(vf_zero(), vf_load(x));
    assert_int_equal(vm_bits(negative), bits);
    assert_int_equal(vm_bits(vm_and(negative, positive)), 0);
    vm_store_bool(back, negative);
    for (int k = 0; k < VL; k++)
        assert_int_equal(back[k], k % 3 == 1);
}
