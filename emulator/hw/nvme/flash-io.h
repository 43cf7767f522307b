/*
 * Requests of the controller on modelled flash: their commands, the clock that
 * ends them, and their data.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A request stands for any number of commands.  begin, submit each, end: it
 * completes when all have.  What a write brings is taken when it arrives, what
 * a read finds is handed over when it ends: as on a drive, a reset that comes
 * meanwhile shows.  A parked request can be forgotten at any time; its
 * FlashCmd lives on in the model without an owner.
 *
 * Everything runs under the big QEMU lock: in a vCPU thread when a doorbell is
 * served inline, in the main loop from the one virtual-clock timer of the
 * namespace.
 */

#ifndef HW_NVME_FLASH_IO_H
#define HW_NVME_FLASH_IO_H

#include "flash/model/model.h"
#include "nvme.h"

/* ctrl.c, before an I/O command: the clock is now, and the drive takes it. */
uint16_t nvme_flash_check(NvmeNamespace *ns);

/*
 * ctrl.c, before it takes a command from its queue.  True: too much memory is
 * in flight, and the command has to wait in the queue until
 * nvme_kick_waiting_sqs() is called.
 */
bool nvme_flash_full(NvmeCtrl *n, const NvmeCmd *cmd);

/* ctrl.c and personalities.  end gives a status, or NVME_NO_COMPLETE. */
void nvme_flash_begin(NvmeRequest *req);
uint16_t nvme_flash_end(NvmeRequest *req, uint16_t status);

/* ctrl.c: a flush of one namespace or of all, modelled ones and others. */
uint16_t nvme_flash_flush(NvmeCtrl *n, NvmeRequest *req, uint32_t nsid);

/* ctrl.c: forget a request that is being cancelled; false: not ours. */
bool nvme_flash_cancel(NvmeRequest *req);

/* Personalities: a command of a request that has begun, and its start. */
FlashCmd *nvme_flash_cmd(NvmeRequest *req, FlashCmdKind kind, uint32_t zone);
void nvme_flash_adopt(NvmeRequest *req, FlashCmd *cmd);
void nvme_flash_submit(struct NvmeFlash *f, FlashCmd *cmd);

/*
 * Personalities: count the blocks that the host reads or writes by a request
 * that has begun.  Only a request that succeeds counts; the SMART log shows
 * it.
 */
void nvme_flash_count(NvmeRequest *req, bool write, uint32_t nlb);

/*
 * Personalities: count memory of a request that has begun; that of its
 * commands is counted already.
 */
void nvme_flash_hold(NvmeRequest *req, uint32_t bytes);

/*
 * Personalities: data of the request, to the host, from the host, and a
 * comparison of both.  Each gives a status.
 */
uint16_t nvme_flash_copy_out(NvmeRequest *req, uint32_t zone, uint64_t block,
                             uint32_t nlb);
uint16_t nvme_flash_fetch(NvmeRequest *req, uint32_t nlb, uint8_t *data,
                          uint8_t *oob);
uint16_t nvme_flash_compare(NvmeRequest *req, uint32_t zone, uint64_t block,
                            uint32_t nlb);

/*
 * All rooms: let the model come to the present, and with it those of the
 * machine's other flash devices if a power cut is to find them there; and set
 * the timer to what is next, after anything that may have changed that.  Between
 * the two, what may end commands of the model stands between enter and leave.
 */
void nvme_flash_run(struct NvmeFlash *f);
void nvme_flash_arm(struct NvmeFlash *f);
void nvme_flash_enter(struct NvmeFlash *f);
void nvme_flash_leave(struct NvmeFlash *f);

/* flash.c: life.  The device is open between the two. */
void nvme_flash_io_start(struct NvmeFlash *f);
void nvme_flash_io_stop(struct NvmeFlash *f);

#endif
