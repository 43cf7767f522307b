// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * replay: a trace against a drive without a guest, in open loop.
 *
 *     replay rows=FILE NAME=VALUE... < TRACE
 *
 * Each line of the trace is "NS OP OFFSET BYTES", times not falling; OP is r
 * (read), w (write), W (write with FUA), f (flush), t (trim) or z (reset of a
 * zone).  A request is submitted when its time has come, whatever the drive
 * still has to do, unless `depth` requests are under way.  `scripts/lab
 * firmware trace=FILE` makes such lines of the usual formats.
 *
 * A black box takes addresses as they are.  The other drives are written in
 * order, so their host appends to the zone or chunk of the address, and resets
 * it first if the request does not fit any more.  Chunks are striped by program
 * unit over all dies.
 *
 * FILE gets a line for each request, with the parts of its time (parts.h); what
 * they come to is printed as JSON.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "parts.h"

typedef struct Words {
    uint64_t fill;              /* percent of the drive, in order, first */
    uint64_t age;               /* percent of it, at random, without delays */
    uint64_t depth;             /* requests under way, at most */
    uint64_t seed;
} Words;

static Words w = { .depth = 1024, .seed = 1 };
static const Word words[] = {
    { "fill", WORD_U64, &w.fill },
    { "age", WORD_U64, &w.age },
    { "depth", WORD_U64, &w.depth },
    { "seed", WORD_U64, &w.seed },
    { .name = NULL },
};

/* A line of the trace, or a reset that a write needs. */
typedef struct Request {
    struct Request *next;       /* by the order of the trace */
    uint64_t line, due, submitted, ended;       /* line 0: before the trace */
    FlashCmdKind kind;
    uint64_t offset, bytes;     /* as the drive sees them */
    uint32_t parts;             /* commands that it still waits for */
    bool overtaken;             /* a reset came before its data was stored */
    Parts time;                 /* of the command that ended last */
} Request;

typedef struct Command {
    Timed timed;                /* first: it is freed by its address */
    Request *request;
} Command;

static FILE *rows;
static Request *first, **last = &first;     /* requests without a row */
static uint64_t under_way, nr_requests;
static uint64_t *written;                   /* blocks of each zone or chunk */
static Latencies latencies[2];              /* reads, writes */
static uint64_t start;                      /* of the trace */
static struct {
    uint64_t wrapped;           /* beyond the drive's end: moved inside */
    uint64_t unwritten;         /* reads of a zone that holds nothing */
    uint64_t skipped;           /* trims and resets that the drive has not */
    uint64_t overtaken, resets, waited;
} counts;

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (!p) {
        fail("no memory for %zu bytes", n * size);
    }
    return p;
}

static const char *const names[FLASH_CMD_KINDS] = {
    [FLASH_CMD_READ] = "read", [FLASH_CMD_WRITE] = "write",
    [FLASH_CMD_FLUSH] = "flush", [FLASH_CMD_TRIM] = "trim",
    [FLASH_CMD_RESET] = "reset",
};

static void print_row(const Request *r)
{
    const Parts *p = &r->time;
    const uint64_t times[] = {
        r->ended - r->due, r->submitted - r->due, p->service, p->link, p->queue,
        p->cell, p->transfer, p->gc,
    };

    fprintf(rows, "%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64, r->line,
            r->due - start, names[r->kind], r->offset, r->bytes);
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        fprintf(rows, ",%" PRIu64, times[i]);
    }
    fprintf(rows, ",%s\n", r->overtaken ? "overtaken" : "ok");
}

/* Rows come in the order of the trace. */
static void print_rows(void)
{
    while (first && !first->parts) {
        Request *r = first;

        if (r->line) {
            print_row(r);
        }
        first = r->next;
        free(r);
    }
    if (!first) {
        last = &first;
    }
    parts_forget(first ? first->submitted : dev.time.now);
}

static void on_done(FlashDev *d, FlashCmd *cmd)
{
    Command *c = (Command *)cmd;
    Request *r = c->request;

    r->time = parts_of(d, &c->timed);
    r->overtaken |= cmd->status == FLASH_OVERTAKEN;
    free(c);
    if (--r->parts) {
        return;
    }
    r->ended = d->time.now;
    if (r->line && r->kind <= FLASH_CMD_WRITE) {
        add_latency(&latencies[r->kind], r->ended - r->due);
    }
    counts.overtaken += r->overtaken;
    under_way--;
    print_rows();
}

/* Commands to the drive. */

static Command *command(Request *r, FlashCmdKind kind, uint32_t zone,
                        uint64_t block, uint64_t nlb)
{
    Command *c = allocate(1, sizeof(*c));

    c->request = r;
    c->timed.cmd.kind = kind;
    c->timed.cmd.zone = zone;
    c->timed.cmd.block = block;
    c->timed.cmd.nlb = nlb;
    if (kind == FLASH_CMD_WRITE) {
        c->timed.cmd.data = allocate(nlb, shape.block_size);
    }
    return c;
}

