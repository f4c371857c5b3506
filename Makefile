# svrun: four programs in out/:
#   svrun        the command; static, because dynamic loading costs more than starting a container
#   svrun-oci    the OCI runtime alone, for engines; static and small for the same reason
#   svrun-image  the verbs of `svrun image` that fetch, unpack and compress; svrun execs it
#   svrun-gpu-probe  asks NVIDIA's driver library, which it loads; svrun runs it with a deadline
CC      ?= gcc
AR      ?= ar
O       ?= out
V       := $(shell cat VERSION)
PREFIX  ?= /usr/local
PKGS    := jansson libzstd libcrypto lmdb yaml-0.1
PKGS_RUN := libseccomp libcap
PKGS_IMAGE := libarchive libcurl libisal zlib

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion \
	-Wformat=2 -Wcast-qual -Wundef -Wvla -Wnull-dereference
CFLAGS ?= -O2 -g
FORTIFY ?= -D_FORTIFY_SOURCE=2
CPPFLAGS += -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DSVRUN_VERSION='"$(V)"' $(FORTIFY)
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) $(PKGS_RUN) $(PKGS_IMAGE) 2>/dev/null)
ALL_CFLAGS = -std=gnu17 $(WARN) -fstack-protector-strong -fPIE -pthread $(CFLAGS) $(PKG_CFLAGS)
LDFLAGS_ALL = -pthread -Wl,-z,relro,-z,now $(SAN) $(LDFLAGS)
STATIC ?= -static-pie
# Where svrun-oci begins: svrun/oci-entry.c. (svrun looks for svrun-image beside its own file first.)
comma := ,
ifneq ($(and $(filter -static-pie,$(STATIC)),$(findstring x86_64,$(shell $(CC) -dumpmachine))),)
ENTRY := -Wl$(comma)--entry=svrun_start,--undefined=svrun_start
endif

# Which folders a folder may use; scripts/check-deps checks the same table in the includes.
USES_base := base
USES_runtime := runtime base
USES_gpu := gpu base
USES_images := images base
USES_builder := builder images runtime base
USES_svrun := svrun builder images gpu runtime base

