//! What was counted when the processes of the rows began, and what `bridge` and `notify` add.

use std::fmt::Write;

use e1000_sim::live::price::Price;
use e1000_sim::live::rows::Added;

use super::verdict::Verdict;

/// What the design sets for `bridge` and `notify` together, in cycles a packet of 60 bytes.
const ADDED_AT_MOST: u64 = 100;

/// For people.
pub fn text(prices: &[Price], added: Option<Added>) -> String {
    let mut out = String::new();
    if let Some(price) = prices.first() {
        let _ = writeln!(
            out,
            "\ninstructions: an interrupt {}, a packet {}; a delivery {}, a guest {}, a packet {}",
            price.interrupt, price.packet, price.round, price.guest, price.taken
        );
    }
    if let Some(added) = added {
        let [plain, staged] = added.received;
        let [taken, told] = added.taken;
        let more = (staged + told).saturating_sub(plain + taken);
        let _ = writeln!(
            out,
            "bridge and notify, a packet of 60 bytes: {more} instructions more than without \
             (at most {ADDED_AT_MOST}: {})",
            Verdict::of(more <= ADDED_AT_MOST).text()
        );
    }
    out
}
