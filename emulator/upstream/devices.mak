# SPDX-License-Identifier: GPL-2.0-or-later
# The devices that the series' qtests need: most others would be compiled in vain.
CONFIG_I440FX=y
CONFIG_NVME_PCI=y
# QEMU 10.2 does not link without SPDM, and without CXL, which the others bring.
CONFIG_Q35=y
CONFIG_PXB=y
CONFIG_SPDM_SOCKET=y
