//! What rewritten code runs on.

/// A target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The testbed's hypervisor: code only, data stays in dom0.
    User,
    /// A stock Linux kernel: a module in place of the original, mapped to itself.
    Linux,
    /// A program: its own process, mapped to itself. From assembly text only; the
    /// linker adds the tables (`runtime/platform/identity`).
    Process,
}

impl Target {
    /// Name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Target::User => twin_abi::Target::User.as_str(),
            Target::Linux => twin_abi::Target::Linux.as_str(),
            Target::Process => "process",
        }
    }
}
