# The front door: a small Makefile over CMake and Ninja. `make help` lists the targets.
BUILD ?= build
CMAKE_FLAGS ?=
# make WERROR=1: warnings are errors, but for those that gcc has of instrumented code alone.
may_warn = $(and $(findstring SANITIZE,$(CMAKE_FLAGS)),$(if $(findstring clang,$(CMAKE_FLAGS)),,gcc))
cmake_flags = $(CMAKE_FLAGS) $(if $(WERROR),$(if $(may_warn),,-DLEAT_WERROR=ON))
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 120
TORTURE_SECONDS ?= 1800
TORTURE_BUILD ?= $(BUILD)

.PHONY: all deps test demo bench interop torture install asan tsan clang aarch64 fuzz clean help

all: $(BUILD)/build.ninja
	@cmake --build $(BUILD) $(if $(TARGET),--target $(TARGET))

$(BUILD)/build.ninja: | deps
	@cmake -S . -B $(BUILD) -G Ninja $(cmake_flags) >$(BUILD).log 2>&1 && rm -f $(BUILD).log || { cat $(BUILD).log; exit 1; }

deps: ## install what the build needs (Debian packages), if it is missing
	@scripts/deps $(if $(findstring LEAT_CLUSTER=OFF,$(CMAKE_FLAGS)),,libgrpc-dev libssl-dev)

test: all ## run the tests
	@scripts/deps iproute2 g++ libcurl4 ocl-icd-libopencl1 pocl-opencl-icd || echo 'without iproute2 link_test skips, without PoCL the tests of OpenCL skip, without g++ install_test is not there, without libcurl4 files_test skips'
	@scripts/ctest $(BUILD) $(CTEST_FLAGS)

demo: all ## train MNIST on this machine: one parameter server, two workers
	@$(BUILD)/leat launch --ps 1 --workers 2 -- $(BUILD)/models/mnist_replica --train_steps 5000 --learning_rate 0.003
	@echo
	@echo 'That was models/mnist_replica.c, run by `$(BUILD)/leat launch`. Where to look next:'
	@echo '  the same with averaged gradients:  $(BUILD)/leat launch -- $(BUILD)/models/mnist_replica --sync_replicas'
	@echo '  a cluster of several machines:     $(BUILD)/leat help server, $(BUILD)/leat help check'
	@echo '  one process, no cluster:           $(BUILD)/models/mnist'
	@echo '  how it is built:                   ARCHITECTURE.md, docs/'

bench: all ## measure Leat against TensorFlow, PyTorch and MXNet, into docs/benchmarks.md (BENCH_FLAGS=--short: only to try it)
	@scripts/deps iproute2 || echo 'without iproute2: no rows between machines'
	@bench/run $(BUILD) $(BENCH_FLAGS)
	@bench/input $(BUILD) $(BENCH_FLAGS)
	@bench/images $(BUILD) $(BENCH_FLAGS)
	@bench/image_input $(BUILD) $(BENCH_FLAGS)
	@bench/cifar $(BUILD) $(BENCH_FLAGS)
	@bench/opencl $(BUILD) $(BENCH_FLAGS)
	@bench/ptb $(BUILD) $(BENCH_FLAGS)
	@bench/conv $(BUILD) $(BENCH_FLAGS)
	@bench/cluster $(BUILD) $(BENCH_FLAGS)
	@bench/machines $(BUILD) $(BENCH_FLAGS)

interop: all ## real TensorFlow clients and servers together with Leat's
	@scripts/interop $(BUILD) $(CASES)

torture: $(if $(filter $(BUILD),$(TORTURE_BUILD)),all) ## kill, pause, restart, cut off and flood clusters for TORTURE_SECONDS (TORTURE_BUILD=build-asan, TORTURE_FLAGS='--seed 1')
	@scripts/deps iproute2 python3 || echo 'without iproute2 no link is cut'
	@tests/torture/torture.py --build $(TORTURE_BUILD) --seconds $(TORTURE_SECONDS) $(TORTURE_FLAGS)

install: all ## install library, headers and command under PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX)

# Sanitizers and clang look at the code, which is the same at all levels of the processor.
one_level = $(if $(findstring x86_64,$(shell uname -m)),-DLEAT_CPU_LEVELS=x86-64-v3)

asan: ## the tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory test BUILD=build-asan CMAKE_FLAGS='-DLEAT_SANITIZE=address,undefined $(one_level)'

tsan: ## the tests under ThreadSanitizer, but for minutes of arithmetic; failing calls only in clusters
	@TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp $(MAKE) --no-print-directory test BUILD=build-tsan CMAKE_FLAGS='-DLEAT_SANITIZE=thread $(one_level)' \
		CTEST_FLAGS="-E '^(gemm|vectors|vectors_guarded_slow|grad_check|random_ops|advisories|injection|cli_injection)_test'"
	@TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp build-tsan/tests/injection_test partial queue server grpc socket shm local tls_socket

clang: ## build everything by clang, not optimised; make fuzz has the library optimised by clang
	@scripts/deps clang
	@$(MAKE) --no-print-directory all BUILD=build-clang CMAKE_FLAGS='-DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DLEAT_KERNEL_OPTIMIZATION=-O0 $(one_level)'

aarch64: ## cross-build for 64-bit ARM, and run tests of it by qemu
	@CMAKE_FLAGS='$(cmake_flags)' scripts/aarch64 build-aarch64

fuzz: ## run each fuzzer for FUZZ_SECONDS
	@scripts/deps clang libclang-rt-14-dev
	@$(MAKE) --no-print-directory all BUILD=build-fuzz TARGET=fuzzers CMAKE_FLAGS='-DCMAKE_C_COMPILER=clang -DLEAT_FUZZ=ON -DLEAT_SANITIZE=address,undefined $(one_level)'
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS)

clean: ## remove what was built
	rm -rf build build-asan build-tsan build-clang build-aarch64 build-fuzz

help:
	@grep -E '^[a-z0-9]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12
