# SPDX-License-Identifier: GPL-2.0-or-later
# The devices that the series' qtests need: most others would be compiled in vain.
CONFIG_I440FX=y
CONFIG_NVME_PCI=y
# QEMU 10.2 does not link without SPDM and CXL. No default holds here, so CXL's parts are named, too.
CONFIG_SPDM_SOCKET=y
CONFIG_Q35=y
CONFIG_PXB=y
CONFIG_PCIE_PORT=y
CONFIG_CXL=y
CONFIG_CXL_MEM_DEVICE=y
