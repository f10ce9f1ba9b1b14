// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest's packets, whose cost is counted (plugin.c): Ethernet frames of one size, by a
 * program, of a type that no protocol answers (0x88b5, IEEE 802 local experiments).
 *
 *   traffic mark N
 *   traffic features INTERFACE 0|1           the kernel gives it no large packets and no pieces, or again
 *   traffic send INTERFACE SIZE COUNT N      marks N before the first, N + 1 after the last
 *   traffic trickle INTERFACE SIZE COUNT N   the same, a millisecond after each frame
 *   traffic receive INTERFACE COUNT N        the same, of frames that come: N when the first
 *                                            is there
 *   traffic fetch ADDRESS PORT BYTES N       the same, of bytes that come by TCP
 *   traffic store ADDRESS PORT BYTES N       marks N before the first, N + 1 when all are acknowledged
 *   traffic ask ADDRESS PORT COUNT N         a byte there and one back by TCP, so often, after a first time
 *
 * Prints how many frames or bytes were sent, or came after the first, or how often it asked.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PROTOCOL 0x88b5
#define LARGEST 1514
#define HEADER 14
/* What is on its way when the program has sent it, in microseconds. */
#define SETTLE 20000
/* Between frames that go one by one: the machine has nothing left to do by then. */
#define PAUSE 1000

/* An instruction that does nothing, with the number in it. */
#define MARK(n) case n: __asm__ volatile("nopl 0x74770000 + %c0(%%rax)" ::"i"(n) : "memory"); return
#define MARKS(n) \
	MARK((n)); MARK((n) + 1); MARK((n) + 2); MARK((n) + 3); \
	MARK((n) + 4); MARK((n) + 5); MARK((n) + 6); MARK((n) + 7)
static void mark(int number)
{
	switch (number) {
	MARKS(0); MARKS(8); MARKS(16); MARKS(24); MARKS(32); MARKS(40); MARKS(48);
	MARKS(56); MARKS(64); MARKS(72); MARKS(80); MARKS(88); MARKS(96);
	MARKS(104); MARKS(112);
	}
}

static int die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_ll address_of(const char *interface)
{
	/* Of 10.0.2.2 in QEMU's network, which drops them: a bridge knows where it is, and
	 * does not flood. */
	static const uint8_t host[6] = { 0x52, 0x55, 10, 0, 2, 2 };
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(PROTOCOL), .sll_halen = 6,
		.sll_ifindex = (int)if_nametoindex(interface),
	};

	if (!address.sll_ifindex)
		die(interface);
	memcpy(address.sll_addr, host, sizeof(host));
	return address;
}

static int open_socket(int protocol)
{
	const int to = socket(AF_PACKET, SOCK_RAW, htons(protocol));

	return to < 0 ? die("socket") : to;
}

/* A bridge lets nobody send with another's source. */
static void put_source(uint8_t *to, int socket, const char *interface)
{
	struct ifreq request = { 0 };

	strncpy(request.ifr_name, interface, sizeof(request.ifr_name) - 1);
	if (ioctl(socket, SIOCGIFHWADDR, &request))
		die("SIOCGIFHWADDR");
	memcpy(to, request.ifr_hwaddr.sa_data, 6);
}

static void set_feature(int socket, const char *interface, uint32_t command, uint32_t on)
{
	struct ethtool_value value = { .cmd = command, .data = on };
	struct ifreq request = { .ifr_data = (char *)&value };

	strncpy(request.ifr_name, interface, sizeof(request.ifr_name) - 1);
	if (ioctl(socket, SIOCETHTOOL, &request))
		die("SIOCETHTOOL");
}

/* Off: the kernel cuts what TCP sends itself, and each segment is in one piece. Checksums of IPv4 cannot be
 * switched off, xen-netfront always leaves them to the other end. */
