// SPDX-License-Identifier: GPL-2.0
/*
 * Judges what power cuts would leave, at each instant of a run that made a journal.
 *
 *   judge [-s seed] [-n cuts] [-m states] [-w] [-a place:state [-x file]] [-k images -o folder]
 *	   IMAGE JOURNAL
 *
 * Replays the journal of the flash, and gives the notes in it to an oracle. Before each change of
 * what a cut would leave, that is at the latest instant with the same state, forks: the child makes
 * the cut, mounts what is left by the module's own code, and asks the oracle about each block. Of
 * some cuts the mount is cut, too. Draws so many cuts (0: takes all of them, with at most so many
 * states of an instant), or makes one.
 *
 * A workload (history.h) in which a cut shows a violation is left, and the next one goes on. With -w it
 * is not: cuts that take fewer choices are made still, so the last violation is the simplest one. With
 * -x the file tells what the one cut did to the drive, and what each block was found to be.
 *
 * Some states go to images that the emulator takes, NUMBER.image, with the versions that the blocks
 * have after recovery, NUMBER.versions, four bytes each: for a guest that reads the same.
 *
 * Prints each violation and one line of JSON. Exit status: 0 nothing found, 1 violations, 2 cannot
 * run.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "drive.h"
#include "mount.h"
#include "notes.h"
#include "oracle.h"
#include "tell.h"

#define MAX_OPS		64u
#define MAX_VIOLATIONS	8u
#define CUT_SECONDS	20	/* of CPU time that one may take */
#define LOST		UINT32_MAX
#define RARE_TIMES	10u	/* as many cuts of rare instants as of others */
#define SET_SHIFT	22

/* What happened last, before the cut. */
static const char *const instant_names[] = {
	[FLASH_JOURNAL_SHAPE] = "", [FLASH_JOURNAL_ADMIT] = "buffered",
	[FLASH_JOURNAL_BEGIN] = "program begun", [FLASH_JOURNAL_COMMIT] = "programmed",
	[FLASH_JOURNAL_RESET] = "reset begun", [FLASH_JOURNAL_ERASE] = "erase begun",
	[FLASH_JOURNAL_ERASED] = "reset ended", [FLASH_JOURNAL_ZONE] = "finished",
	[FLASH_JOURNAL_CUT] = "cut", [FLASH_JOURNAL_NOTE] = "acknowledged",
};

#define NR_INSTANTS	(sizeof(instant_names) / sizeof(*instant_names))
#define SUPER_ZONES	2u

struct tagged_op {
	uint32_t tag;
	struct op *op;
};

/* Of a cut; the child fills it in. */
struct verdict {
	uint64_t digest;
	uint32_t writes;	/* of its mount */
	uint32_t mount_cut;
	uint32_t wrong;
	uint32_t choices;
	bool left_out;		/* it is not simpler than one that is known */
	uint32_t versions[];
};

struct judge {
	/* What is asked. */
	uint64_t seed;
	uint64_t cuts;
	uint64_t most;			/* states of an instant */
	uint64_t only_place, only_state;
	bool only;
	bool simplest;
	const char *tale;
	uint64_t images;
	const char *folder;

	/* The journal. */
	const uint8_t *journal;
	uint64_t size, place;
	uint64_t now;

	struct drive drive;
	struct oracle *oracle;
	uint64_t nr_blocks, most_blocks;	/* now, and in the beginning */
	bool promised;			/* it is formatted */
	struct tagged_op ops[MAX_OPS];
	struct verdict *verdict;
	uint32_t *expected;		/* what the guest has to find after a cut that it made */
	bool expecting;

	/* What came out. */
	uint64_t instants, states, made, mount_cuts, distinct, saved, violations;
	uint64_t compared, disagreed;
	uint64_t workloads;
	uint32_t workload;		/* the last one */
	bool failed;			/* it did */
	uint32_t fewest;		/* choices of a cut in which it did */
	uint64_t by_instant[NR_INSTANTS], of_super;
	uint64_t epoch;			/* of what the oracle asks for */
	uint64_t *seen;
};

/* The oracle */

static struct op *op_of(struct judge *judge, uint32_t tag, bool begins)
{
	struct tagged_op *free_one = NULL;
	unsigned int i;

	for (i = 0; i < MAX_OPS; i++) {
		struct tagged_op *tagged = &judge->ops[i];

		if (tagged->op && tagged->tag == tag)
			return tagged->op;
		if (!tagged->op && !free_one)
			free_one = tagged;
	}
	if (!begins || !free_one) {
		fprintf(stderr, "the journal ends an operation that did not begin\n");
		exit(2);
	}
	free_one->tag = tag;
	free_one->op = must(calloc(1, sizeof(*free_one->op)));
	return free_one->op;
}

