/*
 * Debug ports: a guest writes to one, and something happens at that instant.
 *
 * isa-debug-pause: a write stops the vCPUs as QMP's "stop" does, but at an
 * instant that the guest has chosen, so what is saved then depends on the guest
 * alone.  The writing vCPU stops at once; in lockstep all of them finish their
 * round first.
 *
 * isa-debug-sharing: a write of 1 forgets what was counted of what CPUs share
 * and counts from then on, a write of 0 ends that.  So a guest counts while it
 * measures, and neither before nor after.
 *
 * There is nothing to protect and nothing to migrate.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "accel/tcg/sharing.h"
#include "hw/isa/isa.h"
#include "hw/qdev-properties.h"
#include "qemu/module.h"
#include "qom/object.h"
#include "system/runstate.h"

#define TYPE_ISA_DEBUG_PORT "isa-debug-port"
OBJECT_DECLARE_TYPE(ISADebugPort, ISADebugPortClass, ISA_DEBUG_PORT)

struct ISADebugPort {
    ISADevice parent_obj;

    uint32_t iobase;
    MemoryRegion io;
};

struct ISADebugPortClass {
    DeviceClass parent_class;

    void (*written)(uint64_t value);
};

static uint64_t debug_port_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void debug_port_write(void *opaque, hwaddr addr, uint64_t value,
                             unsigned size)
{
    ISA_DEBUG_PORT_GET_CLASS(opaque)->written(value);
}

static const MemoryRegionOps debug_port_ops = {
    .read = debug_port_read,
    .write = debug_port_write,
    .valid.max_access_size = 1,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

static void debug_port_realize(DeviceState *dev, Error **errp)
{
    ISADebugPort *s = ISA_DEBUG_PORT(dev);

    memory_region_init_io(&s->io, OBJECT(dev), &debug_port_ops, s,
                          object_get_typename(OBJECT(dev)), 1);
    memory_region_add_subregion(isa_address_space_io(ISA_DEVICE(dev)),
                                s->iobase, &s->io);
}

static void debug_port_class_init(ObjectClass *class, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(class);

    dc->realize = debug_port_realize;
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static void debug_pause_written(uint64_t value)
{
    vm_stop(RUN_STATE_PAUSED);
}

static const Property debug_pause_properties[] = {
    DEFINE_PROP_UINT32("iobase", ISADebugPort, iobase, 0xf8),
};

static void debug_pause_class_init(ObjectClass *class, void *data)
{
    device_class_set_props(DEVICE_CLASS(class), debug_pause_properties);
    ISA_DEBUG_PORT_CLASS(class)->written = debug_pause_written;
}

static void debug_sharing_written(uint64_t value)
{
    sharing_count(value != 0);
}

static const Property debug_sharing_properties[] = {
    DEFINE_PROP_UINT32("iobase", ISADebugPort, iobase, 0xf9),
};

static void debug_sharing_class_init(ObjectClass *class, void *data)
{
    device_class_set_props(DEVICE_CLASS(class), debug_sharing_properties);
    ISA_DEBUG_PORT_CLASS(class)->written = debug_sharing_written;
}

static const TypeInfo debug_port_types[] = {
    {
        .name          = TYPE_ISA_DEBUG_PORT,
        .parent        = TYPE_ISA_DEVICE,
        .instance_size = sizeof(ISADebugPort),
        .class_size    = sizeof(ISADebugPortClass),
        .class_init    = debug_port_class_init,
        .abstract      = true,
    }, {
        .name          = "isa-debug-pause",
        .parent        = TYPE_ISA_DEBUG_PORT,
        .class_init    = debug_pause_class_init,
    }, {
        .name          = "isa-debug-sharing",
        .parent        = TYPE_ISA_DEBUG_PORT,
        .class_init    = debug_sharing_class_init,
    },
};

DEFINE_TYPES(debug_port_types)
