# One word for each thing that is done with this repository: `make help` lists them.
PYTHON3 = python3
PYTHON = .venv/bin/python
GCC = gcc
CLANG = clang-19
CLANG_FORMAT = clang-format-19
JOBS := $(shell nproc)
MINUTES = 1
# libFuzzer takes whole seconds, and 0 for ever
C_SECONDS = $(shell awk 'BEGIN {s = 60 * $(MINUTES); printf "%d", s < 1 ? 1 : s}')
CYTHON_SECONDS = $(C_SECONDS)
SEED = 0
# Executions of each target, its seeds included, instead of seconds: with one SEED the same ones each time, for which
# addresses must not change either.
RUNS =
# of what is fuzzed; -O0 compiles in a third of the time and runs half as fast
OPTIMIZE ?= -O1

CORE := $(wildcard csrc/*/*.c csrc/*/*/*.c)
C_TARGETS := $(patsubst tests/fuzz/%_fuzz.c,%,$(wildcard tests/fuzz/*_fuzz.c))
CYTHON_TARGETS := $(patsubst tests/fuzz/%_fuzz.py,%,$(wildcard tests/fuzz/*_fuzz.py))
CORPUS := $(wildcard tests/corpus/*/good/* tests/corpus/*/bad/* tests/fuzz/seeds/*)

.PHONY: help build test asan lint python-lint c-lint fuzz fuzz-coverage coverage-python fuzz-cython fuzz-python $(C_TARGETS:%=fuzz-%) \
	$(CYTHON_TARGETS:%=fuzz-cython-%) tsan bench growth race docs memory pictures site new-format
.SECONDARY: # objects are kept
.DELETE_ON_ERROR:

help:
	@echo 'make build            builds what changed, in place; makes .venv first if there is none'
	@echo 'make test             all tests; .venv/bin/python -m pytest alone leaves out the exhaustive ones'
	@echo 'make lint             ruff, mypy, clang-format, the warnings of gcc and clang'
	@echo 'make fuzz MINUTES=n   each fuzz target for n minutes (1; 0.2 is 12 seconds) under ASan and UBSan; prints executions'
	@echo '                      and coverage; with -j several at once; build/fuzz/found/ is where the next run goes on'
	@echo 'make fuzz-coverage    how much of the C core, file by file, the seeds and build/fuzz/found/ come to, with what only'
	@echo '                      Python calls and with allocations that fail'
	@echo 'make tsan             the tests of several cores under ThreadSanitizer'
	@echo 'make asan             hostile rows, arguments of Python, programs and branches under ASan and UBSan'
	@echo 'make bench            the benches'
	@echo 'make growth           N and 2N of each dimension through every verb: a ratio above 2.7 fails'
	@echo 'make race             fastprof and its peers on the same files: the table and the chart of README.md'
	@echo 'make docs             the part of the documentation that is made: docs/options.md, docs/man ...'
	@echo 'make new-format NAME=x   a room for a text format, with KIND=json or KIND=binary for others, with tests that'
	@echo '                      fail until it reads (docs/first-change.md)'
	@echo 'make site             the documentation site: build/site/html/index.html'
	@echo 'make memory           docs/memory.md: what each conversion needs, measured; takes some minutes'
	@echo 'make pictures         the pictures of docs/viewers.md'

# What the second command of README.md makes
.venv/bin/fastprof: pyproject.toml
	$(PYTHON3) -m venv .venv
	.venv/bin/pip install -q -e '.[test]'
	touch $@

build: .venv/bin/fastprof
	$(PYTHON) setup.py -q build_clib build_ext --inplace

test: build
	$(PYTHON) -m pytest -n $(JOBS) -m ''

bench: build
	$(PYTHON) -m pytest bench

growth: build
	$(PYTHON) -m bench.growth

race: build
	$(PYTHON) -m bench.race --write

docs: build
	$(PYTHON) docs/make_options.py
	$(PYTHON) -m docs.make_python
	$(PYTHON) -m docs.make_matrix
	$(PYTHON) -m docs.make_man
	$(PYTHON) -m docs.make_schemas
	$(PYTHON) -m docs.make_output

new-format:
	$(PYTHON) -m docs.make_new_format "$(NAME)" $(KIND)

memory: build
	$(PYTHON) -m docs.make_memory

site: build
	.venv/bin/pip install -q --no-build-isolation -e '.[site]' # what builds is there
	$(PYTHON) -m docs.make_site

pictures: build
	tests/viewers/install
	.viewers/node docs/make_pictures.mjs

lint: python-lint c-lint

python-lint: .venv/bin/fastprof
	.venv/bin/ruff check
	.venv/bin/mypy --strict

c-lint: $(CORE:%.c=build/lint/gcc/%.o) $(CORE:%.c=build/lint/clang/%.o)
	@echo $(CLANG_FORMAT)
	@$(CLANG_FORMAT) --dry-run -Werror $(wildcard csrc/*/*.[ch] csrc/*/*/*.[ch] tests/fuzz/*.[ch])

# -O2, because some of gcc's warnings come from the optimizer
WARNINGS = -std=c11 -O2 -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror -Icsrc -MMD -MP
build/lint/gcc/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(GCC) $(WARNINGS) -c $< -o $@
build/lint/clang/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CLANG) $(WARNINGS) -fsyntax-only -MF $(@:.o=.d) -MT $@ $< && touch $@

# The C core is compiled once for all fuzz targets.  No trace-cmp: reporting each comparison to libFuzzer takes more than
# half of the time of most targets.
SANITIZERS = -std=c11 $(OPTIMIZE) -g1 -DFP_DEBUG -Icsrc -MMD -MP -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-coverage=trace-cmp -fno-omit-frame-pointer -fno-sanitize-recover=undefined
build/fuzz/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CLANG) $(SANITIZERS) $(TARGET) -c $< -o $@
# A library, so that a target has the objects that it needs: libFuzzer looks through all counters after each execution.
build/fuzz/libcore.a: $(CORE:%.c=build/fuzz/%.o)
	@rm -f $@
	@$(AR) -rcs $@ $^
build/fuzz/tests/fuzz/%_fuzz.o build/coverage/tests/fuzz/%_fuzz.o: TARGET = -DLLVMFuzzerTestOneInput=fp_fuzz_one
build/fuzz/bin/%: build/fuzz/tests/fuzz/%_fuzz.o build/fuzz/tests/fuzz/guarded.o build/fuzz/libcore.a
	@mkdir -p $(@D)
	@echo linking $@
	@$(CLANG) -fsanitize=fuzzer,address,undefined $^ -o $@

# What a target does with each file, without libFuzzer: tests/unit/test_fuzz_replay.py
build/fuzz/replay/%: build/fuzz/tests/fuzz/%_fuzz.o build/fuzz/tests/fuzz/guarded.o build/fuzz/tests/fuzz/replay.o \
	    build/fuzz/libcore.a
	@mkdir -p $(@D)
	@$(CLANG) -fsanitize=address,undefined $^ -o $@

# The corpus of each format, decompressed as a decoder would see it, and what fuzzers found
build/fuzz/seeds: $(CORPUS) Makefile
	@rm -rf $@ && mkdir -p $@
	@for file in $(CORPUS); do \
	    name=$$(echo $$file | tr / -); \
	    case $$file in *.gz) gzip -dc $$file > $@/$$name ;; *) cp $$file $@/$$name ;; esac || exit 1; \
	done

# Inputs that reach new code are kept in build/fuzz/found/NAME/, the working corpus of the next run; what fails in
# build/fuzz/failed/.
LIMITS = -seed=$(SEED) -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=build/fuzz/failed/$(1)-
LENGTH = $(if $(RUNS),-runs=$(RUNS) -reload=0,-max_total_time=$(1))
FIXED = $(if $(RUNS),$(shell setarch -R true 2> /dev/null && echo setarch -R))
fuzzing = @mkdir -p build/fuzz/found/$(1) build/fuzz/failed && tests/fuzz/run $(1)

fuzz: $(C_TARGETS:%=fuzz-%) fuzz-cython
	@awk '/^stat::number_of_executed_units:/ {n += $$2} END {printf "%.0f executions in all\n", n}' \
	    $(C_TARGETS:%=build/fuzz/%.log) $(CYTHON_TARGETS:%=build/fuzz/cython-%.log)

# What is freed is kept for 1 MiB, about as much as an execution has, and not for 256 MiB, which no cache holds.  No
# stacks of allocations: a program in build/fuzz/bin/ prints them when it is given the input that failed.  No frames kept
# for pointers to them after their functions: test_fuzz_replay.py looks for those.
FUZZ_ASAN = malloc_context_size=0:quarantine_size_mb=1:detect_stack_use_after_return=0

# The seeds are far longer than what it takes to come to every line.  Programs of bridges and maps, whose time grows with
# each step, are shorter still.
LONGEST = $(or $(LONGEST_$(1)),4096)
LONGEST_bridges = 256
LONGEST_space = 384
LONGEST_cython-gpu_sqlite = 24576 # a page a table
$(C_TARGETS:%=fuzz-%): fuzz-%: build/fuzz/bin/% build/fuzz/seeds
	$(call fuzzing,$*) env ASAN_OPTIONS=$(FUZZ_ASAN) $(FIXED) $< $(call LIMITS,$*) -max_len=$(call LONGEST,$*) \
	    $(call LENGTH,$(C_SECONDS)) -timeout=10 build/fuzz/found/$* build/fuzz/seeds

# How much of the C core all inputs come to: those of the repository, and what was found here (FOUND).
FOUND = build/fuzz/found
build/coverage/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CLANG) -std=c11 -O1 -DFP_DEBUG -Icsrc $(TARGET) -MMD -MP -fprofile-instr-generate -fcoverage-mapping -c $< -o $@
build/coverage/bin/%: build/coverage/tests/fuzz/%_fuzz.o build/coverage/tests/fuzz/guarded.o \
	    build/coverage/tests/fuzz/replay.o \
	    $(CORE:%.c=build/coverage/%.o)
	@mkdir -p $(@D)
	@echo linking $@
	@$(CLANG) -fprofile-instr-generate $^ -o $@

# What only Python calls, and what is done when memory runs out: tests/fuzz/replay.py.
build/coverage/shim.so: tests/support/shim.c
	@mkdir -p $(@D)
	$(CLANG) -shared -fPIC -O1 -o $@ $<

coverage-python: .venv/bin/fastprof
	CC=$(CLANG) FASTPROF_SANITIZE=coverage $(PYTHON) setup.py -q build --build-lib build/coverage/python

fuzz-coverage: $(C_TARGETS:%=build/coverage/bin/%) build/fuzz/seeds build/coverage/shim.so coverage-python
	@rm -f build/coverage/*.profraw
	@for name in $(C_TARGETS); do \
	    mkdir -p $(FOUND)/$$name; \
	    find build/fuzz/seeds $(FOUND)/$$name -type f -print0 | LLVM_PROFILE_FILE=build/coverage/$$name-%p.profraw \
	        xargs -0 build/coverage/bin/$$name > build/coverage/$$name.log || exit 1; \
	done
	@LLVM_PROFILE_FILE=build/coverage/python-%m.profraw LD_PRELOAD=$(CURDIR)/build/coverage/shim.so \
	    PYTHONPATH=build/coverage/python:. $(PYTHON) -P -m tests.fuzz.replay $(CURDIR)/build/coverage/shim.so
	@llvm-profdata-19 merge build/coverage/*.profraw -o build/coverage/all.profdata
	@llvm-cov-19 report -instr-profile build/coverage/all.profdata build/coverage/bin/xray \
	    $(C_TARGETS:%=-object build/coverage/bin/%) \
	    $$(find build/coverage/python -name '*.so' -printf '-object %p ') csrc

# setarch: TSan needs its addresses.  append: the tests import fastprof from build/tsan, not from here.
tsan: .venv/bin/fastprof
	CC=$(GCC) FASTPROF_SANITIZE=thread $(PYTHON) setup.py -q build --build-lib build/tsan
	LD_PRELOAD=$$($(GCC) -print-file-name=libtsan.so) PYTHONPATH=build/tsan:. setarch -R $(PYTHON) -P -m pytest -q \
	    -p no:cacheprovider --import-mode=append tests/unit/test_cores.py tests/unit/test_ranges.py

# What objects of Python may do while they are read, and programs and recordings while profiles for compilers are made.
asan: .venv/bin/fastprof
	CC=$(GCC) FASTPROF_SANITIZE=1 $(PYTHON) setup.py -q build --build-lib build/asan
	LD_PRELOAD="$$($(GCC) -print-file-name=libasan.so) $$($(GCC) -print-file-name=libubsan.so)" PYTHONPATH=build/asan:. \
	    ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc $(PYTHON) -P -m pytest -q -p no:cacheprovider \
	    --import-mode=append -m '' tests/unit/test_hostile_rows.py tests/unit/test_hostile_arguments.py \
	    tests/unit/test_makers.py tests/unit/test_table_inputs.py tests/unit/test_pgo_hostile.py

# What is Cython.  libFuzzer and ASan are shared libraries here; libFuzzer must come first, or its hooks would be the
# empty ones of ASan.
CLANG_RT = $(shell $(CLANG) -print-file-name=libclang_rt.$(1)-$(shell uname -m).$(2))
build/fuzz/libfuzzer.so: tests/fuzz/lines.c tests/fuzz/mutate.h Makefile
	@mkdir -p $(@D)
	$(CLANG) -shared -fPIC -O1 -Icsrc -o $@ $< -Wl,--whole-archive $(call CLANG_RT,fuzzer_no_main,a) \
	    -Wl,--no-whole-archive -lstdc++ -lpthread -lm

fuzz-cython: $(CYTHON_TARGETS:%=fuzz-cython-%)

fuzz-python: .venv/bin/fastprof
	CC=$(CLANG) FASTPROF_SANITIZE=fuzzer FASTPROF_OPTIMIZE=$(OPTIMIZE) $(PYTHON) setup.py -q build --build-lib build/fuzz/python

$(CYTHON_TARGETS:%=fuzz-cython-%): fuzz-cython-%: build/fuzz/libfuzzer.so fuzz-python
	$(call fuzzing,cython-$*) env LD_PRELOAD="$(CURDIR)/$<:$(call CLANG_RT,asan,so)" PYTHONPATH=build/fuzz/python:. \
	    ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:$(FUZZ_ASAN) PYTHONHASHSEED=0 \
	    $(FIXED) $(PYTHON) -P -m tests.fuzz.$*_fuzz $(CURDIR)/$< $(call LIMITS,cython-$*) \
	    $(call LENGTH,$(CYTHON_SECONDS)) -max_len=$(or $(LONGEST_cython-$*),1024) -timeout=20 build/fuzz/found/cython-$*

-include $(CORE:%.c=build/lint/gcc/%.d) $(CORE:%.c=build/lint/clang/%.d) $(CORE:%.c=build/fuzz/%.d) \
	$(C_TARGETS:%=build/fuzz/tests/fuzz/%_fuzz.d) $(CORE:%.c=build/coverage/%.d) \
	$(C_TARGETS:%=build/coverage/tests/fuzz/%_fuzz.d)
