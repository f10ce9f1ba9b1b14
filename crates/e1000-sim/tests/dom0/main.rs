//! The dom0 process with a kernel of a few functions (`tests/common/small.c`):
//! entering and oopses, traps, commands to a dom0 that hangs or dies, upcalls.

mod death;
#[path = "../common/driver_stack.rs"]
mod driver_stack;
mod entering;
mod image;
mod shared;
mod traps;
mod upcalls;
mod world;
