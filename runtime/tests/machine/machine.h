/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Driver code as the rewriter writes it (driver.S), run through twin_enter on
 * the testbed platform: its results are checked, and that every fault of it ends in
 * a report while this process goes on. Each file has the tests of one part;
 * each test sets an instance up and tears it down.
 */
#ifndef TWIN_TEST_MACHINE_H
#define TWIN_TEST_MACHINE_H

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <twin/testbed.h>
#include <twin/window.h>

#include "../test.h"

#define PAGE ((uint64_t)TWIN_PAGE_SIZE)

/*
 * dom0's address space:
 *
 *   DATA      4 pages, file pages 0-3     writable
 *   DATA + 4  1 page,  file page 8        writable: next to DATA, not in the file
 *   ...       nothing
 *   RODATA    1 page,  file page 9        read only
 *   BALLOON   1 page                      dom0's, but empty
 *   BEYOND    1 page,  beyond the file    mapped, but every access fails
 */
#define DATA	0xffff888000100000ull
#define DATA_END (DATA + 5 * PAGE)
#define RODATA	0xffff888000200000ull
#define BALLOON	0xffff888000300000ull
#define BEYOND	0xffff888000400000ull
#define FILE_PAGES 16

#define VM_DOUBLE 0xffffffffc0001000ull
#define VM_IMAGE  0xffffffffc0001010ull
#define VM_KERNEL 0xffffffff81000000ull
#define VM_CALLED 0xffffffff81000010ull	/* host.called, by resolve_upcall */

#define DRIVER(X)								\
	X(driver_load) X(driver_store) X(driver_load_paper) X(driver_store_paper) \
	X(driver_stack_pointer) X(driver_stack_pointer_paper) X(driver_arguments) \
	X(driver_registers) X(driver_destroy) X(driver_gs) X(driver_spin) X(driver_call) \
	X(driver_call_site) X(driver_tail) X(driver_double) X(driver_copy)	\
	X(driver_in8) X(driver_in16) X(driver_in32) X(driver_out8)		\
	X(driver_out16) X(driver_out32) X(driver_warn) X(driver_bug)		\
	X(driver_bug_site) X(driver_smashed) X(driver_smashed_site)	\
	X(driver_wild) X(driver_wild_site) X(driver_ud2) X(driver_int3) X(driver_divide)	\
	X(driver_wild_jump) X(driver_wild_return) X(driver_raw_load)		\
	X(driver_recurse) X(driver_recurse_large) X(driver_slow_at_the_end)	\
	X(driver_locks) X(driver_lock_site_a) X(driver_lock_site_b) X(driver_many_locks) \
	X(driver_import) X(driver_import_site) X(driver_hot) X(driver_image)	\
	X(keep_rax) X(keep_rcx) X(keep_rdx) X(keep_rbx) X(keep_rbp) X(keep_rsi)	\
	X(keep_rdi) X(keep_r8) X(keep_r9) X(keep_r10) X(keep_r11) X(keep_r12)	\
	X(keep_r13) X(keep_r14) X(keep_r15) X(keep_in16) X(keep_out32)		\
	X(keep_warn) X(keep_import) X(keep_call) X(keep_hot) X(keep_hot_site)	\
	X(driver_inexact) X(driver_flags_seen)
#define DECLARE(name) extern const char name[];
DRIVER(DECLARE)
int enter_dirty(struct twin_cpu *cpu, struct twin_instance *instance, const char *hyp,
		const uint64_t args[6], uint64_t *result);
extern const char driver_text_start[], driver_text_end[];
extern struct twin_stlb_entry twin_stlb[];
extern uint64_t import_stub, hot_stub, lock_stub, unlock_stub, driver_flags, image_rsp;
extern const uint8_t vectors[256];
extern struct {
	uint64_t regs[16];
	uint64_t flags;
	uint8_t vectors[256];
} __attribute__((packed)) image;

