//! Descriptors that the driver hands to the card are checked, with the scheme `window32`.

use process_lab::program::Scheme;

#[path = "common/dma.rs"]
mod dma;

#[test]
fn the_card_sees_checked_descriptors_only() {
    dma::run(Scheme::Window32);
}
