//! The purpose of the verifier's arithmetic, as theorems about all 64-bit numbers.
//!
//! A [`Theorem`] is text of SMT-LIB 2.6 over bit vectors of 64 bits. It may name the
//! constants of [`constants`] and the functions of `svm-verify/src/domain/bounds.rs`;
//! a function's name with the suffix `.fits` says that nothing in the function
//! overflows. Places are in bytes: in the window, from the start of the translated
//! address's own page; in a frame, from `rsp` at the function's entry, where the return
//! address is.

use std::collections::BTreeMap;

use twin_abi::{stack, stlb};

/// A statement about all numbers.
pub struct Theorem {
    /// The statement in words, which reports use as its name.
    pub name: &'static str,
    /// The numbers that it is about.
    pub about: &'static [&'static str],
    /// The assumptions about them.
    pub given: &'static str,
    /// The conclusion.
    pub then: &'static str,
}

/// Constants by their path in the verifier's source.
pub fn constants() -> BTreeMap<&'static str, i64> {
    BTreeMap::from([
        ("stlb::BELOW", stlb::BELOW as i64),
        ("stlb::COVERED", stlb::COVERED as i64),
        ("stlb::PAGE_SIZE", stlb::PAGE_SIZE as i64),
        ("stlb::WINDOW_PAGES", stlb::WINDOW_PAGES as i64),
        ("stlb::INDEX_SHIFT", i64::from(stlb::INDEX_SHIFT)),
        ("stlb::INDEX_MASK", stlb::INDEX_MASK as i64),
        ("stlb::ENTRIES", stlb::ENTRIES as i64),
        ("stack::MAX_FRAME", stack::MAX_FRAME),
        ("stack::BELOW_RSP", stack::BELOW_RSP),
        ("stack::INCOMING_ARGS", stack::INCOMING_ARGS),
        ("stack::LOW", stack::LOW as i64),
        ("stack::BLOCK", stack::BLOCK as i64),
        ("stack::CONTEXT", stack::CONTEXT as i64),
        ("stack::GS_BASE_FROM_TOP", stack::GS_BASE_FROM_TOP),
    ])
}

