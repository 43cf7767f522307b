/*
 * Debug port with which a guest pauses its machine.
 *
 * A write stops the vCPUs as QMP's "stop" does, but at an instant that the
 * guest has chosen: what is saved then depends on the guest alone.  The writing
 * vCPU stops at once; in lockstep all of them finish their round first.
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
#include "system/runstate.h"

#define TYPE_ISA_DEBUG_PAUSE "isa-debug-pause"
OBJECT_DECLARE_SIMPLE_TYPE(ISADebugPause, ISA_DEBUG_PAUSE)

struct ISADebugPause {
    ISADevice parent_obj;

    uint32_t iobase;
    MemoryRegion io;
};

static uint64_t debug_pause_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void debug_pause_write(void *opaque, hwaddr addr, uint64_t value,
                              unsigned size)
{
    vm_stop(RUN_STATE_PAUSED);
}

static const MemoryRegionOps debug_pause_ops = {
    .read = debug_pause_read,
    .write = debug_pause_write,
    .valid.max_access_size = 1,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

static void debug_pause_realize(DeviceState *dev, Error **errp)
{
    ISADebugPause *s = ISA_DEBUG_PAUSE(dev);

    memory_region_init_io(&s->io, OBJECT(dev), &debug_pause_ops, s,
                          TYPE_ISA_DEBUG_PAUSE, 1);
    memory_region_add_subregion(isa_address_space_io(ISA_DEVICE(dev)),
                                s->iobase, &s->io);
}

static const Property debug_pause_properties[] = {
    DEFINE_PROP_UINT32("iobase", ISADebugPause, iobase, 0xf8),
};

static void debug_pause_class_init(ObjectClass *class, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(class);

    dc->realize = debug_pause_realize;
    device_class_set_props(dc, debug_pause_properties);
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static const TypeInfo debug_pause_info = {
    .name          = TYPE_ISA_DEBUG_PAUSE,
    .parent        = TYPE_ISA_DEVICE,
    .instance_size = sizeof(ISADebugPause),
    .class_init    = debug_pause_class_init,
};

static void debug_pause_register_types(void)
{
    type_register_static(&debug_pause_info);
}

type_init(debug_pause_register_types)
