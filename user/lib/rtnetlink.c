/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <time.h>

#include "rtnetlink.h"

#define BUFFER (32u << 10) /* what the kernel puts in one read */

int rtnetlink_open(struct mnl_socket **out)
{
	struct mnl_socket *opened = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	int error;

	if (!opened)
		return -errno;
	if (mnl_socket_bind(opened, 0, MNL_SOCKET_AUTOPID) < 0) {
		error = -errno;
		mnl_socket_close(opened);
		return error;
	}
	*out = opened;
	return 0;
}

int rtnetlink_ask(struct mnl_socket *socket, struct nlmsghdr *message, mnl_cb_t fn, void *arg)
{
	char buffer[BUFFER];
	unsigned int sequence = message->nlmsg_seq = (unsigned int)time(NULL);
	int ret = MNL_CB_OK;

	message->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		return -errno;
	while (ret > MNL_CB_STOP) {
		ssize_t size = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));

		if (size < 0)
			return -errno;
		ret = mnl_cb_run(buffer, (size_t)size, sequence, mnl_socket_get_portid(socket), fn, arg);
	}
	return ret < 0 ? -errno : 0;
}
