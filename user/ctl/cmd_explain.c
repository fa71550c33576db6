/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl explain: where a packet goes, and why. */
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "attach.h"
#include "cmd_explain.h"
#include "ctl.h"
#include "flow.h"
#include "pcap.h"

#define TCP_SYN 0x02
#define TCP_ACK 0x10
#define DEFAULT_TTL 64

enum {
	OPTION_PACKET = 256,
	OPTION_INDEX,
	OPTION_INTERFACE,
	OPTION_SYN,
	OPTION_ACK,
	OPTION_TTL,
	OPTION_LENGTH,
	OPTION_VLAN,
	OPTION_FRAGMENTABLE
};

struct args {
	struct ctl_words words;
	struct explain_packet packet;
	const char *shaped; /* the option that shapes a packet, if one was given */
	const char *file, *out, *interface;
	json_int_t index; /* 0: not given */
};

/* What runs packets, and all that has to be put away again. */
struct session {
	struct maps maps;
	struct explain plain, frags; /* .object is NULL before it is needed */
	uint32_t ifindex;
	uint32_t length; /* of the frame that was run last */
	char interface[IF_NAMESIZE];
	bool attached; /* the interface has the program */
};

/* ---- command line ---- */

static error_t shape_option(struct args *args, int key, const char *arg, const struct argp_state *state)
{
	struct explain_packet *packet = &args->packet;
	json_int_t value = 0;
	error_t err = 0;

	switch (key) {
	case OPTION_SYN:
	case OPTION_ACK:
		packet->tcp_flags = key == OPTION_SYN ? TCP_SYN : TCP_ACK;
		args->shaped = key == OPTION_SYN ? "--syn" : "--ack";
		return 0;
	case OPTION_FRAGMENTABLE:
		packet->fragmentable = true;
		args->shaped = "--fragmentable";
		return 0;
	case OPTION_TTL:
		err = ctl_number_option(state, args->shaped = "--ttl", arg, 0, 255, &value);
		packet->ttl = (uint8_t)value;
		return err;
	case OPTION_LENGTH:
		err = ctl_number_option(state, args->shaped = "--length", arg, 28, 65535, &value);
		packet->length = (uint32_t)value;
		return err;
	default:
		if (packet->n_tags == EXPLAIN_TAGS_MAX)
			return ctl_usage(state, "--vlan %s: a packet has at most %d tags here", arg, EXPLAIN_TAGS_MAX);
		err = ctl_number_option(state, args->shaped = "--vlan", arg, 0, 4095, &value);
		packet->tag[packet->n_tags++] = (uint16_t)value;
		return err;
	}
}

/* All that the words and options say together. */
static error_t judge_words(struct args *args, const struct argp_state *state)
{
	const char *const *value = args->words.value;

	if (!value[0] && !args->file)
		return ctl_usage(state, "give tcp, udp or icmp, SOURCE and DESTINATION, or --packet FILE");
	if (value[0] && !value[2])
		return ctl_usage(state, "%s is missing", args->words.names[value[1] ? 2 : 1]);
	if (args->file && args->shaped)
		return ctl_usage(state, "%s is for a packet made from words, and --packet gives one as it is",
				 args->shaped);
	if (args->index && !args->file)
		return ctl_usage(state, "--index names a packet of a file: give --packet FILE");
	if (args->index && value[0])
		return ctl_usage(state, "--index and %s both choose the packet: leave one out", value[0]);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *args = state->input;

	switch (key) {
	case OPTION_PACKET:
		args->file = arg;
		return 0;
	case OPTION_INDEX:
		return ctl_number_option(state, "--index", arg, 1, 1000000000, &args->index);
	case OPTION_INTERFACE:
		args->interface = arg;
		return 0;
	case 'w':
		args->out = arg;
		return 0;
	case OPTION_SYN:
	case OPTION_ACK:
	case OPTION_FRAGMENTABLE:
	case OPTION_TTL:
	case OPTION_LENGTH:
	case OPTION_VLAN:
		return shape_option(args, key, arg, state);
	case ARGP_KEY_SUCCESS:
		return judge_words(args, state);
	default:
		return ctl_word(&args->words, key, arg, state);
	}
}

/* The flow that the words name. */
static int parse_flow(struct args *args)
{
	struct explain_packet *packet = &args->packet;
	const char *const *value = args->words.value;
	int code;

	if (!value[0])
		return CTL_OK;
	code = flow_protocol(value[0], true, &packet->protocol);
	if (!code)
		code = flow_endpoint(packet->protocol, value[1], &packet->source, &packet->source_port);
	if (!code)
		code = flow_endpoint(packet->protocol, value[2], &packet->destination, &packet->destination_port);
	if (!code)
		code = flow_families(&packet->source, &packet->destination, value);
	if (code)
		return code;
	if (packet->length && packet->length < explain_headers(packet))
		return ctl_fail(CTL_USAGE, "Usage", "--length %u: the headers alone are %u bytes", packet->length,
				explain_headers(packet));
	return CTL_OK;
}

/* ---- where it comes in ---- */

static void interface_mac(const char *name, uint8_t out[static 6])
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd >= 0 && !ioctl(fd, SIOCGIFHWADDR, &request))
		memcpy(out, request.ifr_hwaddr.sa_data, 6);
	if (fd >= 0)
		close(fd);
}

/* The first interface of this namespace that has the instance's program, or `wanted` if it has; else 0. */
static uint32_t attached_interface(uint32_t wanted)
{
	struct attach_link *links = NULL;
	uint64_t netns = attach_netns();
	size_t count = 0;
	uint32_t found = 0;

	if (attach_links(ctl_options.instance, &links, &count))
		return 0;
	for (size_t i = 0; i < count && !found; i++)
		if (links[i].alive && links[i].role == PROGRAM_LB && links[i].netns == netns &&
		    (!wanted || links[i].ifindex == wanted))
			found = links[i].ifindex;
	free(links);
	return found;
}

static int choose_interface(const char *name, struct session *session)
{
	if (name) {
		session->ifindex = if_nametoindex(name);
		if (!session->ifindex)
			return ctl_fail(CTL_INVALID, "NotFound", "there is no interface %s in this network namespace",
					name);
	} else {
		session->ifindex = attached_interface(0);
		if (!session->ifindex)
			return ctl_fail(
				CTL_INVALID, "NotFound",
				"no interface of this network namespace has the program of instance %s: say with "
				"--interface where the packet shall come in",
				ctl_options.instance);
	}
	if (!if_indextoname(session->ifindex, session->interface))
		return ctl_fail(CTL_INVALID, "NotFound", "the interface with index %u is gone", session->ifindex);
	session->attached = attached_interface(session->ifindex);
	return CTL_OK;
}

/* ---- running packets ---- */

static int open_session(const char *interface, struct session *session, struct report *report)
{
	int code = ctl_open_maps(&session->maps, report);

	if (code)
		return code;
	code = choose_interface(interface, session);
	if (code)
		maps_close(&session->maps);
	return code;
}

static void close_session(struct session *session)
{
	explain_close(&session->plain);
	explain_close(&session->frags);
	maps_close(&session->maps);
}

/* Frames that do not fit one buffer need a program that takes several, as the NICs would. */
static int run(struct session *session, const uint8_t *frame, uint32_t length, struct explain_result *result,
	       struct report *report)
{
	bool frags = length > EXPLAIN_LINEAR;
	struct explain *explain = frags ? &session->frags : &session->plain;
	int err = 0;

	session->length = length;
	if (length < EXPLAIN_FRAME_MIN || length > EXPLAIN_FRAME_MAX)
		return report_error(report, -EINVAL, "a frame of %u bytes: the kernel's test run takes %u to %u",
				    length, EXPLAIN_FRAME_MIN, EXPLAIN_FRAME_MAX);
	if (!explain->object)
		err = explain_open(&session->maps, frags, explain, report);
	return err ? err : explain_run(explain, frame, length, session->ifindex, result, report);
}

static bool is_of_flow(const struct shunt_trace *t, const struct explain_packet *packet)
{
	uint16_t ports[2] = {htons((uint16_t)packet->source_port), htons((uint16_t)packet->destination_port)};
	uint8_t protocol = packet->protocol;

	if (protocol == IPPROTO_ICMP && !addr_is_v4(&packet->destination))
		protocol = IPPROTO_ICMPV6;
	if (!(t->known & SHUNT_TRACE_ADDRESSES) || t->protocol != protocol ||
	    !addr_equal(&t->source, &packet->source) || !addr_equal(&t->destination, &packet->destination))
		return false;
	return packet->protocol == IPPROTO_ICMP ||
	       (t->known & SHUNT_TRACE_FLOW && !memcmp(ports, &t->ports, sizeof(ports)));
}

static bool is_wanted(const struct args *args, unsigned int index, const struct shunt_trace *t)
{
	return args->words.value[0] ? is_of_flow(t, &args->packet) : index == (args->index ? args->index : 1);
}

static int none_wanted(const struct args *args, unsigned int count, struct report *report)
{
	if (args->words.value[0])
		return report_error(
			report, -ENOENT,
			"%s: none of its %u packets is of this flow as the program reads it: choose one with "
			"--index, without the words",
			args->file, count);
	return report_error(report, -ENOENT, "%s has %u packets, and no number %u", args->file, count,
			    (unsigned int)(args->index ? args->index : 1));
}

/* Of a file, the packet that is asked for. */
static int run_file(const struct args *args, struct session *session, struct explain_result *result,
		    unsigned int *index, struct report *report)
{
	struct pcap pcap;
	int err = pcap_open(args->file, &pcap, report);

	if (err)
		return err;
	for (;;) {
		uint32_t length;
		uint8_t *frame;

		err = pcap_next(&pcap, &frame, &length, report);
		if (err)
			break;
		/* By number no other packet is run. */
		if (!args->words.value[0] && !is_wanted(args, pcap.index, NULL)) {
			free(frame);
			continue;
		}
		err = run(session, frame, length, result, report);
		free(frame);
		if (err || is_wanted(args, pcap.index, &result->trace))
			break;
		free(result->frame);
		result->frame = NULL;
	}
	*index = pcap.index;
	pcap_close(&pcap);
	return err == -ENODATA ? none_wanted(args, pcap.index, report) : err;
}

