# SPDX-License-Identifier: Apache-2.0
#
# Short names over Meson; "make help" lists them. Everything here works from a fresh Debian 12 or 13 machine.

BUILD = build
# What to build for: this machine, or arm64, cross-built into $(BUILD)-arm64.
ARCH ?=
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
SOAK_MINUTES ?= 60
SOAK_HOURS ?= 24
# "no" leaves the machine's packages alone.
DEPS ?= yes
# Passed on to "meson setup" and "meson test".
SETUP_ARGS ?=
TEST_ARGS ?=
# Which benchmarks "make bench" runs; all when empty.
BENCH ?=
# Passed on to "gpusonde agent" by "make run".
RUN_ARGS ?=

# $(call debian_arch,MACHINE): Debian's name, for Debian's names and the kernel's.
debian_arch = $(if $(filter amd64 x86_64,$(1)),amd64,$(if $(filter arm64 aarch64,$(1)),arm64))
ifneq ($(if $(filter help,$(MAKECMDGOALS)),,$(ARCH)),)
ifeq ($(call debian_arch,$(ARCH)),)
$(error ARCH=$(ARCH) is unknown: arm64 (aarch64), amd64 (x86_64), or nothing for this machine)
endif
# Of another machine than this: its name; else nothing.
CROSS := $(filter-out $(call debian_arch,$(shell uname -m)),$(call debian_arch,$(ARCH)))
endif
ifneq ($(CROSS),)
ifeq ($(wildcard meson/$(CROSS).ini),)
$(error ARCH=$(ARCH) can be built on such a machine only; arm64 can be cross-built)
endif
ifneq ($(filter run test test-matrix bench fuzz soak asan tsan clang,$(MAKECMDGOALS)),)
$(error ARCH=$(ARCH) is another machine: build, build-tests, install, deps and test-deps take it; "make test" without ARCH tests it, too)
endif
override BUILD := $(BUILD)-$(CROSS)
SETUP_CROSS = --cross-file meson/$(CROSS).ini
endif

# The one list of Debian packages: to build and run, to test, to measure, and for the clang variants and
# formatting.
TOOLS = gcc libc6-dev python3 meson ninja-build pkg-config clang bpftool protobuf-c-compiler
LIBRARIES = libmicrohttpd-dev libsystemd-dev libjansson-dev libyaml-dev libbpf-dev libelf-dev libcapstone-dev \
	liblz4-dev libzstd-dev libiberty-dev libnghttp2-dev libprotobuf-c-dev libcurl4-openssl-dev libyajl-dev libsnappy-dev zlib1g-dev \
	libsqlite3-dev libncurses-dev libgnutls28-dev libcrypt-dev
# Debian's compiler for arm64, and what runs its programs here: the build runs gpusonde itself.
ARM64_TOOLS = gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
ARM64_PACKAGES = $(ARM64_TOOLS) $(addsuffix :arm64,$(LIBRARIES) libcmocka-dev)
BUILD_PACKAGES = $(TOOLS) $(if $(CROSS),$(ARM64_TOOLS) $(LIBRARIES:%=%:$(CROSS)),$(LIBRARIES))
TEST_PACKAGES = $(if $(CROSS),libcmocka-dev:$(CROSS),$(NATIVE_TEST_PACKAGES))
NATIVE_TEST_PACKAGES = libcmocka-dev g++ python3-pip python3-venv python3-jsonschema python3-yaml python3-prometheus-client protobuf-compiler \
	curl atop prometheus qemu-system-x86 qemu-system-arm busybox-static runc systemd dbus debootstrap musl-tools tmux
# Large, or wanted by single tests that skip without: installed for CI only.
CI_PACKAGES = python3-torch prometheus-alertmanager victoria-metrics zsh fish chromium-headless-shell nginx-light node-typescript $(DEB_PACKAGES) $(RPM_PACKAGES)
BENCH_PACKAGES = nginx-light wrk python3-bpfcc linux-headers-$(if $(filter aarch64,$(shell uname -m)),arm64,amd64)
DEB_PACKAGES = debhelper dpkg-dev lintian
RPM_PACKAGES = rpm
CLANG_PACKAGES = clang libclang-rt-dev lld llvm clang-format xz-utils

.PHONY: all build run test test-matrix bench fuzz soak format format-check install uninstall clean help \
	deps test-deps clang-deps ci-deps bench-deps deb-deps rpm-deps asan tsan clang deb rpm image

