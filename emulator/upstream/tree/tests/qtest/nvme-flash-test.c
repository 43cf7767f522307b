/*
 * QTest testcase for NVMe namespaces on modelled flash
 *
 * The test is the driver of one controller, whose queues it polls.  Virtual
 * time stands still unless the test lets it go on, so each command has to end
 * at the nanosecond that the properties make.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "libqtest.h"
#include "libqos/pci.h"
#include "libqos/pci-pc.h"
#include "block/nvme.h"

#define SQ(queue)   (0x100000 + (queue) * 0x10000)
#define CQ(queue)   (0x180000 + (queue) * 0x10000)
#define DATA        0x800000
#define DEPTH       64
#define BLOCK       4096
#define ZONE        (256 * KiB / BLOCK)
#define READ_NS     50000
#define PROGRAM_NS  700000
#define ERASE_NS    3500000

typedef struct Drive {
    QTestState *qts;
    QPCIBus *bus;
    QPCIDevice *dev;
    QPCIBar bar;
    unsigned tail[2], head[2];
} Drive;

static char *media;

/* Two dies with pages of a block each: block i of a zone is on die i % 2. */
static char *command_line(const char *more)
{
    return g_strdup_printf(
        "-machine pc -nodefaults -device nvme,id=nvme0,serial=flash,addr=4 "
        "-device nvme-ns,id=ns0,bus=nvme0,nsid=1,zoned=on,"
        "logical_block_size=4096,physical_block_size=4096,"
        "zoned.zone_size=256K,flash.media=%s,flash.size=2M,flash.dies=2,"
        "flash.page=4K,flash.block_pages=32,flash.buffer=0,"
        "flash.read_ns=%d,flash.program_ns=%d,flash.erase_ns=%d%s",
        media, READ_NS, PROGRAM_NS, ERASE_NS, more);
}

static void submit(Drive *d, int queue, NvmeCmd *cmd)
{
    cmd->cid = cpu_to_le16(d->tail[queue]);
    qtest_memwrite(d->qts, SQ(queue) + d->tail[queue] * sizeof(*cmd), cmd,
                   sizeof(*cmd));
    d->tail[queue] = (d->tail[queue] + 1) % DEPTH;
    qpci_io_writel(d->dev, d->bar, 0x1000 + 8 * queue, d->tail[queue]);
}

/* Has another command ended?  With which status? */
static bool ended(Drive *d, int queue, uint16_t *status)
{
    unsigned at = d->head[queue] % DEPTH;
    bool phase = d->head[queue] / DEPTH % 2 == 0;
    NvmeCqe cqe;

    qtest_memread(d->qts, CQ(queue) + at * sizeof(cqe), &cqe, sizeof(cqe));
    if ((le16_to_cpu(cqe.status) & 1) != phase) {
        return false;
    }
    *status = le16_to_cpu(cqe.status) >> 1;
    d->head[queue]++;
    qpci_io_writel(d->dev, d->bar, 0x1004 + 8 * queue,
                   d->head[queue] % DEPTH);
    return true;
}

static void admin(Drive *d, NvmeCmd *cmd)
{
    uint16_t status;

    submit(d, 0, cmd);
    while (!ended(d, 0, &status)) {
        qtest_clock_step(d->qts, 1000000);
    }
    g_assert_cmphex(status, ==, NVME_SUCCESS);
}

static void make_queue(Drive *d, uint8_t opcode, uint64_t memory,
                       uint32_t flags)
{
    NvmeCmd cmd = {
        .opcode = opcode,
        .dptr.prp1 = cpu_to_le64(memory),
        .cdw10 = cpu_to_le32((DEPTH - 1) << 16 | 1),
        .cdw11 = cpu_to_le32(flags),
    };

    admin(d, &cmd);
}

static void enable(Drive *d)
{
    memset(d->tail, 0, sizeof(d->tail));
    memset(d->head, 0, sizeof(d->head));
    for (int queue = 0; queue < 2; queue++) {
        qtest_memset(d->qts, CQ(queue), 0, DEPTH * sizeof(NvmeCqe));
    }
    qpci_io_writel(d->dev, d->bar, NVME_REG_AQA,
                   (DEPTH - 1) << 16 | (DEPTH - 1));
    qpci_io_writel(d->dev, d->bar, NVME_REG_ASQ, SQ(0));
    qpci_io_writel(d->dev, d->bar, NVME_REG_ACQ, CQ(0));
    /* Entries of 64 and 16 bytes, and all command sets. */
    qpci_io_writel(d->dev, d->bar, NVME_REG_CC,
                   1 | 6 << 4 | 6 << 16 | 4 << 20);
    g_assert_cmphex(qpci_io_readl(d->dev, d->bar, NVME_REG_CSTS) & 1, ==, 1);
    make_queue(d, NVME_ADM_CMD_CREATE_CQ, CQ(1), 1);
    make_queue(d, NVME_ADM_CMD_CREATE_SQ, SQ(1), 1 << 16 | 1);
}