static Request *request(uint64_t line, uint64_t due, FlashCmdKind kind,
                        uint64_t block, uint64_t nlb)
{
    Request *r = allocate(1, sizeof(*r));

    r->line = line;
    r->due = due;
    r->submitted = dev.time.now;
    r->kind = kind;
    r->parts = 1;
    r->offset = block * shape.block_size;
    r->bytes = nlb * shape.block_size;
    *last = r;
    last = &r->next;
    under_way++;
    nr_requests += line != 0;
    return r;
}

static void submit(Command *c)
{
    parts_submit(&dev, &c->timed);
}

static void reset_zone(uint64_t line, uint64_t due, uint32_t zone)
{
    Request *r = request(line, due, FLASH_CMD_RESET, zone * shape.zone_blocks,
                         shape.zone_blocks);

    written[zone] = 0;
    counts.resets += line != 0;
    submit(command(r, FLASH_CMD_RESET, zone, 0, 0));
}

/* The part of a request that one zone or chunk has. */
typedef struct Piece {
    uint32_t zone;
    uint64_t block;             /* from its start */
    uint64_t nlb;
} Piece;

/* The piece at an address, at most nlb long. */
static Piece piece_at(uint64_t block, uint64_t nlb)
{
    uint64_t unit = dev.unit_blocks, nr = dev.time.nr_dies;
    Piece p;

    if (personality == DRIVE_OCSSD) {
        uint64_t line = block / (shape.zone_blocks * nr);
        uint64_t at = block % (shape.zone_blocks * nr);

        p.zone = line * nr + at / unit % nr;
        p.block = at / unit / nr * unit + at % unit;
        p.nlb = unit - at % unit;
    } else {
        p.zone = block / shape.zone_blocks;
        p.block = block % shape.zone_blocks;
        p.nlb = shape.zone_blocks - p.block;
    }
    p.nlb = p.nlb < nlb ? p.nlb : nlb;
    return p;
}

/* A read finds what its zone holds: behind its end, what lies before. */
static Command *read_piece(Request *r, Piece p)
{
    uint64_t end = written[p.zone];

    if (!end) {
        counts.unwritten++;
        p.block = 0;
    } else if (p.block + p.nlb > end) {
        p.nlb = p.nlb < end ? p.nlb : end;
        p.block %= end - p.nlb + 1;
    }
    return command(r, FLASH_CMD_READ, p.zone, p.block, p.nlb);
}

static Command *write_piece(Request *r, Piece p, bool fua)
{
    Command *c;

    if (written[p.zone] + p.nlb > shape.zone_cap) {
        reset_zone(r->line, r->due, p.zone);
    }
    c = command(r, FLASH_CMD_WRITE, p.zone, written[p.zone], p.nlb);
    c->timed.cmd.fua = fua;
    written[p.zone] += p.nlb;
    return c;
}

static void submit_pieces(Request *r, bool fua, uint64_t block, uint64_t nlb)
{
    while (nlb) {
        Piece p = piece_at(block, nlb);
        Command *c = r->kind == FLASH_CMD_WRITE ? write_piece(r, p, fua) :
                                                  read_piece(r, p);

        block += p.nlb;
        nlb -= p.nlb;
        r->parts += nlb != 0;   /* before the last one may end it */
        submit(c);
    }
}

static void submit_io(uint64_t line, uint64_t due, FlashCmdKind kind, bool fua,
                      uint64_t block, uint64_t nlb)
{
    Request *r = request(line, due, kind, block, nlb);
    Command *c;

    if (personality != DRIVE_BLACKBOX) {
        submit_pieces(r, fua, block, nlb);
        return;
    }
    c = command(r, kind, 0, block, nlb);
    c->timed.cmd.fua = fua;
    submit(c);
}

static void wait_for(uint64_t most)
{
    while (under_way > most) {
        drive_step(under_way);
    }
}

/* The trace. */

/* Whole blocks, inside the drive. */
static void place(uint64_t offset, uint64_t bytes, uint64_t *block,
                  uint64_t *nlb)
{
    uint64_t end = (offset + bytes + shape.block_size - 1) / shape.block_size;

    *block = offset / shape.block_size;
    *nlb = end - *block ? end - *block : 1;
    if (*nlb > config.logical) {
        *nlb = config.logical;
    }
    if (*block + *nlb > config.logical) {
        counts.wrapped++;
        *block %= config.logical;
        if (*block + *nlb > config.logical) {
            *block = config.logical - *nlb;
        }
    }
}

/* A command for no data: of the personalities that have it. */
static void submit_other(uint64_t line, uint64_t due, char op, uint64_t block,
                         uint64_t nlb)
{
    if (op == 'f') {
        submit(command(request(line, due, FLASH_CMD_FLUSH, 0, 0),
                       FLASH_CMD_FLUSH, 0, 0, 0));
    } else if (op == 't' && personality == DRIVE_BLACKBOX) {
        submit(command(request(line, due, FLASH_CMD_TRIM, block, nlb),
                       FLASH_CMD_TRIM, 0, block, nlb));
    } else if (op == 'z' && personality == DRIVE_ZNS) {
        reset_zone(line, due, block / shape.zone_blocks);
    } else {
        counts.skipped++;
    }
}

