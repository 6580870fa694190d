/* A block of whole trace events -> columns of integers.
 *
 * This is the quick half of the reader. It takes what profilers usually write and refuses every
 * block in which something is not plainly so: text that is not strict JSON or not ASCII, a field of
 * another type, a key that matters twice, a time of more than three decimals. A refused block is
 * read by agent/traces/document.py as if this file did not exist: slower, never different.
 */
#include "event.h"
#include "table.h"

#define VERSION 1
#define ROWS 8192
#define FRESH_ROWS (4 * ROWS)
#define MOST_CATEGORIES 32

/* As agent/traces/events.py numbers them. */
enum { IGNORED, KERNEL, MEMCPY, MEMSET, OPERATOR, RUNTIME, ANNOTATION, GPU_ANNOTATION, FRAME };

/* As agent/traces/scanner.py reads them. */
enum { KERNEL_NAMES, CALLS, OPERATORS, THREADS, N_TABLES };
enum { EVENTS, PHASED, FRAMES, KERNELS, LAUNCHES, SPANS, RARE, FRESH, N_COUNTS };
/* Columns named _AT or _SIZE, and those of ids, hold a piece of the text until it has its id. */
enum { START, DURATION, NAME, WORK, DEVICE, STREAM, CORRELATION, EXTERNAL, NAME_SIZE, N_KERNEL };
enum { L_START, L_CALL, L_CORRELATION, L_EXTERNAL, L_THREAD, L_CALL_SIZE, L_THREAD_SIZE, N_LAUNCH };
enum { S_START, S_DURATION, S_WHAT, S_EXTERNAL, S_THREAD, S_WHAT_SIZE, S_TYPES_AT, S_TYPES_SIZE,
       S_THREAD_SIZE, N_SPAN };
enum { TABLE, FIRST_AT, FIRST_SIZE, SECOND_AT, SECOND_SIZE, N_FRESH };

typedef struct {
    int64_t kernels[N_KERNEL][ROWS];
    int64_t launches[N_LAUNCH][ROWS];
    int64_t spans[N_SPAN][ROWS];
    int64_t rare[2][ROWS];
    int64_t fresh[N_FRESH][FRESH_ROWS];
    int64_t counts[N_COUNTS];
} Columns;

typedef struct {
    Piece name;
    int64_t kind;
} Category;

typedef struct {
    Columns columns;
    Table tables[N_TABLES];
    Category categories[MOST_CATEGORIES];
    char category_names[MOST_CATEGORIES][32];
    int n_categories;
    int out_of_memory;
} Scanner;

typedef struct {
    Scanner *scanner;
    Place text, end;
    int64_t counts[N_COUNTS];
} Block;

/* Any spelling and case of a category, spaces around it aside. */
static int64_t kind_of(const Scanner *scanner, Piece cat) {
    if (cat.size < 2) return IGNORED;
    Place from = cat.at + 1, to = cat.at + cat.size - 1;
    while (from < to && *from == ' ') from++;
    while (from < to && to[-1] == ' ') to--;
    for (int i = 0; i < scanner->n_categories; i++) {
        Piece name = scanner->categories[i].name;
        if (name.size != to - from) continue;
        int64_t at = 0;
        while (at < name.size) {
            uint8_t c = from[at];
            if (c >= 'A' && c <= 'Z') c |= 0x20;
            if (c != name.at[at]) break;
            at++;
        }
        if (at == name.size) return scanner->categories[i].kind;
    }
    return IGNORED;
}

static int64_t offset(const Block *block, Piece text) {
    return text.size ? text.at - block->text : 0;
}

/* A place is a number or text; one that is absent counts as -1. */
static int is_place(Piece text) {
    int64_t ignored;
    return !text.size || *text.at == '"' || as_integer(text, &ignored);
}

static int place_number(Piece text, int64_t *found) {
    *found = -1;
    return !text.size || as_integer(text, found);
}

static int64_t external_id(const Event *event) {
    if (event->arguments & EXTERNAL_ID) return event->external;
    return event->arguments & EXTERNAL_ID_2021 ? event->external_2021 : -1;
}