all: build

help:
	@echo "build    $(BUILD)/gpusonde, its helper and the simulated driver"
	@echo "run      build, then run the agent; on a simulated node where there is no GPU"
	@echo "test     build, then run every test but benches and long fuzzing"
	@echo "test-matrix   all kernels, drivers, runtimes, distributions; writes docs/compatibility.md"
	@echo "bench    measure the promises, write docs/benchmarks.md"
	@echo "fuzz     run each fuzzer for FUZZ_SECONDS ($(FUZZ_SECONDS))"
	@echo "soak     users churn libraries for SOAK_MINUTES ($(SOAK_MINUTES)) while the agent traces: nothing grows, fork() does not wait"
	@echo "         and an agent lives SOAK_HOURS ($(SOAK_HOURS)) of faults and clients, 60 times as fast"
	@echo "format   format all C code;  format-check  only say what would change"
	@echo "install  install below DESTDIR PREFIX ($(PREFIX))"
	@echo "deb      Debian packages, in $(BUILD)-deb;  rpm  RPM packages, in $(BUILD)-rpm;  image  a container image without a container engine, in $(BUILD)-image"
	@echo "uninstall  remove what install has put there"
	@echo "asan tsan clang   the tests under address+undefined and thread sanitizers, and under clang"
	@echo "ARCH=arm64   with build, build-tests, install, deps and test-deps: cross-built with Debian's compiler, $(BUILD)-arm64"
	@echo "deps test-deps clang-deps ci-deps bench-deps deb-deps rpm-deps   install missing Debian packages (DEPS=no: never)"

# $(call find_missing,PACKAGES): of this machine's kind or, as NAME:ARCH, of another.
define find_missing
missing=; \
	for p in $(1); do \
		case $$p in *:*) a=$${p#*:};; *) a=$$(dpkg --print-architecture);; esac; \
		dpkg-query -W -f '$${Architecture} $${Status}\n' $$p 2>/dev/null | \
			grep -qE "^($$a|all) .*ok installed" || missing="$$missing $$p"; \
	done
endef

# $(call install_missing,PACKAGES): silent when nothing is missing; never adds a package source, and never removes a package.
define install_missing
	@[ "$(DEPS)" != no ] || exit 0; \
	command -v dpkg-query >/dev/null || { \
		echo "Not a Debian system; these must be present (Debian's names): $(1)"; exit 0; }; \
	$(call find_missing,$(1)); \
	[ -n "$$missing" ] || exit 0; \
	echo "Installing Debian packages:$$missing"; \
	sudo=; \
	if [ "$$(id -u)" != 0 ]; then \
		command -v sudo >/dev/null || { \
			add=; case "$$missing" in *:arm64*) add="dpkg --add-architecture arm64; apt-get update; ";; esac; \
			echo "As root, please: $${add}apt-get install$$missing" >&2; exit 1; }; \
		sudo=sudo; \
	fi; \
	export DEBIAN_FRONTEND=noninteractive; \
	case "$$missing" in *:arm64*) \
		dpkg --print-foreign-architectures | grep -qx arm64 || { \
			echo "Telling dpkg of packages for arm64, too: dpkg --add-architecture arm64"; \
			$$sudo dpkg --add-architecture arm64 || exit 1; };; \
	esac; \
	$$sudo apt-get update -qq && \
	$$sudo apt-get install -qq -y --no-install-recommends --no-remove -o DPkg::Lock::Timeout=300 $$missing </dev/null || { \
		echo "apt-get could not install:$$missing; see its message above" >&2; \
		case "$$missing" in *:arm64*) \
			echo "A library of arm64 must be of the same version as this machine's own: where that came from backports," \
				"ask for it there, apt-get install NAME:arm64/bookworm-backports" >&2;; \
		esac; exit 1; }
endef

deps:
	$(call install_missing,$(BUILD_PACKAGES))

test-deps:
	$(call install_missing,$(BUILD_PACKAGES) $(TEST_PACKAGES))

ci-deps:
	$(call install_missing,$(CI_PACKAGES))
	$(call install_missing,$(if $(filter x86_64,$(shell uname -m)),$(ARM64_PACKAGES)))

bench-deps:
	$(call install_missing,$(BUILD_PACKAGES) $(BENCH_PACKAGES))

