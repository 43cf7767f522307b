/*
 * What CPUs share: accesses that missed L1, by place and instruction.
 *
 * Called from the vCPU thread; the file is written when QEMU ends.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef SHARING_H
#define SHARING_H

#include "exec/vaddr.h"
#include "memory-model.h"

extern bool sharing_on;

/* Count from now on; @file gets it all.  Ticks are @speed to a nanosecond. */
void sharing_start(const char *file, int64_t speed);

/* Forget all and count (true), or count no more. */
void sharing_count(bool on);

/* @cpu accessed @addr, which is in @line, by the instruction at @pc. */
void sharing_note(int cpu, uint64_t line, vaddr addr, vaddr pc, MemKind kind,
                  const MemAnswer *answer);

#endif /* SHARING_H */
