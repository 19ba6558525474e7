/* oprofile/read.h - OProfile sample files as graph rows.
 *
 * A sample file counts samples by place: its keys are offsets in one image, or arcs between two images.
 *
 *   +--------+-------+-----------------------------------------+-----------------------------+
 *   | header | descr | size nodes of 16 bytes; node 0 is unused | hash table: size 32-bit words |
 *   +--------+-------+-----------------------------------------+-----------------------------+
 *
 *   44 41 45 0a  13 00 00 00  20 00 00 00  3c 00 00 00 ...   "DAE\n", version 0x13, CPU type 32, event 0x3c
 *   descr:  00 02 00 00  7c 01 00 00                         512 nodes, the first 0x17c = 380 of them are used
 *   node 1: fa 11 00 00 00 00 00 00  3c 00 00 00  00 00 ..   key 0x11fa, 60 samples, the next node of its bucket
 *
 * The files of one image, one for each event, thread ..., form a group.  Its entries are collected, sorted by key and
 * become rows: costs, or calls if the keys are arcs.  Equal keys are summed in 64 bits.
 *
 * Nodes from descr's second word on are stale: remains of a smaller hash table that the file has outgrown.  The hash
 * table and the links between nodes are ignored.
 * Source: daemon/opd_interface.h, libop/op_sample_file.h, libdb/odb.h of OProfile 0.7 to 1.4.
 */
#pragma once

#include "core/core.h"

struct fp_oprofile_header {
    uint32_t version;
    uint32_t cpu_type;
    uint32_t event; /* the event's number in the counter */
    uint32_t unit_mask;
    uint32_t count; /* events between two samples */
    uint32_t is_kernel;
    uint32_t callee_is_kernel;
    double mhz;
    uint64_t mtime; /* of the image, seconds; 0: unknown */
    uint64_t anon_start;
    uint64_t callee_anon_start;
};

/* The offsets of the header fields that differ between versions.  0: no such field. */
struct fp_oprofile_layout {
    uint32_t version; /* 0: any */
    uint32_t nbytes;  /* of the header */
    uint32_t cpu_speed;
    uint32_t mtime;
    uint32_t mtime_nbytes; /* 4 or 8 */
    uint32_t callee_is_kernel;
    uint32_t anon_start;
    uint32_t callee_anon_start;
};

/* Code of an image: the file positions `start` to `end` - 1. */
struct fp_oprofile_symbol {
    uint64_t start;
    uint64_t end;
    uint32_t name;     /* offset in the image's names */
    uint32_t function; /* of the model; 0: not added yet */
};

/* A section with code: file positions, and the address of the first. */
struct fp_oprofile_section {
    uint64_t start;
    uint64_t end;
    uint64_t address;
    const uint8_t *name; /* borrowed */
    size_t name_nbytes;
};

/* An image and its symbols.  Positions outside of them belong to `whole`. */
struct fp_oprofile_image {
    struct fp_model *model;
    uint32_t object;
    uint32_t whole;       /* function */
    int32_t has_debug;    /* the file has lines */
    int32_t has_link;     /* it names a debug file, or has a build id that may lead to one */
    int32_t ask;          /* the caller adds functions; see fp_oprofile_rows */
    uint64_t text;        /* file position of .text */
    const uint8_t *names; /* borrowed */
    uint64_t names_nbytes;
    int32_t names_are_lines;            /* a name ends with its line or at a tab, not at a NUL byte */
    struct fp_oprofile_symbol *symbols; /* by start, disjoint */
    uint32_t n_symbols, n_sections;

    /* private from here on */
    struct fp_oprofile_section *sections; /* by start */
    uint32_t cap_symbols, cap_sections;
};

struct fp_oprofile_reader {
    int32_t lenient;
    int32_t has_abi; /* `abi` is tried before the known layouts */
    struct fp_oprofile_layout abi;

    /* the last file begun */
    struct fp_oprofile_header header;
    int32_t swap; /* its byte order differs from the machine's */
    uint32_t header_nbytes;
    uint32_t slots;   /* capacity in nodes */
    uint32_t used;    /* slots in use, the first one included */
    uint64_t samples; /* the sum of its values */
    uint64_t FP_COUNT(trailing, "trailing-bytes", repairs, "byte after the end of a sample file",
                      "bytes after the ends of sample files");
    int32_t FP_COUNT(cut, "cut-files", losses, "truncated sample file(s)");
    uint64_t FP_COUNT(lost_nodes, "lost-nodes", losses, "node missing at the end of a sample file",
                      "nodes missing at the ends of sample files");