extern uint64_t host_flags, host_flags_kept;
int enter_flags(struct twin_cpu *cpu, struct twin_instance *instance, const char *hyp,
		const uint64_t args[6], uint64_t *result);

/* host.c */
extern int memory_fd;
extern uint64_t *memory;	/* all of the file, as dom0 sees it */
extern uint8_t *stubs;
extern struct twin_testbed *user;
extern struct twin_instance *instance;
extern struct twin_cpu *cpu, *other_cpu;
extern uint64_t result;

/* The host's last requests, and its answers. */
struct host {
	int (*import)(struct twin_call_frame *frame);
	const char *called;
	void (*spoil)(void);	/* vector registers; NULL: some of xmm */
	struct twin_call_frame last;
	unsigned int warnings;
	uint64_t warn_site;
	bool backward;		/* was DF ever set in the host's code? */
	uint16_t port;
	uint32_t size, value;
};
extern struct host host;

void set_up(uint32_t scheme);
void set_up_with(uint32_t scheme, uint32_t vector_free);
extern uint32_t gs_is_set;	/* of the configuration */
void tear_down(void);
int enter6(const char *function, const uint64_t args[6]);
int enter(const char *function, uint64_t a, uint64_t b);
void add_region(uint64_t start, uint64_t pages, uint64_t file_page, bool writable, bool there);
uint64_t word(uint64_t file_page, uint64_t offset);
void aborts_with(const char *function, uint64_t a, uint64_t b, uint32_t kind, uint64_t address);
bool reported_rip_within(uint64_t start, uint64_t end);
int hot_read(struct twin_cpu *self, struct twin_call_frame *frame);

/* calls.c */
int hot_overwrite(struct twin_cpu *self, struct twin_call_frame *frame);
/* window-entry.c: stub 6 leads there */
int hot_enter(struct twin_cpu *self, struct twin_call_frame *frame);

/* registers.c */
int answer_42(struct twin_call_frame *frame);

/* faults.c */
void host_handler(int number);

/* window.c: the tests that follow are of this scheme; where its window and view are. */
void choose_window(uint32_t scheme);
uint64_t window_of(uint32_t scheme);
uint64_t view_of_scheme(uint32_t scheme);

