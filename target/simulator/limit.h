/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Limits of write amplification that no policy can pass, or that one has in theory. Pure.
 */
#ifndef MTFTL_LIMIT_H
#define MTFTL_LIMIT_H

#include "lib/pure.h"

/*
 * How often each block is stored, in all 1, where it is written so often (@shares, NULL: all alike) to a buffer of
 * @window blocks: of those that find the block there nothing is stored.
 */
void stored_shares(double *stored, const double *shares, u32 blocks, double window);

/*
 * The least write amplification of a drive that has @spare times the room of its blocks, if each
 * block lay with its like. The others as above.
 *
 * Blocks that are collected when a part v of their zone is valid need -ln v / (1 - v) times their
 * own room and are written 1 / (1 - v) times. Room is worth the same to all of them where
 * 1/v - 1 + ln v = share / mu, and mu follows from the room that there is.
 */
double limit_of_placement(const double *shares, u32 blocks, double spare, double window);

#endif