static int add_kernel(Block *block, const Event *event, int64_t work) {
    int64_t row = block->counts[KERNELS]++, pid, tid;
    int64_t (*columns)[ROWS] = block->scanner->columns.kernels;
    if (row >= ROWS || !place_number(event->pid, &pid)) return 0;
    if (!as_nanoseconds(event->ts, &columns[START][row])) return 0;
    if (!as_nanoseconds(event->dur, &columns[DURATION][row])) return 0;
    if (!(event->arguments & STREAM_ID) && !place_number(event->tid, &tid)) return 0;
    columns[WORK][row] = work;
    columns[DEVICE][row] = event->arguments & DEVICE_ID ? event->device : pid;
    columns[STREAM][row] = event->arguments & STREAM_ID ? event->stream : tid;
    columns[CORRELATION][row] = event->arguments & CORRELATION_ID ? event->correlation : -1;
    columns[EXTERNAL][row] = external_id(event);
    columns[NAME][row] = offset(block, event->title);
    columns[NAME_SIZE][row] = event->title.size;
    return columns[DEVICE][row] >= INT32_MIN && columns[DEVICE][row] <= INT32_MAX;
}

static int add_launch(Block *block, const Event *event) {
    int64_t row = block->counts[LAUNCHES]++, pid;
    int64_t (*columns)[ROWS] = block->scanner->columns.launches;
    if (row >= ROWS || !place_number(event->pid, &pid)) return 0;
    if (!as_nanoseconds(event->ts, &columns[L_START][row])) return 0;
    columns[L_CORRELATION][row] = event->arguments & CORRELATION_ID ? event->correlation : -1;
    columns[L_EXTERNAL][row] = external_id(event);
    columns[L_CALL][row] = offset(block, event->title);
    columns[L_CALL_SIZE][row] = event->title.size;
    columns[L_THREAD][row] = offset(block, event->tid);
    columns[L_THREAD_SIZE][row] = event->tid.size;
    return 1;
}

static int add_operator(Block *block, const Event *event) {
    int64_t row = block->counts[SPANS]++, pid;
    int64_t (*columns)[ROWS] = block->scanner->columns.spans;
    if (row >= ROWS || !place_number(event->pid, &pid)) return 0;
    if (!as_nanoseconds(event->ts, &columns[S_START][row])) return 0;
    if (!as_nanoseconds(event->dur, &columns[S_DURATION][row])) return 0;
    columns[S_EXTERNAL][row] = external_id(event);
    columns[S_WHAT][row] = offset(block, event->title);
    columns[S_WHAT_SIZE][row] = event->title.size;
    columns[S_TYPES_AT][row] = offset(block, event->types);
    columns[S_TYPES_SIZE][row] = event->types.size;
    columns[S_THREAD][row] = offset(block, event->tid);
    columns[S_THREAD_SIZE][row] = event->tid.size;
    return 1;
}

/* Events that Python reads itself: few, or in two halves. */
static int add_rare(Block *block, Place from, Place to) {
    int64_t row = block->counts[RARE]++;
    if (row >= ROWS) return 0;
    block->scanner->columns.rare[0][row] = from - block->text;
    block->scanner->columns.rare[1][row] = to - block->text;
    return 1;
}

static int add_event(Block *block, const Event *event, Place from, Place to) {
    if (!is_place(event->pid) || !is_place(event->tid) || event->ph.size > 3) return 0;
    block->counts[EVENTS]++;
    if (event->ph.size < 3) return 1;
    block->counts[PHASED]++;
    uint8_t phase = event->ph.at[1];
    if (phase == 'B' || phase == 'E') return add_rare(block, from, to);
    if (phase != 'X') return 1;
    int64_t kind = kind_of(block->scanner, event->cat);
    if (kind != IGNORED && kind != FRAME && !event->title.size) return 0;
    switch (kind) {
    case KERNEL: case MEMCPY: case MEMSET: return add_kernel(block, event, kind);
    case OPERATOR: return add_operator(block, event);
    case RUNTIME: return add_launch(block, event);
    case ANNOTATION: case GPU_ANNOTATION: return add_rare(block, from, to);
    case FRAME: block->counts[FRAMES]++; return 1;
    default: return 1;
    }
}

static int read_events(Block *block) {
    Place p = block->text;
    if (*p != '[') return 0;
    p = spaces(p + 1);
    for (;;) {
        Event event;
        Place from = p;
        if (!(p = event_members(p, block->end, &event))) return 0;
        if (!add_event(block, &event, from, p)) return 0;
        p = spaces(p);
        if (*p == ']') return spaces(p + 1) == block->end;
        if (*p != ',') return 0;
        p = spaces(p + 1);
    }
}