static void new_oracle(struct judge *judge, const struct note *note)
{
	if (judge->oracle) {
		fprintf(stderr, "the journal has two runs\n");
		exit(2);
	}
	judge->nr_blocks = judge->most_blocks = note->lba;
	judge->oracle = oracle_new(note->op, note->lba);
	oracle_set_clock(judge->oracle, &judge->now);
	drive_set_run(&judge->drive, note->op);
	judge->verdict = must(mmap(NULL, sizeof(*judge->verdict) + judge->nr_blocks * sizeof(uint32_t),
				   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	judge->expected = must(calloc(judge->nr_blocks, sizeof(*judge->expected)));
	judge->promised = true;
}

/* The guest made that cut, mounted, and read the block. */
static void compare(struct judge *judge, const struct note *note)
{
	uint32_t expected = judge->expected[note->lba];

	if (!judge->expecting)
		return;
	judge->compared++;
	if (expected == note->nr || (expected == LOST && !note->nr))
		return;
	judge->disagreed++;
	printf("DISAGREEMENT at %" PRIu64 ": block %u is version %u in the guest, %u here\n",
	       judge->place, note->lba, note->nr, expected);
}

static void take_note(struct judge *judge, const struct note *note)
{
	struct op *op;

	if (note->kind == NOTE_ORACLE) {
		new_oracle(judge, note);
		return;
	}
	if (!judge->oracle)
		return;
	switch (note->kind) {
	case NOTE_BEGIN:
	case NOTE_CLEAR:
		op = op_of(judge, note->op, true);
		if (oracle_begin(judge->oracle, op, note->lba, note->nr, note->kind == NOTE_CLEAR,
				 true) != BEGUN) {
			fprintf(stderr, "the journal's notes contradict each other\n");
			exit(2);
		}
		break;
	case NOTE_ACKED:
	case NOTE_FAILED:
	case NOTE_DURABLE:
		judge->epoch += note->kind != NOTE_FAILED;
		oracle_end(judge->oracle, op_of(judge, note->op, false), note->kind != NOTE_FAILED,
			   note->kind == NOTE_DURABLE);
		break;
	case NOTE_FLUSH:
		oracle_flush_begin(judge->oracle, op_of(judge, note->op, true));
		break;
	case NOTE_FLUSHED:
		judge->epoch++;
		oracle_flush_end(judge->oracle, op_of(judge, note->op, false));
		break;
	case NOTE_CRASHED:
		oracle_crashed(judge->oracle);
		break;
	case NOTE_RECOVERED:
		judge->epoch++;
		compare(judge, note);
		oracle_take(judge->oracle, note->lba, note->nr);
		break;
	case NOTE_FORMATTING:
		judge->promised = false;
		break;
	case NOTE_FORMATTED:
		judge->epoch++;
		if (note->lba > judge->most_blocks) {
			fprintf(stderr, "the drive was formatted with %u blocks, expected %" PRIu64 " at most\n",
				note->lba, judge->most_blocks);
			exit(2);
		}
		judge->nr_blocks = note->lba;
		oracle_formatted(judge->oracle, note->lba);
		judge->promised = true;
		judge->expecting = false;
		break;
	case NOTE_WORKLOAD:
		judge->workload = note->lba;
		judge->failed = false;
		judge->workloads++;
		break;
	default:
		break;
	}
}

/* One cut */

/* The version that a block has after recovery. */
static uint32_t version_of(struct judge *judge, uint64_t lba, const char **wrong)
{
	const struct content *content = NULL;
	uint32_t zone, block;

	*wrong = NULL;
	switch (mount_find(lba, &zone, &block)) {
	case BLOCK_UNMAPPED:
		return 0;
	case BLOCK_READABLE:
		content = drive_content(&judge->drive, zone, block);
		break;
	default:
		break;
	}
	if (!content)
		*wrong = "read error";
	else if (content->kind == CONTENT_OTHER)
		*wrong = "garbage";
	else if (content->kind == CONTENT_STAMPED && content->lba != lba)
		*wrong = "another block's data";
	return *wrong ? LOST : content->kind == CONTENT_ZEROES ? 0 : content->version;
}

static void judge_blocks(struct judge *judge)
{
	struct verdict *verdict = judge->verdict;
	const char *wrong;
	uint64_t lba;

	for (lba = 0; lba < judge->nr_blocks; lba++) {
		uint32_t version = version_of(judge, lba, &wrong);

		verdict->versions[lba] = version;
		if (!wrong && oracle_may_leave(judge->oracle, lba, version))
			continue;
		if (!verdict->wrong++)
			oracle_print_left(judge->oracle, lba, wrong ? 0 : version, wrong);
	}
}

/*
 * Mount. One mount of four is cut in one of its writes, and one of these again. @random decides;
 * what recovery found must not depend on that.
 */
static void mount_and_judge(struct judge *judge, uint64_t random)
{
	struct verdict *verdict = judge->verdict;
	bool tight = random & 1;
	unsigned int pages = random >> 8 & 7;
	unsigned int at = random >> 1 & 3 ? 0 : 1 + (random >> 16) % 12;
	int error;

	while (!mount_drive(&judge->drive, tight, at, pages, &error)) {
		verdict->mount_cut++;
		random = mix(random);
		at = random & 3 ? 0 : 1 + (random >> 16) % 12;
	}
	verdict->writes = mount_writes();
	if (error || mount_blocks() != judge->nr_blocks) {
		printf("VIOLATION mount failed: %s\n", strerror(-error));
		verdict->wrong++;
		return;
	}
	judge_blocks(judge);
}

static void save(struct judge *judge, uint64_t number)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%" PRIu64 ".versions", judge->folder, number);
	file = must(fopen(path, "we"));
	if (fwrite(judge->verdict->versions, sizeof(uint32_t), judge->nr_blocks, file) !=
	    judge->nr_blocks || fclose(file)) {
		perror(path);
		exit(2);
	}
}

static void close_tale(const struct judge *judge, FILE *tale)
{
	if (fclose(tale)) {
		perror(judge->tale);
		exit(2);
	}
}

/* What the cut left. It is told before the mount, because an assertion may end that. */
static void begin_tale(const struct judge *judge)
{
	FILE *tale = must(fopen(judge->tale, "we"));

	fprintf(tale, "{\"now\": %" PRIu64 ", \"zones\": ", judge->now);
	tell_zones(&judge->drive, tale);
	close_tale(judge, tale);
}

/* The version of each block, -1: it cannot be read; how often the mount was cut, too. */
static void end_tale(const struct judge *judge, bool ended_early)
{
	const struct verdict *verdict = judge->verdict;
	FILE *tale = must(fopen(judge->tale, "ae"));
	uint64_t lba;

	fprintf(tale, ",\n\"choices\": %u, \"mounts_cut\": %u, \"versions\": [", verdict->choices,
		verdict->mount_cut);
	for (lba = 0; lba < judge->nr_blocks; lba++)
		fprintf(tale, "%s%" PRId64, lba ? ", " : "",
			ended_early || verdict->versions[lba] == LOST ? -1 :
			(int64_t)verdict->versions[lba]);
	fprintf(tale, "]}\n");
	close_tale(judge, tale);
}

/* In a process of its own. */
static void cut(struct judge *judge, uint64_t state, uint64_t random, bool keep)
{
	const struct rlimit limit = { CUT_SECONDS, CUT_SECONDS };
	char path[4096];

	setrlimit(RLIMIT_CPU, &limit);
	drive_private(&judge->drive);
	if (judge->tale)
		tell_before(&judge->drive);
	judge->verdict->choices = drive_cut(&judge->drive, state, judge->most, random);
	judge->verdict->left_out = judge->failed && judge->verdict->choices >= judge->fewest;
	if (judge->verdict->left_out)
		_exit(0);
	judge->verdict->digest = drive_digest(&judge->drive);
	if (judge->tale)
		begin_tale(judge);
	if (keep) {
		snprintf(path, sizeof(path), "%s/%" PRIu64 ".image", judge->folder, judge->saved);
		drive_save(&judge->drive, path);
	}
	mount_and_judge(judge, random);
	if (keep)
		save(judge, judge->saved);
	fflush(stdout);
	_exit(0);
}

/* Not seen yet: the same state under the same demands. */
static bool is_new(struct judge *judge, uint64_t digest)
{
	uint64_t key = mix(digest ^ mix(judge->epoch)) | 1, i = key >> (64 - SET_SHIFT);

	/* Shared: no fork copies its page tables, and no store after a fork copies a page. */
	if (!judge->seen)
		judge->seen = must(mmap(NULL, sizeof(*judge->seen) << SET_SHIFT, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	for (; judge->seen[i & ((1ull << SET_SHIFT) - 1)]; i++)
		if (judge->seen[i & ((1ull << SET_SHIFT) - 1)] == key)
			return false;
	if (judge->distinct < 1ull << (SET_SHIFT - 1))
		judge->seen[i & ((1ull << SET_SHIFT) - 1)] = key;
	return true;
}

static void make_cut(struct judge *judge, uint64_t state)
{
	uint64_t random = mix(judge->seed ^ mix(judge->place ^ state << 48));
	struct verdict *verdict = judge->verdict;
	/* The guest that reads images is told one number of blocks. */
	bool keep = judge->folder && judge->images && mix(random) % 10000 < judge->images &&
		    judge->nr_blocks == judge->most_blocks;
	pid_t child;
	int status;

	verdict->digest = verdict->writes = verdict->wrong = verdict->mount_cut = 0;
	verdict->left_out = false;
	fflush(stdout);
	child = fork();
	if (!child)
		cut(judge, state, random, keep);
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("judge");
		exit(2);
	}
	if (!status && verdict->left_out)
		return;
	if (judge->tale)
		end_tale(judge, WIFSIGNALED(status));
	judge->made++;
	judge->saved += keep;
	judge->mount_cuts += verdict->mount_cut;
	judge->distinct += is_new(judge, verdict->digest);
	if (!status && !verdict->wrong)
		return;
	if (WIFSIGNALED(status))
		printf("VIOLATION recovery ended with signal %d\n", WTERMSIG(status));
	printf("in %" PRIu64 ":%" PRIu64 ", %u blocks, %u choices", judge->place, state, verdict->wrong,
	       verdict->choices);
	if (judge->workloads)
		printf(", workload %u", judge->workload);
	printf("\n");
	judge->violations++;
	judge->failed = judge->workloads;
	judge->fewest = verdict->choices;
}

/* So much is wrong that no more need be told. */
static bool is_enough(const struct judge *judge)
{
	return judge->failed ? !judge->simplest :
	       !judge->workloads && judge->violations >= MAX_VIOLATIONS;
}

/* All cuts of an instant */

/* Few of all instants, and most is decided there. */
static bool is_rare(const FlashJournalRecord *last)
{
	switch (last->kind) {
	case FLASH_JOURNAL_RESET:
	case FLASH_JOURNAL_ERASE:
	case FLASH_JOURNAL_ERASED:
	case FLASH_JOURNAL_ZONE:
		return true;
	case FLASH_JOURNAL_NOTE:
		return false;
	default:
		return last->zone < SUPER_ZONES;
	}
}

static bool is_wanted(struct judge *judge, const FlashJournalRecord *last, uint64_t state)
{
	uint64_t wanted = judge->cuts * (is_rare(last) ? RARE_TIMES : 1);
	uint64_t random = mix(judge->seed ^ mix(judge->place * 31 + state + 1));

	if (judge->only)
		return judge->place == judge->only_place && state == judge->only_state;
	return !judge->cuts || random % judge->states < wanted;
}

static void cut_here(struct judge *judge, const FlashJournalRecord *last, bool count)
{
	uint64_t states, i, made = judge->made;

	if (!judge->promised)
		return;
	states = drive_states(&judge->drive, judge->most);
	judge->instants += count;
	if (count) {
		judge->states += states;
		return;
	}
	for (i = 0; i < states && !is_enough(judge); i++)
		if (is_wanted(judge, last, i))
			make_cut(judge, i);
	judge->by_instant[last->kind] += judge->made - made;
	if (last->zone < SUPER_ZONES && last->kind != FLASH_JOURNAL_NOTE)
		judge->of_super += judge->made - made;
}

/* The guest makes a cut here: what will it find? */
static void expect(struct judge *judge)
{
	bool tight = judge->only;

	judge->expecting = false;
	if (!judge->promised || judge->failed || tight)
		return;
	make_cut(judge, 0);
	memcpy(judge->expected, judge->verdict->versions, judge->nr_blocks * sizeof(*judge->expected));
	judge->expecting = !judge->verdict->wrong;
}

static const FlashJournalRecord *next_record(struct judge *judge)
{
	const FlashJournalRecord *record = (const void *)(judge->journal + judge->place);

	/* The emulator may have been ended within one. */
	if (judge->size - judge->place < sizeof(*record) ||
	    judge->size - judge->place - sizeof(*record) < record->bytes)
		return NULL;
	return record;
}

/* The instant behind record @last, and behind notes of which one may ask for more. */
static void instant(struct judge *judge, const FlashJournalRecord *last, bool acked, bool count)
{
	FlashJournalRecord before = *last;

	if (acked)
		before.kind = FLASH_JOURNAL_NOTE;
	cut_here(judge, &before, count);
}

/*
 * Go through the journal: to count what there is, or to make cuts. The last instant is the end of all,
 * when a stop may have promised everything.
 */
static void go_through(struct judge *judge, const char *image, bool count)
{
	const FlashJournalRecord *record, *last = NULL;
	FlashShape shape;
	bool acked = false;

	judge->place = 0;
	for (; (record = next_record(judge)); judge->place += sizeof(*record) + record->bytes) {
		const uint8_t *payload = (const uint8_t *)(record + 1);

		judge->now = record->now;
		if (record->kind == FLASH_JOURNAL_NOTE) {
			take_note(judge, (const struct note *)payload);
			acked |= ((const struct note *)payload)->kind >= NOTE_ACKED;
			continue;
		}
		if (record->kind == FLASH_JOURNAL_SHAPE) {
			memcpy(&shape, payload, sizeof(shape));
			drive_open(&judge->drive, &shape, image);
		} else {
			if (last)
				instant(judge, last, acked, count);
			if (record->kind == FLASH_JOURNAL_CUT && !count)
				expect(judge);
			drive_apply(&judge->drive, record, payload);
		}
		last = record;
		acked = false;
		if (!judge->workloads && is_enough(judge))
			return;
	}
	if (last)
		instant(judge, last, acked, count);
}

static void map_journal(struct judge *judge, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		exit(2);
	}
	judge->size = (uint64_t)st.st_size;
	judge->journal = must(mmap(NULL, judge->size, PROT_READ, MAP_SHARED, fd, 0));
}

static double seconds_of(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Numbers of what came out, by the names that the lab knows. */
static void print_summary(const struct judge *judge)
{
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{ "instants", judge->instants }, { "states", judge->states },
		{ "cuts", judge->made }, { "distinct", judge->distinct },
		{ "violations", judge->violations }, { "mounts_cut", judge->mount_cuts },
		{ "images", judge->saved }, { "compared", judge->compared },
		{ "disagreed", judge->disagreed }, { "blocks", judge->most_blocks },
		{ "workloads", judge->workloads }, { "superblock", judge->of_super },
	};
	unsigned int i;

	printf("{\"processor\": %.3f", seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN));
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		printf(", \"%s\": %" PRIu64, numbers[i].name, numbers[i].value);
	for (i = FLASH_JOURNAL_ADMIT; i < NR_INSTANTS; i++)
		printf(", \"%s\": %" PRIu64, instant_names[i], judge->by_instant[i]);
	printf("}\n");
}

