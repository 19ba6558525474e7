#include "otlp/json_fields.h"

#define DATA FP_OTLP_DATA
#define RESOURCES FP_OTLP_RESOURCE_PROFILES
#define SCOPES FP_OTLP_SCOPE_PROFILES
#define PROFILE FP_OTLP_PROFILE
#define TABLES FP_OTLP_DICTIONARY
#define J(name) FP_OTLP_J_##name

/* Sorted by message; names of earlier releases follow the current ones, whose numbers they share. */
static const struct fp_otlp_json_field fields[] = {
    {"resourceProfiles", DATA, 1, 'm', 1, RESOURCES},
    {"dictionary", DATA, 2, 'm', 0, TABLES},
    {"resource", RESOURCES, 1, 'm', 0, J(RESOURCE)},
    {"scopeProfiles", RESOURCES, 2, 'm', 1, SCOPES},
    {"schemaUrl", RESOURCES, 3, 's', 0, 0},
    {"scope", SCOPES, 1, 'm', 0, J(SCOPE)},
    {"profiles", SCOPES, 2, 'm', 1, PROFILE},
    {"schemaUrl", SCOPES, 3, 's', 0, 0},
    {"sampleType", PROFILE, 1, 'm', 0, J(VALUE_TYPE)},
    {"samples", PROFILE, 2, 'm', 1, J(SAMPLE)},
    {"timeUnixNano", PROFILE, 3, 'x', 0, 0},
    {"durationNano", PROFILE, 4, 'l', 0, 0},
    {"periodType", PROFILE, 5, 'm', 0, J(VALUE_TYPE)},
    {"period", PROFILE, 6, 'l', 0, 0},
    {"profileId", PROFILE, 7, 'h', 0, 0},
    {"droppedAttributesCount", PROFILE, 8, 'i', 0, 0},
    {"originalPayloadFormat", PROFILE, 9, 's', 0, 0},
    {"originalPayload", PROFILE, 10, 'B', 0, 0},
    {"attributeIndices", PROFILE, 11, 'i', 1, 0},
    {"sample", PROFILE, 2, 'm', 1, J(SAMPLE)}, /* 1.8 */
    {"mappingTable", TABLES, 1, 'm', 1, J(MAPPING)},
    {"locationTable", TABLES, 2, 'm', 1, J(LOCATION)},
    {"functionTable", TABLES, 3, 'm', 1, J(FUNCTION)},
    {"linkTable", TABLES, 4, 'm', 1, J(LINK)},
    {"stringTable", TABLES, 5, 's', 1, 0},
    {"attributeTable", TABLES, 6, 'm', 1, J(ATTRIBUTE)},
    {"stackTable", TABLES, 7, 'm', 1, J(STACK)},
    {"attributes", J(RESOURCE), 1, 'm', 1, J(KEY_VALUE)},
    {"droppedAttributesCount", J(RESOURCE), 2, 'i', 0, 0},
    {"name", J(SCOPE), 1, 's', 0, 0},
    {"version", J(SCOPE), 2, 's', 0, 0},
    {"attributes", J(SCOPE), 3, 'm', 1, J(KEY_VALUE)},
    {"droppedAttributesCount", J(SCOPE), 4, 'i', 0, 0},
    {"key", J(KEY_VALUE), 1, 's', 0, 0},
    {"value", J(KEY_VALUE), 2, 'm', 0, J(VALUE)},
    {"keyStrindex", J(KEY_VALUE), 3, 'i', 0, 0},
    {"stringValue", J(VALUE), 1, 's', 0, 0},
    {"boolValue", J(VALUE), 2, 'b', 0, 0},
    {"intValue", J(VALUE), 3, 'l', 0, 0},
    {"doubleValue", J(VALUE), 4, 'd', 0, 0},
    {"arrayValue", J(VALUE), 5, 'm', 0, J(ARRAY)},
    {"kvlistValue", J(VALUE), 6, 'm', 0, J(KEYS)},
    {"bytesValue", J(VALUE), 7, 'B', 0, 0},
    {"stringValueStrindex", J(VALUE), 8, 'i', 0, 0},
    {"values", J(ARRAY), 1, 'm', 1, J(VALUE)},
    {"values", J(KEYS), 1, 'm', 1, J(KEY_VALUE)},
    {"typeStrindex", J(VALUE_TYPE), 1, 'i', 0, 0},
    {"unitStrindex", J(VALUE_TYPE), 2, 'i', 0, 0},
    {"stackIndex", J(SAMPLE), 1, 'i', 0, 0},
    {"attributeIndices", J(SAMPLE), 2, 'i', 1, 0},
    {"linkIndex", J(SAMPLE), 3, 'i', 0, 0},
    {"values", J(SAMPLE), 4, 'l', 1, 0},
    {"timestampsUnixNano", J(SAMPLE), 5, 'x', 1, 0},
    {"memoryStart", J(MAPPING), 1, 'l', 0, 0},
    {"memoryLimit", J(MAPPING), 2, 'l', 0, 0},
    {"fileOffset", J(MAPPING), 3, 'l', 0, 0},
    {"filenameStrindex", J(MAPPING), 4, 'i', 0, 0},
    {"attributeIndices", J(MAPPING), 5, 'i', 1, 0},
    {"mappingIndex", J(LOCATION), 1, 'i', 0, 0},
    {"address", J(LOCATION), 2, 'l', 0, 0},
    {"lines", J(LOCATION), 3, 'm', 1, J(LINE)},
    {"attributeIndices", J(LOCATION), 4, 'i', 1, 0},
    {"line", J(LOCATION), 3, 'm', 1, J(LINE)}, /* 1.8 */
    {"functionIndex", J(LINE), 1, 'i', 0, 0},
    {"line", J(LINE), 2, 'l', 0, 0},
    {"column", J(LINE), 3, 'l', 0, 0},
    {"nameStrindex", J(FUNCTION), 1, 'i', 0, 0},
    {"systemNameStrindex", J(FUNCTION), 2, 'i', 0, 0},
    {"filenameStrindex", J(FUNCTION), 3, 'i', 0, 0},
    {"startLine", J(FUNCTION), 4, 'l', 0, 0},
    {"traceId", J(LINK), 1, 'h', 0, 0},
    {"spanId", J(LINK), 2, 'h', 0, 0},
    {"keyStrindex", J(ATTRIBUTE), 1, 'i', 0, 0},
    {"value", J(ATTRIBUTE), 2, 'm', 0, J(VALUE)},
    {"unitStrindex", J(ATTRIBUTE), 3, 'i', 0, 0},
    {"locationIndices", J(STACK), 1, 'i', 1, 0},
};

