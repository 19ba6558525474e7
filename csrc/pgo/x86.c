/* Lengths of x86 instructions. */
#include "pgo/code.h"

/* What follows an opcode, by opcode, 16 in a row:
 *   .  nothing           m  ModRM              b  1 byte      w  2 bytes     z  2 or 4 bytes (operand size)
 *   B  ModRM, 1 byte     Z  ModRM, 2 or 4      v  2, 4 or 8   a  an address  e  3 bytes
 *   j  4 bytes, in 32 bits as z                f  a far address              t  ModRM, 1 byte or z if it is a test
 *   p  prefix            x  escape             !  none */
static const char one_byte[] =
    "mmmmbz..mmmmbz.x"
    "mmmmbz..mmmmbz.."
    "mmmmbzp.mmmmbzp."
    "mmmmbzp.mmmmbzp."
    "................"
    "................"
    "..xmppppzZbB...."
    "bbbbbbbbbbbbbbbb"
    "BZBBmmmmmmmmmmmx"
    "..........f....."
    "aaaa....bz......"
    "bbbbbbbbvvvvvvvv"
    "BBw.xxBZe.w..b.."
    "mmmmbb..mmmmmmmm"
    "bbbbbbbbjjfb...."
    "p.pp..tt......mm";
static const char two_bytes[] =
    "mmmm!.....!.!m.B"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "........x!x!!!!!"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "BBBBmmm.mmmmmmmm"
    "jjjjjjjjjjjjjjjj"
    "mmmmmmmmmmmmmmmm"
    "...mBm!!...mBmmm"
    "mmmmmmmmmmBmmmmm"
    "mmBmBBBm........"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm";

/* An instruction as far as it is read. */
struct insn {
    const uint8_t *p;
    uint64_t n, at; /* bytes; the next one */
    int is_64, short_operand, short_address, wide, repne;
};

/* ModRM and what belongs to it; 0 if it is cut off. */
static int skip_modrm(struct insn *i) {
    if (i->at >= i->n) return 0;
    const uint8_t modrm = i->p[i->at++], mod = modrm >> 6, rm = modrm & 7;
    if (mod == 3) return 1;
    if (i->short_address && !i->is_64) {
        i->at += mod == 1 ? 1 : mod == 2 || rm == 6 ? 2 : 0;
        return 1;
    }
    uint8_t base = rm;
    if (rm == 4) {
        if (i->at >= i->n) return 0;
        base = i->p[i->at++] & 7;
    }
    i->at += mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
    return 1;
}

static uint32_t operand(const struct insn *i) {
    return i->short_operand && !i->wide ? 2 : 4;
}

/* Skips what follows an opcode with this letter.  0 if the bytes are not an instruction or end too early. */
static int skip_rest(struct insn *i, char letter) {
    if (strchr("mBZ", letter) && !skip_modrm(i)) return 0;
    switch (letter) {
        case '.':
        case 'm': return 1;
        case 'b':
        case 'B': i->at += 1; return 1;
        case 'w': i->at += 2; return 1;
        case 'e': i->at += 3; return 1;
        case 'z':
        case 'Z': i->at += operand(i); return 1;
        case 'j': i->at += i->is_64 ? 4 : operand(i); return 1;
        case 'v': i->at += i->wide ? 8 : operand(i); return 1;
        case 'a': i->at += i->is_64 ? (i->short_address ? 4 : 8) : (i->short_address ? 2 : 4); return 1;
        case 'f': i->at += operand(i) + 2; return !i->is_64;
        default: return 0;
    }
}

/* An opcode of a map of vector instructions: 1 is that of 0f, 2 of 0f 38, 3 of 0f 3a. */
static int skip_vector(struct insn *i, uint32_t map) {
    if (i->at >= i->n) return 0;
    const uint8_t opcode = i->p[i->at++];
    if (map == 1 && opcode == 0x77) return 1; /* vzeroupper */
    const int has_byte = map == 3 || map == 8 || (map == 1 && two_bytes[opcode] == 'B');
    if (!skip_modrm(i)) return 0;
    i->at += has_byte ? 1 : map == 10 ? 4 : 0;
    return 1;
}

/* VEX (c4, c5), EVEX (62) and XOP (8f); the byte after the opcode is at i->at. */
static int skip_prefixed(struct insn *i, uint8_t first) {
    const uint8_t next = i->at < i->n ? i->p[i->at] : 0;
    if (first == 0x8F && (next & 0x1F) < 8) return skip_rest(i, 'm');
    if (first != 0x8F && !i->is_64 && next < 0xC0) return skip_rest(i, 'm'); /* les, lds, bound */
    const uint32_t length = first == 0xC5 ? 1 : first == 0x62 ? 3 : 2;
    i->at += length;
    return skip_vector(i, first == 0xC5 ? 1 : first == 0x62 ? next & 7 : next & 0x1F);
}

static int skip_two_bytes(struct insn *i) {
    if (i->at >= i->n) return 0;
    const uint8_t opcode = i->p[i->at++];
    if (opcode == 0x38 || opcode == 0x3A) {
        i->at++;
        return skip_rest(i, opcode == 0x38 ? 'm' : 'B');
    }
    if (opcode == 0x78 && (i->short_operand || i->repne)) { /* extrq, insertq */
        i->at += 2;
        return skip_rest(i, 'm');
    }
    return skip_rest(i, two_bytes[opcode]);
}

/* The prefixes. */
static void skip_prefixes(struct insn *i) {
    for (; i->at < i->n; i->at++) {
        const uint8_t byte = i->p[i->at];
        if (one_byte[byte] != 'p') break;
        i->short_operand |= byte == 0x66;
        i->short_address |= byte == 0x67;
        i->repne |= byte == 0xF2;
    }
    if (i->is_64 && i->at < i->n && i->p[i->at] >> 4 == 4) i->wide = i->p[i->at++] >> 3 & 1;
}

/* Whether the code after an instruction without prefixes is not executed next. */
static int leaves_at(uint8_t opcode, uint8_t modrm) {
    switch (opcode) {
        case 0xC2:
        case 0xC3:
        case 0xCA:
        case 0xCB:
        case 0xCF:
        case 0xE9:
        case 0xEA:
        case 0xEB: return 1;
        case 0xFF: return (modrm >> 3 & 7) == 4 || (modrm >> 3 & 7) == 5;
        default: return 0;
    }
}

uint32_t fp_pgo_x86_length(const uint8_t *p, uint64_t n, int is_64, int *leaves) {
    enum { MOST = 15 };
    struct insn i = {.p = p, .n = n < MOST ? n : MOST, .is_64 = is_64};
    *leaves = 0;
    skip_prefixes(&i);
    if (i.at >= i.n) return 0;
    const uint8_t opcode = p[i.at++], next = i.at < i.n ? p[i.at] : 0;
    *leaves = leaves_at(opcode, next);
    int is_known;
    if (opcode == 0x0F) {
        is_known = skip_two_bytes(&i);
    } else if (one_byte[opcode] == 'x') {
        is_known = skip_prefixed(&i, opcode);
    } else if (one_byte[opcode] == 't') { /* test has an operand, its neighbours have none */
        is_known = skip_rest(&i, next & 0x30 ? 'm' : opcode == 0xF6 ? 'B' : 'Z');
    } else {
        is_known = skip_rest(&i, one_byte[opcode]);
    }
    return is_known && i.at <= i.n ? (uint32_t)i.at : 0;
}
