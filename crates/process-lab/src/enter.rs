//! The host's frame under code that is entered with a stack and registers of its own.
//!
//! Four places enter such code, each with an assembly of its own around these two
//! macros, because they differ in all else:
//!
//! | where | what is entered, and how it comes back |
//! |---|---|
//! | `e1000_sim::dom0::enter` | a kernel function with arguments, on any of several threads, each with its context, found by `%rbx`; by return, or by a fault's handler |
//! | `conformance::differential::native` | the driver, in a process of one thread; by return, by a fault's handler, and in between by each import, after which it goes on, perhaps step by step |
//! | `conformance::forms::enter` | a function with every register set, vectors and `%fs` too, so that no register is left to find anything by: its block is at a fixed address; the same code runs below the runtime's entry |
//! | `conformance::belief::machine` | one instruction with every general register set, `rsp` as well; by one of two jumps or by a signal, never by `ret` |

/// Pushes what the System V ABI has a function keep (section 3.2.1). After it `rsp` is a
/// multiple of 16, as before a call.
#[macro_export]
macro_rules! push_host_frame {
    () => {
        "pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15; subq $8, %rsp"
    };
}

/// Undoes [`push_host_frame`], with `rsp` where that left it.
#[macro_export]
macro_rules! pop_host_frame {
    () => {
        "addq $8, %rsp; popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp"
    };
}
