/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

#define NAME_BUFFER 65536 /* bytes for one entry of the group database: all its members are in it */

static bool group_id(const char *name, gid_t *out)
{
	struct group entry, *found = NULL;
	char *buffer = malloc(NAME_BUFFER);
	bool known = buffer && !getgrnam_r(name, &entry, buffer, NAME_BUFFER, &found) && found;

	if (known)
		*out = found->gr_gid;
	free(buffer);
	return known;
}

/* Among the supplementary groups that the peer had when it connected. */
static bool in_groups(int fd, gid_t group)
{
	socklen_t size = 0;
	gid_t *groups;
	bool found = false;

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) || errno != ERANGE)
		return false;
	groups = malloc(size);
	if (groups && !getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size)) {
		for (size_t i = 0; i < size / sizeof(*groups) && !found; i++)
			found = groups[i] == group;
	}
	free(groups);
	return found;
}

int peer_of(int fd, const char *group, struct peer *out)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	gid_t admins;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -errno;
	*out = (struct peer){.uid = peer.uid, .pid = peer.pid, .admin = !peer.uid || peer.uid == geteuid()};
	if (!out->admin && group_id(group, &admins))
		out->admin = peer.gid == admins || in_groups(fd, admins);
	return 0;
}
