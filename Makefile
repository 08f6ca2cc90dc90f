# SPDX-License-Identifier: MIT
# Curtsy.  `make` builds the library and the command; `make help` lists the rest.

CC ?= cc
PYTHON ?= /usr/bin/python3
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DATADIR ?= $(PREFIX)/share/curtsy
DESTDIR ?=
BUILD ?= build
VERSION := 0.1.0
JOBS ?= 8

OPTIMISE ?= -O2 -g
SANITIZE ?=
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
            -Wwrite-strings -Wvla -Wno-pedantic -Werror=implicit-function-declaration
# -fexceptions: C++ exceptions of a program's callbacks pass through our frames.
COMMON := -std=gnu11 $(OPTIMISE) $(WARNINGS) $(SANITIZE) -fPIC -fvisibility=hidden -fexceptions \
          -fno-strict-aliasing -D_GNU_SOURCE -DCURTSY_VERSION='"$(VERSION)"' -DCURTSY_LIBDIR='"$(LIBDIR)"' \
          -DCURTSY_DATADIR='"$(DATADIR)"' -I. -MMD -MP
# CFLAGS and LDFLAGS stay the packager's.
compile = $(CC) $(COMMON) $(CPPFLAGS) $(CFLAGS)

CORE_SOURCES := $(wildcard core/*.c core/system/*.c)
SHIM_SOURCES := $(wildcard shim/*.c)
TOOL_SOURCES := $(wildcard tools/curtsy/*.c)
UNIT_TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
STRESS_TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/stress/test_*.c))
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
VICTIMS := $(patsubst tests/victims/%.c,$(BUILD)/victims/%,$(wildcard tests/victims/*.c)) \
           $(patsubst tests/victims/%.cc,$(BUILD)/victims/%,$(wildcard tests/victims/*.cc))

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))

all: $(BUILD)/libcurtsy.so $(BUILD)/curtsy

help:
	@echo 'make                 build/libcurtsy.so and build/curtsy'
	@echo 'make check           all tests; check-unit, check-stress, check-integration are its parts'
	@echo 'make check-asan      the same under AddressSanitizer and UBSan;  check-tsan: ThreadSanitizer'
	@echo 'make fuzz            every parser for FUZZ_SECONDS each (default 20), seeded from its tests'
	@echo 'make bench           costs, as instructions and ratios'
	@echo 'make demo            the demo'
	@echo 'make lint            clang-format, clang-tidy, shellcheck, manual pages'
	@echo 'make install         PREFIX= DESTDIR= ;  make uninstall'

# V=1 shows the commands themselves.
ifneq ($(V),1)
say = @echo '  $(1)';
endif

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,compile $<)$(compile) -c -o $@ $<

# What has paths compiled into it is compiled again when they change.
PATHS := $(LIBDIR) $(DATADIR)
$(BUILD)/paths: FORCE
	@mkdir -p $(@D)
	@echo '$(PATHS)' | cmp -s - $@ || echo '$(PATHS)' > $@
$(call objects,core/system/config_presets.c tools/curtsy/preload.c tools/curtsy/presets.c tools/curtsy/summary.c): $(BUILD)/paths
FORCE:

# It is embedded, which the compiler's list of dependencies does not tell.
$(BUILD)/tools/curtsy/init.o: ratelimit.ini

# Only the members that a program needs are taken from it.
$(BUILD)/libcore.a: $(call objects,$(CORE_SOURCES))
	@rm -f $@
	$(call say,archive $@)ar rcs $@ $^

# inih is the packaged static library: nothing but libc is needed at run time.
$(BUILD)/libcurtsy.so: $(call objects,$(SHIM_SOURCES)) $(BUILD)/libcore.a shim/exports.map
	$(call say,link $@)$(CC) -shared $(SANITIZE) $(LDFLAGS) -Wl,--version-script=shim/exports.map -Wl,-z,relro,-z,now,-z,nodelete \
	  -Wl,--no-undefined -Wl,--as-needed -Wl,-soname,libcurtsy.so -o $@ $(call objects,$(SHIM_SOURCES)) \
	  $(BUILD)/libcore.a -l:libinih.a

# explain takes URLs apart as the library does.
$(BUILD)/curtsy: $(call objects,$(TOOL_SOURCES) shim/target.c) $(BUILD)/libcore.a
	$(call say,link $@)$(CC) $(SANITIZE) $(LDFLAGS) -o $@ $^ -l:libinih.a -ljansson

$(BUILD)/tests/%: tests/%.c $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(call say,build $@)$(compile) -o $@ $< $(BUILD)/libcore.a $(LDFLAGS) -l:libinih.a -lcmocka -lm -lpthread

# It compares with a real libcurl, and lets allocations fail.
$(BUILD)/tests/unit/test_first_response: tests/unit/test_first_response.c $(call objects,shim/first_response.c) $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(call say,build $@)$(compile) -o $@ $(filter %.c %.o %.a,$^) $(LDFLAGS) -lcmocka -lcurl -lpthread \
	  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=free

$(BUILD)/victims/%: tests/victims/%.c
	@mkdir -p $(@D)
	$(call say,build $@)$(CC) -std=gnu11 -O2 -g -w -MMD -MP -o $@ $< -lcurl -lpthread -ldl
$(BUILD)/victims/%: tests/victims/%.cc
	@mkdir -p $(@D)
	$(call say,build $@)$(CXX) -O2 -g -w -MMD -MP -o $@ $< -lcurl -lpthread -ldl

$(BUILD)/fuzz/replay_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(call say,build $@)$(compile) -o $@ $< tests/fuzz/replay.c $(BUILD)/libcore.a $(LDFLAGS) -l:libinih.a

# A libcurl whose inner calls cannot be seen from outside.
$(BUILD)/symbolic/libcurl.so.4: tests/symbolic-libcurl.sh
	$(call say,link $@)CC='$(CC)' sh $< $@

tests-built: all $(BUILD)/symbolic/libcurl.so.4 $(UNIT_TESTS) $(STRESS_TESTS) $(VICTIMS) $(addprefix $(BUILD)/fuzz/replay_,$(FUZZ_NAMES))

check: check-unit check-fuzz-seeds check-stress check-integration

check-unit: $(UNIT_TESTS)
	@set -e; for test in $(UNIT_TESTS); do $$test; done
check-fuzz-seeds: $(addprefix $(BUILD)/fuzz/replay_,$(FUZZ_NAMES))
	@set -e; for name in $(FUZZ_NAMES); do $(BUILD)/fuzz/replay_$$name tests/fuzz/seeds/$$name; done
check-stress: $(STRESS_TESTS)
	@set -e; for test in $(STRESS_TESTS); do $$test; done
# Tests that fill the machine run by themselves, after the others.
check-integration: tests-built
	cd tests/integration && CURTSY_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q -p no:cacheprovider -n $(JOBS) -m 'not alone' $(PYTEST)
	cd tests/integration && CURTSY_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q -p no:cacheprovider -m alone $(PYTEST)

check-asan:
	$(MAKE) check BUILD=$(BUILD)/asan OPTIMISE='-O1 -g -fno-omit-frame-pointer' \
	  SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=undefined'
check-tsan:
	$(MAKE) check BUILD=$(BUILD)/tsan OPTIMISE='-O1 -g' SANITIZE='-fsanitize=thread'

FUZZ_SECONDS ?= 20
FUZZ_CC ?= clang
$(BUILD)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(CORE_SOURCES)
	@mkdir -p $(@D)
	$(FUZZ_CC) -std=gnu11 -O1 -g -D_GNU_SOURCE -DCURTSY_VERSION='"$(VERSION)"' -DCURTSY_LIBDIR='"$(LIBDIR)"' \
	  -DCURTSY_DATADIR='"$(DATADIR)"' -I. \
	  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -o $@ $< $(CORE_SOURCES) -l:libinih.a
fuzz: $(addprefix $(BUILD)/fuzz/fuzz_,$(FUZZ_NAMES))
	@set -e; for name in $(FUZZ_NAMES); do mkdir -p $(BUILD)/fuzz/corpus_$$name; \
	  echo "== $$name"; $(BUILD)/fuzz/fuzz_$$name -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -verbosity=0 \
	  -artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus_$$name tests/fuzz/seeds/$$name; done

demo: all
	@$(PYTHON) tools/demo/demo.py --build $(abspath $(BUILD))

$(BUILD)/bench/%: tools/bench/%.c $(BUILD)/libcore.a
	@mkdir -p $(@D)
	$(call say,build $@)$(compile) -o $@ $< $(BUILD)/libcore.a $(LDFLAGS) -l:libinih.a -lcurl
bench: all $(patsubst tools/%.c,$(BUILD)/%,$(wildcard tools/bench/*.c))
	@$(PYTHON) tools/bench/bench.py --build $(abspath $(BUILD)) $(PARTS)

clean:
	rm -rf $(BUILD)

-include tools/install.mk
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)


.PHONY: FORCE all help tests-built check check-unit check-fuzz-seeds check-stress check-integration check-asan check-tsan fuzz demo bench clean
.SECONDARY:
