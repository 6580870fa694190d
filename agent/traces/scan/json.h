/* JSON tokens, strictly: each function takes the place where a token begins and gives the place after
 * it, or NULL for what is no such token. ASCII only, no halves of surrogate pairs, bounded depth.
 *
 * Text is hostile. It ends with a NUL at `end`, which no token contains, so nothing is read beyond.
 */
#ifndef LABEL_AGENT_JSON_H
#define LABEL_AGENT_JSON_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MOST_NESTED 32

typedef const uint8_t *Place;

static const uint8_t PLAIN[256] = {
#define ROW16 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
    [0x20] = 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ROW16, ROW16,
    [0x50] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, ROW16, ROW16,
#undef ROW16
};

static inline Place spaces(Place p) {
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') p++;
    return p;
}

static inline int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static inline int hex(uint8_t c) {
    if (is_digit(c)) return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* After a backslash. Halves of surrogate pairs are refused. */
static Place escape(Place p) {
    if (*p == 'u') {
        int unit = 0;
        for (int i = 1; i <= 4; i++) {
            int digit = hex(p[i]);
            if (digit < 0) return NULL;
            unit = unit << 4 | digit;
        }
        return unit >= 0xD800 && unit <= 0xDFFF ? NULL : p + 5;
    }
    return *p && strchr("\"\\/bfnrt", *p) ? p + 1 : NULL;
}

/* After the opening quote; gives the closing one. */
static inline Place string_end(Place p, Place end, int *escaped) {
    for (;;) {
#ifdef __SSE2__
        while (end - p >= 16) {
            __m128i text = _mm_loadu_si128((const __m128i *)p);
            __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')),
                                        _mm_cmpeq_epi8(text, _mm_set1_epi8('\\')));
            /* as signed bytes, control characters and those beyond ASCII are less than a space */
            stop = _mm_or_si128(stop, _mm_cmplt_epi8(text, _mm_set1_epi8(' ')));
            int found = _mm_movemask_epi8(stop);
            if (found) {
                p += __builtin_ctz((unsigned)found);
                break;
            }
            p += 16;
        }
#endif
        while (PLAIN[*p]) p++;
        if (*p == '"') return p;
        if (*p != '\\') return NULL;
        *escaped = 1;
        if (!(p = escape(p + 1))) return NULL;
    }
}

static inline Place digits(Place p) {
    if (!is_digit(*p)) return NULL;
    while (is_digit(*p)) p++;
    return p;
}

static Place number(Place p) {
    if (*p == '-') p++;
    if (*p == '0') p++;
    else if (!(p = digits(p))) return NULL;
    if (*p == '.' && !(p = digits(p + 1))) return NULL;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '+' || *p == '-') p++;
        return digits(p);
    }
    return p;
}

static Place word(Place p, const char *expected) {
    for (; *expected; p++, expected++)
        if (*p != (uint8_t)*expected) return NULL;
    return p;
}

static Place value(Place p, Place end, int nested);

static Place members(Place p, Place end, int nested, uint8_t close) {
    int ignored = 0;
    p = spaces(p);
    if (*p == close) return p + 1;
    for (;;) {
        if (close == '}') {
            if (*p != '"' || !(p = string_end(p + 1, end, &ignored))) return NULL;
            p = spaces(p + 1);
            if (*p != ':') return NULL;
            p = spaces(p + 1);
        }
        if (!(p = value(p, end, nested))) return NULL;
        p = spaces(p);
        if (*p == close) return p + 1;
        if (*p != ',') return NULL;
        p = spaces(p + 1);
    }
}

static Place value(Place p, Place end, int nested) {
    int ignored = 0;
    switch (*p) {
    case '"':
        p = string_end(p + 1, end, &ignored);
        return p ? p + 1 : NULL;
    case '{': return nested < MOST_NESTED ? members(p + 1, end, nested + 1, '}') : NULL;
    case '[': return nested < MOST_NESTED ? members(p + 1, end, nested + 1, ']') : NULL;
    case 't': return word(p, "true");
    case 'f': return word(p, "false");
    case 'n': return word(p, "null");
    default: return number(p);
    }
}

#endif
