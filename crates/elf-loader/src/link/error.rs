//! Why an object could not be linked.

use thiserror::Error;

use super::SymbolUse;

/// Why [`super::link`], [`super::layout()`] or [`super::Trampolines::new`]
/// failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// A relocation cannot be applied.
    #[error("section `{section}` offset {offset:#x}, symbol `{symbol}`: {fault}")]
    Relocation {
        /// Name of the section that the field is in.
        section: String,
        /// Offset of the field in it.
        offset: u64,
        /// The symbol and the addend.
        symbol: String,
        /// What is wrong and what to do.
        fault: RelocationFault,
    },
    /// A section's address does not suit its alignment.
    #[error(
        "section `{section}` is placed at {address:#x}, but must be aligned to {align:#x}; choose another base"
    )]
    Misaligned {
        /// Name of the section.
        section: String,
        /// The address that it was given.
        address: u64,
        /// Its alignment in bytes.
        align: u64,
    },
    /// Two sections share an address, or one wraps around the address space.
    #[error(
        "section `{section}` at {address:#x} overlaps section `{other}` or the end of the address space; place them apart"
    )]
    Overlap {
        /// Name of the later section.
        section: String,
        /// The address that it was given.
        address: u64,
        /// Name of the earlier section.
        other: String,
    },
    /// The placed sections have more than [`crate::MAX_SECTION_SIZE`] bytes.
    #[error(
        "the placed sections have {size:#x} bytes, more than 2 GiB, which code cannot address; place fewer"
    )]
    TooLarge {
        /// Bytes of all placed sections.
        size: u64,
    },
    /// The layout is of another object.
    #[error("the layout has {layout} sections, but the object {object}; make it from this object")]
    OtherObject {
        /// Sections in the layout.
        layout: usize,
        /// Sections in the object.
        object: usize,
    },
    /// An import that is called has no address.
    #[error("the imported routine `{name}` has no address; add it to the hot routines or stubs")]
    Unresolved {
        /// Name of the import.
        name: String,
    },
}

/// What is wrong with one relocation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RelocationFault {
    /// The value does not fit the field.
    #[error(
        "value {target:#x} at place {place:#x} does not fit: the field holds {what}; place the sections nearer or, for a call, use trampolines"
    )]
    Overflow {
        /// S + A.
        target: u64,
        /// P.
        place: u64,
        /// What the field can hold.
        what: &'static str,
    },
    /// The symbol is undefined and the resolver does not know it.
    #[error(
        "it is undefined and nobody provides it ({}); add it to what the loader resolves",
        match .use_ { SymbolUse::Call => "it is called", SymbolUse::Data => "it is used as data" }
    )]
    Unresolved {
        /// How it is used.
        use_: SymbolUse,
    },
    /// The symbol's section has no address.
    #[error("it is in section `{section}`, which is not placed; place that section too")]
    NotPlaced {
        /// Name of the section.
        section: String,
    },
    /// A common symbol, for which no place is reserved.
    #[error("it is a common symbol, which has no place yet; compile with -fno-common")]
    Common,
    /// A relocation type that static code of kernels does not have.
    #[error(
        "its type {name} is not handled; compile with -fno-pic -mcmodel=kernel, as kernels are"
    )]
    Unsupported {
        /// Name of the type.
        name: String,
    },
    /// The field ends past the section.
    #[error("its field of {width} bytes ends past the section's end; correct the offset")]
    PastEnd {
        /// Bytes of the field.
        width: u64,
    },
    /// There is no such symbol.
    #[error("there is no such symbol; add it to the object")]
    NoSymbol,
}
