# SPDX-License-Identifier: Apache-2.0
# Ridge: one Makefile, not recursive. `make help` lists what it can do.

# ---- 1. knobs ----
CONFIG ?= release
CC     ?= gcc
B      := build/$(CONFIG)
ifeq ($(origin CC),default)
CC := gcc
endif

WARN := -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion \
        -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings -Wcast-qual -Wundef \
        -Wformat=2 -Wimplicit-fallthrough -fno-common
OPT_release := -O2 -g
OPT_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_tsan    := -O1 -g -fsanitize=thread
OPT_have-not := $(OPT_release)
OPT_clang   := -O2 -g
OPT  := $(OPT_$(CONFIG))
CPPFLAGS += -I. -I$(B)/gen -D_POSIX_C_SOURCE=200809L
CFLAGS_ALL = $(WARN) $(if $(WERROR),-Werror) $(OPT) -fPIE $(CFLAGS)
LDLIBS_ALL = -pthread -lm -ldl -lprotobuf-c $(LDLIBS)
LDFLAGS_ALL = $(OPT) -pie $(LDFLAGS)

# Instruction sets that native kernels are compiled for: suffix and flags.
ISAS := scalar
ifeq ($(shell uname -m),x86_64)
ISAS += avx2 avx512
endif
ISA_scalar := -O3 -fno-math-errno
ISA_avx2   := -O3 -mavx2 -mfma -mf16c -fno-math-errno
ISA_avx512 := -O3 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mprefer-vector-width=512 -fno-math-errno

# ---- 2. sources ----
CORE_DIRS := base engine engine/ops engine/passes engine/onnx workloads workloads/lib workloads/vision \
             workloads/recommendation workloads/language harness harness/cmd
CORE_SRC   := $(sort $(wildcard $(addsuffix /*.c,$(CORE_DIRS))))
KERNEL_SRC := $(sort $(wildcard engine/kernels/cpu/*.c))
KLIB_SRC   := $(sort $(wildcard engine/kernels/lib/*.c))
MAIN_OBJ   := $(B)/harness/main.o
CORE_OBJ   := $(filter-out $(MAIN_OBJ),$(CORE_SRC:%.c=$(B)/%.o)) $(B)/gen/onnx.pb-c.o
SIMD_OBJ   := $(foreach isa,$(ISAS),$(patsubst %.c,$(B)/%.$(isa).o,$(KERNEL_SRC) $(KLIB_SRC)))
OBJ        := $(CORE_OBJ) $(SIMD_OBJ)

.PHONY: all run test check clean help
all: ridge

# ---- 3. registries: one line per file of a folder ----
names = $(sort $(basename $(notdir $(wildcard $(addsuffix /*.c,$(1))))))
GEN := $(addprefix $(B)/gen/,op_list.inc kernel_list.inc workload_list.inc command_list.inc)
LIST_op       := $(call names,engine/ops)
LIST_kernel   := $(foreach k,$(call names,engine/kernels/cpu),$(foreach i,$(ISAS),$(k)_$(i)))
LIST_workload := $(call names,workloads/vision workloads/recommendation workloads/language)
LIST_command  := $(call names,harness/cmd)

# Rewritten only when the list changes.
$(B)/gen/%_list.inc: FORCE
	@mkdir -p $(@D)
	@printf 'X(%s)\n' $(LIST_$*) > $@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
.PHONY: FORCE
FORCE:

ONNX_PROTO := $(firstword $(wildcard /usr/include/onnx/onnx.proto))
$(B)/gen/onnx.pb-c.c $(B)/gen/onnx.pb-c.h &: $(ONNX_PROTO)
	@mkdir -p $(B)/gen
	@cd $(dir $(ONNX_PROTO)) && protoc-c --c_out=$(abspath $(B)/gen) onnx.proto

# ---- 4. rules ----
ridge: $(B)/ridge
	@cmp -s $< $@ || cp $< $@

$(B)/ridge: $(MAIN_OBJ) $(OBJ)
	@echo "LINK $@"
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(B)/gen/onnx.pb-c.o: $(B)/gen/onnx.pb-c.c
	@$(CC) -I$(B)/gen $(OPT) -fPIE -c -o $@ $<

$(B)/%.o: %.c | $(GEN) $(B)/gen/onnx.pb-c.h
	@mkdir -p $(@D)
	@echo "CC   $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

define isa_rule
$(B)/%.$(1).o: %.c | $(GEN)
	@mkdir -p $$(@D)
	@echo "CC   $$< ($(1))"
	@$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(ISA_$(1)) -MMD -MP -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))

$(B)/engine/op.o: $(B)/gen/op_list.inc
$(B)/engine/kernel.o: $(B)/gen/kernel_list.inc
$(B)/workloads/workload.o: $(B)/gen/workload_list.inc
$(B)/harness/command.o: $(B)/gen/command_list.inc

-include $(shell find $(B) -name '*.d' 2>/dev/null)

clean:
	rm -rf build ridge