enum { N_FIELDS = sizeof fields / sizeof *fields };

static int same(const char *name, const uint8_t *p, size_t n) {
    return strlen(name) == n && !memcmp(name, p, n);
}

/* Accepts both the JSON key `aB` and the field name `a_b`. */
static int same_with_underscores(const char *name, const uint8_t *p, size_t n) {
    size_t i = 0;
    for (; *name; name++, i++) {
        const int is_upper = *name >= 'A' && *name <= 'Z';
        if (is_upper && (i == n || p[i++] != '_')) return 0;
        if (i == n || p[i] != (uint8_t)(is_upper ? *name | 0x20 : *name)) return 0;
    }
    return i == n;
}

const struct fp_otlp_json_field *fp_otlp_json_field(unsigned message, const uint8_t *p, size_t n) {
    for (int i = 0; i < N_FIELDS; i++)
        if (fields[i].message == message && same(fields[i].name, p, n)) return &fields[i];
    for (int i = 0; i < N_FIELDS; i++)
        if (fields[i].message == message && same_with_underscores(fields[i].name, p, n)) return &fields[i];
    return NULL;
}

const struct fp_otlp_json_field *fp_otlp_json_number(unsigned message, uint32_t number) {
    for (int i = 0; i < N_FIELDS; i++)
        if (fields[i].message == message && fields[i].number == number) return &fields[i];
    return NULL;
}
