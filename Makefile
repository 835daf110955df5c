# The front door: a small Makefile over CMake and Ninja. `make help` lists the targets.
BUILD ?= build
CMAKE_FLAGS ?=
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 120

.PHONY: all deps test demo bench interop install asan tsan fuzz clean help

all: $(BUILD)/build.ninja
	@cmake --build $(BUILD) $(if $(TARGET),--target $(TARGET))

$(BUILD)/build.ninja: | deps
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS) >$(BUILD).log 2>&1 && rm -f $(BUILD).log || { cat $(BUILD).log; exit 1; }

deps: ## install what the build needs (Debian packages), if it is missing
	@scripts/deps

test: all ## run the tests
	@scripts/deps iproute2 || echo 'without iproute2: link_test skips'
	@cd $(BUILD) && ctest --output-on-failure -j2 $(if $(TRIES),--repeat until-pass:$(TRIES)) $(CTEST_FLAGS)

demo: all ## train MNIST on this machine: one parameter server, two workers
	@$(BUILD)/leat launch --ps 1 --workers 2 -- $(BUILD)/models/mnist_replica --train_steps 5000 --learning_rate 0.003
	@echo
	@echo 'That was models/mnist_replica.c, run by `$(BUILD)/leat launch`. Where to look next:'
	@echo '  the same with averaged gradients:  $(BUILD)/leat launch -- $(BUILD)/models/mnist_replica --sync_replicas'
	@echo '  a cluster of several machines:     $(BUILD)/leat help server, $(BUILD)/leat help check'
	@echo '  one process, no cluster:           $(BUILD)/models/mnist'
	@echo '  how it is built:                   ARCHITECTURE.md, docs/'

bench: all ## measure Leat against TensorFlow, PyTorch and MXNet, into docs/benchmarks.md
	@bench/run $(BUILD)
	@bench/cluster $(BUILD)

interop: all ## real TensorFlow clients and servers together with Leat's
	@scripts/interop $(BUILD) $(CASES)

install: all ## install library, headers and command under PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX)

asan: ## the tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory test BUILD=build-asan CMAKE_FLAGS='-DLEAT_SANITIZE=address,undefined'

tsan: ## the tests under ThreadSanitizer, but for minutes of arithmetic
	@TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp $(MAKE) --no-print-directory test BUILD=build-tsan CMAKE_FLAGS='-DLEAT_SANITIZE=thread' \
		CTEST_FLAGS="-E '^(gemm|vectors|grad_check|random_ops)_test'"

fuzz: ## run each fuzzer for FUZZ_SECONDS
	@scripts/deps clang libclang-rt-14-dev
	@$(MAKE) --no-print-directory all BUILD=build-fuzz TARGET=fuzzers CMAKE_FLAGS='-DCMAKE_C_COMPILER=clang -DLEAT_FUZZ=ON -DLEAT_SANITIZE=address,undefined'
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS)

clean: ## remove what was built
	rm -rf build build-asan build-tsan build-fuzz

help:
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12
