# SPDX-License-Identifier: Apache-2.0
# Ridge: one Makefile, not recursive. `make help` lists what it can do.

# ---- 1. knobs ----
VERSION := 0.1.0
CONFIG  ?= release
ifeq ($(origin CC),default)
CC := gcc
endif
B      := build/$(CONFIG)
JOBS   ?= $(shell nproc 2>/dev/null || echo 1)
# Optional libraries: auto (use it if it is there), 0 (leave it out), 1 (insist).
WITH_ONEDNN   ?= auto
WITH_OPENBLAS ?= auto
WITH_PAPI     ?= auto
WITH_JPEG     ?= auto
WITH_CUDA     ?= auto
WITH_CUBLASLT ?= auto
WITH_CUDNN    ?= auto
WITH_CUPTI    ?= auto
WITH_OPENMPI  ?= auto
WITH_MPICH    ?= auto
WITH_NCCL     ?= auto
WITH_SIMGRID  ?= auto
# The CUDA toolkit, and the chips to compile kernels for (80: A100, 90: H100/H200, 100: B200); the
# last one also as PTX, for later chips. CUDA_ARCHS=90 compiles three times faster.
NVCC       ?= $(or $(shell command -v nvcc 2>/dev/null),/usr/local/cuda/bin/nvcc)
CUDA_ARCHS ?= 80 90 100

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wvla -Wwrite-strings -Wcast-qual -Wundef -Wformat=2 \
        -Wimplicit-fallthrough
SANITIZE := -O1 -g -fno-omit-frame-pointer
# Lines and no variables for debuggers (-g1): most variables are optimised away, and the rest makes
# compiling a fifth slower and programs twice as large. To step through code: CONFIG=debug.
# What only stands around the timed work is compiled with -O1, in two thirds of the time.
# C is not unwound but by debuggers, which have tables of their own: 5 % of a program.
UNTIMED  := harness results plots tests base/text
OPTIMIZE  = $(if $(filter $(UNTIMED:%=%/%),$*),-O1,-O2) -g1 -fno-asynchronous-unwind-tables
OPT_release   = $(OPTIMIZE)
OPT_debug    := -O0 -g3
OPT_have-not  = $(OPTIMIZE)
OPT_clang     = $(OPTIMIZE)
OPT_werror   := -O2 -g1
OPT_asan     := $(SANITIZE) -fsanitize=address,undefined -fno-sanitize-recover=undefined
OPT_fuzz     := $(SANITIZE) -fsanitize=fuzzer-no-link,address,undefined
OPT_tsan     := $(SANITIZE) -fsanitize=thread
OPT  = $(OPT_$(CONFIG))
# BUILT_ISAS: 1 without vectors, 2 with AVX2, 3 with AVX-512.
CPPFLAGS_ALL = -I. -I$(B)/gen -D_POSIX_C_SOURCE=200809L -DBUILT_ISAS=$(words $(ISAS)) $(CPPFLAGS)
CFLAGS_ALL   = -std=c11 $(WARN) $(if $(WERROR),-Werror) -fno-common $(OPT) $(CFLAGS)
LDFLAGS_ALL  = $(OPT) $(LDFLAGS)
LDLIBS_ALL   = -pthread -lm -ldl -lprotobuf-c -lsqlite3 -lhwloc -lstdc++ $(LDLIBS)
COMPILE      = $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP
# Beside the C compiler: clang++-14 of clang-14, aarch64-linux-gnu-g++ of aarch64-linux-gnu-gcc.
CXX_OF      := $(shell echo '$(CC)' | sed -E 's|^(([^ ]* )*[^ ]*)clang([^/ ]*)( -.*)?$$|\1clang++\3\4|;t; \
                 s|^(([^ ]* )*[^ ]*)gcc([^/ ]*)( -.*)?$$|\1g++\3\4|;t; s|.*|g++|')

# The compiler's own, so that a cross compiler suffices.
ifeq ($(origin LD),default)
LD := $(or $(shell $(CC) -print-prog-name=ld 2>/dev/null),ld)
endif
ifeq ($(origin AR),default)
AR := $(or $(shell $(CC) -print-prog-name=ar 2>/dev/null),ar)
endif

# With other flags everything is compiled again, but not for WERROR.
FLAGS = $(CC) $(UNTIMED) $(CPPFLAGS_ALL) $(filter-out -Werror,$(CFLAGS_ALL)) $(foreach i,$(ISAS),$(ISA_$i))

