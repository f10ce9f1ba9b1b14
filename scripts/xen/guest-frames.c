// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest's frames with any source and destination, of a type that no protocol answers (0x88b5,
 * IEEE 802 local experiments), and a word in each by which it is known on the wire (wire.sh).
 *
 *   frames INTERFACE COUNT DESTINATION SOURCE WORD
 *
 * SOURCE `own` is the interface's address. COUNT 0: until SIGTERM. Ends when the backend has answered all that are
 * in the interface's ring. Prints how many the kernel has taken.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROTOCOL 0x88b5
#define SIZE 60
#define HEADER 14

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static int read_address(const char *text, uint8_t to[6])
{
	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &to[0], &to[1], &to[2], &to[3], &to[4], &to[5]) == 6;
}

static void own_address(int socket, const char *interface, uint8_t to[6])
{
	struct ifreq request = { 0 };

	strncpy(request.ifr_name, interface, sizeof(request.ifr_name) - 1);
	if (ioctl(socket, SIOCGIFHWADDR, &request))
		die("SIOCGIFHWADDR");
	memcpy(to, request.ifr_hwaddr.sa_data, 6);
}

/* Whether the kernel has taken it. A full queue is waited for. */
static int sent(int socket, const uint8_t frame[SIZE], const struct sockaddr_ll *address)
{
	while (sendto(socket, frame, SIZE, 0, (const struct sockaddr *)address, sizeof(*address)) < 0) {
		if (ended)
			return 0;
		if (errno == ENOBUFS)
			usleep(1000);
		else if (errno != EINTR)
			die("sendto");
	}
	return 1;
}

/* The frontend frees a frame when it is answered, and until then it is the socket's (packet_ioctl). */
static void wait_for_answers(int socket)
{
	int waiting = 1;

	for (;;) {
		if (ioctl(socket, SIOCOUTQ, &waiting))
			die("SIOCOUTQ");
		if (!waiting)
			return;
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	const int to = socket(AF_PACKET, SOCK_RAW, 0);
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(PROTOCOL), .sll_halen = 6,
	};
	struct sigaction action = { .sa_handler = end };
	uint8_t frame[SIZE] = { 0 };
	long count, most;

	if (argc != 6 || strlen(argv[5]) > SIZE - HEADER) {
		fprintf(stderr, "usage: frames INTERFACE COUNT DESTINATION SOURCE WORD\n");
		return 2;
	}
	most = atol(argv[2]);
	address.sll_ifindex = (int)if_nametoindex(argv[1]);
	if (to < 0 || !address.sll_ifindex || sigaction(SIGTERM, &action, NULL))
		die(argv[1]);
	if (!read_address(argv[3], frame))
		die(argv[3]);
	if (!strcmp(argv[4], "own"))
		own_address(to, argv[1], frame + 6);
	else if (!read_address(argv[4], frame + 6))
		die(argv[4]);
	frame[12] = PROTOCOL >> 8;
	frame[13] = PROTOCOL & 0xff;
	memcpy(frame + HEADER, argv[5], strlen(argv[5]));
	memcpy(address.sll_addr, frame, 6);
	for (count = 0; !ended && (!most || count < most); count += sent(to, frame, &address))
		;
	wait_for_answers(to);
	printf("%ld\n", count);
	return 0;
}
