// SPDX-License-Identifier: GPL-2.0
/*
 * Histories: see history.h. Operations that run together have a thread each; the caller's thread
 * does all else. The file is read before the first history begins.
 */
#include "history.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "notes.h"

#define MOST_BLOCKS	8u	/* of an operation */
#define MOST_TOGETHER	4u	/* besides the one that waits for them */
#define RESTED_NS	4000000	/* by then moves and erases have ended */
#define QUIET_NS	500000000	/* and by then the drive remembers nothing of what was before */
#define FILE_BYTES	(4u << 20)
#define LINGER		"/sys/module/linger/parameters/at"
#define LINGER_NAME	"linger-"	/* and a point's name */
#define LONGEST_MS	64u

enum kind {
	STEP_WRITE, STEP_FUA, STEP_DISCARD, STEP_ZEROES,	/* on blocks */
	STEP_READ,						/* likewise; judged at once */
	STEP_FLUSH, STEP_REST, STEP_CUT,
	STEP_FAULT,	/* the next write to zone BLOCK fails */
	STEP_LINGER,	/* the next thread at a point stays there for NR ms: linger/linger.c */
	STEP_COMMAND,	/* and those behind it, in the order of enum disturbance */
	NR_STEP_KINDS = STEP_COMMAND + NR_DISTURBANCES,
};

static const char *const step_names[NR_STEP_KINDS] = {
	[STEP_WRITE] = "write", [STEP_FUA] = "fua", [STEP_DISCARD] = "discard",
	[STEP_ZEROES] = "zeroes", [STEP_READ] = "read", [STEP_FLUSH] = "flush",
	[STEP_REST] = "rest", [STEP_CUT] = "cut",
	[STEP_FAULT] = "fault", [STEP_LINGER] = LINGER_NAME,
	[STEP_COMMAND + DISTURB_CHECKPOINT] = "checkpoint", [STEP_COMMAND + DISTURB_GC] = "gc",
	[STEP_COMMAND + DISTURB_SUSPEND] = "suspend", [STEP_COMMAND + DISTURB_PAUSE] = "pause",
	[STEP_COMMAND + DISTURB_RELOAD] = "reload",
};

struct step {
	unsigned int kind;
	uint32_t lba, nr;
	unsigned int cpu;
	bool together;
	char point[16];
};

/* What performs a step, until it has ended. */
struct worker {
	pthread_t thread;
	struct step step;
	struct op op;
	void *data;
};

/* Constants of the run, then of the history, then a counter. */
static struct device *dev;
static struct oracle *oracle;
static struct tuning tuning = { .buffer_entries = 64, .write_unit = 1, .append = true };
static atomic_uint failures;

static void expect_none(int err, const char *what)
{
	if (!err)
		return;
	printf("VIOLATION %s failed: %s\n", what, strerror(-err));
	atomic_fetch_add(&failures, 1);
}

static void flush(struct op *op)
{
	int err;

	oracle_flush_begin(oracle, op);
	err = dev->ops->flush(dev);
	if (!err)
		oracle_flush_end(oracle, op);
	expect_none(err, "a flush");
}

static void read_blocks(struct worker *worker)
{
	const struct step *step = &worker->step;
	int err;

	oracle_read_begin(oracle, &worker->op, step->lba, step->nr);
	err = dev->ops->read(dev, step->lba, step->nr, worker->data);
	expect_none(err, step_names[STEP_READ]);
	if (!err)
		atomic_fetch_add(&failures, oracle_read_end(oracle, &worker->op, worker->data));
}

static void let_linger(const char *point, unsigned int ms)
{
	FILE *file = fopen(LINGER, "we");

	if (file)
		fprintf(file, "%s %u", point, ms);
	if (!file || fclose(file)) {
		perror(LINGER);
		exit(2);
	}
}

static void change(struct worker *worker)
{
	const struct step *step = &worker->step;
	bool zeroes = step->kind == STEP_DISCARD || step->kind == STEP_ZEROES;
	bool fua = step->kind == STEP_FUA;
	int err;

	while (oracle_begin(oracle, &worker->op, step->lba, step->nr, zeroes, true) != BEGUN)
		flush(&worker->op);
	if (zeroes) {
		err = dev->ops->clear(dev, step->lba, step->nr,
				      step->kind == STEP_DISCARD ? CLEAR_DISCARD : CLEAR_ZEROES);
	} else {
		oracle_fill(oracle, &worker->op, worker->data);
		err = dev->ops->write(dev, step->lba, step->nr, worker->data, fua ? WRITE_FUA : 0);
	}
	oracle_end(oracle, &worker->op, !err, fua);
	expect_none(err, step_names[step->kind]);
}

/* The power goes; the device is mounted again, and all of it is judged. */
static void cut_power(void *data)
{
	uint64_t lba;

	dev->ops->arm(dev, CUT_NS, 0);
	dev->ops->unmount(dev);
	expect_none(dev->ops->power_cycle(dev), "a power cycle");
	expect_none(dev->ops->mount(dev, &tuning), "a mount");
	oracle_crashed(oracle);
	for (lba = 0; lba < dev->nr_blocks; lba++)
		atomic_fetch_add(&failures, dev->ops->read(dev, lba, 1, data) ?
				 oracle_unreadable(oracle, lba) :
				 oracle_recovered(oracle, lba, 1, data));
}

static void rest(long ns)
{
	struct timespec pause = { 0, ns };

	nanosleep(&pause, NULL);
}

