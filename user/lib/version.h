/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SHUNT_VERSION_H
#define SHUNT_VERSION_H

/* Of the release: what --version of every program and the daemon's status say. */
#define SHUNT_VERSION "0.1.0"

#endif
