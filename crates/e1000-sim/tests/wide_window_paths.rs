//! The four paths of the paper's figures 5 to 8 move the same packets, scheme `window`.

use process_lab::program::Scheme;

#[path = "common/paths.rs"]
mod paths;

#[test]
fn every_path_moves_packets_of_all_shapes() {
    paths::run(Scheme::Window);
}