static void command(enum disturbance what)
{
	oracle_command(oracle, what);
	expect_none(dev->ops->disturb(dev, what, &tuning), step_names[STEP_COMMAND + what]);
}

static void *perform(void *arg)
{
	struct worker *worker = arg;
	const struct step *step = &worker->step;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(step->cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (step->kind < STEP_READ)
		change(worker);
	else if (step->kind == STEP_READ)
		read_blocks(worker);
	else if (step->kind == STEP_FLUSH)
		flush(&worker->op);
	else if (step->kind == STEP_REST)
		rest(RESTED_NS);
	else if (step->kind == STEP_CUT)
		cut_power(worker->data);
	else if (step->kind == STEP_FAULT)
		expect_none(dev->ops->fault(dev, FAULT_WRITE, step->lba), "a fault");
	else if (step->kind == STEP_LINGER)
		let_linger(step->point, step->nr);
	else
		command(step->kind - STEP_COMMAND);
	return NULL;
}

static void begin_history(unsigned int number, unsigned int lanes)
{
	if (!access(LINGER, W_OK))
		let_linger("none", 0);
	expect_none(dev->ops->unmount(dev), "a stop");
	oracle_stopped_clean(oracle);
	oracle_formatting(oracle);
	tuning.lanes = lanes;
	oracle_workload(oracle, number, lanes);
	expect_none(dev->ops->format(dev), "a format");
	rest(QUIET_NS);
	oracle_formatted(oracle, dev->nr_blocks);
	expect_none(dev->ops->mount(dev, &tuning), "a mount");
}

static bool parse(const char *line, struct step *step)
{
	char name[32] = "", mark = '\0';
	int found = sscanf(line, "%31s %u %u %u %c", name, &step->lba, &step->nr, &step->cpu,
			   &mark);

	for (step->kind = 0; step->kind < NR_STEP_KINDS; step->kind++)
		if (!strcmp(name, step_names[step->kind]))
			break;
	step->together = mark == '&';
	if (!strncmp(name, LINGER_NAME, strlen(LINGER_NAME))) {
		step->kind = STEP_LINGER;
		return sscanf(name, LINGER_NAME "%15s", step->point) == 1 && found >= 4 &&
		       step->nr && step->nr <= LONGEST_MS;
	}
	return found >= 4 && step->kind < NR_STEP_KINDS && step->nr && step->nr <= MOST_BLOCKS &&
	       step->lba < dev->nr_blocks && step->nr <= dev->nr_blocks - step->lba;
}

static void wait_for_all(struct worker *workers, unsigned int *running)
{
	while (*running)
		pthread_join(workers[--*running].thread, NULL);
}

/* Beside a command device-mapper refuses another one. */
static bool refuses(const struct worker *workers, unsigned int running, const struct step *step)
{
	while (step->kind >= STEP_COMMAND && running)
		if (workers[--running].step.kind >= STEP_COMMAND)
			return true;
	return false;
}

/* The last one of those that run together runs here, and so does a cut, with nothing beside it. */
static void run_step(struct worker *workers, unsigned int *running, const struct step *step)
{
	struct worker *worker;

	if (step->kind == STEP_CUT || refuses(workers, *running, step))
		wait_for_all(workers, running);
	worker = &workers[*running];
	worker->step = *step;
	if (step->together && step->kind != STEP_CUT && *running < MOST_TOGETHER) {
		pthread_create(&worker->thread, NULL, perform, worker);
		++*running;
		return;
	}
	perform(worker);
	wait_for_all(workers, running);
}

/* Name the history that failed: the lab makes it smaller. */
static void tell_failures(unsigned int done, unsigned int *known)
{
	unsigned int now = atomic_load(&failures);

	if (now > *known)
		printf("in workload %u\n", done - 1);
	fflush(stdout);
	*known = now;
}

static int run_file(FILE *file, struct worker *workers, void (*enter)(const char *phase))
{
	unsigned int lanes, running = 0, done = 0, known = 0;
	struct step step;
	char line[128];

	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "history %u", &lanes) == 1) {
			wait_for_all(workers, &running);
			rest(RESTED_NS);
			tell_failures(done, &known);
			enter("history");
			begin_history(done++, lanes);
		} else if (done && parse(line, &step)) {
			run_step(workers, &running, &step);
		} else {
			fprintf(stderr, "expected NAME BLOCK NR CPU [&], found %s", line);
			return 2;
		}
	}
	wait_for_all(workers, &running);
	rest(RESTED_NS);
	tell_failures(done, &known);
	dev->ops->unmount(dev);
	oracle_stopped_clean(oracle);
	printf("{\"workloads\": %u, \"violations\": %u}\n", done, atomic_load(&failures));
	return atomic_load(&failures) ? 1 : 0;
}

int histories(struct device *of, struct oracle *judge, const char *path,
	      void (*enter)(const char *phase))
{
	static struct worker workers[MOST_TOGETHER + 1];
	FILE *file = fopen(path, "re");
	unsigned int i;
	int status;

	dev = of;
	oracle = judge;
	if (!file || setvbuf(file, NULL, _IOFBF, FILE_BYTES)) {
		perror(path);
		return 2;
	}
	for (i = 0; i <= MOST_TOGETHER; i++)
		if (posix_memalign(&workers[i].data, BLOCK_BYTES, MOST_BLOCKS * BLOCK_BYTES))
			return 2;
	status = run_file(file, workers, enter);
	fclose(file);
	return status;
}
