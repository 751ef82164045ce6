# SPDX-License-Identifier: LGPL-2.1-or-later
# A thin front to meson. `sudo make demo` and `sudo make check` are all that a newcomer needs.
BUILD   ?= build
PREFIX  ?= /usr
DESTDIR ?=

.PHONY: all build demo check soak bench install clean

all: build

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD) --prefix=$(PREFIX)

# Debian packages for the level asked for: build < demo < check.
deps-%:
	./scripts/install-packages $*

demo: deps-demo
	$(MAKE) build
	MORTAR_BUILD=$(abspath $(BUILD)) python3 bench/demo.py

check: deps-check
	python3 tests/run.py check --build $(BUILD)

soak: deps-check
	python3 tests/run.py soak --build $(BUILD)

bench: deps-check
	$(MAKE) build
	MORTAR_BUILD=$(abspath $(BUILD)) python3 bench/bench.py

# The build may have been set up with another prefix.
install: build
	meson setup --reconfigure $(BUILD) --prefix=$(PREFIX)
	DESTDIR=$(DESTDIR) meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz
