/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets without a pause while the tables are swapped, and which of the tables can have been in force for each: the
 * phase is 2k while table k is, and 2k - 1 while it is being put in force.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "harness.h"

#define FRAME_ROOM 256u
#define DROPPED 15 /* in place of a backend's number */

struct frame {
	unsigned char *bytes;
	size_t length;
};

/* Of a packet: the first and the last table that it can have seen, and where it went. */
struct sighting {
	unsigned int first, last, backend;
};

static struct stream {
	int program;
	atomic_uint phase;
	atomic_bool stop;
	atomic_int error;
	unsigned int swaps;
	struct frame *frames, *opening;
	size_t n_frames, n_opening, opened;
	/* Bits of backends by [table][frame]: packets of one table alone, and of that and the one before. */
	uint16_t *exact, *either;
	struct sighting *openings;
	uint64_t packets, wide; /* wide: of more than two tables, which are not judged */
	pthread_t threads[2];
} stream;

/* The backends are 10.1.0.11 and so on, reached by IPv4. */
static unsigned int backend_of(const struct bpf_test_run_opts *options)
{
	const unsigned char *out = options->data_out;

	return options->retval == XDP_DROP ? DROPPED : (out[14 + 19] - 11u) & 15;
}

static struct sighting send_frame(const struct frame *frame)
{
	unsigned char out[FRAME_ROOM];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->bytes, .data_size_in = (uint32_t)frame->length,
		    .data_out = out, .data_size_out = sizeof(out), .repeat = 1);
	struct sighting sighting = {.first = atomic_load(&stream.phase) / 2};

	if (bpf_prog_test_run_opts(stream.program, &options))
		stream.error = -errno;
	sighting.last = (atomic_load(&stream.phase) + 1) / 2;
	sighting.backend = backend_of(&options);
	return sighting;
}

static void *run_stream(void *arg)
{
	(void)arg;
	for (size_t i = 0; !stream.stop; i = (i + 1) % stream.n_frames) {
		struct sighting sighting = send_frame(&stream.frames[i]);
		size_t at = sighting.last * stream.n_frames + i;

		stream.packets++;
		if (sighting.last > stream.swaps)
			break;
		if (sighting.last - sighting.first > 1)
			stream.wide++;
		else if (sighting.last > sighting.first)
			stream.either[at] |= (uint16_t)(1 << sighting.backend);
		else
			stream.exact[at] |= (uint16_t)(1 << sighting.backend);
	}
	return NULL;
}

/* New connections, evenly over the swaps. */
static void *run_opening(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < stream.n_opening; i++) {
		while (!stream.stop && stream.phase < 2 * i * stream.swaps / stream.n_opening)
			usleep(20);
		if (stream.stop)
			break;
		stream.openings[stream.opened++] = send_frame(&stream.opening[i]);
	}
	return NULL;
}

static struct frame *take_frames(json_t *list, size_t *count)
{
	struct frame *frames = calloc(json_array_size(list) + 1, sizeof(*frames));

	*count = json_array_size(list);
	for (size_t i = 0; frames && i < *count; i++)
		frames[i].bytes = harness_bytes(json_string_value(json_array_get(list, i)), &frames[i].length);
	return frames;
}

json_t *harness_stream(struct harness *h, json_t *request, int *error)
{
	memset(&stream, 0, sizeof(stream));
	stream.program = h->program[PROGRAM_LB];
	stream.swaps = (unsigned int)json_integer_value(json_object_get(request, "swaps"));
	stream.frames = take_frames(json_object_get(request, "frames"), &stream.n_frames);
	stream.opening = take_frames(json_object_get(request, "opening"), &stream.n_opening);
	stream.exact = calloc((stream.swaps + 1) * stream.n_frames, sizeof(*stream.exact));
	stream.either = calloc((stream.swaps + 1) * stream.n_frames, sizeof(*stream.either));
	stream.openings = calloc(stream.n_opening, sizeof(*stream.openings));
	*error = -pthread_create(&stream.threads[0], NULL, run_stream, NULL);
	if (!*error && pthread_create(&stream.threads[1], NULL, run_opening, NULL))
		abort();
	return *error ? NULL : json_object();
}

json_t *harness_phase(struct harness *h, json_t *request, int *error)
{
	(void)h;
	(void)request;
	*error = stream.error;
	atomic_fetch_add(&stream.phase, 1);
	return *error ? NULL : json_object();
}

static void free_frames(struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(frames[i].bytes);
	free(frames);
}

json_t *harness_stream_end(struct harness *h, json_t *request, int *error)
{
	size_t size = (stream.swaps + 1) * stream.n_frames * sizeof(*stream.exact);
	json_t *openings = json_array(), *reply;

	(void)h;
	(void)request;
	stream.stop = true;
	pthread_join(stream.threads[0], NULL);
	pthread_join(stream.threads[1], NULL);
	*error = stream.error;
	for (size_t i = 0; i < stream.opened; i++)
		json_array_append_new(openings, json_pack("[i, i, i]", stream.openings[i].first,
							  stream.openings[i].last, stream.openings[i].backend));
	reply = json_pack("{s:I, s:I, s:o, s:o, s:o}", "packets", (json_int_t)stream.packets, "wide",
			  (json_int_t)stream.wide, "exact", harness_hex((unsigned char *)stream.exact, size), "either",
			  harness_hex((unsigned char *)stream.either, size), "openings", openings);
	free_frames(stream.frames, stream.n_frames);
	free_frames(stream.opening, stream.n_opening);
	free(stream.exact);
	free(stream.either);
	free(stream.openings);
	if (!*error)
		return reply;
	json_decref(reply);
	return NULL;
}
