# The commands that people and continuous integration use; `make help` lists them.

CARGO ?= cargo
DEMO := target/demo
STOCK := target/stock/e1000.ko
HEADERS = $(CURDIR)/target/stock/headers
TWIN := target/release/twin
PACKAGED := x86_64-unknown-linux-gnu

.PHONY: help demo simulator programs e1000 test test-qemu test-rust test-runtime test-programs attacks test-exhaustive cost prove test-html corpus boot mitigation processors differential compiled mutations faults bench stock kernel support setup build install install-xen uninstall packaged enough-space deb test-deb test-bare hashes xen

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1#\2/p' $(MAKEFILE_LIST) | awk -F'#' '{printf "%-24s%s\n", $$1, $$2}'

setup:
	@sh scripts/setup.sh

enough-space:
	@sh scripts/space.sh $(if $(filter 0,$(CARGO_INCREMENTAL)),6,9)

# The kernel that modules are taken from and booted in: this release's own, or another
# series or flavour of Debian's: KERNEL=5.10, 6.1-rt, 7.3. Empty is the stock kernel, Debian
# 12's, which the testbed is made for: that one is fetched on every system. `make corpus` takes
# several: KERNEL='5.10 6.1 7.3'.
ifeq ($(origin KERNEL),undefined)
KERNEL := $(shell . scripts/release.sh && echo $$release_kernel)
endif
# The other compiler of C, if it is installed.
CLANG := $(shell . scripts/release.sh && command -v $$release_clang)
STOCK_OF := $(or $(addprefix target/stock-,$(KERNEL)),target/stock)
ifneq ($(and $(word 2,$(KERNEL)),$(filter-out corpus kernel help,$(MAKECMDGOALS))),)
$(error KERNEL='$(KERNEL)': several kernels are for `make corpus` alone)
endif

stock: setup ## fetch the stock Debian 12 kernel and headers into target/stock, not installed; and those of KERNEL=7.3
	@sh scripts/stock.sh && sh scripts/headers.sh
	@$(if $(KERNEL),sh scripts/kernel.sh $(KERNEL) && sh scripts/headers.sh $(KERNEL))

kernel: setup
	@$(if $(KERNEL),for kernel in $(KERNEL); do sh scripts/kernel.sh $$kernel || exit; done,sh scripts/stock.sh)

support: stock ## build the testbed's kernel objects, target/support/{kernel,hot}.o, and modules for tests
	@sh scripts/support.sh $(KERNEL)

build: setup ## build target/release/twin
	$(CARGO) build --release -p twin

simulator: support ## build target/release/twin-run, what `twin run` starts
	$(CARGO) build --release -p twin-run

PREFIX ?= $(or $(CARGO_INSTALL_ROOT),$(CARGO_HOME),$(HOME)/.cargo)
install: support ## install twin, twin-run and what that needs below PREFIX, by default where cargo installs
	$(CARGO) install --path . --locked --root $(PREFIX)
	$(CARGO) install --path crates/twin-run --locked --root $(PREFIX)
	mkdir -p $(PREFIX)/lib/twin
	install -m 644 target/support/kernel.o target/support/hot.o $(PREFIX)/lib/twin

install-xen: ## install twin and, in a dom0 of Xen, what `twin xen` needs there: below PREFIX
	$(CARGO) install --path . --locked --root $(PREFIX)
	sh scripts/xen-install.sh $(PREFIX)/lib/twin/xen

uninstall: ## remove them
	for program in twin twin-run; do [ ! -e $(PREFIX)/bin/$$program ] || $(CARGO) uninstall --root $(PREFIX) $$program; done
	rm -f $(PREFIX)/lib/twin/kernel.o $(PREFIX)/lib/twin/hot.o
	rm -rf $(PREFIX)/lib/twin/xen
	[ ! -d $(PREFIX)/lib/twin ] || rmdir $(PREFIX)/lib/twin

# With the C library inside: Rust's standard library takes what the newest C library has, and
# a package made on Debian 13 would not install on 12. A target is named so that only what is
# packaged is linked so, not the compiler's plugins.
packaged: support
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --release --target $(PACKAGED) -p twin -p twin-run

deb: packaged ## a Debian package with manual pages and completions, in target/deb
	@sh scripts/deb.sh target/$(PACKAGED)/release

test-deb: packaged ## the same, installed into an empty root, used and removed
	@sh scripts/deb.sh target/$(PACKAGED)/release test

demo: stock build simulator ## rewrite, verify and execute the stock e1000 driver, and move packets through it
	$(CARGO) build --release -p conformance
	@sh scripts/demo.sh target/release $(STOCK) $(STOCK_OF) $(DEMO)

