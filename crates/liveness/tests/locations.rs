//! Sets of locations: the layout, the operations, the names.

use liveness::{Flag, Loc, LocSet, Piece, Reg, dead_registers};

#[test]
fn every_location_is_itself_and_no_other() {
    let all: Vec<Loc> = LocSet::all().iter().collect();
    assert_eq!(all.len() as u32, Loc::COUNT);
    assert_eq!(Loc::COUNT, 16 * 3 + 7);
    for (at, loc) in all.iter().enumerate() {
        assert_eq!(LocSet::loc(*loc).iter().collect::<Vec<_>>(), [*loc]);
        assert!(!all[..at].contains(loc));
    }
}

#[test]
fn constructors_name_the_locations_they_say() {
    let ah = LocSet::piece(Reg::RAX, Piece::High);
    assert_eq!(LocSet::reg(Reg::RAX).len(), 3);
    assert_eq!(
        LocSet::low16(Reg::RAX).minus(ah),
        LocSet::piece(Reg::RAX, Piece::Low)
    );
    assert_eq!(LocSet::flags().len(), 6);
    assert_eq!(
        LocSet::all_flags().minus(LocSet::flags()),
        LocSet::flag(Flag::Direction)
    );
    let registers = Reg::all().map(LocSet::reg).collect::<LocSet>();
    assert_eq!(LocSet::registers(), registers);
}

#[test]
fn operations_are_those_of_sets() {
    const RAX: LocSet = LocSet::reg(Reg::RAX);
    const BOTH: LocSet = RAX.union(LocSet::reg(Reg::R15));
    assert!(BOTH.contains(RAX) && !RAX.contains(BOTH) && RAX.contains(LocSet::empty()));
    assert_eq!(BOTH.intersect(RAX), RAX);
    assert_eq!(BOTH.minus(RAX), LocSet::reg(Reg::R15));
    assert!(RAX.minus(BOTH).is_empty() && !RAX.is_empty());
    assert!(RAX.intersects(LocSet::low16(Reg::RAX)));
    assert_eq!(BOTH.iter().map(LocSet::from).collect::<LocSet>(), BOTH);
}

#[test]
fn registers_have_hardware_numbers() {
    assert_eq!(Reg::new(4), Some(Reg::RSP));
    assert_eq!(Reg::new(15), Some(Reg::R15));
    assert_eq!(Reg::new(16), None);
    let names: Vec<String> = Reg::all().map(|reg| reg.to_string()).collect();
    assert_eq!(names[..8].join(" "), "rax rcx rdx rbx rsp rbp rsi rdi");
    assert_eq!(names[8..].join(" "), "r8 r9 r10 r11 r12 r13 r14 r15");
}

#[test]
fn sets_are_shown_by_names() {
    let set = LocSet::reg(Reg::RAX)
        .union(LocSet::low16(Reg::RCX))
        .union(LocSet::piece(Reg::R8, Piece::High))
        .union(LocSet::piece(Reg::R9, Piece::Low))
        .union(LocSet::piece(Reg::R9, Piece::Upper))
        .union(LocSet::flag(Flag::Carry))
        .union(LocSet::flag(Flag::Direction));
    assert_eq!(
        set.to_string(),
        "{rax, rcx[0-15], r8[8-15], r9[0-7], r9[16-], CF, DF}"
    );
    assert_eq!(LocSet::all_flags().to_string(), "{flags, DF}");
    assert_eq!(format!("{:?}", LocSet::empty()), "{}");
}

#[test]
fn a_dead_register_is_dead_in_all_pieces() {
    let live = LocSet::all()
        .minus(LocSet::reg(Reg::RCX))
        .minus(LocSet::reg(Reg::R9))
        .minus(LocSet::low16(Reg::RDX));
    assert_eq!(
        dead_registers(live).collect::<Vec<_>>(),
        [Reg::RCX, Reg::R9]
    );
}

#[test]
fn the_stack_pointer_is_never_dead() {
    let dead: Vec<Reg> = dead_registers(LocSet::empty()).collect();
    assert_eq!(dead.len(), 15);
    assert!(!dead.contains(&Reg::RSP));
}
