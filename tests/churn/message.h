/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What client and server of the churn test say to each other, over TCP and UDP: the server sends each message back. */
#ifndef TESTS_CHURN_MESSAGE_H
#define TESTS_CHURN_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_MAX 4096u
#define MESSAGE_DATAGRAM_MAX 512u

struct message {
	uint32_t length;  /* of all, in bytes */
	uint32_t backend; /* the server's own number; UINT32_MAX in a request */
	uint64_t id;	  /* of the connection */
	uint64_t sequence;
	unsigned char pattern[MESSAGE_MAX - 24];
};

/* The pattern differs for each message of each connection. */
static inline unsigned char message_byte(const struct message *message, uint32_t i)
{
	uint64_t x = (message->id * 0x9e3779b97f4a7c15ull ^ message->sequence) + i;

	return (unsigned char)(x * 0xd6e8feb86659fd93ull >> 56);
}

static inline void message_fill(struct message *message)
{
	for (uint32_t i = 0; i < message->length - 24; i++)
		message->pattern[i] = message_byte(message, i);
}

static inline bool message_right(const struct message *message)
{
	if (message->length < 24 || message->length > MESSAGE_MAX)
		return false;
	for (uint32_t i = 0; i < message->length - 24; i++) {
		if (message->pattern[i] != message_byte(message, i))
			return false;
	}
	return true;
}

#endif
