# SPDX-License-Identifier: GPL-2.0
# The one entry to the project; the work is done by scripts/lab.
#
#   BUILD=FOLDER      where everything is built (build/); several checkouts can share one
#   QEMU_SRC=TARBALL  QEMU's source instead of Debian's source package
#   SANITIZE=1        the emulator under ASan and UBSan (slow), for whatever runs in it
#   KERNEL=NAME       kernel of the shell, and of the tests' guests: 6.12, 6.1, current, kasan, kcsan or a path
#   CUTS=N SEED=S     power cuts that `make torture` makes, and the seed of the first guest
#   SECONDS=N         that `make fuzz` takes for all fuzzers together
#   PARTS='NAME...'   of `make night`; `scripts/lab night --help` lists them
#   EXP='NAME...'     only these experiments of `make results`; `scripts/lab exp --list` lists them
#   K=NAME            only tests whose name contains it
BUILD	?= $(or $(MTFTL_BUILD),build)
KERNEL	?= 6.12
CUTS	?= 1000
SEED	?= 1
SECONDS	?= 600
export MTFTL_BUILD := $(abspath $(BUILD))
export QEMU_SRC SANITIZE
# QEMU frees little when it ends.
export ASAN_OPTIONS = detect_leaks=0

PYTHON	:= /usr/bin/python3
LAB	:= $(PYTHON) -B scripts/lab

help:
	@echo 'Try it:'
	@echo '  make demo      compare a single- with a multi-threaded FTL: a table and a figure'
	@echo '  make shell     open a guest with a zoned drive; KERNEL=6.12, 6.1, current or a path'
	@echo 'Use it:'
	@echo '  make install   install the module (DKMS) and mtftl(8) on this machine'
	@echo '  make deb       build their Debian packages, in build/deb'
	@echo 'Change it:'
	@echo '  make check     lint and the tests that need no guest: two minutes on two cores, once all is built'
	@echo '  make test      all tests; K=name: those whose name contains it; KERNEL=6.1, current, kasan or kcsan'
	@echo '  make lint      style, types, layers and prose'
	@echo '  make torture   cut the power CUTS=1000 times, from SEED=1 on'
	@echo '  make fuzz      fuzz everything that reads media, for SECONDS=600 in all'
	@echo '  make night     all of these in their heavier forms, for hours, from SEED=1 on; PARTS=: only these'
	@echo 'Measure it:'
	@echo '  make results   all experiments but the long ones, into results/ and the docs; EXP=: only these'
	@echo 'Build parts:'
	@echo '  make emulator  QEMU with our flash device and virtual time'
	@echo '  make guest     kernels and tools of the guests'
	@echo '  make target    dm-mtftl.ko and mtftl(8) for the guests'
	@echo '  make clean     remove everything that was built'

torture: $(PYTHON)
	@$(LAB) torture --cuts $(CUTS) --seed $(SEED)

fuzz: $(PYTHON)
	@$(LAB) fuzz --seconds $(SECONDS)

night: $(PYTHON)
	@$(LAB) night --seed $(SEED) $(PARTS)

demo check lint install: $(PYTHON)
	@$(LAB) $@

test: $(PYTHON)
	@$(LAB) test --kernel $(KERNEL) -k '$(K)'

results: $(PYTHON)
	@$(LAB) exp $(or $(EXP),--all)
	@$(LAB) report --readme

shell: $(PYTHON)
	@$(LAB) shell --kernel $(KERNEL)

emulator guest target: $(PYTHON)
	@$(LAB) build $@

deb:
	@$(MAKE) -C target BUILD=$(MTFTL_BUILD) deb

clean:
	rm -rf $(MTFTL_BUILD)

# The lab itself is Python: the one thing that it cannot fetch.
$(PYTHON):
	@echo 'missing Debian package: python3'
	@test $$(id -u) = 0 && S= || S=sudo; $$S apt-get -q update && $$S apt-get -q install -y --no-install-recommends python3

.PHONY: help demo check test torture fuzz night results shell emulator guest target lint deb install clean
