//! Guests that are processes of their own: what each shares, what a kick and a notification are, and guests that
//! die, lie, change what was read, do not answer, or kick without end. The others are served, nothing is lost but the bad guest's
//! own, and nothing leaks.

use e1000_sim::guests::front::honest;

#[path = "guests/gone.rs"]
mod gone;
#[path = "guests/lies.rs"]
mod lies;
#[path = "guests/looks.rs"]
mod looks;
#[path = "guests/plain.rs"]
mod plain;
#[path = "common/pools.rs"]
mod pools;
#[path = "guests/race.rs"]
mod race;
#[path = "guests/rig.rs"]
mod rig;
#[path = "common/turn.rs"]
mod turn;

#[test]
fn guests_as_processes() {
    let _turn = turn::turn();
    rig::each_alone(&[
        ("what a guest shares", honest, plain::what_a_guest_shares),
        (
            "a foreign address",
            plain::reads_anothers_memory,
            plain::who_reads_anothers_memory_dies,
        ),
        ("crossings", honest, plain::crossings_are_counted),
        ("notify", honest, plain::notifications_are_batched),
        (
            "dies before its kick",
            gone::dies_before_its_kick,
            gone::who_dies_leaves_nothing,
        ),
        (
            "dies in its kick",
            honest,
            gone::who_dies_in_its_kick_leaves_nothing,
        ),
        (
            "wild indices",
            lies::wild_indices,
            lies::wild_indices_are_skipped,
        ),
        (
            "wild requests",
            lies::wild_requests,
            lies::wild_requests_are_refused,
        ),
        (
            "wild buffers",
            lies::wild_buffers,
            lies::wild_buffers_are_refused,
        ),
        (
            "changed after it was read",
            lies::changes_after_its_kick,
            lies::what_was_read_is_what_is_sent,
        ),
        (
            "changes all the time",
            lies::changes_all_the_time,
            lies::nothing_foreign_is_sent,
        ),
        (
            "never answers",
            gone::never_answers,
            gone::who_never_answers_is_left,
        ),
        (
            "kicks without end",
            gone::kicks_without_end,
            gone::who_floods_kicks_is_throttled,
        ),
        (
            "sends without end",
            gone::sends_without_end,
            gone::who_sends_without_end_is_throttled,
        ),
        (
            "posts nothing",
            gone::posts_nothing,
            gone::who_posts_nothing_keeps_its_own_packets,
        ),
    ]);
}

#[test]
fn rings_that_are_looked_at() {
    let _turn = turn::turn();
    rig::each_alone(&[
        ("stops", honest, looks::who_stops_is_armed_again),
        (
            "before the arming",
            honest,
            looks::what_comes_before_the_arming_is_found,
        ),
        (
            "kicks for each",
            honest,
            looks::a_guest_that_kicks_for_each_kicks_no_more,
        ),
        (
            "looks end",
            honest,
            looks::what_waits_is_sent_when_looks_end,
        ),
        (
            "lost timer",
            looks::kicks_unasked,
            looks::a_lost_timer_costs_the_time_until_something_happens,
        ),
        (
            "any index",
            looks::writes_any_index,
            looks::any_index_harms_its_guest_only,
        ),
        (
            "wild indices",
            lies::wild_indices,
            looks::wild_indices_are_skipped_by_looks,
        ),
        (
            "kicks without end",
            gone::kicks_without_end,
            looks::who_floods_kicks_wakes_nobody,
        ),
        (
            "sends without end",
            gone::sends_without_end,
            looks::who_sends_without_end_is_throttled,
        ),
        (
            "fills its ring",
            looks::fills_its_ring,
            looks::who_fills_its_ring_holds_up_nobody,
        ),
        (
            "sends seldom",
            honest,
            looks::who_sends_seldom_waits_for_one_look,
        ),
        (
            "dies",
            honest,
            looks::who_dies_while_rings_are_looked_at_leaves_nothing,
        ),
        (
            "stays",
            looks::stays_with_requests,
            looks::who_stays_with_requests_is_looked_at,
        ),
    ]);
}