/* ---- pieces of text -> ids ---- */

/* A kernel has one text that may be new; an operator has two, as has a launch. */
static int has_room_for_texts(const Block *block) {
    const int64_t *n = block->counts;
    return n[KERNELS] + 2 * (n[SPANS] + n[LAUNCHES]) <= FRESH_ROWS;
}

static int name_pieces(Block *block, int table, int64_t n_rows, int64_t *at, const int64_t *sizes,
                       const int64_t *second_at, const int64_t *second_sizes) {
    Columns *columns = &block->scanner->columns;
    for (int64_t row = 0; row < n_rows; row++) {
        int is_new;
        Piece first = {block->text + at[row], sizes[row]}, second = {NULL, 0};
        if (second_at) second = (Piece){block->text + second_at[row], second_sizes[row]};
        int64_t id = number_of(&block->scanner->tables[table], first, second, &is_new);
        if (id < 0) return 0;
        if (is_new) {
            int64_t fresh = block->counts[FRESH]++;
            columns->fresh[TABLE][fresh] = table;
            columns->fresh[FIRST_AT][fresh] = offset(block, first);
            columns->fresh[FIRST_SIZE][fresh] = first.size;
            columns->fresh[SECOND_AT][fresh] = offset(block, second);
            columns->fresh[SECOND_SIZE][fresh] = second.size;
        }
        at[row] = id;
    }
    return 1;
}

static int name_rows(Block *block) {
    Columns *columns = &block->scanner->columns;
    int64_t (*k)[ROWS] = columns->kernels, (*l)[ROWS] = columns->launches, (*s)[ROWS] = columns->spans;
    int64_t n_launches = block->counts[LAUNCHES], n_spans = block->counts[SPANS];
    return name_pieces(block, KERNEL_NAMES, block->counts[KERNELS], k[NAME], k[NAME_SIZE], NULL, NULL)
        && name_pieces(block, OPERATORS, n_spans, s[S_WHAT], s[S_WHAT_SIZE], s[S_TYPES_AT],
                       s[S_TYPES_SIZE])
        && name_pieces(block, THREADS, n_spans, s[S_THREAD], s[S_THREAD_SIZE], NULL, NULL)
        && name_pieces(block, CALLS, n_launches, l[L_CALL], l[L_CALL_SIZE], NULL, NULL)
        && name_pieces(block, THREADS, n_launches, l[L_THREAD], l[L_THREAD_SIZE], NULL, NULL);
}

/* ---- what agent/traces/scanner.py calls ---- */

int64_t scanner_version(void) { return VERSION; }

int64_t scanner_rows(void) { return ROWS; }

Scanner *scanner_new(uint64_t seed) {
    Scanner *scanner = calloc(1, sizeof *scanner);
    for (int i = 0; scanner && i < N_TABLES; i++) scanner->tables[i].seed = seed;
    return scanner;
}

void scanner_free(Scanner *scanner) {
    for (int i = 0; i < N_TABLES; i++) clear(&scanner->tables[i]);
    free(scanner);
}

/* Gives 0 where there is no room for another category. */
int scanner_category(Scanner *scanner, const char *name, int64_t kind) {
    int at = scanner->n_categories;
    size_t size = strlen(name);
    if (at == MOST_CATEGORIES || size >= sizeof scanner->category_names[0]) return 0;
    memcpy(scanner->category_names[at], name, size);
    scanner->categories[at].name = (Piece){(Place)scanner->category_names[at], (int64_t)size};
    scanner->categories[at].kind = kind;
    scanner->n_categories++;
    return 1;
}

int64_t *scanner_columns(Scanner *scanner) { return (int64_t *)&scanner->columns; }

/* Reads `[event, event, ...]`, with a NUL at text[size]; gives 0 for a block that is refused. */
int scanner_scan(Scanner *scanner, const uint8_t *text, int64_t size) {
    Block block = {scanner, text, text + size, {0}};
    if (scanner->out_of_memory || !read_events(&block) || !has_room_for_texts(&block)) return 0;
    if (!name_rows(&block)) {
        scanner->out_of_memory = 1; /* ids were given that nobody learned of */
        return 0;
    }
    memcpy(scanner->columns.counts, block.counts, sizeof block.counts);
    return 1;
}