/// Definitions that all theorems may use; a constant's name is the last part of its path.
pub const PRELUDE: &str = "
(define-fun n ((a W)) W a)
(define-fun int32 ((a W)) Bool (and (bvsle #xffffffff80000000 a) (bvsle a #x000000007fffffff)))
(define-fun sum32 ((a W)) Bool (and (bvsle #xffffffff00000000 a) (bvsle a #x00000000ffffffff)))
(define-fun size16 ((a W)) Bool (and (bvsle #x0000000000000001 a) (bvsle a #x000000000000ffff)))
(define-fun within ((a W) (low W) (high W)) Bool (and (bvsle low a) (bvslt a high)))
(define-fun byte-of ((a W) (size W)) Bool (within a #x0000000000000000 size))
(define-fun in-page ((a W)) W (bvand a (bvsub PAGE_SIZE #x0000000000000001)))
(define-fun page ((a W)) W (bvand a (bvneg PAGE_SIZE)))
(define-fun pages ((k W)) W (bvmul k PAGE_SIZE))
(define-fun last-covered () W (bvsub (bvmul WINDOW_PAGES PAGE_SIZE) #x0000000000000001))
(define-fun one () W #x0000000000000001)
(define-fun zero () W #x0000000000000000)
(define-fun return-address () W #x0000000000000008)
";

/// The theorems, which have to follow for all numbers.
pub const THEOREMS: &[Theorem] = &[
    // P1 (b). Every byte of an access that is covered lies in the page of the
    // translated address, the one before it or the one after it.
    Theorem {
        name: "a covered access stays in its window",
        about: &["disp", "size", "byte", "place"],
        given: "(and (int32 disp) (size16 size) (byte-of byte size) (within place zero PAGE_SIZE))",
        then: "(and (covered.fits disp size) (=> (covered disp size)
                 (within (bvadd place (bvadd disp byte)) (bvneg PAGE_SIZE) (bvadd PAGE_SIZE PAGE_SIZE))))",
    },
    Theorem {
        name: "what is not covered may leave the window",
        about: &["disp", "size"],
        given: "(and (int32 disp) (size16 size))",
        then: "(or (covered disp size)
                   (bvslt disp (bvneg PAGE_SIZE))
                   (bvsge (bvadd (bvsub PAGE_SIZE one) (bvadd disp (bvsub size one))) (bvadd PAGE_SIZE PAGE_SIZE)))",
    },
    // P4. The guard page below the stack is one page: no frame reaches over it, the
    // bytes below rsp included, wherever on the stack the function was entered.
    Theorem {
        name: "no frame reaches over the guard page",
        about: &["entry", "rsp", "at"],
        given: "(and (within entry LOW BLOCK) (int32 rsp) (sum32 at))",
        then: "(and (in_frame.fits rsp) (=> (in_frame rsp) (and (below_frame.fits at rsp)
                 (=> (not (below_frame at rsp)) (bvsge (bvadd entry at) (bvsub LOW PAGE_SIZE))))))",
    },
    Theorem {
        name: "rsp is never above its place at entry",
        about: &["rsp"],
        given: "(int32 rsp)",
        then: "(=> (in_frame rsp) (bvsle rsp zero))",
    },
    Theorem {
        name: "every frame up to the guard page is allowed",
        about: &["rsp", "at"],
        given: "(and (int32 rsp) (sum32 at))",
        then: "(and (= (in_frame rsp) (within rsp (bvneg MAX_FRAME) one))
                    (=> (bvsge at (bvsub rsp BELOW_RSP)) (not (below_frame at rsp)))
                    (=> (= rsp (bvneg MAX_FRAME)) (= (below_frame at rsp) (bvslt at (bvneg PAGE_SIZE)))))",
    },
    Theorem {
        name: "what is read above the frame is an argument",
        about: &["at", "size", "byte"],
        given: "(and (sum32 at) (size16 size) (byte-of byte size))",
        then: "(and (above_arguments.fits at size INCOMING_ARGS)
                 (=> (not (above_arguments at size INCOMING_ARGS))
                     (bvslt (bvadd at byte) (bvadd return-address INCOMING_ARGS)))
                 (=> (above_arguments at size INCOMING_ARGS)
                     (bvsge (bvadd at (bvsub size one)) (bvadd return-address INCOMING_ARGS))))",
    },
    Theorem {
        name: "what is written is below the return address",
        about: &["at", "size", "byte"],
        given: "(and (sum32 at) (size16 size) (byte-of byte size))",
        then: "(and (reaches_caller.fits at size)
                 (=> (not (reaches_caller at size)) (bvslt (bvadd at byte) zero))
                 (=> (reaches_caller at size) (bvsge (bvadd at (bvsub size one)) zero)))",
    },
    // Target linux. A realigned frame may be lower than is known, by up to an alignment.
    Theorem {
        name: "what is written is not the return address, wherever a frame was aligned to",
        about: &["at", "size", "byte", "slack", "lower"],
        given: "(and (sum32 at) (size16 size) (byte-of byte size)
                     (bvsle zero slack) (bvsle slack MAX_ALIGNMENT) (bvsle zero lower) (bvsle lower slack))",
        then: "(and (reaches_return.fits at size slack)
                 (=> (not (reaches_return at size slack))
                     (not (within (bvadd (bvsub at lower) byte) zero return-address))))",
    },
    Theorem {
        name: "what may be the return address is called so only if some alignment makes it so",
        about: &["at", "size", "slack"],
        given: "(and (sum32 at) (size16 size) (bvsle zero slack) (bvsle slack MAX_ALIGNMENT))",
        then: "(=> (reaches_return at size slack)
                 (let ((lowest (bvsub at slack)) (last (bvadd at (bvsub size one))))
                 (let ((there (ite (bvsge lowest zero) lowest zero)))
                   (and (within there zero return-address) (bvsle lowest there) (bvsle there last)))))",
    },
    // Relocated operands: any sum of a symbol's value and an addend may occur.
    Theorem {
        name: "an operand in a section lies in it byte for byte",
        about: &["start", "size", "length", "byte"],
        given: "(and (bvsle zero size) (bvsle zero length) (byte-of byte size))",
        then: "(and (in_section.fits start size length)
                 (=> (in_section start size length)
                     (and (within start zero length) (bvslt byte (bvsub length start)))))",
    },
    Theorem {
        name: "an operand that lies in its section is in it",
        about: &["start", "size", "length"],
        given: "(and (bvsle zero size) (bvsle zero length))",
        then: "(=> (and (bvsle zero start) (bvsle start length) (bvsle size (bvsub length start)))
                   (in_section start size length))",
    },
    // P5. Both schemes select the same entry, a whole one, inside the table.
    Theorem {
        name: "an index names a whole entry of the table, the same in both schemes",
        about: &["va"],
        given: "true",
        then: "(let ((stlb (bvand (bvlshr (bvand va #x00000000ffffffff) INDEX_SHIFT) INDEX_MASK))
                     (paper (bvlshr (bvand (page va) (bvshl INDEX_MASK INDEX_SHIFT)) INDEX_SHIFT)))
                 (and (= stlb paper) (= zero (bvand stlb #x000000000000000f))
                      (bvult stlb (bvmul ENTRIES #x0000000000000010))))",
    },
    // P1 (b). What the check of `stlb` compares; tags are addresses of pages.
    Theorem {
        name: "an offset below a page means that the tag is the address's page",
        about: &["va", "tag"],
        given: "(and (= tag (page tag)) (bvult (bvsub va tag) PAGE_SIZE))",
        then: "(and (= tag (page va)) (= (bvsub va tag) (in-page va)))",
    },
    // The entry's translation is `page ^ mapped` in scheme `paper`.
    Theorem {
        name: "the exclusive or of a page's translation leads to the same byte of the mapped page",
        about: &["va", "mapped"],
        given: "(= mapped (page mapped))",
        then: "(= (bvxor va (bvxor (page va) mapped)) (bvadd mapped (in-page va)))",
    },
    // String counts: `and $0xfff; xor $0x1fff; shr $s` forward.
    Theorem {
        name: "so many elements forward end in the second page",
        about: &["va", "shift", "count", "byte"],
        given: "(and (within shift zero #x0000000000000004)
                     (bvule count (bvlshr (bvxor (in-page va) last-covered) shift))
                     (bvult byte (bvshl count shift)))",
        then: "(bvult (bvadd (in-page va) byte) (pages WINDOW_PAGES))",
    },
    // `and $0xfff; shr $s; add $1` backward.
    Theorem {
        name: "so many elements backward begin in the own page",
        about: &["va", "shift", "count", "element", "byte"],
        given: "(and (within shift zero #x0000000000000004)
                     (bvule count (bvadd (bvlshr (in-page va) shift) one))
                     (bvult element count) (bvult byte (bvshl one shift)))",
        then: "(let ((first (bvsub (in-page va) (bvshl element shift))))
                 (and (bvsle zero first) (bvslt (bvadd first byte) (pages WINDOW_PAGES))))",
    },
    // `or $0x7fff` of an address in a block leads to the context above its stack.
    Theorem {
        name: "the top of the block leads to the context",
        about: &["block", "rsp"],
        given: "(and (= zero (bvand block (bvsub BLOCK one))) (bvult (bvsub rsp block) BLOCK))",
        then: "(= (bvadd (bvor rsp (bvsub BLOCK one)) GS_BASE_FROM_TOP)
                  (bvadd block (bvadd CONTEXT #x0000000000000008)))",
    },
];

/// False statements, each close to a theorem: a solver that proved one of them would
/// prove anything.
pub const REFUTED: &[Theorem] = &[
    Theorem {
        name: "an offset of a whole page is in the page",
        about: &["va", "tag"],
        given: "(and (= tag (page tag)) (bvule (bvsub va tag) PAGE_SIZE))",
        then: "(= tag (page va))",
    },
    Theorem {
        name: "one element more forward ends in the second page",
        about: &["va", "shift", "count", "byte"],
        given: "(and (within shift zero #x0000000000000004)
                     (bvule count (bvadd one (bvlshr (bvxor (in-page va) last-covered) shift)))
                     (bvult byte (bvshl count shift)))",
        then: "(bvult (bvadd (in-page va) byte) (pages WINDOW_PAGES))",
    },
    Theorem {
        name: "one element more backward begins in the own page",
        about: &["va", "shift", "count", "element"],
        given: "(and (within shift zero #x0000000000000004)
                     (bvule count (bvadd (bvlshr (in-page va) shift) (bvadd one one)))
                     (bvult element count))",
        then: "(bvsle zero (bvsub (in-page va) (bvshl element shift)))",
    },
    Theorem {
        name: "a table of half as many entries has every index",
        about: &["va"],
        given: "true",
        then: "(bvult (bvand (bvlshr va INDEX_SHIFT) INDEX_MASK) (bvmul ENTRIES #x0000000000000008))",
    },
    Theorem {
        name: "any mapping, aligned or not, keeps the byte in its page",
        about: &["va", "mapped"],
        given: "true",
        then: "(= (bvxor va (bvxor (page va) mapped)) (bvadd mapped (in-page va)))",
    },
    Theorem {
        name: "an address of any block leads to its context",
        about: &["block", "rsp"],
        given: "(bvult (bvsub rsp block) BLOCK)",
        then: "(= (bvadd (bvor rsp (bvsub BLOCK one)) GS_BASE_FROM_TOP)
                  (bvadd block (bvadd CONTEXT #x0000000000000008)))",
    },
];