static int run_built(struct args *args, struct session *session, struct explain_result *result, struct report *report)
{
	uint32_t length;
	uint8_t *frame;
	int err;

	interface_mac(session->interface, args->packet.mac);
	frame = explain_build(&args->packet, &length);
	if (!frame)
		return report_error(report, -ENOMEM, "out of memory");
	err = run(session, frame, length, result, report);
	free(frame);
	return err;
}

/* ---- what came of it ---- */

static json_t *decide(const struct args *args, const struct session *session, const struct explain_result *result,
		      unsigned int index)
{
	struct explain_names names = {
		.services = ctl_rows_if_running("ServiceList", "services"),
		.pools = ctl_rows_if_running("PoolList", "pools"),
		.backends = ctl_rows_if_running("BackendList", "backends"),
	};
	json_t *decision = explain_json(result, &names);

	json_object_set_new(decision, "input",
			    json_pack("{s:s, s:b, s:I, s:b, s:o, s:o}", "interface", session->interface, "attached",
				      session->attached, "bytes", (json_int_t)session->length, "frags",
				      session->length > EXPLAIN_LINEAR, "file",
				      args->file ? json_string(args->file) : json_null(), "index",
				      args->file ? json_integer(index) : json_null()));
	json_object_set_new(decision, "sentences", explain_sentences(result, decision));
	json_decref(names.services);
	json_decref(names.pools);
	json_decref(names.backends);
	return decision;
}

static int show(const struct args *args, const struct session *session, const struct explain_result *result,
		unsigned int index, struct report *report)
{
	bool sent = result->action != XDP_DROP && result->action != XDP_ABORTED;
	json_t *decision;

	if (args->out && sent && pcap_write(args->out, result->frame, (uint32_t)result->length, report))
		return ctl_fail_report(CTL_INVALID, "Failed", report);
	decision = decide(args, session, result, index);
	if (ctl_options.json)
		return ctl_print_json(decision);
	explain_print(decision);
	json_decref(decision);
	if (args->out && !sent)
		printf("\nNothing leaves, so %s was not written.\n", args->out);
	return CTL_OK;
}

static int explain(struct args *args, struct report *report)
{
	struct explain_result result = {};
	struct session session = {};
	unsigned int index = 0;
	int err, code = open_session(args->interface, &session, report);

	if (code)
		return code;
	err = args->file ? run_file(args, &session, &result, &index, report)
			 : run_built(args, &session, &result, report);
	code = err ? ctl_fail_report(CTL_INVALID, "Failed", report) : show(args, &session, &result, index, report);
	free(result.frame);
	close_session(&session);
	return code;
}

static const struct argp_option options[] = {
	{"packet", OPTION_PACKET, "FILE", 0, "a packet of this pcap file, instead of one made from the words", 0},
	{"index", OPTION_INDEX, "N", 0, "which one (1, the first); with words instead, the first of that flow", 0},
	{"write", 'w', "OUT", 0, "write the packet as it leaves to a pcap file", 0},
	{"interface", OPTION_INTERFACE, "NAME", 0, "where it comes in (the first one with the program)", 0},
	{"syn", OPTION_SYN, NULL, 0, "TCP: a new connection (default)", 0},
	{"ack", OPTION_ACK, NULL, 0, "TCP: a connection that is there", 0},
	{"ttl", OPTION_TTL, "N", 0, "TTL or hop limit (64)", 0},
	{"length", OPTION_LENGTH, "BYTES", 0, "of the IP packet (its headers alone)", 0},
	{"fragmentable", OPTION_FRAGMENTABLE, NULL, 0, "IPv4: without DF", 0},
	{"vlan", OPTION_VLAN, "ID", 0, "with a VLAN tag; again for another inside it", 0},
	{},
};

int cmd_explain(int argc, char **argv)
{
	static const char *const names[] = {"PROTOCOL", "SOURCE", "DESTINATION", NULL};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[tcp|udp|icmp SOURCE DESTINATION]",
		.doc = "Says where a packet goes and why, by running the load balancer's own program on it. Changes "
		       "nothing: "
		       "no counter, no flow. Needs root and the network namespace of the interfaces, but no daemon.",
		.children = children,
	};
	struct args args = {
		.words = {.names = names},
		.packet = {.tcp_flags = TCP_SYN, .ttl = DEFAULT_TTL},
	};
	struct report report = {};
	int code = ctl_parse(&argp, argc, argv, NULL, &args);

	if (!code)
		code = parse_flow(&args);
	if (!code)
		code = explain(&args, &report);
	report_free(&report);
	return code;
}
