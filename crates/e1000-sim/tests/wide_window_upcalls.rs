//! Upcalls of the hypervisor instance, scheme `window`: stack variables by reference
//! are on the data stack, which dom0 has too.

use process_lab::program::Scheme;

#[path = "common/upcalls.rs"]
mod upcalls;

#[test]
fn an_upcall_that_does_not_come_back_is_an_error_and_dom0_is_replaced() {
    upcalls::run(Scheme::Window);
}
