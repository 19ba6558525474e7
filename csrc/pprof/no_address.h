/* pprof/no_address.h - objects of code with unknown addresses.  Private.
 *
 * pprof has one place for an object: the file of a location's mapping.  If that file exists, pprof's source listing
 * disassembles it at the location's address, and panics if there is none.  So such a location has a mapping with a file
 * name that cannot exist: "(no address)//usr/lib/libc.so.6".  Titles and -focus still see the name.
 */
#ifndef FP_PPROF_NO_ADDRESS_H
#define FP_PPROF_NO_ADDRESS_H

static const char fp_pprof_no_address[] = "(no address)/";

#endif
