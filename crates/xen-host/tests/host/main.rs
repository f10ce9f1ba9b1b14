//! What is judged and done on a dom0, tried on one that is made up: no test needs Xen, or root.

mod actions;
mod checks;
mod made_up;

/// One in which all is as it must be. Its modules have no code to speak of.
fn usual() -> made_up::MadeUp {
    let empty = ".text\nf: ret\n";
    let made = made_up::MadeUp::with_modules(empty, empty, empty);
    made.write("kit/twin-xen.o", filetests::assemble(empty, &["--64"]));
    made
}
