/*
 * Debug port with which a guest says when to count what its CPUs share.
 *
 * A write of 1 forgets what was counted and counts from then on, a write of 0
 * ends that.  Who starts a measurement in the guest knows when; and what came
 * before it, and after, is not what was asked for.
 *
 * There is nothing to protect and nothing to migrate.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/isa/isa.h"
#include "hw/qdev-properties.h"
#include "qemu/module.h"
#include "qom/object.h"
#include "accel/tcg/sharing.h"

#define TYPE_ISA_DEBUG_SHARING "isa-debug-sharing"
OBJECT_DECLARE_SIMPLE_TYPE(ISADebugSharing, ISA_DEBUG_SHARING)

struct ISADebugSharing {
    ISADevice parent_obj;

    uint32_t iobase;
    MemoryRegion io;
};

static uint64_t debug_sharing_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void debug_sharing_write(void *opaque, hwaddr addr, uint64_t value,
                                unsigned size)
{
    sharing_count(value != 0);
}

static const MemoryRegionOps debug_sharing_ops = {
    .read = debug_sharing_read,
    .write = debug_sharing_write,
    .valid.max_access_size = 1,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

static void debug_sharing_realize(DeviceState *dev, Error **errp)
{
    ISADebugSharing *s = ISA_DEBUG_SHARING(dev);

    memory_region_init_io(&s->io, OBJECT(dev), &debug_sharing_ops, s,
                          TYPE_ISA_DEBUG_SHARING, 1);
    memory_region_add_subregion(isa_address_space_io(ISA_DEVICE(dev)),
                                s->iobase, &s->io);
}

static const Property debug_sharing_properties[] = {
    DEFINE_PROP_UINT32("iobase", ISADebugSharing, iobase, 0xf9),
};

static void debug_sharing_class_init(ObjectClass *class, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(class);

    dc->realize = debug_sharing_realize;
    device_class_set_props(dc, debug_sharing_properties);
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static const TypeInfo debug_sharing_info = {
    .name          = TYPE_ISA_DEBUG_SHARING,
    .parent        = TYPE_ISA_DEVICE,
    .instance_size = sizeof(ISADebugSharing),
    .class_init    = debug_sharing_class_init,
};

static void debug_sharing_register_types(void)
{
    type_register_static(&debug_sharing_info);
}

type_init(debug_sharing_register_types)