# What tests need is built first. Then they run side by side, as far as there are processors:
# some of them, QEMU above all, keep one busy only. What one makes no other one touches; all
# take target/stock, target/support and target/debug/twin.
# What a first build leaves in target is 8.7 GiB, 5.3 of them without cargo's incremental state.
test: setup enough-space support ## every check and test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --workspace $(QEMU_TESTS) -- -D warnings
	KERNEL=$(KERNEL) $(CARGO) test --workspace --no-run
	KERNEL=$(KERNEL) $(CARGO) test --workspace $(QEMU_TESTS) --no-run
	$(CARGO) build --workspace --bin twin --bin twin-run
	$(MAKE) -j $(or $(shell nproc),1) --output-sync=target test-qemu test-rust test-runtime test-programs
	@sh scripts/setup.sh left-out

# Shown while they run (a `+` is exempt from --output-sync); what runs beside them when it ends.
test-rust:
	+KERNEL=$(KERNEL) $(CARGO) test --workspace

# Not in --all-targets, nor in a plain `cargo test` (crates/qemu-tests/Cargo.toml). Of the whole workspace,
# so that its crates are built with the same features as for the others.
QEMU_TESTS := --test cards --test moderation --test signatures --test stock_kernel
test-qemu:
	KERNEL=$(KERNEL) $(CARGO) test --workspace $(QEMU_TESTS) -- --test-threads=1

test-runtime:
	$(MAKE) -C runtime test
	$(if $(CLANG),$(MAKE) -C runtime check CC=$(CLANG) O=build/clang)
	$(MAKE) -C runtime/hot test HEADERS=$(HEADERS)
	$(MAKE) -C runtime/hot test-twin HEADERS=$(HEADERS) TWIN=$(CURDIR)/target/debug/twin
	sh scripts/xen-packages.sh
	TWIN=$(CURDIR)/target/debug/twin sh scripts/xen-payload.sh
	TWIN_XEN_MIB=2 TWIN_XEN_PATIENCE=10 sh scripts/xen.sh sample

test-programs:
	sh scripts/programs.sh sample
	sh scripts/compilers.sh sample
	sh scripts/options.sh sample
	bash scripts/dkms.sh sample

test-exhaustive: setup stock prove cost ## every instruction form executed against its rewritten self, every mutant of the checks rejected (an hour)
	$(CARGO) run --release -p conformance --bin belief
	$(CARGO) run --release -p conformance --bin exhaustive

cost: stock ## what objects cost that are made to be expensive, steps counted by the compiler
	CARGO_TARGET_DIR=target/cost RUSTFLAGS='-C instrument-coverage --cfg twin_steps' LLVM_PROFILE_FILE=/dev/null \
		$(CARGO) test --release -p conformance --test cost -- --nocapture

prove: ## the verifier's arithmetic for all numbers, by a solver (a minute)
	@sh scripts/setup.sh z3:z3
	$(CARGO) run --release -p prove

test-html: setup stock ## `twin explain --html` in headless Chromium (installed if you are root)
	@sh scripts/setup.sh chromium:chromium
	$(CARGO) test -p twin --test cli -- --ignored html::

test-bare: ## first contact: demo and test on a new Debian 12 and 13, then offline (needs root, debootstrap; two hours each)
	@TWIN_BARE_RELEASE=bookworm sh scripts/bare.sh
	@TWIN_BARE_RELEASE=trixie sh scripts/bare.sh

attacks: build ## every attack object of tests/attacks, given to `twin verify`
	rm -rf target/attacks
	TWIN_ATTACKS=$(CURDIR)/target/attacks $(CARGO) test -p svm-verify --test attacks -- --nocapture
	@sh scripts/attacks.sh $(TWIN) target/attacks

hashes: build ## a hash of all that twin makes of the Ethernet modules: to compare two versions of it
	@sh scripts/hashes.sh $(TWIN)

corpus: kernel ## every module of this release's kernel for linux, the Ethernet ones for the hypervisor (or KERNEL=7.3, KERNEL='6.1 7.3')
	$(CARGO) run --release -p corpus -- $(if $(word 2,$(KERNEL)),--no-objdump) --modules $(addsuffix /modules,$(STOCK_OF))

boot: kernel ## rewritten Ethernet modules in this release's kernel under QEMU, on every card that it has (or MODULE=e100, KERNEL=7.3)
	KERNEL=$(KERNEL) $(CARGO) run --release -p qemu-tests --bin boot -- $(MODULE)
	$(if $(MODULE),,KERNEL=$(KERNEL) $(CARGO) test --release -p qemu-tests --test stock_kernel -- e1000_on rtl8139cp)

