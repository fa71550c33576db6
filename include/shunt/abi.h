/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract between the BPF programs and user space: its number, the names of the pinned maps and
 * the limits that both sides rely on.  A change of any shared layout is a new SHUNT_ABI, because the
 * number is part of the pin path: programs and maps of two ABIs never meet.
 */
#ifndef SHUNT_ABI_H
#define SHUNT_ABI_H

#define SHUNT_ABI 1u

/* Everything is pinned below SHUNT_PIN_ROOT/<instance>/v<SHUNT_ABI>/. */
#define SHUNT_BPFFS "/sys/fs/bpf"
#define SHUNT_PIN_ROOT SHUNT_BPFFS "/shunt"
#define SHUNT_INSTANCE_DEFAULT "default"
#define SHUNT_INSTANCE_MAX 31 /* characters, [a-z0-9-], first one a letter */

/* Names of the maps, in the objects and as pins.  The kernel keeps 15 characters of a name. */
#define SHUNT_MAP_META "meta"
#define SHUNT_MAP_SNAPSHOT "snapshot"
#define SHUNT_MAP_TABLES_S "tables_s"
#define SHUNT_MAP_TABLES_M "tables_m"
#define SHUNT_MAP_TABLES_L "tables_l"
#define SHUNT_MAP_RANGES_S "ranges_s"
#define SHUNT_MAP_RANGES_M "ranges_m"
#define SHUNT_MAP_RANGES_L "ranges_l"
#define SHUNT_MAP_FLOWS "flows"
#define SHUNT_MAP_POOL_STATS "pool_stats"
#define SHUNT_MAP_FRAGMENTS "fragments"
#define SHUNT_MAP_ERROR_CLOCK "error_clock"
#define SHUNT_MAP_OUTER_SOURCES "outer_sources"
#define SHUNT_MAP_ENDPOINTS "endpoints"
#define SHUNT_MAP_BACKEND_PATH "backend_path"
#define SHUNT_MAP_BACKENDS "backends"
#define SHUNT_MAP_NEXTHOPS "nexthops"
#define SHUNT_MAP_IFACES "ifaces"
#define SHUNT_MAP_REASONS "reasons"
#define SHUNT_MAP_SERVICE_STATS "service_stats"
#define SHUNT_MAP_BACKEND_STATS "backend_stats"
#define SHUNT_MAP_DECAP_SOURCES "decap_sources"
#define SHUNT_MAP_DECAP_INNER "decap_inner"
#define SHUNT_MAP_DECAP_REASONS "decap_reasons"

/* A slot names a backend in 15 bits; the highest number means "none". */
#define SHUNT_BACKEND_NONE 0x7fffu
#define SHUNT_BACKENDS_MAX 0x7fffu /* ids 0 .. 0x7ffe */
#define SHUNT_POOLS_MAX 65535u
#define SHUNT_SERVICES_MAX 65536u  /* service entries: one for each port of each service */
#define SHUNT_ADDRESSES_MAX 16384u /* distinct service addresses */
#define SHUNT_FLOWS_MAX (1u << 26)
#define SHUNT_IFACES 256u /* egress interfaces: a next hop names one in 16 bits */

/* Slots that a table of each size class can hold; sizes themselves are primes up to these. */
#define SHUNT_SLOTS_S 4099u
#define SHUNT_SLOTS_M 65537u
#define SHUNT_SLOTS_L 1048573u

/* Default capacities, fixed when the maps are created. */
#define SHUNT_DEFAULT_SERVICES 65536u
#define SHUNT_DEFAULT_ADDRESSES 16384u
#define SHUNT_DEFAULT_POOLS 1024u
#define SHUNT_DEFAULT_BACKENDS 16384u
#define SHUNT_DEFAULT_FLOWS 1000000u

/*
 * Health checks that travel the data path: the mark of their sockets.  Bits 16 to 23: a number of the instance on its
 * host; 0 to 14: the backend's id.
 */
#define SHUNT_PROBE_MARK 0x5e000000u
#define SHUNT_PROBE_MASK 0xff000000u

/* Bounds of header walks: packets beyond them are dropped with a reason when they are for a service. */
#define SHUNT_VLAN_TAGS_MAX 2
#define SHUNT_IPV6_EXTENSIONS_MAX 6

#endif