static int set_features(const char *interface, uint32_t on)
{
	/* Segmentation needs pieces, and is gone with them. */
	static const uint32_t features[] = { ETHTOOL_SSG, ETHTOOL_STSO, ETHTOOL_SGSO };
	const int any = socket(AF_INET, SOCK_DGRAM, 0);
	size_t i;

	for (i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		set_feature(any, interface, features[i], on);
	return 0;
}

/* pause: microseconds after each frame, or 0. */
static int send_frames(const char *interface, size_t size, long count, useconds_t pause, int number)
{
	const struct sockaddr_ll address = address_of(interface);
	const int to = open_socket(0);
	uint8_t frame[LARGEST] = { 0 };
	long sent;

	memcpy(frame, address.sll_addr, 6);
	put_source(frame + 6, to, interface);
	frame[12] = PROTOCOL >> 8;
	frame[13] = PROTOCOL & 0xff;
	mark(number);
	for (sent = 0; sent < count; sent++) {
		while (sendto(to, frame, size, 0, (const struct sockaddr *)&address,
			      sizeof(address)) < 0)
			if (errno != ENOBUFS)
				die("sendto");
		if (pause)
			usleep(pause);
	}
	usleep(SETTLE);
	mark(number + 1);
	printf("%ld\n", sent);
	return 0;
}

static int receive_frames(const char *interface, long count, int number)
{
	const struct sockaddr_ll address = address_of(interface);
	const struct timeval patience = { .tv_sec = 60 };
	const int from = open_socket(PROTOCOL), bytes = 1 << 20;
	uint8_t frame[LARGEST];
	long came;

	setsockopt(from, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	setsockopt(from, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (bind(from, (const struct sockaddr *)&address, sizeof(address)))
		die("bind");
	for (came = -1; came < count; came++) {
		if (recv(from, frame, sizeof(frame), 0) < HEADER)
			die("recv");
		if (came < 0)
			mark(number);
	}
	mark(number + 1);
	printf("%ld\n", came);
	return 0;
}

static uint8_t bytes[1 << 16];

static int connect_to(const char *address, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int stream = socket(AF_INET, SOCK_STREAM, 0);

	if (stream < 0 || !inet_aton(address, &to.sin_addr) ||
	    connect(stream, (const struct sockaddr *)&to, sizeof(to)))
		die("connect");
	return stream;
}

static int store(const char *address, int port, long count, int number)
{
	const int stream = connect_to(address, port);
	long gone = 0, length;
	int waiting;

	mark(number);
	for (; gone < count; gone += length) {
		length = count - gone < (long)sizeof(bytes) ? count - gone : (long)sizeof(bytes);
		length = send(stream, bytes, length, 0);
		if (length <= 0)
			die("send");
	}
	do {
		usleep(1000);
		if (ioctl(stream, SIOCOUTQ, &waiting))
			die("SIOCOUTQ");
	} while (waiting);
	mark(number + 1);
	printf("%ld\n", gone);
	return 0;
}

static int fetch(const char *address, int port, long count, int number)
{
	const int stream = connect_to(address, port);
	long came = -1, length;

	while (came < count) {
		length = recv(stream, bytes, came < 0 ? 1 : sizeof(bytes), 0);
		if (length <= 0)
			die("recv");
		if (came < 0)
			mark(number);
		came += length;
	}
	mark(number + 1);
	printf("%ld\n", came);
	return 0;
}

/* A byte, and the answer. */
static void ask_once(int stream)
{
	char byte = 1;

	if (send(stream, &byte, 1, 0) != 1)
		die("send");
	if (recv(stream, &byte, 1, 0) != 1)
		die("recv");
}

static int ask(const char *address, int port, long count, int number)
{
	const int stream = connect_to(address, port), at_once = 1;
	long asked;

	if (setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once)))
		die("TCP_NODELAY");
	ask_once(stream);
	mark(number);
	for (asked = 0; asked < count; asked++)
		ask_once(stream);
	mark(number + 1);
	printf("%ld\n", asked);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "mark")) {
		mark(atoi(argv[2]));
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "features"))
		return set_features(argv[2], (uint32_t)atoi(argv[3]));
	if (argc == 6 && (!strcmp(argv[1], "send") || !strcmp(argv[1], "trickle")) &&
	    atol(argv[3]) >= HEADER && atol(argv[3]) <= LARGEST)
		return send_frames(argv[2], (size_t)atol(argv[3]), atol(argv[4]),
				   argv[1][0] == 't' ? PAUSE : 0, atoi(argv[5]));
	if (argc == 5 && !strcmp(argv[1], "receive"))
		return receive_frames(argv[2], atol(argv[3]), atoi(argv[4]));
	if (argc == 6 && !strcmp(argv[1], "fetch"))
		return fetch(argv[2], atoi(argv[3]), atol(argv[4]), atoi(argv[5]));
	if (argc == 6 && !strcmp(argv[1], "store"))
		return store(argv[2], atoi(argv[3]), atol(argv[4]), atoi(argv[5]));
	if (argc == 6 && !strcmp(argv[1], "ask"))
		return ask(argv[2], atoi(argv[3]), atol(argv[4]), atoi(argv[5]));
	fprintf(stderr, "usage: traffic mark N | features INTERFACE 0|1 | send|trickle INTERFACE SIZE COUNT N | receive INTERFACE COUNT N | fetch|store ADDRESS PORT BYTES N | ask ADDRESS PORT COUNT N\n");
	return 2;
}
