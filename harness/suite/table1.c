/* SPDX-License-Identifier: Apache-2.0
 *
 * Configurations and explanations come from the AI Matrix repository (commit f7e1d77 and branches
 * r1.0.5, r1.0.6), the index files of its checkpoints, and arithmetic on both. */
#include "harness/suite/table1.h"

#include <math.h>

#include "base/registry.h"

static const struct table1_row rows[] = {
    {"GoogLeNet", "googlenet", 32, 7.78e10, 2.46e9, 0.014, 1.015e11,
     "v1, 224x224, no LRN, no auxiliary heads",
     "cuDNN chose Winograd F(2x2,3x3) for 3x3 convolutions with stride 1, which multiplies 2.25 "
     "times less: the model of that is 6.72e10"},
    {"ResNet-50", "resnet50", 32, 2.14e11, 7.72e9, 0.029, 2.481e11,
     "version 1 (stride in the first 1x1), 224x224",
     "Winograd on the 3x3 convolutions: the model of that is 1.82e11"},
    {"DenseNet-121", "densenet121_aimatrix", 32, 9.19e10, 8.09e9, 0.029, 9.05e10,
     "as coded in the repository: 3 dense blocks, bottleneck of 32 channels",
     "the published network has 1.829e11; maps of 32 channels gain nothing from Winograd; reads "
     "are those of unfused operators (1.12 of their model)"},
    {"SSD", "ssd300_vgg16", 16, 1.13e12, 2.69e10, 0.250, 1.005e12,
     "SSD300-VGG16 in Caffe built without cuDNN",
     "im2col and SGEMM rounded up to tiles of 128x64: 1.065e12; column buffers are most of the "
     "reads"},
    {"DSSD", "dssd321_resnet101", 2, 5.38e11, 9.52e9, 0.091, 2.160e11,
     "DSSD321-ResNet101 in Caffe without cuDNN",
     "the work is that of 4 images (4.320e11); with tiles of 128x64 5.24e11"},
    {"Mask R-CNN", "mask_rcnn", 1, 4.87e11, 1.65e10, 0.138, 7.792e11, "ResNet-101-FPN, 1024x1024",
     "Winograd: the model of that is 4.67e11"},
    {"Faster R-CNN", "faster_rcnn", 1, 3.91e11, 1.04e10, 0.071, 3.753e11,
     "VGG16, 600x800, 300 regions, Caffe without cuDNN", "SGEMM tiles: 3.85e11"},
    {"CPN", "cpn", 8, 6.34e11, 1.62e10, 0.444, 7.862e11,
     "ResNet-101, 384x288, 8 crops and their 8 mirror images", "with Winograd 6.12e11"},
    {"SegLink", "seglink", 8, 2.75e12, 1.02e11, 0.421, 5.254e12, "1280x768",
     "Winograd: the model of that is 2.57e12"},
    {"CRNN", "crnn", 256, 5.23e11, 8.48e9, 0.086, 3.594e11, "100x32, the repository's default",
     "the figures fit 280x32 (1.006e12) with Winograd: 5.35e11"},
    {"DIN", "din", 512, 4.01e9, 2.60e8, 0.004, 3.98e9, "history padded to 86",
     "the padded length of the profiled batch decides; 52 to 87 occur"},
    {"DIEN", "dien", 512, 1.13e11, 5.10e9, 0.051, 5.88e9, "history of 100",
     "the loader emits the longest histories first: padded to 1936 it is 1.133e11"},
    {"Wide & Deep", "wide_deep", 2048, 1.30e8, 3.20e7, 0.057, 7.32e7, "census columns",
     "a GEMM of few columns is padded to tiles of 64: 1.29e8; the time is the host's"},
    {"GCN", "gcn", 1, 2.72e7, 2.15e6, NAN, 3.04e6, "Cora, 2 layers, forward",
     "skinny GEMMs padded to tiles, perhaps a whole epoch"},
    {"NCF", "ncf", 256, 1.66e8, 3.34e6, 0.001, 1.606e8,
     "NeuMF, one-hot times a dense embedding table",
     "or 100 rows padded to tiles (1.604e8); weights stay in the 6 MB L2, so reads are below the "
     "compulsory bytes"},
    {"NMT", "nmt", 128, 2.59e12, 7.34e10, 0.676, 2.587e12, "GNMT-4, greedy, 74 words in and out",
     "the length decides; the weights are read again for every word (5.4e10 bytes)"},
    {"BERT", "bert_large", 2, 5.39e11, 8.27e9, 0.056, 4.951e11, "BERT-large, 384 tokens, SQuAD",
     "9 % above the sum of its operators; not explained"},
};

int table1_count(void)
{
    return ARRAY_COUNT(rows);
}

const struct table1_row *table1_at(int index)
{
    return &rows[index];
}
