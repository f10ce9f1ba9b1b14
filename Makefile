# The commands that people and continuous integration use; `make help` lists them.

CARGO ?= cargo
DEMO := target/demo
STOCK := target/stock/e1000.ko
TWIN := target/release/twin

.PHONY: help demo test bench stock setup build

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1#\2/p' $(MAKEFILE_LIST) | awk -F'#' '{printf "%-16s%s\n", $$1, $$2}'

setup:
	@sh scripts/setup.sh

stock: setup ## fetch the stock Debian 12 kernel into target/stock (not installed)
	@sh scripts/stock.sh

build: setup ## build target/release/twin
	$(CARGO) build --release -p twin

demo: build stock ## rewrite and verify the stock e1000 driver
	@sh scripts/demo.sh $(TWIN) $(STOCK) $(DEMO)

test: setup stock ## every check and test
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) test --workspace
	$(MAKE) -C runtime test

bench: setup stock ## rewriting and verifying speed, beside objdump
	$(CARGO) bench -p twin --bench throughput