    /* FP_NEEDS: the symbol that has no function yet */
    struct fp_oprofile_image *requested_image;
    uint32_t requested_symbol;

    /* private from here on */
    uint64_t bytes; /* of the whole file */
    uint64_t at;    /* of the next byte */
    int32_t state;
    uint32_t column;
    int32_t sign;

    /* the group */
    struct fp_oprofile_entry *entries;
    struct fp_oprofile_entry *scratch;
    uint32_t n_entries, cap_entries, cap_scratch;
    uint32_t next; /* entry of the next row */
    uint32_t n_values;
    struct fp_oprofile_image *from; /* borrowed */
    struct fp_oprofile_image *to;   /* borrowed; NULL: keys are not arcs */
    uint64_t from_shift, to_shift;  /* position = key + shift */
};

/* Whether a sample file begins with these bytes.  2: with a known version, 1: with the magic number only, 0: no. */
int fp_oprofile_sniff(const uint8_t *p, size_t n);

struct fp_oprofile_reader *fp_oprofile_reader_new(int lenient);
void fp_oprofile_reader_free(struct fp_oprofile_reader *r);

/* A new group, without entries. */
void fp_oprofile_begin_group(struct fp_oprofile_reader *r);

/* A new file of the group, of `bytes` bytes.  Its samples go to value column `column`, times `sign` (1 or -1). */
void fp_oprofile_begin_file(struct fp_oprofile_reader *r, uint64_t bytes, uint32_t column, int32_t sign);

/* Reads the current file: its first byte is at in->base + in->pos in the first call.  FP_MORE; FP_DONE as soon as all
 * used nodes are read; or an error, whose offset counts from the file's first byte. */
int fp_oprofile_feed(struct fp_oprofile_reader *r, struct fp_window *in, struct fp_err *err);

/* Call after all files of the group, before the rows.  With `to`, the keys are arcs. */
int fp_oprofile_end_group(struct fp_oprofile_reader *r, struct fp_oprofile_image *from, uint64_t from_shift,
                          struct fp_oprofile_image *to, uint64_t to_shift, uint32_t n_values);

/* Rows of the group, by key: FP_COST, or FP_CALL, whose count is the number of its samples.  Addresses are those of
 * the sections; lines and files are 0, and set by the caller.  FP_FULL, FP_DONE, an error, or FP_NEEDS: add the
 * function of requested_image->symbols[requested_symbol] and call again. */
int fp_oprofile_rows(struct fp_oprofile_reader *r, struct fp_batch *out, struct fp_err *err);

/* An image of an object of the model. */
struct fp_oprofile_image *fp_oprofile_image_new(struct fp_model *m, uint32_t object, uint32_t whole);
void fp_oprofile_image_free(struct fp_oprofile_image *image);

/* Reads the symbols of an ELF file, as BFD does: code from `debug` (or NULL) placed in the sections of `elf`.  Both
 * must stay valid for the lifetime of the image.  `by_address`: positions are addresses.  The number of symbols, -1 for
 * a file that is damaged or not ELF. */
int64_t fp_oprofile_image_elf(struct fp_oprofile_image *image, const uint8_t *elf, size_t n, const uint8_t *debug,
                              size_t n_debug, int by_address);

/* The same for the text of /proc/kallsyms: the symbols from _text up to _etext.  `absolute`: positions are addresses,
 * otherwise they are relative to _text. */
int64_t fp_oprofile_image_kallsyms(struct fp_oprofile_image *image, const uint8_t *text, size_t n, int absolute);

/* The bytes of a symbol's name; `nbytes` becomes their number. */
const uint8_t *fp_oprofile_name(const struct fp_oprofile_image *image, uint32_t symbol, size_t *nbytes);

/* The section that contains a position, or NULL. */
const struct fp_oprofile_section *fp_oprofile_section_at(const struct fp_oprofile_image *image, uint64_t position);

/* The address of a file position. */
uint64_t fp_oprofile_address(const struct fp_oprofile_image *image, uint64_t position);