deb-deps:
	$(call install_missing,$(BUILD_PACKAGES) $(DEB_PACKAGES))

rpm-deps:
	$(call install_missing,$(BUILD_PACKAGES) $(RPM_PACKAGES))

clang-deps:
	$(call install_missing,$(BUILD_PACKAGES) $(TEST_PACKAGES) $(CLANG_PACKAGES))

# Runs and installs need no tests; a build folder made without tests gets them switched on at the first "make test".
build: deps
	@[ -f $(BUILD)/build.ninja ] || meson setup $(BUILD) $(SETUP_CROSS) --prefix=$(PREFIX) -Dtests=false $(SETUP_ARGS)
	@ninja -C $(BUILD)

build-tests: test-deps
	@if [ ! -f $(BUILD)/build.ninja ]; then \
		meson setup $(BUILD) $(SETUP_CROSS) --prefix=$(PREFIX) -Dtests=true $(SETUP_ARGS); \
	elif [ ! -d $(BUILD)/test/unit ]; then \
		meson configure $(BUILD) -Dtests=true; \
	fi
	@ninja -C $(BUILD)
.PHONY: build-tests

# An NVIDIA display device on the PCI bus, or the driver's library (WSL has one without the other).
HAVE_GPU = { grep -qsl 0x10de $$(grep -sl '^0x03' /sys/bus/pci/devices/*/class | sed 's|class$$|vendor|') /dev/null || \
	/sbin/ldconfig -p 2>/dev/null | grep -q 'libnvidia-ml\.so\.1'; }

# With another agent on the default port, --listen in RUN_ARGS names one for this.
RUN_LISTEN = $(or $(patsubst --listen=%,%,$(filter --listen=%,$(RUN_ARGS))),127.0.0.1:9470)

run: build
	@if [ -z "$$GPUSONDE_NVML_LIBRARY" ] && ! $(HAVE_GPU); then \
		export GPUSONDE_NVML_LIBRARY=$(abspath $(BUILD))/sim/libnvidia-ml.so.1; \
		echo "No NVIDIA GPU here: this is the simulated node $${GPUSONDE_SIM_SCENARIO:-node-8xh100}."; \
		echo "GPUSONDE_SIM_SCENARIO names another: node-mig, desktop-1gpu, sick, empty, or a file."; \
	fi; \
	echo "While it runs, try in another terminal, as the same user:"; \
	echo "  http://$(RUN_LISTEN)/ in a browser"; \
	echo "  $(abspath $(BUILD))/gpusonde top"; \
	echo "  $(abspath $(BUILD))/gpusonde gpus"; \
	echo "  curl http://$(RUN_LISTEN)/metrics"; \
	echo "  curl http://$(RUN_LISTEN)/api/v1/gpus"; \
	echo "  sudo $(abspath $(BUILD))/gpusonde trace --top"; \
	if command -v atop >/dev/null; then echo "  atop -k -P GPU,PRE 1 3"; fi; \
	exec $(BUILD)/gpusonde agent $(RUN_ARGS)

# What tests of arm64 want, cross-built where Debian's compiler and libraries for it are; without, they skip and say so.
# $(call build_arm64,PART): for the quick tests, or all.
define build_arm64
	@[ "$$(uname -m)" != aarch64 ] || exit 0; \
	missing=unknown; ! command -v dpkg-query >/dev/null || { $(call find_missing,$(ARM64_PACKAGES)); }; \
	[ -z "$$missing" ] || exit 0; \
	[ -f $(BUILD)-arm64/build.ninja ] || meson setup $(BUILD)-arm64 --cross-file meson/arm64.ini --prefix=$(PREFIX) -Dtests=true || exit 1; \
	[ -d $(BUILD)-arm64/test/unit ] || meson configure $(BUILD)-arm64 -Dtests=true; \
	PYTHONPATH=test python3 test/lib/arm64.py $(BUILD) $(1)
endef

# What tests download, in one place for all variants.
TEST_RUN = GPUSONDE_REAL_CACHE="$${GPUSONDE_REAL_CACHE:-$(CURDIR)/build/real}" test/run

test: build-tests
	$(call build_arm64,quick)
	@$(TEST_RUN) $(BUILD) --no-suite long $(TEST_ARGS)

# All combinations of kernels, drivers, runtimes and distributions; less than an hour on two cores.
test-matrix: build-tests
	$(call build_arm64,all)
	@$(TEST_RUN) $(BUILD) --suite matrix $(TEST_ARGS); status=$$?; \
	PYTHONPATH=test python3 test/matrix/record.py $(BUILD) $(CURDIR); exit $$status

bench: bench-deps build-tests
	@BUILD=$(BUILD) python3 bench/run.py $(BENCH)
soak: build-tests
	@ninja -C $(BUILD)
	@PYTHONPATH=test:. python3 test/soak/churn.py $(BUILD) . $(SOAK_MINUTES)
	@PYTHONPATH=test:. python3 test/soak/day.py $(BUILD) . $(SOAK_HOURS)

# Each in a build folder of its own, so that switching between them rebuilds nothing; the fuzzers are those of asan's.
# Sanitizers find as much in -O1, which compiles faster and has better stacks (clang's documentation advises it).
ASAN = VARIANT=asan VARIANT_CC=clang VARIANT_ARGS="-Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true"
asan: clang-deps
	@$(MAKE) --no-print-directory variant $(ASAN)
asan-build: clang-deps
	@$(MAKE) --no-print-directory build-variant $(ASAN)
TSAN = VARIANT=tsan VARIANT_CC=gcc VARIANT_ARGS="-Doptimization=1 -Db_sanitize=thread" VARIANT_SUITES="$(THREAD_SUITES)"
tsan: test-deps
	@$(MAKE) --no-print-directory variant $(TSAN)
tsan-build: test-deps
	@$(MAKE) --no-print-directory build-variant $(TSAN)
clang: clang-deps
	@$(MAKE) --no-print-directory variant VARIANT=clang VARIANT_CC=clang VARIANT_ARGS=
fuzz: asan-build
	@test/fuzz/run build-asan $(FUZZ_SECONDS)

VARIANT_SUITES ?= --suite unit --suite golden --suite fuzz
# What more than one thread or process runs; of folders in which little does, "threads" are the tests of that.
THREAD_SUITES = --suite base --suite nvml --suite serve --suite agent --suite web --suite cmd --suite threads
# Hundreds of programs are linked, each with a sanitizer's runtime: by lld, where it is, in half of the time.
# Its threads cost more than they save in programs so small.
configure-variant:
	@[ -f build-$(VARIANT)/build.ninja ] || { ! command -v ld.lld >/dev/null || export CC_LD=lld CXX_LD=lld LDFLAGS="$$LDFLAGS -Wl,--threads=1"; \
		CC=$(VARIANT_CC) meson setup build-$(VARIANT) $(VARIANT_ARGS) $(SETUP_ARGS); }
build-variant: configure-variant
	@ninja -C build-$(VARIANT) build.ninja && ninja -C build-$(VARIANT) $$(python3 test/lib/goals.py build-$(VARIANT) $(filter-out --suite,$(VARIANT_SUITES)))
# Builds what these tests need, and no more.
variant: configure-variant
	@$(TEST_RUN) build-$(VARIANT) --build $(VARIANT_SUITES) $(TEST_ARGS)
.PHONY: asan-build tsan-build configure-variant build-variant variant

C_FILES = $(shell find src sim test bench -name '*.[ch]' 2>/dev/null)
format: clang-deps
	@clang-format -i $(C_FILES)
format-check: clang-deps
	@clang-format --dry-run --Werror $(C_FILES)

install: build
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)
# What the last installation from this build folder has put there, and nothing else.
uninstall:
	@[ -f $(BUILD)/meson-logs/install-log.txt ] || { \
		echo "nothing was installed from $(BUILD)/: run make uninstall where make install ran" >&2; exit 1; }
	@ninja -C $(BUILD) uninstall

# Each in a build folder of its own, for /usr: those of "make run" and "make install" stay as they are.
deb: deb-deps
	@deploy/debian/build $(BUILD)-deb
	@! command -v lintian >/dev/null || lintian --fail-on error $(BUILD)-deb/*.changes

rpm: rpm-deps
	@deploy/rpm/build $(BUILD)-rpm

image:
	@$(MAKE) --no-print-directory build BUILD=$(BUILD)-image PREFIX=/usr
	@python3 deploy/container/image.py $(BUILD)-image --oci $(BUILD)-image/oci

clean:
	rm -rf build build-deb build-rpm build-image build-arm64 build-asan build-tsan build-clang
