// SPDX-License-Identifier: GPL-2.0
/*
 * The oracle's bookkeeping and judgement, see oracle.h. Knows nothing of
 * devices. oracle->lock protects everything but the immutable run and nr_blocks.
 */
#include "oracle.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "notes.h"

#define STAMP_MAGIC	0x656c6361726f6674ull	/* "tforacle" */
#define WINDOW		64u	/* versions of a block between durable and submitted */
#define LOG_SIZE	(1u << 16)
#define ZEROES		0u	/* as a stamp: the block reads as zeroes */
#define MAX_REPORTS	16u

struct block {
	uint32_t submitted;	/* newest version given out */
	uint32_t acked;		/* no reader may see an older one any more */
	uint32_t durable;	/* no crash may bring back an older one any more */
	uint32_t base;		/* version that stands for what the last check found... */
	uint32_t base_stamp;	/* ...which is this stamp */
	uint32_t group;		/* first version of the operations in flight */
	uint32_t inflight;
	uint64_t zeroes;	/* bit v % WINDOW: version v is zeroes, not a write */
};

struct stamp {
	uint64_t magic;
	uint64_t run;
	uint64_t lba;
	uint64_t version;
};

struct ack {
	uint64_t lba;
	uint32_t version;
};

struct event {
	uint64_t ns;
	uint64_t lba;
	uint32_t nr;
	uint32_t version;	/* of the first block */
	enum note_kind kind;
};

static const char *const kind_names[NR_NOTES] = {
	[NOTE_BEGIN] = "write>", [NOTE_CLEAR] = "zeroes>", [NOTE_ACKED] = "acked<",
	[NOTE_FAILED] = "failed<", [NOTE_DURABLE] = "fua<", [NOTE_FLUSH] = "flush>",
	[NOTE_FLUSHED] = "flushed<",
};

struct oracle {
	pthread_mutex_t lock;
	uint64_t run;
	uint64_t nr_blocks;
	struct block *blocks;
	/* Acknowledgements in order, dropped once a flush has covered them. */
	struct ack *acks;
	size_t first_ack, nr_acks, max_acks;
	struct event *log;	/* ring of LOG_SIZE */
	uint64_t nr_events;
	unsigned int reports;
	const uint64_t *clock;	/* NULL: the system's */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *must_calloc(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	if (!p) {
		perror("oracle");
		exit(2);
	}
	return p;
}

static void tell(enum note_kind kind, uint32_t op, uint64_t lba, uint32_t nr)
{
	struct note note = { .kind = kind, .op = op, .lba = (uint32_t)lba, .nr = nr };

	notes_add(&note);
}

struct oracle *oracle_new(uint64_t run, uint64_t nr_blocks)
{
	struct oracle *oracle = must_calloc(1, sizeof(*oracle));