# svrun/main-*.c are the two main files; the rest of svrun/ is split by program.
MAINS  := $(wildcard svrun/main-*.c)
dirobj  = $(patsubst %.c,$(O)/obj/%.o,$(filter-out $(MAINS),$(wildcard $(1)/*.c))) \
	$(patsubst %.S,$(O)/obj/%.o,$(wildcard $(1)/*.S))
lib     = $(O)/obj/lib$(1).a

all: $(O)/svrun $(O)/svrun-oci $(O)/svrun-image $(O)/svrun-gpu-probe

$(foreach d,base images builder gpu runtime svrun,$(eval $(call lib,$d): $(call dirobj,$d)))
$(O)/obj/lib%.a:
	@mkdir -p $(@D)
	@rm -f $@
	@echo "AR $@"; $(AR) rcs $@ $^

$(O)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "CC $<"; $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(SAN) -MMD -MP -c $< -o $@

# A file of another language that is a string in a program.
$(O)/obj/%.o: %.S %.pl
	@mkdir -p $(@D)
	@echo "AS $<"; $(CC) -c $< -o $@

$(O)/svrun: $(O)/obj/svrun/main-svrun.o $(foreach d,svrun gpu runtime images base,$(call lib,$d))
	@echo "LD $@"; $(CC) $(STATIC) $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --static --libs jansson libseccomp libcap lmdb libzstd yaml-0.1) -lcrypto -lm

$(O)/svrun-oci: $(O)/obj/svrun/main-oci.o $(foreach d,svrun gpu runtime base,$(call lib,$d))
	@echo "LD $@"; $(CC) $(STATIC) $(ENTRY) $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --static --libs jansson libseccomp yaml-0.1) -lm

$(O)/svrun-image: $(O)/obj/svrun/main-image.o $(foreach d,svrun builder images gpu runtime base,$(call lib,$d))
	@echo "LD $@"; $(CC) -pie $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --libs $(PKGS) $(PKGS_RUN) $(PKGS_IMAGE)) -lm

# Of libraries it needs libc's alone: it is to start on any host that has a driver.
$(O)/svrun-gpu-probe: $(O)/obj/svrun/main-gpu-probe.o $(call lib,base)
	@echo "LD $@"; $(CC) -pie $(LDFLAGS_ALL) -o $@ $^ -l:libjansson.a -ldl

# tests/unit/test_<module>.c links what the module's own folder may use.
# A test may dereference what it has just asserted; the compiler does not know that asserts return.
$(O)/obj/tests/%.o: WARN += -Wno-null-dereference
TESTS := $(patsubst tests/unit/%.c,$(O)/tests/%,$(wildcard tests/unit/test_*.c))
folder = $(firstword $(foreach d,base images gpu runtime builder svrun,$(if $(wildcard $(d)/$(1).c),$(d))) builder)
define test_rule
$(O)/tests/test_$(1): $(O)/obj/tests/unit/test_$(1).o $(foreach d,$(USES_$(call folder,$(1))),$(call lib,$(d)))
	@mkdir -p $$(@D)
	@echo "LD $$@"; $$(CC) -pie $$(LDFLAGS_ALL) -o $$@ $$^ $$(shell pkg-config --libs $(PKGS) $(PKGS_RUN) $(PKGS_IMAGE) cmocka) -lm
endef
$(foreach t,$(TESTS),$(eval $(call test_rule,$(patsubst test_%,%,$(notdir $(t))))))

unit: $(TESTS)

check: 
	@scripts/check

quickstart:
	@scripts/quickstart

# tests/vm/*.bats in a virtual machine with Debian's kernel and systemd.
check-vm: all
	@scripts/vm test || [ $$? = 77 ]

# What scripts/bench measures beside other tools.
BENCH := $(patsubst tests/bench/%.c,$(O)/bench/%,$(wildcard tests/bench/*.c))
$(O)/bench/%: $(O)/obj/tests/bench/%.o $(foreach d,images base,$(call lib,$d))
	@mkdir -p $(@D)
	@echo "LD $@"; $(CC) -pie $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --libs $(PKGS) $(PKGS_RUN) $(PKGS_IMAGE)) -lm

bench-programs: $(BENCH)
bench: all
	@scripts/bench

# Warnings that guess at values guess wrongly between the checks that sanitizers put in.
NOISE := -Wno-format-truncation -Wno-null-dereference -Wno-maybe-uninitialized
asan:
	$(MAKE) O=out/asan STATIC=-pie FORTIFY= CFLAGS="-O1 -g $(NOISE)" \
		SAN="-fsanitize=address,undefined -fno-sanitize-recover=all" all unit

tsan:
	$(MAKE) O=out/tsan STATIC=-pie FORTIFY= CFLAGS="-O1 -g $(NOISE)" SAN="-fsanitize=thread" all unit

# Every tests/fuzz/fuzz_X.c for FUZZ_SECONDS, starting from its corpus in tests/data/fuzz/X.
FUZZ_SECONDS ?= 60
FUZZ := $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
$(O)/fuzz/%: $(O)/obj/tests/fuzz/%.o $(foreach d,svrun builder images gpu runtime base,$(call lib,$d))
	@mkdir -p $(@D)
	@echo "LD $@"; $(CC) -pie -fsanitize=fuzzer $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --libs $(PKGS) $(PKGS_RUN) $(PKGS_IMAGE)) -lm
fuzz-all: $(FUZZ)
fuzz:
	$(MAKE) O=out/sanfuzz CC=clang STATIC=-pie FORTIFY= CFLAGS="-O1 -g" \
		SAN="-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all" fuzz-all
	@scripts/fuzz out/sanfuzz/fuzz $(FUZZ_SECONDS)

# svrun-oci killed at each of its system calls, for half an hour.
soak: $(O)/svrun-oci
	@OCI=$(abspath $(O)/svrun-oci) scripts/soak-oci long

tidy: all
	@scripts/tidy

install: all
	install -D -m 0755 $(O)/svrun $(DESTDIR)$(PREFIX)/bin/svrun
	install -D -m 0755 $(O)/svrun-oci $(DESTDIR)$(PREFIX)/bin/svrun-oci
	install -D -m 0755 $(O)/svrun-image $(DESTDIR)$(PREFIX)/libexec/svrun/svrun-image
	install -D -m 0755 $(O)/svrun-gpu-probe $(DESTDIR)$(PREFIX)/libexec/svrun/svrun-gpu-probe

clean:
	rm -rf out

-include $(shell find $(O)/obj -type f -name '*.d' 2>/dev/null)
.PHONY: soak bench-programs all unit fuzz fuzz-all check check-vm quickstart bench asan tsan tidy install clean