mitigation: stock ## QEMU's own e1000 with its moderation on and off: interrupts and register accesses of the stock driver
	KERNEL= $(CARGO) run --release -p qemu-tests --bin mitigation

processors: setup support ## what executes rewritten code, under QEMU on processors that this machine has not (PROCESSORS=Nehalem; hours)
	$(CARGO) build --workspace --bin twin --bin twin-run
	$(MAKE) -C runtime tests
	$(MAKE) -C runtime/hot tests HEADERS=$(HEADERS) TWIN=$(CURDIR)/target/debug/twin
	KERNEL= $(CARGO) run --release -p qemu-tests --bin processors -- $(PROCESSORS)

xen: setup build ## guests' packets through Debian's stock Xen, 12's and 13's, under QEMU: by dom0, and by the driver inside Xen (an hour)
	@sh scripts/xen-prepare.sh bookworm trixie
	@sh scripts/xen.sh
	@TWIN_XEN_RELEASE=trixie sh scripts/xen.sh attach:1 attach:2 faults:1 command:1
	@TWIN_XEN_RELEASE=trixie TWIN_XEN_GUEST=bookworm sh scripts/xen.sh sample
	@TWIN_XEN_GUEST=trixie sh scripts/xen.sh sample

programs: setup ## every compiler; programs, DKMS packages and gcc's torture programs through `twin cc`, against the unrewritten builds (two hours)
	@sh scripts/setup.sh $(foreach c,gcc-11 gcc-13 gcc-14 $(patsubst %,clang-%,13 14 15 16 17 18 19 22),$(c):$(c):optional) \
		csmith:csmith:optional csmith:libcsmith-dev:optional
	$(CARGO) build --release -p twin
	TWIN=$(CURDIR)/$(TWIN) sh scripts/compilers.sh all
	TWIN=$(CURDIR)/$(TWIN) sh scripts/options.sh all
	TWIN=$(CURDIR)/$(TWIN) sh scripts/snippets.sh
	TWIN=$(CURDIR)/$(TWIN) sh scripts/features.sh
	TWIN=$(CURDIR)/$(TWIN) sh scripts/random.sh
	TWIN=$(CURDIR)/$(TWIN) sh scripts/programs.sh all
	TWIN=$(CURDIR)/$(TWIN) sh scripts/suites.sh
	TWIN=$(CURDIR)/$(TWIN) sh scripts/tables.sh
	$(MAKE) stock
	TWIN=$(CURDIR)/$(TWIN) bash scripts/dkms.sh all
	$(CARGO) test -p svm-rewrite --test source -- --ignored dkms
	$(CARGO) test -p qemu-tests --test dkms -- --ignored --nocapture

e1000: stock ## e1000 compiled from Debian's kernel source through `twin cc`, compared, verified, used in the stock kernel
	$(CARGO) build --release -p twin
	TWIN=$(CURDIR)/$(TWIN) sh examples/e1000/build.sh
	$(CARGO) test -p svm-rewrite --test source -- --ignored e1000
	KERNEL= $(CARGO) test -p qemu-tests --test stock_kernel -- --ignored --nocapture

differential: setup stock ## 1,000 random images for each e1000 function, native against rewritten
	$(CARGO) run --release -p conformance --bin differential -- --images 1000 --stepped 10

compiled: setup ## random C functions, compiled in many ways, natively and rewritten under each scheme
	$(CARGO) run --release -p conformance --bin compiled -- --programs 200

mutations: setup stock ## every mutant of 500 checks of e1000, and of a small object systematically, must be rejected
	$(CARGO) run --release -p conformance --bin mutations -- --checks 500

faults: setup support ## 1,000 faults in the driver's data while its hypervisor instance serves packets; again with all stages
	$(CARGO) run -p e1000-sim --bin faults
	$(CARGO) run -p e1000-sim --bin faults -- --stages

bench: build simulator ## rewriting and verifying speed, beside objdump; the paper's figures, in target/bench
	$(CARGO) bench -p twin --bench throughput
	sh scripts/programs.sh text target/bench
	$(CARGO) bench -p svm-rewrite --bench source -- $(CURDIR)/target/bench/sqlite-gcc-*.s
	$(TWIN) run $(STOCK) --path native,twin --scheme stlb --packets 20000
	$(TWIN) run $(STOCK) --path native,twin --scheme paper --packets 20000
	$(TWIN) run $(STOCK) --path native,twin --scheme window32 --packets 20000
	$(TWIN) run $(STOCK) --path native,twin --scheme window --packets 20000
	$(TWIN) run $(STOCK) --experiment all --output target/bench
	$(TWIN) run $(STOCK) --experiment rows --output target/bench
	$(TWIN) run $(STOCK) --experiment rows --scheme window32 --output target/bench/window32
