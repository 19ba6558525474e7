/* otlp/json_fields.h - the fields of OTLP profiles by their names in JSON, in the layout of 1.10.
 *
 * Source: opentelemetry-proto v1.10.0, profiles.proto, common.proto, resource.proto; OTLP/JSON: ids in hexadecimal,
 * numbers of 64 bits as strings, other bytes in base64.
 */
#pragma once

#include "otlp/walk.h"

/* The first ones are containers (enum fp_otlp_container). */
enum fp_otlp_json_message {
    FP_OTLP_J_RESOURCE = 6,
    FP_OTLP_J_SCOPE,
    FP_OTLP_J_KEY_VALUE,
    FP_OTLP_J_VALUE,
    FP_OTLP_J_ARRAY,
    FP_OTLP_J_KEYS,
    FP_OTLP_J_VALUE_TYPE,
    FP_OTLP_J_SAMPLE,
    FP_OTLP_J_MAPPING,
    FP_OTLP_J_LOCATION,
    FP_OTLP_J_LINE,
    FP_OTLP_J_FUNCTION,
    FP_OTLP_J_LINK,
    FP_OTLP_J_ATTRIBUTE,
    FP_OTLP_J_STACK
};

/* cffi-end */

/* How a value is written: 'i' a number of 32 bits, 'l' of 64 bits, 'x' fixed 64 bits, 'd' a double, 'b' true or false,
 * 's' text, 'B' bytes in base64, 'h' in hexadecimal, 'm' a message.  `of`: which one. */
struct fp_otlp_json_field {
    const char *name;
    uint8_t message, number, kind, repeated, of;
};

/* Looks up a field of a message by name, `resourceProfiles` or `resource_profiles`; NULL if there is none. */
const struct fp_otlp_json_field *fp_otlp_json_field(unsigned message, const uint8_t *p, size_t n);

/* Looks up a field by number. */
const struct fp_otlp_json_field *fp_otlp_json_number(unsigned message, uint32_t number);
