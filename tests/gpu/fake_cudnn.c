/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/fake_cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "tests/gpu/fake_device.h"

enum { CONFIGURATIONS = 4, KNOBS = 9, MAGIC = 0x5eed };

static const int64_t engine_of[CONFIGURATIONS] = {0, 1, 1, 2};
static const int knob_types[KNOBS] = {
    CUDNN_KNOB_TYPE_TILE_SIZE,  CUDNN_KNOB_TYPE_TILEK,      CUDNN_KNOB_TYPE_SPLIT_K_SLC,
    CUDNN_KNOB_TYPE_IDX_MODE,   CUDNN_KNOB_TYPE_SPECFILT,   CUDNN_KNOB_TYPE_WORKSPACE,
    CUDNN_KNOB_TYPE_TILE_CGA_M, CUDNN_KNOB_TYPE_TILE_CGA_N, CUDNN_KNOB_TYPE_STAGES};

/* Any descriptor or handle. */
struct thing {
    int magic, type;
    bool finalized;
    int64_t number; /* of a configuration, and of what is made of it */
    int64_t knob;   /* of knob_types */
    int64_t uids[FAKE_TENSORS];
    void *memory[FAKE_TENSORS];
    int count;
    void *workspace;
    int dims[4], strides[4]; /* of a tensor of four dimensions */
};

struct fake_launch fake_launch;

#define MAY_FAIL(name)                                                                             \
    do {                                                                                           \
        if (fake_fails(name))                                                                      \
            return CUDNN_STATUS_INTERNAL_ERROR;                                                    \
    } while (0)
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "fake cuDNN: %s: not so: %s\n", __func__, #condition);                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void *make_thing(int type)
{
    struct thing *thing = calloc(1, sizeof(*thing));
    MUST(thing);
    thing->magic = MAGIC;
    thing->type = type;
    fake.live++;
    return thing;
}

static void end_thing(void *thing)
{
    struct thing *own = thing;
    MUST(own && own->magic == MAGIC);
    own->magic = 0;
    fake.live--;
    free(own);
}

static struct thing *of(const void *thing)
{
    struct thing *own;
    memcpy(&own, &thing, sizeof(own));
    MUST(own && own->magic == MAGIC);
    return own;
}

/* ---- around ---- */

static size_t version(void)
{
    return CUDNN_VERSION;
}

static size_t cudart_version(void)
{
    return 13000;
}

static const char *error_string(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_INTERNAL_ERROR ? "CUDNN_STATUS_INTERNAL_ERROR" : "?";
}

static void last_error(char *message, size_t size)
{
    snprintf(message, size, "%s: scripted", fake.failed ? fake.failed : "nothing");
}

