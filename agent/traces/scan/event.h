/* One trace event: its members that matter, each at most once and of the type that it has. */
#ifndef LABEL_AGENT_EVENT_H
#define LABEL_AGENT_EVENT_H

#include "json.h"
#include "table.h"

#define MOST_DIGITS 18
#define MOST_MICROSECOND_DIGITS 15

/* Members of an event and of its arguments, as bits. */
enum { PH = 1, CAT = 2, TITLE = 4, PID = 8, TID = 16, TS = 32, DUR = 64, ARGS = 128 };
enum { EXTERNAL_ID = 1, EXTERNAL_ID_2021 = 2, CORRELATION_ID = 4, DEVICE_ID = 8, STREAM_ID = 16,
       INPUT_TYPE = 32, INPUT_DIMS = 64 };

/* Text members keep their quotes; what is absent has size 0. */
typedef struct {
    unsigned members, arguments;
    Piece ph, cat, title, pid, tid, ts, dur, types;
    int64_t external, external_2021, correlation, device, stream;
} Event;

static int as_integer(Piece text, int64_t *found) {
    Place p = text.at, end = p + text.size;
    int negative = text.size > 0 && *p == '-';
    int64_t sum = 0;
    p += negative;
    if (p == end || end - p > MOST_DIGITS) return 0;
    for (; p < end; p++) {
        if (!is_digit(*p)) return 0;
        sum = sum * 10 + (*p - '0');
    }
    *found = negative ? -sum : sum;
    return 1;
}

/* Microseconds with at most three decimals -> nanoseconds. */
static int as_nanoseconds(Piece text, int64_t *found) {
    if (!text.size) return 0;
    Place p = text.at, end = p + text.size;
    int negative = *p == '-', decimals = 0;
    int64_t sum = 0;
    p += negative;
    Place first = p;
    for (; p < end && is_digit(*p); p++) {
        if (p - first >= MOST_MICROSECOND_DIGITS) return 0;
        sum = sum * 10 + (*p - '0');
    }
    if (p == first) return 0;
    if (p < end && *p == '.')
        for (p++; p < end && is_digit(*p); p++) {
            if (++decimals > 3) return 0;
            sum = sum * 10 + (*p - '0');
        }
    if (p != end) return 0;
    for (; decimals < 3; decimals++) sum *= 10;
    *found = negative ? -sum : sum;
    return 1;
}

static inline int is(Piece text, const char *expected, int64_t size) {
    return text.size == size && !memcmp(text.at, expected, (size_t)size);
}

static unsigned event_member(Piece key) {
    switch (key.size) {
    case 2: return is(key, "ph", 2) ? PH : is(key, "ts", 2) ? TS : 0;
    case 3:
        return is(key, "cat", 3) ? CAT : is(key, "pid", 3) ? PID : is(key, "tid", 3) ? TID
             : is(key, "dur", 3) ? DUR : 0;
    case 4: return is(key, "name", 4) ? TITLE : is(key, "args", 4) ? ARGS : 0;
    default: return 0;
    }
}

static unsigned argument_member(Piece key) {
    switch (key.size) {
    case 6: return is(key, "device", 6) ? DEVICE_ID : is(key, "stream", 6) ? STREAM_ID : 0;
    case 10: return is(key, "Input type", 10) ? INPUT_TYPE : is(key, "Input Dims", 10) ? INPUT_DIMS : 0;
    case 11:
        return is(key, "External id", 11) ? EXTERNAL_ID : is(key, "correlation", 11) ? CORRELATION_ID
             : is(key, "external id", 11) ? EXTERNAL_ID_2021 : 0;
    default: return 0;
    }
}

/* `"key": ` up to its value. An escape could spell any key: refused. */
static Place key_of(Place p, Place end, Piece *key) {
    int escaped = 0;
    if (*p != '"') return NULL;
    key->at = p + 1;
    if (!(p = string_end(p + 1, end, &escaped)) || escaped) return NULL;
    key->size = p - key->at;
    p = spaces(p + 1);
    return *p == ':' ? spaces(p + 1) : NULL;
}

static Place argument(Place p, Place end, unsigned member, Event *event) {
    Piece text = {p, 0};
    if (!(p = value(p, end, 2))) return NULL;
    text.size = p - text.at;
    if (event->arguments & member) return NULL;
    event->arguments |= member;
    switch (member) {
    case EXTERNAL_ID: return as_integer(text, &event->external) ? p : NULL;
    case EXTERNAL_ID_2021: return as_integer(text, &event->external_2021) ? p : NULL;
    case CORRELATION_ID: return as_integer(text, &event->correlation) ? p : NULL;
    case DEVICE_ID: return as_integer(text, &event->device) ? p : NULL;
    case STREAM_ID: return as_integer(text, &event->stream) ? p : NULL;
    case INPUT_TYPE: event->types = text; return p;
    default: return p;
    }
}

typedef unsigned (*MemberOf)(Piece key);
typedef Place (*Take)(Place p, Place end, unsigned member, Event *event);

/* An object; what may stand behind each of its keys is said by the key's member, 0 for all others. */
static inline Place object(Place p, Place end, Event *event, MemberOf member_of, Take take) {
    if (*p != '{') return NULL;
    p = spaces(p + 1);
    if (*p == '}') return p + 1;
    for (;;) {
        Piece key;
        if (!(p = key_of(p, end, &key))) return NULL;
        if (!(p = take(p, end, member_of(key), event))) return NULL;
        p = spaces(p);
        if (*p == '}') return p + 1;
        if (*p != ',') return NULL;
        p = spaces(p + 1);
    }
}

static Place text_member(Place p, Place end, Piece *text, int *escaped) {
    if (*p != '"') return NULL;
    text->at = p;
    if (!(p = string_end(p + 1, end, escaped))) return NULL;
    text->size = p + 1 - text->at;
    return p + 1;
}

static Place event_value(Place p, Place end, unsigned member, Event *event) {
    int escaped = 0;
    Piece *text;
    if (event->members & member) return NULL;
    event->members |= member;
    switch (member) {
    case PH: case CAT:
        p = text_member(p, end, member == PH ? &event->ph : &event->cat, &escaped);
        return escaped ? NULL : p;
    case TITLE: return text_member(p, end, &event->title, &escaped);
    case ARGS: return object(p, end, event, argument_member, argument);
    case PID: text = &event->pid; break;
    case TID: text = &event->tid; break;
    case TS: text = &event->ts; break;
    case DUR: text = &event->dur; break;
    default: return value(p, end, 1);
    }
    text->at = p;
    if (!(p = value(p, end, 1))) return NULL;
    text->size = p - text->at;
    return p;
}

static Place event_members(Place p, Place end, Event *event) {
    memset(event, 0, sizeof *event);
    return object(p, end, event, event_member, event_value);
}

#endif
