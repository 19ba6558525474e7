/* pprof/no_address.h - objects of code with unknown addresses.  Private.
 *
 * pprof stores the object of a location as the file of its mapping.  If that file exists, pprof's source listing
 * disassembles it at the location's address, and panics if the location has none.  So the mapping of such a location
 * gets a file name that cannot exist: "(no address)//usr/lib/libc.so.6".  Titles and -focus still match the name.
 */
#pragma once

static const char fp_pprof_no_address[] = "(no address)/";