# Instruction sets that native kernels are compiled for.
TARGET := $(shell $(CC) -dumpmachine 2>/dev/null || uname -m)
ISAS := scalar $(if $(filter x86_64%,$(TARGET)),avx2 avx512)
SANITIZED  := $(filter asan tsan fuzz,$(CONFIG))
ISA_scalar := $(if $(SANITIZED),$(if $(filter fuzz,$(CONFIG)),-fno-sanitize=all),-O3 -g1) -fno-math-errno
# One version checked for undefined behaviour is enough: unrolled code takes minutes per file.
ISA_avx2   := $(ISA_scalar) $(if $(SANITIZED),-fno-sanitize=undefined) -mavx2 -mfma -mf16c
ISA_avx512 := $(ISA_avx2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512

# Goals that only start other makes: nothing is probed for them.
SHALLOW := all run test replay replay-update test-gpu compare-gpu gpu-kit compare-training compare-ranks test-long check asan tsan fuzz have-not clang oracle fmt clean help setup
DEEP    := $(filter-out $(SHALLOW),$(or $(MAKECMDGOALS),all))
SUBMAKE  = +@$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

.SECONDARY:
.PHONY: $(SHALLOW) features binary tidy fuzz-programs test-programs FORCE
all:
	$(SUBMAKE) binary
FORCE:

# ---- 2. features: a plug-in per optional library ----
FEATURES := ONEDNN OPENBLAS PAPI JPEG CUDA CUBLASLT CUDNN CUPTI OPENMPI MPICH NCCL SIMGRID
PLUGIN_ONEDNN    := onednn
HEADER_ONEDNN    := oneapi/dnnl/dnnl.h
CALL_ONEDNN      := dnnl_version()->major
LIBS_ONEDNN      := -ldnnl -fopenmp
CFLAGS_onednn    := -fopenmp
PACKAGE_ONEDNN   := libdnnl-dev
PLUGIN_OPENBLAS  := openblas
HEADER_OPENBLAS  := cblas.h
CALL_OPENBLAS    := openblas_get_config()[0]
LIBS_OPENBLAS    := $(or $(shell pkg-config --cflags --libs openblas 2>/dev/null),-lopenblas)
PACKAGE_OPENBLAS := libopenblas-pthread-dev
PLUGIN_PAPI      := papi
HEADER_PAPI      := papi.h
CALL_PAPI        := PAPI_strerror(0)[0]
LIBS_PAPI        := -lpapi
PACKAGE_PAPI     := libpapi-dev
PLUGIN_JPEG      := jpeg
HEADER_JPEG      := jpeglib.h
CALL_JPEG        := jpeg_std_error(0)
LIBS_JPEG        := -include stdio.h -ljpeg
PACKAGE_JPEG     := libjpeg-dev
# The toolkit's folder: nvcc's, or what pip made of it.
PIP_CUDA  := $(wildcard $(foreach p,$(VIRTUAL_ENV) $(HOME)/.local /usr/local /usr,\
               $p/lib/python3*/site-packages/nvidia/* $p/lib/python3*/dist-packages/nvidia/*))
holder    = $(patsubst %/include/$(1),%,$(firstword $(wildcard $(addsuffix /include/$(1),$(2)))))
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(realpath $(NVCC))),\
               $(call holder,cuda.h,/usr/local/cuda /opt/cuda $(PIP_CUDA)))
# The plug-ins open these libraries themselves, so that they can say what is missing.
CUDA_CFLAGS       = $(if $(CUDA_HOME),-isystem $(CUDA_HOME)/include)
CUDA_LDFLAGS      = $(if $(CUDA_HOME),-L$(CUDA_HOME)/lib64 -Wl$(comma)-rpath$(comma)$(CUDA_HOME)/lib64)
PLUGIN_CUBLASLT  := cublaslt
HEADER_CUBLASLT  := cublasLt.h
CALL_CUBLASLT    := cublasLtGetVersion()
LIBS_CUBLASLT     = $(CUDA_CFLAGS) $(CUDA_LDFLAGS) -lcublasLt
CFLAGS_cublaslt   = $(CUDA_CFLAGS)
PACKAGE_CUBLASLT := libcublas-dev-13-0 (in NVIDIA's repository)
TESTS_CUBLASLT   := tests/unit/test_cublaslt tests/unit/test_cublaslt_product
PLUGIN_CUDNN     := cudnn
HEADER_CUDNN     := cudnn.h
CALL_CUDNN       := cudnnGetVersion() * sizeof(char[CUDNN_VERSION >= 91301 ? 1 : -1])
LIBS_CUDNN        = $(CUDA_CFLAGS) $(CUDA_LDFLAGS) -lcudnn
CFLAGS_cudnn      = $(CUDA_CFLAGS)
PACKAGE_CUDNN    := libcudnn9-dev-cuda-13 (9.13.1 or newer, in NVIDIA's repository)
TESTS_CUDNN      := tests/unit/test_cudnn_graph tests/unit/test_cudnn_engines tests/gpu/support
comma := ,

# The runtime is linked statically: at run time the driver is all that is needed.
PLUGIN_CUDA      := cuda
HEADER_CUDA      := cuda_runtime_api.h
CALL_CUDA        := sizeof(char[CUDART_VERSION >= 12080 ? 1 : -1])
LIBS_CUDA         = -L$(CUDA_HOME)/lib64 -lcudart_static -lpthread -ldl -lrt -lstdc++
CFLAGS_cuda       = -isystem $(CUDA_HOME)/include
PACKAGE_CUDA     := cuda-toolkit (12.8 or newer, from developer.nvidia.com/cuda-downloads)
PROBE_CUDA        = $(NVCC)

# Only its headers are used: the plug-in opens the library.
CUPTI_HOME ?= $(call holder,cupti_pmsampling.h,$(CUDA_HOME) $(CUDA_HOME)/extras/CUPTI $(PIP_CUDA))
PLUGIN_CUPTI     := cupti
HEADER_CUPTI     := cupti_range_profiler.h
CALL_CUPTI       := sizeof(CUpti_RangeProfiler_Enable_Params)
LIBS_CUPTI       := $(if $(CUPTI_HOME),-isystem $(CUPTI_HOME)/include -isystem $(CUDA_HOME)/include)
CFLAGS_cupti      = -Iprofilers/plugins/cupti/include $(LIBS_CUPTI) -DCUPTI_FOLDER='"$(CUPTI_HOME)"'
CFLAGS_cupti_fake = $(CFLAGS_cupti)
PACKAGE_CUPTI    := cuda-cupti-dev-13-0 (of the repository of NVIDIA; or pip install nvidia-cuda-cupti nvidia-cuda-runtime)

# One interface in two binary forms, so one plug-in each, of the same sources.
pkg_flags = $(or $(shell pkg-config --cflags --libs $(1) 2>/dev/null),-l$(1))
PLUGIN_OPENMPI    := openmpi
HEADER_OPENMPI    := mpi.h
CALL_OPENMPI      := sizeof(char[OPEN_MPI]) * MPI_Wtime()
LIBS_OPENMPI      := $(call pkg_flags,ompi)
PACKAGE_OPENMPI   := libopenmpi-dev openmpi-bin
PLUGIN_MPICH      := mpich
HEADER_MPICH      := mpi.h
CALL_MPICH        := sizeof(MPICH_VERSION) * MPI_Wtime()
LIBS_MPICH        := $(call pkg_flags,mpich)
PACKAGE_MPICH     := libmpich-dev mpich

# Only its headers are used: the plug-in opens the library.
PLUGIN_NCCL      := nccl
HEADER_NCCL      := nccl.h
CALL_NCCL        := sizeof(char[NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 1) ? 1 : -1])
LIBS_NCCL         = $(CUDA_CFLAGS)
CFLAGS_nccl       = $(CUDA_CFLAGS) -DNCCL_FOLDER='"$(CUDA_HOME)"'
CFLAGS_nccl_fake  = $(CUDA_CFLAGS)
PACKAGE_NCCL     := libnccl-dev (2.18 or newer, in the repository of NVIDIA; or pip install nvidia-nccl-cu13 beside the toolkit)

# Its own MPI, for simulated ranks. What includes it gets simulated clocks.
PLUGIN_SIMGRID    := simgrid
HEADER_SIMGRID    := smpi/mpi.h
CALL_SIMGRID      := MPI_Wtime()
LIBS_SIMGRID      := -fPIC -lsimgrid
PACKAGE_SIMGRID   := libsimgrid-dev

# Not optional: reads ONNX files.
HEADER_PROTOBUF_C  := protobuf-c/protobuf-c.h
CALL_PROTOBUF_C    := protobuf_c_version()[0]
LIBS_PROTOBUF_C    := -lprotobuf-c
PACKAGE_PROTOBUF_C := libprotobuf-c-dev protobuf-c-compiler libonnx-dev
PLUGIN_PROTOBUF_C  := protobuf-c
WITH_PROTOBUF_C    := 1
# Not optional: keeps the results.
HEADER_SQLITE  := sqlite3.h
CALL_SQLITE    := sqlite3_libversion()[0]
LIBS_SQLITE    := -lsqlite3
PACKAGE_SQLITE := libsqlite3-dev
PLUGIN_SQLITE  := sqlite
WITH_SQLITE    := 1
# Not optional: sizes of caches, places of threads.
HEADER_HWLOC  := hwloc.h
CALL_HWLOC    := hwloc_get_api_version()
LIBS_HWLOC    := -lhwloc
PACKAGE_HWLOC := libhwloc-dev
PLUGIN_HWLOC  := hwloc
WITH_HWLOC    := 1

# Not optional: reads suites and profiler groups. Only its headers are used.
HEADER_TOML  := toml++/toml.h
CALL_TOML    := TOML_LIB_MAJOR
LIBS_TOML    := -std=c++17 -DTOML_HEADER_ONLY=0
PACKAGE_TOML := libtomlplusplus-dev g++
PLUGIN_TOML  := toml++
WITH_TOML    := 1
PROBE_TOML    = $(CXX_OF)

WITHOUT := $(foreach f,$(FEATURES),WITH_$f=0)
PROBES := PROTOBUF_C SQLITE HWLOC TOML $(FEATURES)
KNOBS  = $(CC) $(foreach f,$(FEATURES),WITH_$f=$(WITH_$f)) $(CUDA_HOME) $(CUPTI_HOME)
ifneq ($(DEEP),)
include $(B)/gen/features.mk
endif
# Generated files are rewritten only when their contents change.
replace = cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(B)/gen/knobs: FORCE
	@mkdir -p $(@D); echo '$(strip $(KNOBS))' > $@.new; $(replace)
$(B)/gen/flags: FORCE
	@mkdir -p $(@D); echo '$(strip $(FLAGS))' > $@.new; $(replace)
$(B)/gen/features.mk: $(B)/gen/knobs tools/probe.sh
	@rm -f $(@D)/*.new $(B)/plugins/*.so $(B)/plugins/*/*.so; touch $(@D)/absent_plugins.inc.new
	@echo "Libraries ($(B)):" >&2
	@$(foreach f,$(PROBES),CC='$(or $(PROBE_$f),$(CC))' tools/probe.sh $(@D) $f $(WITH_$f) $(HEADER_$f) \
	    '$(CALL_$f)' '$(LIBS_$f)' "$(PACKAGE_$f)" $(PLUGIN_$f) &&) true
	@mv $@.new $@; mv $(@D)/absent_plugins.inc.new $(@D)/absent_plugins.inc; touch $(@D)/absent_plugins.inc
$(B)/gen/absent_plugins.inc: $(B)/gen/features.mk
PRESENT := $(foreach f,$(FEATURES),$(if $(HAVE_$f),$f))
features: $(B)/gen/features.mk
	@cat $^ $(B)/gen/absent_plugins.inc; ls $(B)/gen/probe.*.log

# ---- 3. sources ----
DIRS := base $(addprefix base/,system numbers text) \
        $(addprefix engine/,graph ops/lib ops/compute ops/family ops reference run run/devices compile/passes compile train) \
        $(addprefix workloads/,lib lib/vision data data/formats onnx onnx/import onnx/export vision recommendation language micro synthetic) \
        workloads results results/formats profilers profilers/lib collective collective/algorithms collective/backends plots \
        $(addprefix harness/,machine suite watch roofs measure model train cli scale campaign compare turns bench cmd)
SRC        := $(sort $(wildcard $(addsuffix /*.c,$(DIRS))))
EMBEDDED   := $(sort $(wildcard results/schema/*.sql results/views/*.sql results/views/lib/*.sql \
                plots/*.gp plots/*.css plots/*.js profilers/groups/*.toml suites/*.toml docs/workloads/*.md))
SIMD_SRC   := $(sort $(wildcard engine/kernels/cpu/*.c engine/kernels/lib/*.c))
# What knows a node's geometry and nothing of running it: plug-ins link it, too.
PLUGIN_LIB := $(addprefix base/,error.c clean.c memory.c system/cpus.c system/library.c) \
              $(addprefix engine/graph/,tensor.c node.c infer.c function.c ref_tensor.c) $(sort $(wildcard engine/ops/lib/*.c))
MAIN_OBJ   := $(B)/harness/cli/main.o
OBJ        := $(filter-out $(MAIN_OBJ),$(SRC:%.c=$(B)/%.o)) \
              $(foreach i,$(ISAS),$(SIMD_SRC:%.c=$(B)/%.$i.o)) \
              $(B)/gen/onnx.pb-c.o $(B)/gen/build_info.o $(B)/gen/embedded.o $(B)/gen/kernel_code.o \
              $(patsubst %.cpp,$(B)/%.o,$(wildcard base/text/*.cpp))
PLUGIN_SO  := $(foreach f,$(PRESENT),$(if $(wildcard engine/kernels/$(PLUGIN_$f)/*.c*),\
                $(B)/plugins/$(PLUGIN_$f).so)) \
                $(foreach f,PAPI CUPTI,$(if $(HAVE_$f),$(B)/plugins/profilers/$(PLUGIN_$f).so)) \
                $(foreach f,OPENMPI MPICH NCCL,$(if $(HAVE_$f),$(B)/plugins/collective/$(PLUGIN_$f).so)) \
                $(if $(HAVE_JPEG),$(B)/plugins/data/jpeg.so) \
                $(if $(HAVE_SIMGRID),$(B)/plugins/collective/simulated/ranks.so)
# Tests of a plug-in's own parts, linked with its objects.
PLUGIN_TESTS := $(wildcard $(addsuffix .c,$(foreach f,$(FEATURES),$(TESTS_$f))))
PLUGIN_TESTS := $(PLUGIN_TESTS:%.c=%)
PLUGIN_TEST_LIB := $(patsubst %,$(B)/tests/gpu/%.o,chips fake_device hooks one_node)
FAKE_CUDNN    := tests/gpu/fake_cudnn tests/gpu/bench_cudnn
FAKE_CUBLASLT := tests/gpu/fake_cublaslt tests/gpu/bench_cublaslt
TEST_LIB   := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard tests/lib/*.c)))
# For tests/unit alone: it needs cmocka.
UNIT_LIB   := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard tests/lib/unit/*.c)))
TEST_BIN   := $(patsubst %.c,$(B)/%,$(sort $(filter-out $(PLUGIN_TESTS:%=%.c),\
                $(wildcard tests/unit/test_*.c tests/*/run.c))))
ORACLE_BIN := $(B)/tests/oracle/gradients
TEST_LIST   = $(TEST_BIN) $(filter $(B)/tests/unit/%,$(PLUGIN_TESTS:%=$(B)/%)) $(FUZZ_BIN) \
                $(sort $(wildcard tests/cli/*.sh tests/gpu/*.sh $(if $(LONG),tests/long/*.sh)))
SAMPLE_SO  := $(patsubst %.c,$(B)/%.so,$(wildcard tests/plugin_sample/*.c tests/plugin_device/*.c tests/gpu/actors/*.c))
CUDA_KERNELS := $(sort $(wildcard engine/kernels/cuda/*.cu engine/kernels/cuda/roofs/*.cu))
# CUDA's headers take longer to compile than a small kernel: five of those are compiled as one unit, which
# is named for them, but for products, whose templates are large, and for roofs of other chips.
CUDA_SMALL  := $(shell find engine/kernels/cuda -maxdepth 1 -name '*.cu' -size -10k | xargs -r grep -L product.h | sort)
CUDA_ROOFS  := $(filter-out %/mma_f8.cu %/wgmma.cu,$(wildcard engine/kernels/cuda/roofs/*.cu))
in_fives     = $(if $(1),$(call unit,$(wordlist 1,5,$(1))) $(call in_fives,$(wordlist 6,999,$(1))))
unit         = $(B)/pic/$(dir $(firstword $(1)))$(subst $() ,+,$(basename $(notdir $(1)))).o
CUDA_UNITS  := $(call in_fives,$(CUDA_SMALL)) $(call in_fives,$(CUDA_ROOFS))
CUDA_OBJ    := $(patsubst %.cu,$(B)/pic/%.o,$(filter-out $(CUDA_SMALL) $(CUDA_ROOFS),$(CUDA_KERNELS))) $(CUDA_UNITS)
# The CUDA plug-in over the host (tests/gpu/host/): no sanitizer bears its way of switching stacks.
HOST_CUDA_SO := $(if $(filter asan tsan fuzz,$(CONFIG)),,$(B)/tests/gpu/host/plugins/cuda.so)
FAKE_SO    := $(if $(HAVE_CUPTI),$(B)/tests/cupti_fake/fake.so) $(if $(HAVE_NCCL),$(B)/tests/nccl_fake/libnccl.so.2)
WATCH_CASES := $(if $(HOST_CUDA_SO),$(B)/tests/gpu/watch_cases)
# The cuBLASLt plug-in over a library that multiplies on the host.
VENDOR_SO  := $(if $(HAVE_CUBLASLT),$(B)/tests/gpu/vendor/plugins/cublaslt.so)
CFLAGS_vendor        = $(CUDA_CFLAGS)
CFLAGS_fake_cublaslt = $(CUDA_CFLAGS)
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN   := $(FUZZ_SRC:%.c=$(B)/%)

# ---- 4. registries: one line per file of a folder ----
names  = $(sort $(basename $(notdir $(wildcard $(addsuffix /*.c,$(1)) $(addsuffix /*.cu,$(1))))))
LIST_op       := $(call names,engine/ops)
LIST_device   := $(call names,engine/run/devices)
LIST_kernel   := $(foreach k,$(call names,engine/kernels/cpu),$(addprefix $k_,$(ISAS)))
LIST_workload := $(call names,$(addprefix workloads/,vision recommendation language micro synthetic))
LIST_command  := $(call names,harness/cmd)
LIST_format   := $(call names,results/formats)
LIST_profiler := $(call names,profilers)
LIST_algorithm := $(call names,collective/algorithms)
LIST_backend := $(call names,collective/backends)
LIST_data_format := $(call names,workloads/data/formats)
$(foreach f,$(FEATURES),$(eval LIST_$(PLUGIN_$f) := $(call names,engine/kernels/$(PLUGIN_$f))))
LIST_cuda_roof := $(call names,engine/kernels/cuda/roofs)
LIST_provider := $(sort $(filter-out cpu lib,$(notdir $(wildcard engine/kernels/*))))
LISTS := provider cuda_roof op device kernel workload command format profiler algorithm backend data_format $(foreach f,$(FEATURES),$(PLUGIN_$f))
GEN := $(LISTS:%=$(B)/gen/%_list.inc) $(B)/gen/onnx.pb-c.h \
       $(B)/gen/absent_plugins.inc

$(B)/gen/%_list.inc: FORCE
	@mkdir -p $(@D); printf '%s\n' $(LIST_$*:%='X(%)') > $@.new; $(replace)

COMMIT = $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)$(shell \
           git diff --quiet HEAD 2>/dev/null || echo -dirty)
$(B)/gen/build_info.c: FORCE
	@mkdir -p $(@D); { echo '#include "base/build_info.h"'; \
	echo 'const struct build_info build_info = {"$(VERSION)", "$(COMMIT)", "$(CONFIG)",'; \
	echo '    "$(shell $(CC) --version | head -1)", "$(strip $(filter-out -Werror,$(CFLAGS_ALL)))",'; \
	echo '    "$(strip $(ISAS))", "$(foreach f,$(PRESENT),$(PLUGIN_$f))"};'; } > $@.new; $(replace)

# What native kernels are, for the tuner: a hash of their code and of the thread pool's, without what is
# for debuggers, so that it changes when a kernel does and not with every commit.
KERNEL_OBJ := $(B)/base/system/pool.o $(foreach i,$(ISAS),$(SIMD_SRC:%.c=$(B)/%.$i.o))
$(B)/gen/kernel_code.c: $(KERNEL_OBJ)
	@mkdir -p $(@D); $(LD) -r --strip-debug -o $@.linked $^ && { echo '#include "engine/run/provider.h"'; \
	echo 'const char *kernel_code(void) { return "'$$(sha256sum <$@.linked | cut -c1-16)'"; }'; } > $@.new; \
	rm -f $@.linked; $(replace); touch $@

$(B)/gen/embedded.c: $(EMBEDDED) tools/embed.sh $(B)/gen/embedded_list
	@tools/embed.sh $(EMBEDDED) > $@.new; $(replace); touch $@
$(B)/gen/embedded_list: FORCE
	@mkdir -p $(@D); echo $(EMBEDDED) > $@.new; $(replace)

ONNX_PROTO := $(firstword $(wildcard /usr/include/onnx/onnx.proto /usr/local/include/onnx/onnx.proto))
$(B)/gen/onnx.pb-c.c $(B)/gen/onnx.pb-c.h &: $(ONNX_PROTO)
	@mkdir -p $(B)/gen
	@test -n "$<" || { echo "onnx.proto not found: apt-get install libonnx-dev" >&2; exit 1; }
	@command -v protoc-c >/dev/null || \
	    { echo "protoc-c not found: apt-get install protobuf-c-compiler" >&2; exit 1; }
	@cd $(dir $<) && protoc-c --c_out=$(abspath $(B)/gen) $(notdir $<)

# ---- 5. rules ----
binary: $(B)/ridge $(PLUGIN_SO) $(if $(filter build/release,$(B)),ridge)
ridge: $(B)/ridge
	@ln -sf $< $@

$(B)/ridge: $(MAIN_OBJ) $(OBJ)
	$(call say,LINK $@)
	@$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LDLIBS_ALL)

$(B)/libridge.a: $(OBJ)
	@rm -f $@.new; $(AR) rcsT $@.new $^; mv $@.new $@

$(B)/gen/%.o: $(B)/gen/%.c $(B)/gen/flags
	@$(CC) -I. -I$(B)/gen $(OPT) -fPIE -c -o $@ $<

$(B)/libplugin.a: $(PLUGIN_LIB:%.c=$(B)/%.o)
	@rm -f $@; $(AR) rcs $@ $^

# Says what a recipe makes, and creates its folder the first time: a shell per file would take 2 s of a build.
say = $(info $(1))$(if $(made.$(@D)),,$(eval made.$(@D) := 1)$(shell mkdir -p $(@D)))

# Programs and plug-ins link the same objects.
CODE := -fPIC -fvisibility=hidden
$(B)/%.o: %.c $(B)/gen/flags | $(GEN)
	$(call say,CC   $<)
	@$(COMPILE) $(CFLAGS_TEST) $(CODE) -c -o $@ $<

# The only C++: toml++ behind a C interface. Its header costs what the C warnings would complain of,
# and these two checks need the C++ half of a sanitizer's library, which a C link does not have.
NO_CXX_CHECKS = -fno-sanitize=vptr$(if $(findstring clang,$(CC)),$(comma)function)
$(B)/%.o: %.cpp $(B)/gen/flags
	$(call say,CXX  $<)
	@$(CXX_OF) -I. -std=c++17 -Wall -Wextra $(if $(WERROR),-Werror) $(OPT) \
	    $(if $(SANITIZED),$(NO_CXX_CHECKS)) -fPIE -MMD -MP -c -o $@ $<

# Their common header is compiled once per instruction set: <immintrin.h> alone takes 0.25 s.
define isa_rule
$(B)/gen/simd.$(1).h.gch: engine/kernels/lib/simd.h $(B)/gen/flags
	$$(call say,CC   $$< ($(1)))
	@echo '#include "$$<"' > $(B)/gen/simd.$(1).h
	@$(COMPILE) -fPIE $(ISA_$(1)) -x c-header -c -o $$@ $(B)/gen/simd.$(1).h
$(B)/%.$(1).o: %.c $(B)/gen/simd.$(1).h.gch | $(GEN)
	$$(call say,CC   $$< ($(1)))
	@$(COMPILE) -fPIE $(ISA_$(1)) -include $(B)/gen/simd.$(1).h -c -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call isa_rule,$i)))

# A plug-in sees nothing of ridge but its header and libplugin.a: what it leaves undefined must be in its library.
# As needed: the OpenBLAS plug-in opens its library itself, after choosing its kernels.
define plugin_rule
$(B)/plugins/$(1).so: $$(patsubst %.c,$(B)/pic/%.o,$$(wildcard $(2)/*.c $(2)/lib/*.c)) \
    $$(if $$(filter cuda,$(1)),$$(CUDA_OBJ)) $(B)/libplugin.a
	$$(call say,LINK $$@)
	@$(CC) $(LDFLAGS_ALL) -shared -Wl,-z,defs,--as-needed -o $$@ $$^ $(3) -lm
endef
$(foreach f,$(FEATURES),$(eval $(call plugin_rule,$(PLUGIN_$f),engine/kernels/$(PLUGIN_$f),$(LIBS_$f))))
$(eval $(call plugin_rule,profilers/papi,profilers/plugins/papi,$(LIBS_PAPI)))
$(eval $(call plugin_rule,data/jpeg,workloads/data/jpeg,$(LIBS_JPEG)))
$(eval $(call plugin_rule,profilers/cupti,profilers/plugins/cupti,-ldl))
# What backends behind plug-ins link of collective/.
COLLECTIVE_LIB := $(addprefix collective/,message.c combine.c half_x86.c) base/system/clock.c
define mpi_rule
$(B)/mpi/$(1)/%.o: %.c $(B)/gen/flags | $(GEN)
	$$(call say,CC   $$< ($(1)))
	@$(COMPILE) $(2) -DMPI_NAME='"$(1)"' -fPIC -fvisibility=hidden -c -o $$@ $$<
$(B)/plugins/collective/$(1).so: $$(patsubst %.c,$(B)/mpi/$(1)/%.o,$$(filter-out %/wait_inside.c,$$(wildcard \
    collective/plugins/mpi/*.c))) $(COLLECTIVE_LIB:%.c=$(B)/%.o) $(B)/libplugin.a
	$$(call say,LINK $$@)
	@$(CC) $(LDFLAGS_ALL) -shared -Wl,-z,defs,--as-needed -o $$@ $$^ $(3) -lm
endef
$(foreach f,OPENMPI MPICH,$(eval $(call mpi_rule,$(PLUGIN_$f),$(filter -I% -D% -isystem%,$(LIBS_$f)),$(LIBS_$f))))
$(B)/plugins/collective/nccl.so: $(patsubst %.c,$(B)/pic/%.o,$(wildcard collective/plugins/nccl/*.c)) \
    $(B)/base/system/clock.o $(B)/libplugin.a
	$(call say,LINK $@)
	@$(CC) $(LDFLAGS_ALL) -shared -Wl,-z,defs -o $@ $^ -ldl
# Simulated ranks: everything of collective/ against SimGrid's MPI, a program that smpirun loads once for each.
SMPI_HELPERS = $(firstword $(wildcard /usr/include/smpi/smpi_helpers.h /usr/local/include/smpi/smpi_helpers.h))
# Sources without clocks, memory of their own and MPI need not be compiled against SimGrid's.
SMPI_LIB := $(addprefix collective/,combine.c half_x86.c wire.c) $(wildcard collective/algorithms/*.c) engine/graph/tensor.c engine/run/comm.c \
    $(addprefix base/,error.c clean.c numbers/random.c numbers/stats.c numbers/distribution.c system/cpus.c system/file.c system/hash.c system/library.c system/plugin_open.c)
SMPI_SRC := $(filter-out collective/group.c $(SMPI_LIB),$(wildcard collective/*.c)) $(wildcard collective/backends/*.c collective/simulate/*.c) $(filter-out %/wait_outside.c %/plugin.c,$(wildcard collective/plugins/mpi/*.c)) \
    $(addprefix base/,arena.c memory.c system/clock.c system/plugin_files.c)
$(B)/simulated/%.o: %.c $(B)/gen/flags | $(GEN)
	$(call say,CC   $< (simulated))
	@$(COMPILE) -DMPI_NAME='"simulated"' -include $(SMPI_HELPERS) -isystem $(dir $(SMPI_HELPERS)) -fPIC -c -o $@ $<
$(B)/plugins/collective/simulated/ranks.so: $(SMPI_SRC:%.c=$(B)/simulated/%.o) $(SMPI_LIB:%.c=$(B)/%.o)
	$(call say,LINK $@)
	@$(CC) $(LDFLAGS_ALL) -shared -Wl,-z,defs -o $@ $^ -lsimgrid -lm -ldl -pthread
$(VENDOR_SO): $(patsubst %.c,$(B)/pic/%.o,tests/gpu/vendor/cublaslt.c tests/gpu/fake_cublaslt.c \
    tests/gpu/fake_device.c engine/kernels/cublaslt/lib/api.c engine/kernels/cublaslt/lib/product.c \
    engine/kernels/cublaslt/lib/hooks.c engine/kernels/cublaslt/lib/algorithms.c \
    $(wildcard engine/kernels/cublaslt/*.c)) $(B)/libplugin.a
	$(call say,LINK $@)
	@$(CC) $(LDFLAGS_ALL) -shared -Wl,-z,defs -o $@ $^ -ldl -lm
$(SAMPLE_SO): $(B)/%.so: $(B)/pic/%.o
	$(call say,LINK $@)
	@$(CC) $(LDFLAGS_ALL) -shared -Wl,-z,defs -o $@ $^
$(B)/tests/cupti_fake/fake.so: $(patsubst %.c,$(B)/pic/%.o,$(wildcard tests/cupti_fake/*.c) tests/lib/device_symbol.c)
	$(call say,LINK $@)
	@$(CC) $(LDFLAGS_ALL) -shared -Wl,-z,defs -o $@ $^
$(B)/tests/nccl_fake/libnccl.so.2: $(patsubst %.c,$(B)/pic/%.o,$(wildcard tests/nccl_fake/*.c) tests/lib/device_symbol.c) \
    $(addprefix $(B)/collective/,combine.o half_x86.o) $(B)/libplugin.a
	$(call say,LINK $@)
	@$(CC) $(LDFLAGS_ALL) -shared -Wl,-z,defs,-soname,libnccl.so.2 -o $@ $^ -ldl -pthread -lm
$(B)/pic/%.o: %.c $(B)/gen/flags | $(GEN)
	$(call say,CC   $< (plug-in))
	@$(COMPILE) -fPIC -fvisibility=hidden $(foreach w,$(subst /, ,$*),$(CFLAGS_$w)) -c -o $@ $<

# CUDA C. What the compiler says of registers and spills per kernel is kept beside each object and,
# together, in cuda_usage.txt. C++14, because the headers of later standards take longer than the code
# of a small file. -O1: the host's half only plans and launches.
CUDA_CODE = $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) -gencode \
    arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
NVCC_ALL  = $(NVCC) -std=c++14 -O3 -I. -I$(B)/gen $(CUDA_CODE) --compress-mode=size -Werror all-warnings -Xptxas -v \
    -Xcompiler -O1,-fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-missing-field-initializers $(NVCCFLAGS)
# Instructions that some chips lack: no code for those, so that none can be loaded there. wgmma is that of
# one family alone.
$(B)/pic/engine/kernels/cuda/roofs/mma_f8.o: private CUDA_CODE = $(foreach a,89 90 100,-gencode \
    arch=compute_$a,code=sm_$a) -gencode arch=compute_100,code=compute_100
$(B)/pic/engine/kernels/cuda/roofs/wgmma.o: private CUDA_CODE = -gencode arch=compute_90a,code=sm_90a
$(B)/gen/cuda_flags: FORCE
	@mkdir -p $(@D); echo '$(strip $(NVCC_ALL))' > $@.new; $(replace)
define compile_cuda
$(call say,NVCC $(<:$(B)/pic/%=%))
@$(NVCC_ALL) -MMD -MP -c -o $@ $< 2>$@.usage || { cat $@.usage >&2; exit 1; }
endef
$(B)/pic/%.o: %.cu $(B)/gen/cuda_flags | $(GEN)
	$(compile_cuda)
# Each of a unit's kernels is in a namespace of its own.
$(CUDA_UNITS:.o=.cu): $(B)/pic/%.cu: FORCE
	@mkdir -p $(@D); files='$(patsubst %,$(*D)/%.cu,$(subst +, ,$(*F)))'; \
	    { grep -h '^#include' $$files | sort -u; \
	      for f in $$files; do echo "namespace file_$$(basename $$f .cu) {"; echo "#include \"$$f\""; echo "}"; done; } >$@.new; $(replace)
$(CUDA_UNITS): %.o: %.cu $(B)/gen/cuda_flags | $(GEN)
	$(compile_cuda)
$(B)/cuda_usage.txt: $(CUDA_OBJ)
	@cat $(^:=.usage) | c++filt >$@
$(if $(HAVE_CUDA),$(B)/plugins/cuda.so: | $(B)/cuda_usage.txt)

$(HOST_CUDA_SO): $(CUDA_KERNELS:%.cu=$(B)/host/%.o) $(B)/base/system/clock.o $(patsubst %.c,$(B)/pic/%.o,\
    $(filter-out %/api_cudart.c,$(wildcard engine/kernels/cuda/lib/*.c)) $(wildcard tests/gpu/host/*.c)) $(B)/libplugin.a
	$(call say,LINK $@)
	@$(CXX_OF) $(LDFLAGS_ALL) -shared -Wl,-z,defs -o $@ $^ -pthread -lm
$(WATCH_CASES): $(B)/host/tests/gpu/watch_cases.o $(B)/base/system/clock.o $(patsubst %.c,$(B)/pic/%.o,\
    $(filter-out %/api.c,$(wildcard tests/gpu/host/*.c))) $(B)/libplugin.a
	$(call say,LINK $@)
	@$(CXX_OF) $(LDFLAGS_ALL) -o $@ $^ -pthread -lm
# Each access to memory is a call of tests/gpu/host/watch.c, which stands where the sanitizer's library would.
HOST_WATCH = -fsanitize=thread $(if $(findstring clang,$(CC)),$(addprefix -mllvm ,-tsan-distinguish-volatile \
    -tsan-instrument-func-entry-exit=0),--param tsan-distinguish-volatile=1 --param tsan-instrument-func-entry-exit=0)
$(B)/host/%.o: %.cu $(wildcard tests/gpu/host/*.h) $(B)/gen/flags | $(GEN)
	$(call say,CXX  $< (for the host))
	@$(CXX_OF) -x c++ -std=c++20 -I. -I$(B)/gen -include tests/gpu/host/cuda_host.h -Wall -Wextra \
	    -Wno-missing-field-initializers -Wno-unknown-pragmas -Wno-unused-function \
	    -Wno-pass-failed $(if $(WERROR),-Werror) -O2 -fno-tree-vectorize -g -fPIC $(HOST_WATCH) \
	    -ffp-contract=off -fvisibility=hidden -fno-exceptions -MMD -MP -c -o $@ $<

# clang-tidy of one file, after its object, so that a changed header counts.
TIDY := $(patsubst %.c,$(B)/%.tidy,$(SRC) $(filter tests/%.c,$(TEST_BIN:$(B)/%=%.c) $(TEST_LIB:$(B)/%.o=%.c) $(UNIT_LIB:$(B)/%.o=%.c)) \
          $(foreach f,$(PRESENT),$(addsuffix .c,$(TESTS_$f))))
tidy: $(TIDY)
$(B)/%.tidy: %.c $(B)/%.o .clang-tidy
	@clang-tidy --quiet $< -- $(CPPFLAGS_ALL) $(CFLAGS_TEST) -std=c11 2>/dev/null
	@touch $@

# A fuzz target runs over its seeds and damaged copies of them, or, CONFIG=fuzz, under libFuzzer.
FUZZ_MAIN := $(if $(filter fuzz,$(CONFIG)),-fsanitize=fuzzer,$(B)/tests/fuzz/lib/replay.o)
fuzz-programs: $(FUZZ_BIN)
$(FUZZ_BIN): $(B)/%: $(B)/%.o $(filter %.o,$(FUZZ_MAIN)) $(TEST_LIB) $(B)/libridge.a
	$(call say,LINK $@)
	@$(CC) $(LDFLAGS_ALL) -pie -o $@ $< $(FUZZ_MAIN) $(TEST_LIB) $(B)/libridge.a $(LDLIBS_ALL)

test-programs: $(TEST_BIN) $(PLUGIN_TESTS:%=$(B)/%) $(SAMPLE_SO) $(FAKE_SO) $(FUZZ_BIN) $(HOST_CUDA_SO) $(WATCH_CASES) \
               $(VENDOR_SO)
$(filter $(B)/tests/unit/%,$(TEST_BIN) $(PLUGIN_TESTS:%=$(B)/%)): $(UNIT_LIB)
$(TEST_BIN) $(ORACLE_BIN): $(B)/%: $(B)/%.o $(TEST_LIB) $(B)/libridge.a
	$(call say,LINK $@)
	@$(CC) $(LDFLAGS_ALL) -pie -o $@ $(filter %.o,$^) $(B)/libridge.a $(if $(findstring /unit/,$@),-lcmocka) $(LDLIBS_ALL)

# Its calls of the allocator go through functions of its own.
$(B)/tests/unit/test_no_memory: private LDFLAGS_ALL += $(foreach f,malloc calloc realloc aligned_alloc posix_memalign free,-Wl,--wrap=$f)

# Where the library is absent the test is a script that says so.
define plugin_test_rule
$(1:%=$(B)/%.o) $(1:%=$(B)/%.tidy) $(FAKE_$(3):%=$(B)/%.o): CFLAGS_TEST = $$(CFLAGS_$(2))
ifneq ($(HAVE_$(3)),)
$(1:%=$(B)/%): $(B)/%: $(B)/%.o $(PLUGIN_TEST_LIB) $(FAKE_$(3):%=$(B)/%.o) $$(patsubst %.c,$(B)/pic/%.o,$$(wildcard engine/kernels/$(2)/*.c \
    engine/kernels/$(2)/lib/*.c)) $(TEST_LIB) $(B)/libridge.a
	$$(call say,LINK $$@)
	@$(CC) $(LDFLAGS_ALL) -pie -o $$@ $$(filter %.o,$$^) $(B)/libridge.a -lcmocka $(LDLIBS_ALL) $(CUDA_LDFLAGS)
else
$(1:%=$(B)/%): $(B)/gen/features.mk
	@mkdir -p $$(@D); printf '#!/bin/sh\necho "skipped: no $(2) when this was built"\nexit 77\n' > $$@; chmod +x $$@
endif
endef
$(foreach f,$(FEATURES),$(if $(TESTS_$f),$(eval $(call plugin_test_rule,$(filter $(PLUGIN_TESTS),$(TESTS_$f)),$(PLUGIN_$f),$f))))

-include $(shell find $(B) -name '*.d' 2>/dev/null)

# ---- 6. habits ----
# What suite.toml names: the suite quick and a small scaling curve. Exit code 4: some numbers are not to be trusted (a disturbed machine); the run
# and its report say which and why, so the goal is reached all the same.
run:
	@./setup.sh run
	$(SUBMAKE) binary
	./ridge run || [ $$? -eq 4 ]
	@test -s out/ridge.db && echo "results: out/ridge.db   report: out/report/index.html"

# T=pattern runs only the test programs whose path contains it; CONFIG=asan and so on as usual. Under a
# sanitizer the libraries of CUDA are not opened: they leak, and bind in ways that it does not bear.
test:
	@./setup.sh test
	$(SUBMAKE) binary test-programs
	@$(if $(SANITIZED),RIDGE_TEST_VENDORS=0) tools/run_tests.sh $(B) '$(T)' $(TEST_LIST)
# What needs a real GPU; exit code 5 where there is none. T=cuda:1 takes another one.
test-gpu:
	$(SUBMAKE) binary test-programs
	@tools/test_gpu.sh $(B) $(or $(T),cuda)
# A folder for a machine that has a GPU and no package manager: docs/gpu.md. CUDA_ARCHS=90: for those chips alone.
gpu-kit:
	$(SUBMAKE) binary $(B)/tests/ops/run $(B)/tests/device/run $(B)/tests/unit/test_device
	@tools/gpu_kit.sh $(B) gpu-kit
# The same models in PyTorch on the same GPU; exit code 77 without it. O: options.
compare-gpu:
	$(SUBMAKE) binary
	python3 tests/gpu/compare_torch.py --ridge $(B)/ridge $(O)
# Graphs, steps, costs and exported files of all workloads against tests/golden/ (also in make test).
replay replay-update:
	$(SUBMAKE) $(B)/tests/golden/run
	@RIDGE_BUILD=$(B) $(B)/tests/golden/run $(if $(filter replay-update,$@),--update)
test-long:
	$(SUBMAKE) test LONG=1 RIDGE_FUZZ_SECONDS=60 RIDGE_TEST_TIMEOUT=3600
# SimGrid loads the program into a process of its own, into which AddressSanitizer comes too late.
asan:
	$(SUBMAKE) test CONFIG=asan RIDGE_TEST_TIMEOUT=3600 WITH_SIMGRID=0
# No plug-ins: ThreadSanitizer knows nothing of the synchronisation inside libraries and OpenMP.
tsan:
	$(SUBMAKE) test CONFIG=tsan RIDGE_TEST_TIMEOUT=3600 $(WITHOUT)
have-not:
	$(SUBMAKE) test CONFIG=have-not $(WITHOUT)
# TIME: seconds per target; what libFuzzer finds and learns stays in build/fuzz.
TIME ?= 60
fuzz:
	$(SUBMAKE) fuzz-programs CONFIG=fuzz CC=clang $(WITHOUT) ISAS=scalar
	@for target in $(notdir $(FUZZ_BIN)); do mkdir -p build/fuzz/corpus/$$target; \
	    build/fuzz/tests/fuzz/$$target -max_total_time=$(TIME) -print_final_stats=1 \
	        -artifact_prefix=build/fuzz/$$target- build/fuzz/corpus/$$target \
	        $$(ls -d tests/fuzz/seeds/$${target#fuzz_} 2>/dev/null) || exit 1; done
clang:
	$(SUBMAKE) binary test-programs CONFIG=clang CC=clang WERROR=1

# Outside judges: ONNX Runtime and OpenVINO on the models that ridge exports. O=options.
VENV := build/venv
oracle:
	$(SUBMAKE) binary
	@test -x $(VENV)/bin/python || { python3 -m venv $(VENV) && \
	    $(VENV)/bin/pip install -q numpy onnx onnxruntime openvino; }
	$(SUBMAKE) $(ORACLE_BIN)
	@if /usr/bin/python3 -c 'import torch, onnx' 2>/dev/null; then \
	    /usr/bin/python3 tests/oracle/gradients.py --program $(ORACLE_BIN) && \
	    /usr/bin/python3 -W ignore tests/oracle/optimisers.py --check tests/golden/optimisers.txt; \
	    else echo "no gradients: apt-get install python3-torch python3-onnx" >&2; fi
	@if /usr/bin/python3 -c 'import torch, torchvision, onnx' 2>/dev/null; then \
	    /usr/bin/python3 tests/oracle/export_torch.py build/foreign; \
	    else echo "no foreign graphs: apt-get install python3-torch python3-torchvision python3-onnx" >&2; fi
	@if $(VENV)/bin/python -c 'import torch, transformers, onnx' 2>/dev/null; then \
	    $(VENV)/bin/python -W ignore tests/oracle/decoders.py --ridge $(B)/ridge; \
	    else echo "no decoders: $(VENV)/bin/pip install torch transformers" >&2; fi
	@if $(VENV)/bin/python -c 'import torch, torchvision, onnx' 2>/dev/null; then \
	    $(VENV)/bin/python -W ignore tests/oracle/vit.py --ridge $(B)/ridge; \
	    else echo "no vision transformer: $(VENV)/bin/pip install torch torchvision" >&2; fi
	@if $(VENV)/bin/python -c 'import torch, onnx' 2>/dev/null; then \
	    $(VENV)/bin/python -W ignore tests/oracle/dlrm_dcnv2.py --ridge $(B)/ridge; \
	    else echo "no recommender: $(VENV)/bin/pip install torch" >&2; fi
	$(VENV)/bin/python tests/oracle/oracle.py --ridge $(B)/ridge --foreign build/foreign $(O)

# Steps of training in turns with PyTorch. O=rows and options, such as another --python that has torch.
compare-training:
	$(SUBMAKE) binary
	$(SUBMAKE) $(ORACLE_BIN)
	/usr/bin/python3 tests/oracle/training_turns.py --program $(ORACLE_BIN) --ridge $(B)/ridge $(O)

# Training on two ranks in turns with PyTorch's DistributedDataParallel. O=rows and options.
compare-ranks:
	$(SUBMAKE) binary
	$(SUBMAKE) $(ORACLE_BIN)
	/usr/bin/python3 tests/oracle/ranks_turns.py --program $(ORACLE_BIN) --ridge $(B)/ridge $(O)

check:
	@./setup.sh check
	@tools/check.sh
fmt:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cu')
setup:
	./setup.sh all
clean:
	rm -rf build ridge

help:
	@echo "make            builds ./ridge"
	@echo "make run        installs what is missing, builds, measures the default suite, writes out/report/"
	@echo "make test       all tests; T=pattern picks some; the last line sums them up"
	@echo "make replay     what every workload comes to before timing, against tests/golden/; replay-update: writes it anew"
	@echo "make test-long  the same with the long cases"
	@echo "make test-gpu   what needs a GPU: executables, kernels, workloads on it"
	@echo "make gpu-kit    gpu-kit/, what test-gpu and compare-gpu need on a machine that has nothing but a GPU"
	@echo "make compare-gpu  the same models in PyTorch on the same GPU, in turns"
	@echo "make asan tsan  all tests under the sanitizers"
	@echo "make have-not   all tests without any optional library"
	@echo "make fuzz       every fuzz target under libFuzzer, TIME=60 seconds each (needs clang)"
	@echo "make oracle     the same models in ONNX Runtime and OpenVINO: results and times"
	@echo "make compare-training  steps of training in PyTorch, in turns; O=\"resnet50@8 --threads 1\""
	@echo "make compare-ranks  the same on two ranks, with DistributedDataParallel over Gloo"
	@echo "make clang      builds everything with clang, warnings being errors"
	@echo "make check      style, floors, headers, globals, sizes, names, static analysis"
	@echo "make fmt        clang-format over all files"
	@echo "make features   which optional libraries were found; setup: installs all packages"
	@echo "make test-programs  builds the tests and runs none; clean: removes what was built"
	@echo "Knobs: CONFIG=release|debug|asan|tsan  CC=gcc|clang  WERROR=1  JOBS=n"
	@echo "       $(foreach f,$(FEATURES),WITH_$f=auto|0|1)"
	@echo "       CUDA_ARCHS='80 90 100'  NVCC=/path/to/nvcc  CUDA_HOME=folder  CUPTI_HOME=folder"