static void start(Drive *d, const char *more)
{
    g_autofree char *line = command_line(more);

    memset(d, 0, sizeof(*d));
    d->qts = qtest_init(line);
    d->bus = qpci_new_pc(d->qts, NULL);
    d->dev = qpci_device_find(d->bus, QPCI_DEVFN(4, 0));
    g_assert_nonnull(d->dev);
    qpci_device_enable(d->dev);
    d->bar = qpci_iomap(d->dev, 0, NULL);
    enable(d);
}

static void stop(Drive *d)
{
    g_free(d->dev);
    qpci_free_pc(d->bus);
    qtest_quit(d->qts);
}

static void submit_rw(Drive *d, uint8_t opcode, uint64_t slba)
{
    NvmeRwCmd cmd = {
        .opcode = opcode,
        .nsid = cpu_to_le32(1),
        .dptr.prp1 = cpu_to_le64(DATA),
        .slba = cpu_to_le64(slba),
    };

    submit(d, 1, (NvmeCmd *)&cmd);
}

static void submit_reset(Drive *d, uint64_t zslba)
{
    NvmeZoneSendCmd cmd = {
        .opcode = NVME_CMD_ZONE_MGMT_SEND,
        .nsid = cpu_to_le32(1),
        .slba = cpu_to_le64(zslba),
        .zsa = NVME_ZONE_ACTION_RESET,
    };

    submit(d, 1, (NvmeCmd *)&cmd);
}

/* The next command ends in @ns from now, and not a nanosecond before. */
static void ends_in(Drive *d, int64_t ns)
{
    uint16_t status;

    if (ns) {
        qtest_clock_step(d->qts, ns - 1);
        g_assert_false(ended(d, 1, &status));
        qtest_clock_step(d->qts, 1);
    }
    g_assert_true(ended(d, 1, &status));
    g_assert_cmphex(status, ==, NVME_SUCCESS);
}

static void put(Drive *d, uint64_t slba, uint8_t byte, int64_t ns)
{
    qtest_memset(d->qts, DATA, byte, BLOCK);
    submit_rw(d, NVME_CMD_WRITE, slba);
    ends_in(d, ns);
}

static uint8_t get(Drive *d, uint64_t slba, int64_t ns)
{
    qtest_memset(d->qts, DATA, 0xff, BLOCK);
    submit_rw(d, NVME_CMD_READ, slba);
    ends_in(d, ns);
    return qtest_readb(d->qts, DATA + BLOCK - 1);
}

static void flush(Drive *d, int64_t ns)
{
    NvmeCmd cmd = { .opcode = NVME_CMD_FLUSH, .nsid = cpu_to_le32(1) };

    submit(d, 1, &cmd);
    ends_in(d, ns);
}

static void test_times(void)
{
    Drive d;

    start(&d, "");
    put(&d, 0, 1, PROGRAM_NS);
    put(&d, 1, 2, PROGRAM_NS);
    put(&d, 2, 3, PROGRAM_NS);
    g_assert_cmpint(get(&d, 0, READ_NS), ==, 1);

    /* Two dies read at once, one die reads one after the other. */
    submit_rw(&d, NVME_CMD_READ, 0);
    submit_rw(&d, NVME_CMD_READ, 1);
    ends_in(&d, READ_NS);
    ends_in(&d, 0);
    submit_rw(&d, NVME_CMD_READ, 0);
    submit_rw(&d, NVME_CMD_READ, 2);
    ends_in(&d, READ_NS);
    ends_in(&d, READ_NS);

    /* A read waits for the program that its die has begun. */
    submit_rw(&d, NVME_CMD_WRITE, 3);
    submit_rw(&d, NVME_CMD_READ, 1);
    ends_in(&d, PROGRAM_NS);
    ends_in(&d, READ_NS);

    submit_reset(&d, 0);
    ends_in(&d, ERASE_NS);
    g_assert_cmpint(get(&d, 0, 0), ==, 0);
    stop(&d);
    unlink(media);
}

