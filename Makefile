# SPDX-License-Identifier: GPL-2.0
# The one entry. BUILD= moves the build folder, so that several checkouts can share it.
BUILD ?= $(or $(MTFTL_BUILD),build)
export MTFTL_BUILD := $(abspath $(BUILD))
LAB := scripts/lab

help:
	@echo 'make emulator   build QEMU with our flash device and virtual time'
	@echo 'make guest      build the guest: kernels, tools'
	@echo 'make target     build dm-mtftl.ko and mtftl(8) for the guest'
	@echo 'make clean      remove the build folder'

emulator guest target:
	$(LAB) build $@

clean:
	rm -rf $(MTFTL_BUILD)

.PHONY: help emulator guest target clean
