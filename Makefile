# SPDX-License-Identifier: GPL-2.0
# The one entry to the project; the work is done by scripts/lab.
#
#   BUILD=FOLDER      where everything is built (build/); several checkouts can share one
#   QEMU_SRC=TARBALL  QEMU's source instead of Debian's source package
#   SANITIZE=1        the emulator under ASan and UBSan (slow), for whatever runs in it
#   KERNEL=NAME       kernel of the shell, and of the tests' guests: 6.12, 6.1, current, kasan, kcsan or a path
#   CUTS=N SEED=S     power cuts that `make torture` makes, and the seed of the first guest
#   SECONDS=N         that `make fuzz` takes for all fuzzers together
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
	@echo 'make demo      single- against multi-threaded FTL: a table and a figure'
	@echo 'make test      all tests; K=name: those whose name contains it; KERNEL=NAME: in guests of 6.1, current, kasan or kcsan'
	@echo 'make check     lint and the tests that need no guest: two minutes on two cores, once all is built'
	@echo 'make results   all experiments, into results/ and what shows them, and build/report.html'
	@echo 'make shell     an interactive guest with a zoned device; KERNEL=6.12, 6.1, current or a path'
	@echo 'make emulator  build QEMU with our flash device and virtual time'
	@echo 'make guest     build the guest: kernels and tools'
	@echo 'make target    build dm-mtftl.ko and mtftl(8) for the guest'
	@echo 'make torture   cut the power CUTS=1000 times, from SEED=1 on'
	@echo 'make fuzz      feed what reads media with any bytes, SECONDS=600 in all'
	@echo 'make lint      check style and types'
	@echo 'make install   install the module (DKMS) and mtftl(8) on this machine'
	@echo 'make clean     remove what was built'

torture: $(PYTHON)
	@$(LAB) torture --cuts $(CUTS) --seed $(SEED)

fuzz: $(PYTHON)
	@$(LAB) fuzz --seconds $(SECONDS)

demo check lint install: $(PYTHON)
	@$(LAB) $@

test: $(PYTHON)
	@$(LAB) test --kernel $(KERNEL) -k '$(K)'

results: $(PYTHON)
	@$(LAB) exp --all
	@$(LAB) report --readme

shell: $(PYTHON)
	@$(LAB) shell --kernel $(KERNEL)

emulator guest target: $(PYTHON)
	@$(LAB) build $@

clean:
	rm -rf $(MTFTL_BUILD)

# The lab itself is Python: the one thing that it cannot fetch.
$(PYTHON):
	@echo 'missing Debian package: python3'
	@test $$(id -u) = 0 && S= || S=sudo; $$S apt-get -q update && $$S apt-get -q install -y --no-install-recommends python3

.PHONY: help demo check test torture fuzz results shell emulator guest target lint install clean