static void test_restart(void)
{
    Drive d;

    start(&d, "");
    put(&d, ZONE, 0x61, PROGRAM_NS);
    put(&d, ZONE + 1, 0x62, PROGRAM_NS);
    stop(&d);

    start(&d, "");
    g_assert_cmpint(get(&d, ZONE, READ_NS), ==, 0x61);
    g_assert_cmpint(get(&d, ZONE + 1, READ_NS), ==, 0x62);
    /* The write pointer is where it was. */
    put(&d, ZONE + 2, 0x63, PROGRAM_NS);
    stop(&d);
    unlink(media);
}

static void fault(Drive *d, const char *what)
{
    qtest_qmp_assert_success(d->qts,
        "{ 'execute': 'qom-set', 'arguments': {"
        "  'path': '/machine/peripheral/ns0', 'property': 'flash.fault',"
        "  'value': %s } }", what);
}

/*
 * A power cut takes what is in the buffer, and nothing that was flushed.  A
 * program fills two pages here, so that one block does not begin it.
 */
static void test_power_cut(void)
{
    Drive d;

    start(&d,
          ",flash.buffer=64K,flash.write_cmd_ns=1000,flash.program_pages=2");
    put(&d, 0, 0x61, 1000);
    flush(&d, PROGRAM_NS);
    put(&d, ZONE, 0x62, 1000);
    fault(&d, "cut");
    fault(&d, "power-on");
    g_assert_cmpint(get(&d, 0, READ_NS), ==, 0x61);
    g_assert_cmpint(get(&d, ZONE, 0), ==, 0);
    put(&d, ZONE, 0x63, 1000);
    flush(&d, PROGRAM_NS);
    fault(&d, "cut");
    fault(&d, "power-on");
    g_assert_cmpint(get(&d, ZONE, READ_NS), ==, 0x63);
    stop(&d);
    unlink(media);
}

/* What is in flight when the controller is reset never ends. */
static void test_controller_reset(void)
{
    uint16_t status;
    Drive d;

    start(&d, "");
    put(&d, 0, 0x61, PROGRAM_NS);
    submit_rw(&d, NVME_CMD_READ, 0);
    qtest_clock_step(d.qts, READ_NS / 2);
    qpci_io_writel(d.dev, d.bar, NVME_REG_CC, 0);
    enable(&d);
    qtest_clock_step(d.qts, READ_NS);
    g_assert_false(ended(&d, 1, &status));
    g_assert_cmpint(get(&d, 0, READ_NS), ==, 0x61);
    stop(&d);
    unlink(media);
}

/* Nothing of a controller that is unplugged is used when its time comes. */
static void test_unplug(void)
{
    NvmeCqe cqes[2][DEPTH];
    Drive d;

    start(&d, "");
    put(&d, 0, 0x61, PROGRAM_NS);
    qtest_memset(d.qts, DATA, 0xff, BLOCK);
    submit_rw(&d, NVME_CMD_READ, 0);
    qtest_qmp_device_del_send(d.qts, "nvme0");
    qtest_system_reset_nowait(d.qts);
    qtest_qmp_eventwait(d.qts, "DEVICE_DELETED");
    qtest_memread(d.qts, CQ(1), cqes[0], sizeof(cqes[0]));
    qtest_clock_step(d.qts, READ_NS);
    qtest_memread(d.qts, CQ(1), cqes[1], sizeof(cqes[1]));
    g_assert_cmpmem(cqes[0], sizeof(cqes[0]), cqes[1], sizeof(cqes[1]));
    g_assert_cmphex(qtest_readb(d.qts, DATA + BLOCK - 1), ==, 0xff);
    stop(&d);
    unlink(media);
}

int main(int argc, char **argv)
{
    g_autofree char *folder = g_dir_make_tmp("nvme-flash-XXXXXX", NULL);
    int status;

    g_test_init(&argc, &argv, NULL);
    g_assert_nonnull(folder);
    media = g_build_filename(folder, "media", NULL);

    qtest_add_func("/nvme-flash/times", test_times);
    qtest_add_func("/nvme-flash/restart", test_restart);
    qtest_add_func("/nvme-flash/power-cut", test_power_cut);
    qtest_add_func("/nvme-flash/controller-reset", test_controller_reset);
    qtest_add_func("/nvme-flash/unplug", test_unplug);

    status = g_test_run();
    rmdir(folder);
    g_free(media);
    return status;
}