/* The tests of schemes with a table and of all, in the order in which they run. */
#define MACHINE_TESTS(X) \
	X(arguments_and_result_pass) \
	X(the_driver_sees_nothing_of_the_host) \
	X(a_spoilt_register_does_not_reach_the_host) \
	X(stack_arguments_are_zero_each_time) \
	X(loads_and_stores_reach_dom0_by_stlb) \
	X(loads_and_stores_reach_dom0_by_paper) \
	X(an_access_may_straddle_two_pages_by_stlb) \
	X(an_access_may_straddle_two_pages_by_paper) \
	X(the_last_page_is_usable_to_its_end_and_no_further) \
	X(the_own_stack_is_reached_by_pointer) \
	X(another_cpus_stack_is_refused) \
	X(the_stack_ends_where_it_ends) \
	X(the_context_is_refused) \
	X(addresses_that_are_not_dom0s_abort) \
	X(the_paper_scheme_refuses_too) \
	X(windows_are_limited) \
	X(read_only_pages_can_be_read) \
	X(a_truncated_file_aborts) \
	X(strings_are_copied_in_chunks) \
	X(per_cpu_data_is_reached_by_its_base) \
	X(unmapped_pages_are_asked_for_anew) \
	X(slow_paths_keep_all_registers) \
	X(ports_and_warnings_keep_everything) \
	X(imports_change_only_what_they_say) \
	X(hot_routines_leave_nothing_of_the_hosts) \
	X(a_nested_entry_changes_no_outer_register) \
	X(the_driver_sees_no_vector_of_the_host) \
	X(the_hosts_vectors_survive_every_end) \
	X(imports_leave_no_vector_to_the_driver) \
	X(what_is_no_call_keeps_the_drivers_vectors) \
	X(nested_entries_have_vectors_of_their_own) \
	X(instances_see_no_vector_of_each_other) \
	X(mxcsr_is_the_hosts_again) \
	X(x87_is_the_hosts_again) \
	X(an_instance_without_vectors_pays_nothing) \
	X(the_hosts_flags_are_put_aside) \
	X(indirect_calls_keep_all_but_r10_and_r11) \
	X(function_pointers_reach_their_counterparts) \
	X(pointers_to_the_kernel_become_imports) \
	X(bad_call_targets_abort) \
	X(imports_get_all_arguments) \
	X(an_import_may_abort) \
	X(imports_return_to_their_site_whatever_was_written_there) \
	X(hot_routines_return_to_their_site_too) \
	X(imports_may_enter_the_driver_again) \
	X(endless_nesting_runs_out_of_stack_and_aborts) \
	X(an_import_may_enter_any_number_of_times) \
	X(an_inner_abort_aborts_the_outer_invocation) \
	X(unmapping_inside_is_busy) \
	X(hot_routines_read_dom0) \
	X(port_input_merges_as_the_processor_does) \
	X(port_output_truncates_as_the_processor_does) \
	X(refused_ports_abort) \
	X(warnings_go_on) \
	X(bugs_abort) \
	X(overwritten_return_addresses_abort) \
	X(wild_pointers_abort) \
	X(every_kind_of_fault_aborts) \
	X(stack_overflow_aborts) \
	X(sent_signals_go_to_the_host) \
	X(signals_during_imports_go_to_the_host) \
	X(signals_sent_to_driver_code_go_to_the_host) \
	X(the_hosts_own_faults_are_not_hidden) \
	X(the_clock_stops_a_loop) \
	X(the_clock_stops_it_on_the_way_back) \
	X(a_stop_in_a_slow_path_names_the_driver) \
	X(between_invocations_the_clock_does_nothing) \
	X(the_report_has_the_locks) \
	X(locks_beyond_the_list_are_counted) \
	X(two_cpus_run_the_driver_at_once) \
	X(threads_have_their_own_signal_stacks)

/* Those that run with window32 and with window. */
#define WINDOW_TESTS(X) \
	X(the_window_shows_dom0) \
	X(only_the_place_of_an_address_counts) \
	X(accesses_outside_dom0_abort) \
	X(small_numbers_are_no_pointers) \
	X(an_access_over_the_end_meets_the_guard) \
	X(strings_stay_in_the_window) \
	X(a_windows_regions_come_and_go) \
	X(stack_arguments_are_on_the_data_stack) \
	X(imports_get_arguments_from_the_data_stack) \
	X(stack_variables_go_by_reference) \
	X(no_pointer_reaches_a_return_address) \
	X(imports_return_from_a_window_whatever_was_written) \
	X(both_stacks_end_in_guards) \
	X(a_cpu_without_a_data_stack_is_refused) \
	X(the_gs_base_is_the_windows_in_driver_code_alone) \
	X(a_host_may_leave_the_gs_base_to_the_window) \
	X(quick_entries_are_entries)						\
	X(ranges_go_before_a_quick_entry_or_after)				\
	X(a_frozen_driver_goes_on)						\
	X(per_cpu_data_is_in_the_window) \
	X(ranges_with_one_place_are_refused) \
	X(two_cpus_have_two_data_stacks) \
	X(signals_meet_the_windows_gs)

/* Those that run with window alone. */
#define WIDE_TESTS(X) \
	X(the_mirror_shows_dom0) \
	X(a_region_is_partly_in_the_mirror) \
	X(faults_in_the_mirror_are_reported) \
	X(regions_of_one_low_half_are_two)

#define DECLARE_TEST(name) void name(void);
MACHINE_TESTS(DECLARE_TEST)
WINDOW_TESTS(DECLARE_TEST)
WIDE_TESTS(DECLARE_TEST)
#undef DECLARE_TEST

#endif /* TWIN_TEST_MACHINE_H */
