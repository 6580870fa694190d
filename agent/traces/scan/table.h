/* Pieces of text -> numbers in order of first appearance. The seed keeps hostile names from being
 * made to collide.
 */
#ifndef LABEL_AGENT_TABLE_H
#define LABEL_AGENT_TABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const uint8_t *at;
    int64_t size;
} Piece;

typedef struct {
    uint64_t hash;
    uint8_t *text; /* both pieces, one after the other; NULL where the slot is free */
    int64_t sizes[2];
    int64_t id;
} Slot;

typedef struct {
    Slot *slots;
    uint64_t n_slots; /* a power of two, at least twice the number of entries; 0 at first */
    int64_t n_entries;
    uint64_t seed;
} Table;

static inline uint64_t fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(Piece text, uint64_t seed) {
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    uint64_t hash = seed ^ (uint64_t)text.size, part;
    const uint8_t *p = text.at;
    int64_t left = text.size;
    for (; left >= 8; p += 8, left -= 8) {
        memcpy(&part, p, 8);
        hash = fold(hash ^ part, odd ^ seed);
    }
    part = 0;
    if (left) memcpy(&part, p, (size_t)left);
    return fold(hash ^ part, odd ^ seed);
}

static int same(const Slot *slot, Piece first, Piece second) {
    return slot->sizes[0] == first.size && slot->sizes[1] == second.size
        && !memcmp(slot->text, first.at, (size_t)first.size)
        && (!second.size || !memcmp(slot->text + first.size, second.at, (size_t)second.size));
}

static int grow(Table *table) {
    uint64_t n_slots = table->n_slots ? table->n_slots * 2 : 256;
    Slot *slots = calloc(n_slots, sizeof *slots);
    if (!slots) return 0;
    for (uint64_t old = 0; old < table->n_slots; old++) {
        if (!table->slots[old].text) continue;
        uint64_t at = table->slots[old].hash & (n_slots - 1);
        while (slots[at].text) at = (at + 1) & (n_slots - 1);
        slots[at] = table->slots[old];
    }
    free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    return 1;
}

/* Gives the number of a pair of pieces, or -1 where there is no memory; tells whether it is new. */
static int64_t number_of(Table *table, Piece first, Piece second, int *is_new) {
    uint64_t hash = hash_of(first, table->seed);
    if (second.size) hash = hash_of(second, hash);
    *is_new = 0;
    if ((uint64_t)table->n_entries * 2 >= table->n_slots && !grow(table)) return -1;
    uint64_t at = hash & (table->n_slots - 1);
    for (; table->slots[at].text; at = (at + 1) & (table->n_slots - 1))
        if (table->slots[at].hash == hash && same(&table->slots[at], first, second))
            return table->slots[at].id;
    uint8_t *text = malloc((size_t)(first.size + second.size + 1));
    if (!text) return -1;
    if (first.size) memcpy(text, first.at, (size_t)first.size);
    if (second.size) memcpy(text + first.size, second.at, (size_t)second.size);
    table->slots[at] = (Slot){hash, text, {first.size, second.size}, table->n_entries};
    *is_new = 1;
    return table->n_entries++;
}

static void clear(Table *table) {
    for (uint64_t at = 0; at < table->n_slots; at++) free(table->slots[at].text);
    free(table->slots);
    memset(table, 0, sizeof *table);
}

#endif