static void submit_line(uint64_t line, uint64_t due, char op, uint64_t block,
                        uint64_t nlb)
{
    switch (op) {
    case 'r':
        submit_io(line, due, FLASH_CMD_READ, false, block, nlb);
        break;
    case 'w':
    case 'W':
        submit_io(line, due, FLASH_CMD_WRITE, op == 'W', block, nlb);
        break;
    case 'f':
    case 't':
    case 'z':
        submit_other(line, due, op, block, nlb);
        break;
    default:
        fail("line %" PRIu64 " of the trace: there is no request '%c'", line,
             op);
    }
}

static void run_trace(void)
{
    uint64_t due, offset, bytes, block, nlb, before = 0;
    char *text = NULL, op;
    size_t room = 0;

    for (uint64_t line = 1; getline(&text, &room, stdin) > 0; line++) {
        if (sscanf(text, "%" SCNu64 " %c %" SCNu64 " %" SCNu64, &due, &op,
                   &offset, &bytes) != 4 || due < before) {
            fail("line %" PRIu64 " of the trace: expected NS OP OFFSET BYTES, "
                 "by time", line);
        }
        before = due;
        if (start + due > dev.time.now) {
            flash_time_run(&dev.time, start + due);
        }
        counts.waited += under_way >= w.depth;
        wait_for(w.depth - 1);
        place(offset, bytes, &block, &nlb);
        submit_line(line, start + due, op, block, nlb);
    }
    free(text);
    wait_for(0);
}

/* What was found. */

static void print_found(const FtlStats *ftl_before, const FlashStats *before)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        { "requests", nr_requests },
        { "wrapped", counts.wrapped },
        { "unwritten", counts.unwritten },
        { "skipped", counts.skipped },
        { "overtaken", counts.overtaken },
        { "resets", counts.resets },
        { "waited_for_depth", counts.waited },
        { "read_bytes", dev.stats.read_bytes - before->read_bytes },
        { "written_bytes", dev.stats.written_bytes - before->written_bytes },
        { "programmed_bytes", dev.stats.programmed_bytes -
                              before->programmed_bytes },
        { "erases", dev.stats.erases - before->erases },
        { "logical_bytes", config.logical * shape.block_size },
    };
    double seconds = (dev.time.now - start) / 1e9;

    printf("{\"seconds\": %.9f, \"iops\": %.3f", seconds,
           seconds > 0 ? nr_requests / seconds : 0);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        printf(",\n \"%s\": %" PRIu64, numbers[i].name, numbers[i].value);
    }
    for (const FtlCounter *c = ftl_counters; ftl && c->name; c++) {
        printf(",\n \"%s\": %" PRIu64, c->name,
               ftl_count(ftl_stats(ftl), c) - ftl_count(ftl_before, c));
    }
    print_latencies("read", &latencies[0]);
    print_latencies("write", &latencies[1]);
    printf("}\n");
}

/* In order, then at random, one at a time and without delays. */
static void prepare(void)
{
    uint64_t unit = dev.unit_blocks, all = config.logical;

    set_delays(false);
    for (uint64_t at = 0; at + unit <= all * w.fill / 100; at += unit) {
        submit_io(0, dev.time.now, FLASH_CMD_WRITE, false, at, unit);
        wait_for(0);
    }
    for (uint64_t n = 0; n < all * w.age / 100; n++) {
        submit_io(0, dev.time.now, FLASH_CMD_WRITE, false, draw(all), 1);
        wait_for(0);
    }
    set_delays(true);
    memset(&counts, 0, sizeof(counts));
    start = dev.time.now;
}

static void parse_words(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "rows=", 5)) {
            parse_word(argv[i], words);
        } else if (!(rows = fopen(argv[i] + 5, "w"))) {
            fail("%s cannot be written", argv[i] + 5);
        }
    }
    if (!rows || !w.depth || w.fill > 100) {
        fail("expected rows=FILE, depth of at least 1, fill of at most 100");
    }
}

int main(int argc, char **argv)
{
    FtlStats ftl_before = { 0 };
    FlashStats before;

    parse_words(argc, argv);
    seed_draws(w.seed);
    open_drive(on_done);
    parts_open(&dev);
    written = allocate(shape.nr_zones, sizeof(*written));
    prepare();
    if (ftl) {
        ftl_before = *ftl_stats(ftl);
    }
    before = dev.stats;
    fprintf(rows, "n,time_ns,op,offset,bytes,total_ns,host_ns,service_ns,"
            "link_ns,queue_ns,cell_ns,transfer_ns,gc_ns,status\n");
    run_trace();
    if (fclose(rows)) {
        fail("rows cannot be written");
    }
    print_found(&ftl_before, &before);
    close_drive();
    parts_close();
    free(written);
    return 0;
}