	pthread_mutex_init(&oracle->lock, NULL);
	oracle->run = run;
	oracle->nr_blocks = nr_blocks;
	oracle->blocks = must_calloc(nr_blocks, sizeof(*oracle->blocks));
	oracle->log = must_calloc(LOG_SIZE, sizeof(*oracle->log));
	tell(NOTE_ORACLE, (uint32_t)run, nr_blocks, 0);
	return oracle;
}

void oracle_free(struct oracle *oracle)
{
	pthread_mutex_destroy(&oracle->lock);
	free(oracle->blocks);
	free(oracle->acks);
	free(oracle->log);
	free(oracle);
}

uint64_t oracle_nr_blocks(const struct oracle *oracle)
{
	return oracle->nr_blocks;
}

static void record(struct oracle *oracle, enum note_kind kind, const struct op *op,
		   uint32_t version)
{
	struct event *event = &oracle->log[oracle->nr_events++ % LOG_SIZE];

	*event = (struct event){
		.ns = oracle->clock ? *oracle->clock : now_ns(), .lba = op->lba, .nr = op->nr, .version = version, .kind = kind,
	};
	tell(kind, (uint32_t)((uintptr_t)op >> 4), op->lba, op->nr);
}

static uint32_t max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void set_kind(struct block *block, uint32_t version, bool zeroes)
{
	uint64_t bit = 1ull << version % WINDOW;

	if (zeroes)
		block->zeroes |= bit;
	else
		block->zeroes &= ~bit;
}

static bool is_zeroes(const struct block *block, uint32_t version)
{
	return block->zeroes >> version % WINDOW & 1;
}

/* The stamp, and the payload that follows from it. */
static void fill_block(uint64_t run, uint64_t lba, uint32_t version, void *data)
{
	struct stamp stamp = { STAMP_MAGIC, run, lba, version };
	uint64_t word = (run ^ lba << 32 ^ version) * 0x9e3779b97f4a7c15ull | 1;
	uint64_t *words = data;
	size_t i;

	memcpy(data, &stamp, sizeof(stamp));
	for (i = sizeof(stamp) / sizeof(*words); i < BLOCK_BYTES / sizeof(*words); i++) {
		word = word * 0x5851f42d4c957f2dull + 0x14057b7ef767814full;
		words[i] = word;
	}
}

void oracle_fill(const struct oracle *oracle, const struct op *op, void *data)
{
	uint32_t i;

	for (i = 0; i < op->nr; i++)
		fill_block(oracle->run, op->lba + i, op->version[i],
			   (char *)data + (size_t)i * BLOCK_BYTES);
}

enum begun oracle_begin(struct oracle *oracle, struct op *op, uint64_t lba, uint32_t nr,
			bool zeroes, bool race)
{
	enum begun result = BEGUN;
	uint32_t i;

	assert(nr <= MAX_OP_BLOCKS && lba + nr <= oracle->nr_blocks);
	pthread_mutex_lock(&oracle->lock);
	for (i = 0; i < nr && result == BEGUN; i++) {
		struct block *block = &oracle->blocks[lba + i];

		if (block->inflight && !race)
			result = BUSY;
		else if (block->submitted + 1 - block->durable >= WINDOW)
			result = FLUSH_FIRST;
	}
	if (result != BEGUN) {
		pthread_mutex_unlock(&oracle->lock);
		return result;
	}
	op->lba = lba;
	op->nr = nr;
	op->zeroes = zeroes;
	for (i = 0; i < nr; i++) {
		struct block *block = &oracle->blocks[lba + i];

		op->version[i] = ++block->submitted;
		set_kind(block, block->submitted, zeroes);
		if (!block->inflight++)
			block->group = block->submitted;
		op->group[i] = block->group;
	}
	record(oracle, zeroes ? NOTE_CLEAR : NOTE_BEGIN, op, op->version[0]);
	pthread_mutex_unlock(&oracle->lock);
	return BEGUN;
}

static void add_ack(struct oracle *oracle, uint64_t lba, uint32_t version)
{
	if (oracle->nr_acks == oracle->max_acks) {
		oracle->max_acks = oracle->max_acks ? 2 * oracle->max_acks : 4096;
		oracle->acks = realloc(oracle->acks, oracle->max_acks * sizeof(*oracle->acks));
		if (!oracle->acks) {
			perror("oracle");
			exit(2);
		}
	}
	oracle->acks[oracle->nr_acks++] = (struct ack){ lba, version };
}

/* Everything acknowledged before the flush of @op began is durable. */
static void flushed(struct oracle *oracle, const struct op *op)
{
	size_t i, nr;

	if (op->acked_before <= oracle->first_ack)
		return;
	nr = op->acked_before - oracle->first_ack;
	for (i = 0; i < nr; i++) {
		struct block *block = &oracle->blocks[oracle->acks[i].lba];

		block->durable = max32(block->durable, oracle->acks[i].version);
	}
	oracle->nr_acks -= nr;
	oracle->first_ack += nr;
	memmove(oracle->acks, oracle->acks + nr, oracle->nr_acks * sizeof(*oracle->acks));
}

void oracle_end(struct oracle *oracle, struct op *op, bool ok, bool durable)
{
	uint32_t i;

	pthread_mutex_lock(&oracle->lock);
	for (i = 0; i < op->nr; i++) {
		struct block *block = &oracle->blocks[op->lba + i];

		block->inflight--;
		if (!ok)
			continue;
		block->acked = max32(block->acked, op->group[i]);
		if (durable)
			block->durable = max32(block->durable, op->group[i]);
		else
			add_ack(oracle, op->lba + i, op->group[i]);
	}
	record(oracle, !ok ? NOTE_FAILED : durable ? NOTE_DURABLE : NOTE_ACKED, op,
	       op->version[0]);
	pthread_mutex_unlock(&oracle->lock);
}

void oracle_flush_begin(struct oracle *oracle, struct op *op)
{
	pthread_mutex_lock(&oracle->lock);
	op->lba = 0;
	op->nr = 0;
	op->acked_before = oracle->first_ack + oracle->nr_acks;
	record(oracle, NOTE_FLUSH, op, 0);
	pthread_mutex_unlock(&oracle->lock);
}

void oracle_flush_end(struct oracle *oracle, const struct op *op)
{
	pthread_mutex_lock(&oracle->lock);
	flushed(oracle, op);
	record(oracle, NOTE_FLUSHED, op, 0);
	pthread_mutex_unlock(&oracle->lock);
}

void oracle_stopped_clean(struct oracle *oracle)
{
	struct op all;

	oracle_flush_begin(oracle, &all);
	oracle_flush_end(oracle, &all);
}

void oracle_read_begin(struct oracle *oracle, struct op *op, uint64_t lba, uint32_t nr)
{
	uint32_t i;

	assert(nr <= MAX_OP_BLOCKS && lba + nr <= oracle->nr_blocks);
	op->lba = lba;
	op->nr = nr;
	pthread_mutex_lock(&oracle->lock);
	for (i = 0; i < nr; i++)
		op->version[i] = oracle->blocks[lba + i].acked;
	pthread_mutex_unlock(&oracle->lock);
}

static bool all_zero(const void *data)
{
	const uint64_t *words = data;
	size_t i;

	for (i = 0; i < BLOCK_BYTES / sizeof(*words); i++)
		if (words[i])
			return false;
	return true;
}

const char *oracle_stamp(uint64_t run, const void *data, uint64_t *lba, uint32_t *version)
{
	uint64_t expected[BLOCK_BYTES / sizeof(uint64_t)];
	struct stamp stamp;

	*version = ZEROES;
	memcpy(&stamp, data, sizeof(stamp));
	if (stamp.magic != STAMP_MAGIC)
		return all_zero(data) ? NULL : "garbage";
	*version = (uint32_t)stamp.version;
	*lba = stamp.lba;
	if (stamp.run != run)
		return "data of another run";
	fill_block(stamp.run, stamp.lba, *version, expected);
	return memcmp(expected, data, BLOCK_BYTES) ? "torn or mixed" : NULL;
}

/* What @data is: its stamp (or ZEROES), else why it is no whole block of ours. */
static const char *classify(const struct oracle *oracle, uint64_t lba, const void *data,
			    uint32_t *version)
{
	uint64_t stamped = lba;
	const char *wrong = oracle_stamp(oracle->run, data, &stamped, version);

	return wrong ? wrong : stamped != lba ? "another block's data" : NULL;
}

/* May the block be @version, if nothing older than @oldest is allowed? */
static bool allowed(const struct block *block, uint32_t oldest, uint32_t version)
{
	uint32_t v;

	if (version == block->base_stamp && oldest <= block->base)
		return true;
	oldest = max32(oldest, block->base + 1);
	if (version != ZEROES)
		return version >= oldest && version <= block->submitted &&
		       (block->submitted - version >= WINDOW || !is_zeroes(block, version));
	for (v = block->submitted; v >= oldest; v--)
		if (block->submitted - v >= WINDOW || is_zeroes(block, v))
			return true;
	return false;
}

/* Every operation that is still remembered on @lba, and all flushes. */
static void print_history(const struct oracle *oracle, uint64_t lba)
{
	uint64_t i = oracle->nr_events > LOG_SIZE ? oracle->nr_events - LOG_SIZE : 0;

	printf("history of block %" PRIu64 " (version is of the first block of each range):\n",
	       lba);
	for (; i < oracle->nr_events; i++) {
		const struct event *event = &oracle->log[i % LOG_SIZE];

		if (event->nr && (lba < event->lba || lba >= event->lba + event->nr))
			continue;
		printf("  %" PRIu64 ".%06" PRIu64 " ms %s %" PRIu64 "+%u v%u\n",
		       event->ns / 1000000, event->ns % 1000000, kind_names[event->kind], event->lba,
		       event->nr, event->version);
	}
}

static void report(struct oracle *oracle, const char *when, const char *what, uint64_t lba,
		   uint32_t oldest, uint32_t version)
{
	const struct block *block = &oracle->blocks[lba];
	uint32_t v;

	if (oracle->reports++ >= MAX_REPORTS)
		return;
	printf("VIOLATION %s: block %" PRIu64 ": %s: found version %u%s, allowed %u..%u", when,
	       lba, what, version, version == ZEROES ? " (zeroes)" : "", oldest,
	       block->submitted);
	printf(" (acked %u, durable %u, base %u is %u; zeroes:", block->acked, block->durable,
	       block->base, block->base_stamp);
	for (v = oldest; v <= block->submitted; v++)
		if (v > block->base && is_zeroes(block, v))
			printf(" %u", v);
	printf(")\n");
	if (oracle->reports == 1)
		print_history(oracle, lba);
}

static unsigned int judge(struct oracle *oracle, const char *when, uint64_t lba,
			  uint32_t oldest, const void *data, uint32_t *version)
{
	const struct block *block = &oracle->blocks[lba];
	const char *wrong = classify(oracle, lba, data, version);

	if (!wrong && allowed(block, oldest, *version))
		return 0;
	if (!wrong)
		wrong = *version > block->submitted ? "from the future" : "stale";
	report(oracle, when, wrong, lba, oldest, *version);
	return 1;
}

unsigned int oracle_read_end(struct oracle *oracle, const struct op *op, const void *data)
{
	unsigned int violations = 0;
	uint32_t i, version;

	pthread_mutex_lock(&oracle->lock);
	for (i = 0; i < op->nr; i++)
		violations += judge(oracle, "read", op->lba + i, op->version[i],
				    (const char *)data + (size_t)i * BLOCK_BYTES, &version);
	pthread_mutex_unlock(&oracle->lock);
	return violations;
}

static void rebase(struct block *block, uint32_t stamp)
{
	block->acked = block->submitted;
	block->durable = block->submitted;
	block->base = block->submitted;
	block->base_stamp = stamp;
}

void oracle_crashed(struct oracle *oracle)
{
	pthread_mutex_lock(&oracle->lock);
	oracle->first_ack += oracle->nr_acks;
	oracle->nr_acks = 0;
	tell(NOTE_CRASHED, 0, 0, 0);
	pthread_mutex_unlock(&oracle->lock);
}

void oracle_formatted(struct oracle *oracle, uint64_t nr_blocks)
{
	uint64_t i;

	oracle_crashed(oracle);
	pthread_mutex_lock(&oracle->lock);
	for (i = 0; i < oracle->nr_blocks; i++)
		rebase(&oracle->blocks[i], ZEROES);
	/* What was before says nothing of these blocks. */
	oracle->nr_events = 0;
	tell(NOTE_FORMATTED, 0, nr_blocks, 0);
	pthread_mutex_unlock(&oracle->lock);
}

bool oracle_changed(struct oracle *oracle, uint64_t lba)
{
	bool changed;

	pthread_mutex_lock(&oracle->lock);
	changed = oracle->blocks[lba].submitted != oracle->blocks[lba].base;
	pthread_mutex_unlock(&oracle->lock);
	return changed;
}

bool oracle_empty(struct oracle *oracle, uint64_t lba)
{
	const struct block *block = &oracle->blocks[lba];
	bool empty;

	pthread_mutex_lock(&oracle->lock);
	empty = block->submitted == block->base && block->base_stamp == ZEROES;
	pthread_mutex_unlock(&oracle->lock);
	return empty;
}

unsigned int oracle_recovered(struct oracle *oracle, uint64_t lba, uint32_t nr,
			      const void *data)
{
	unsigned int violations = 0;
	uint32_t i, version;

	pthread_mutex_lock(&oracle->lock);
	for (i = 0; i < nr; i++) {
		struct block *block = &oracle->blocks[lba + i];

		assert(!block->inflight);
		violations += judge(oracle, "recovered", lba + i, block->durable,
				    (const char *)data + (size_t)i * BLOCK_BYTES, &version);
		rebase(block, version);
		tell(NOTE_RECOVERED, 0, lba + i, version);
	}
	pthread_mutex_unlock(&oracle->lock);
	return violations;
}

unsigned int oracle_unreadable(struct oracle *oracle, uint64_t lba)
{
	pthread_mutex_lock(&oracle->lock);
	report(oracle, "recovered", "read error", lba, oracle->blocks[lba].durable, ZEROES);
	rebase(&oracle->blocks[lba], ZEROES);
	tell(NOTE_RECOVERED, 0, lba, ZEROES);
	pthread_mutex_unlock(&oracle->lock);
	return 1;
}

bool oracle_may_leave(const struct oracle *oracle, uint64_t lba, uint32_t version)
{
	return allowed(&oracle->blocks[lba], oracle->blocks[lba].durable, version);
}

void oracle_print_left(struct oracle *oracle, uint64_t lba, uint32_t version, const char *wrong)
{
	const struct block *block = &oracle->blocks[lba];

	if (!wrong)
		wrong = version > block->submitted ? "from the future" : "stale";
	report(oracle, "recovered", wrong, lba, block->durable, version);
}

void oracle_take(struct oracle *oracle, uint64_t lba, uint32_t version)
{
	rebase(&oracle->blocks[lba], version);
}

void oracle_set_clock(struct oracle *oracle, const uint64_t *ns)
{
	oracle->clock = ns;
}

void oracle_formatting(struct oracle *oracle)
{
	pthread_mutex_lock(&oracle->lock);
	tell(NOTE_FORMATTING, 0, 0, 0);
	pthread_mutex_unlock(&oracle->lock);
}

void oracle_workload(struct oracle *oracle, uint32_t number, uint32_t lanes)
{
	pthread_mutex_lock(&oracle->lock);
	tell(NOTE_WORKLOAD, 0, number, lanes);
	pthread_mutex_unlock(&oracle->lock);
}

void oracle_command(struct oracle *oracle, uint32_t what)
{
	pthread_mutex_lock(&oracle->lock);
	tell(NOTE_COMMAND, 0, 0, what);
	pthread_mutex_unlock(&oracle->lock);
}

bool oracle_plausible(struct oracle *oracle, uint64_t lba, const void *data)
{
	uint32_t version;

	return !classify(oracle, lba, data, &version) &&
	       version <= oracle->blocks[lba].submitted;
}