static int usage(void)
{
	fprintf(stderr, "usage: judge [-s seed] [-n cuts] [-m states] [-w]"
		" [-a place:state [-x file]] [-k images -o folder] IMAGE JOURNAL\n");
	return 2;
}

/* What there is, in a process of its own, so that the drive is new for the cuts. */
static void count_states(struct judge *judge, const char *image)
{
	uint64_t *result = must(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				     -1, 0));
	pid_t child = fork();
	int status;

	if (!child) {
		go_through(judge, image, true);
		result[0] = judge->instants;
		result[1] = judge->states;
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status) {
		fprintf(stderr, "judge: cannot read the journal\n");
		exit(2);
	}
	judge->instants = result[0];
	judge->states = result[1] ? result[1] : 1;
	if (unlink(image))
		perror(image);
}

int main(int argc, char **argv)
{
	static struct judge judge = { .seed = 1, .most = 16 };
	int opt;

	while ((opt = getopt(argc, argv, "s:n:m:wa:x:k:o:")) != -1) {
		switch (opt) {
		case 's':
			judge.seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			judge.cuts = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			judge.most = strtoull(optarg, NULL, 0);
			break;
		case 'a':
			judge.only = sscanf(optarg, "%" SCNu64 ":%" SCNu64, &judge.only_place,
					    &judge.only_state) == 2;
			break;
		case 'w':
			judge.simplest = true;
			break;
		case 'x':
			judge.tale = optarg;
			break;
		case 'k':
			judge.images = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			judge.folder = optarg;
			break;
		default:
			return usage();
		}
	}
	if (optind + 2 != argc || !judge.most || (judge.tale && !judge.only))
		return usage();
	map_journal(&judge, argv[optind + 1]);
	count_states(&judge, argv[optind]);
	go_through(&judge, argv[optind], false);
	print_summary(&judge);
	return judge.violations || judge.disagreed ? 1 : 0;
}