static cudnnStatus_t handle_new(cudnnHandle_t *handle)
{
    MAY_FAIL("cudnnCreate");
    *handle = make_thing(-1);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t handle_free(cudnnHandle_t handle)
{
    end_thing(handle);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream)
{
    of(handle);
    MAY_FAIL("cudnnSetStream");
    fake_launch.stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- the graph API ---- */

static cudnnStatus_t create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *desc)
{
    MAY_FAIL("cudnnBackendCreateDescriptor");
    *desc = make_thing((int)type);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy(cudnnBackendDescriptor_t desc)
{
    end_thing(desc);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize(cudnnBackendDescriptor_t desc)
{
    struct thing *thing = of(desc);
    MUST(!thing->finalized);
    MAY_FAIL("cudnnBackendFinalize");
    thing->finalized = true;
    fake_launch.packs += thing->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
    fake_launch.plans += thing->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
    return CUDNN_STATUS_SUCCESS;
}

static bool is_factor(cudnnBackendAttributeName_t name)
{
    return name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA ||
           name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA ||
           name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA ||
           name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA;
}

static cudnnStatus_t set(cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    struct thing *thing = of(desc);
    MUST(!thing->finalized && count > 0 && values);
    MAY_FAIL("cudnnBackendSetAttribute");
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t k = 0; k < count; k++)
            MUST(of(((void *const *)values)[k])->finalized ||
                 name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (is_factor(name))
        MUST(type == CUDNN_TYPE_FLOAT); /* the library takes any, and reads a float */
    if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
        thing->number = of(*(void *const *)values)->number;
    if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) {
        MUST(count <= FAKE_TENSORS);
        thing->count = (int)count;
        memcpy(thing->uids, values, (size_t)count * sizeof(*thing->uids));
    }
    if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
        memcpy(thing->memory, values, (size_t)count * sizeof(*thing->memory));
    if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE)
        memcpy(&thing->workspace, values, sizeof(thing->workspace));
    return CUDNN_STATUS_SUCCESS;
}

/* A question for none tells how many there are. */
static void put_configurations(int64_t wanted, int64_t *count, void *values)
{
    *count = wanted ? smaller(wanted, CONFIGURATIONS) : CONFIGURATIONS;
    for (int64_t k = 0; k < smaller(wanted, *count); k++)
        of(((void **)values)[k])->number = k;
}

/* Here the library answers such a question with 0. */
static void put_knobs(const struct thing *config, int64_t wanted, int64_t *count, void *values)
{
    *count = smaller(wanted, KNOBS);
    for (int64_t k = 0; k < *count; k++) {
        struct thing *knob = of(((void **)values)[k]);
        MUST(knob->type == CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        knob->number = config->number;
        knob->knob = k;
    }
}

static int64_t knob_value(const struct thing *knob)
{
    bool second = knob->number > 0 && engine_of[knob->number - 1] == engine_of[knob->number];
    return knob->knob == KNOBS - 1 && second ? 5 : 4;
}

static void note(const struct thing *engine, int64_t *count, int *notes)
{
    *count = engine_of[engine->number] != 1;
    notes[0] = engine_of[engine->number] == 0 ? (int)CUDNN_NUMERICAL_NOTE_TENSOR_CORE
                                              : (int)CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
}

static cudnnStatus_t get(cudnnBackendDescriptor_t const desc, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t wanted, int64_t *count,
                         void *values)
{
    const struct thing *thing = of(desc);
    MAY_FAIL("cudnnBackendGetAttribute");
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        fake_launch.questions++;
        MUST(thing->finalized && type == CUDNN_TYPE_BACKEND_DESCRIPTOR);
        put_configurations(wanted, count, values);
        break;
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
        put_knobs(thing, wanted, count, values);
        break;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        of(*(void **)values)->number = thing->number;
        break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)values = engine_of[thing->number];
        break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        note(thing, count, values);
        break;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        *count = fake_launch.compiled;
        if (fake_launch.compiled)
            *(int *)values = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
        break;
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)values = FAKE_WORKSPACE;
        break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
        *(int *)values = knob_types[thing->knob];
        break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
        *(int64_t *)values = knob_value(thing);
        break;
    default:
        MUST(name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES); /* the fake knows no other attribute */
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                             cudnnBackendDescriptor_t pack)
{
    const struct thing *own = of(pack);
    of(handle);
    MUST(of(plan)->finalized && own->finalized);
    MAY_FAIL("cudnnBackendExecute");
    fake_launch.count++;
    fake_launch.launched_on = fake_launch.stream;
    fake_launch.configuration = of(plan)->number;
    fake_launch.tensor_count = own->count;
    fake_launch.workspace = own->workspace;
    memcpy(fake_launch.uids, own->uids, sizeof(own->uids));
    memcpy(fake_launch.memory, own->memory, sizeof(own->memory));
    return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors of the older calls ---- */

#define MAKER(name, type, symbol)                                                                  \
    static cudnnStatus_t name##_new(type *desc)                                                    \
    {                                                                                              \
        MAY_FAIL("cudnnCreate" symbol);                                                            \
        *desc = make_thing(-1);                                                                    \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }                                                                                              \
    static cudnnStatus_t name##_free(type desc)                                                    \
    {                                                                                              \
        end_thing(desc);                                                                           \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
MAKER(tensor, cudnnTensorDescriptor_t, "TensorDescriptor")
MAKER(dropout, cudnnDropoutDescriptor_t, "DropoutDescriptor")
MAKER(rnn, cudnnRNNDescriptor_t, "RNNDescriptor")
MAKER(rnn_data, cudnnRNNDataDescriptor_t, "RNNDataDescriptor")

static cudnnStatus_t tensor_set(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int rank,
                                const int *dims, const int *strides)
{
    (void)type;
    struct thing *own = of(desc);
    MUST(rank >= 3 && dims[0] > 0 && strides[0] > 0);
    MAY_FAIL("cudnnSetTensorNdDescriptor");
    for (int k = 0; k < 4 && rank == 4; k++) {
        own->dims[k] = dims[k];
        own->strides[k] = strides[k];
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t softmax(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                             cudnnSoftmaxMode_t mode, const void *alpha,
                             const cudnnTensorDescriptor_t x_desc, const void *x, const void *beta,
                             const cudnnTensorDescriptor_t y_desc, void *y)
{
    (void)algorithm;
    of(handle);
    of(x_desc);
    of(y_desc);
    MUST(mode == CUDNN_SOFTMAX_MODE_CHANNEL && alpha && beta && x && y);
    MAY_FAIL("cudnnSoftmaxForward");
    fake_launch.count++;
    fake_launch.launched_on = fake_launch.stream;
    return CUDNN_STATUS_SUCCESS;
}

/* Of floats, in four dimensions. */
static void copy_tensor(const struct thing *from, const float *x, const struct thing *to, float *y)
{
    int count = from->dims[0] * from->dims[1] * from->dims[2] * from->dims[3];
    for (int at = 0; at < count; at++) {
        int left = at, source = 0, target = 0;
        for (int k = 3; k >= 0; k--) {
            source += left % from->dims[k] * from->strides[k];
            target += left % from->dims[k] * to->strides[k];
            left /= from->dims[k];
        }
        y[target] = x[source];
    }
}

static cudnnStatus_t transform(cudnnHandle_t handle, const void *alpha,
                               const cudnnTensorDescriptor_t x_desc, const void *x,
                               const void *beta, const cudnnTensorDescriptor_t y_desc, void *y)
{
    of(handle);
    MUST(alpha && beta && of(x_desc) != of(y_desc) && x && y && x != y);
    MAY_FAIL("cudnnTransformTensor");
    copy_tensor(of(x_desc), x, of(y_desc), y);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- recurrent networks ---- */

static cudnnStatus_t dropout_set(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle, float rate,
                                 void *states, size_t bytes, unsigned long long seed)
{
    (void)seed;
    of(desc);
    of(handle);
    MUST(rate == 0 && !states && !bytes);
    MAY_FAIL("cudnnSetDropoutDescriptor");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t rnn_set(cudnnRNNDescriptor_t desc, cudnnRNNAlgo_t algorithm,
                             cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
                             cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                             cudnnDataType_t type, cudnnDataType_t math, cudnnMathType_t unit,
                             int32_t inputs, int32_t hidden, int32_t projected, int32_t layers,
                             cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    (void)algorithm;
    (void)bias;
    (void)direction;
    (void)type;
    (void)flags;
    struct thing *thing = of(desc);
    of(dropout);
    MUST(input == CUDNN_LINEAR_INPUT && math == CUDNN_DATA_FLOAT && unit == CUDNN_FMA_MATH);
    MUST(projected == hidden && layers == 1);
    MAY_FAIL("cudnnSetRNNDescriptor_v8");
    thing->uids[0] = inputs;
    thing->uids[1] = hidden;
    thing->count = cell == CUDNN_LSTM ? 4 : 3;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t rnn_data_set(cudnnRNNDataDescriptor_t desc, cudnnDataType_t type,
                                  cudnnRNNDataLayout_t layout, int steps, int batch, int width,
                                  const int lengths[], void *fill)
{
    (void)type;
    of(desc);
    MUST(layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED && width > 0 && !fill);
    for (int k = 0; k < batch; k++)
        MUST(lengths[k] == steps);
    MAY_FAIL("cudnnSetRNNDataDescriptor");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t rnn_temp_sizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                    cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                    size_t *work, size_t *reserve)
{
    of(handle);
    of(rnn);
    of(x);
    MUST(mode == CUDNN_FWD_MODE_INFERENCE);
    MAY_FAIL("cudnnGetRNNTempSpaceSizes");
    *work = 1000;
    *reserve = 0;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t rnn_weight_size(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, size_t *bytes)
{
    of(handle);
    of(rnn);
    MAY_FAIL("cudnnGetRNNWeightSpaceSize");
    *bytes = FAKE_RNN_WEIGHTS;
    return CUDNN_STATUS_SUCCESS;
}

/* Matrices first, then biases, each kind of a direction after the other. */
static cudnnStatus_t rnn_weight_place(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t layer,
                                      size_t bytes, const void *weights, int32_t id,
                                      cudnnTensorDescriptor_t matrix_desc, void **matrix,
                                      cudnnTensorDescriptor_t bias_desc, void **bias)
{
    const struct thing *own = of(rnn);
    size_t i = (size_t)own->uids[0], h = (size_t)own->uids[1], gates = (size_t)own->count;
    size_t per_layer = gates * h * (i + h), at = (size_t)layer * per_layer;
    of(handle);
    of(matrix_desc);
    of(bias_desc);
    MUST(bytes == FAKE_RNN_WEIGHTS && id >= 0 && (size_t)id < 2 * gates && layer < 2);
    MAY_FAIL("cudnnGetRNNWeightParams");
    at += (size_t)id < gates ? (size_t)id * h * i : gates * h * i + ((size_t)id - gates) * h * h;
    memcpy(matrix, &weights, sizeof(weights));
    *matrix = (float *)*matrix + at;
    memcpy(bias, &weights, sizeof(weights));
    *bias = (float *)*bias + 2 * per_layer + ((size_t)layer * 2 * gates + (size_t)id) * h;
    fake_launch.rnn_places++;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t rnn_build_dynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int batch)
{
    of(handle);
    of(rnn);
    MUST(batch > 0);
    MAY_FAIL("cudnnBuildRNNDynamic");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t rnn_forward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                 cudnnForwardMode_t mode, const int32_t lengths[],
                                 cudnnRNNDataDescriptor_t x_desc, const void *x,
                                 cudnnRNNDataDescriptor_t y_desc, void *y,
                                 cudnnTensorDescriptor_t h_desc, const void *hx, void *hy,
                                 cudnnTensorDescriptor_t c_desc, const void *cx, void *cy,
                                 size_t weight_bytes, const void *weights, size_t work_bytes,
                                 void *work, size_t reserve_bytes, void *reserve)
{
    (void)hx;
    (void)hy;
    of(handle);
    of(x_desc);
    of(y_desc);
    of(h_desc);
    of(c_desc);
    MUST(of(rnn)->count == 4 || (!cx && !cy));
    MUST(mode == CUDNN_FWD_MODE_INFERENCE && lengths && x && y && weights && work);
    MUST(weight_bytes == FAKE_RNN_WEIGHTS && work_bytes >= 1000 && !reserve_bytes && !reserve);
    MAY_FAIL("cudnnRNNForward");
    fake_launch.count++;
    fake_launch.launched_on = fake_launch.stream;
    fake_launch.memory[0] = y;
    fake_launch.memory[1] = (char *)work + work_bytes;
    memcpy(&fake_launch.memory[2], &weights, sizeof(weights));
    return CUDNN_STATUS_SUCCESS;
}

void fake_cudnn(struct cudnn_api *api)
{
    *api = (struct cudnn_api){.version = version,
                              .cudart_version = cudart_version,
                              .error_string = error_string,
                              .last_error = last_error,
                              .handle_new = handle_new,
                              .handle_free = handle_free,
                              .set_stream = set_stream,
                              .create = create,
                              .destroy = destroy,
                              .set = set,
                              .get = get,
                              .finalize = finalize,
                              .execute = execute,
                              .tensor_new = tensor_new,
                              .tensor_free = tensor_free,
                              .tensor_set = tensor_set,
                              .softmax = softmax,
                              .transform = transform,
                              .dropout_new = dropout_new,
                              .dropout_free = dropout_free,
                              .dropout_set = dropout_set,
                              .rnn_new = rnn_new,
                              .rnn_free = rnn_free,
                              .rnn_set = rnn_set,
                              .rnn_data_new = rnn_data_new,
                              .rnn_data_free = rnn_data_free,
                              .rnn_data_set = rnn_data_set,
                              .rnn_temp_sizes = rnn_temp_sizes,
                              .rnn_weight_size = rnn_weight_size,
                              .rnn_weight_place = rnn_weight_place,
                              .rnn_build_dynamic = rnn_build_dynamic,
                              .rnn_forward = rnn_forward};
    fake_launch = (struct fake_launch){.count = 0};
}
