//! What a module made of rewritten text is linked with.

use elf_loader::Object;
use elf_loader::consts::STB_GLOBAL;
use twin_abi::{Target, names};

use crate::Scheme;
use crate::emit::note_section;

/// The translation table and what runs on a miss, with the names global that the
/// code of other objects calls, and the note that says what the module is. Where
/// whole modules are rewritten the names are local, and the note is theirs.
pub fn module_runtime(scheme: Scheme) -> Object<'static> {
    let bytes = twin_linux_runtime::object(scheme);
    let mut object = elf_loader::read(bytes).expect("the runtime was assembled with twin");
    for symbol in &mut object.symbols {
        if symbol.name.starts_with(names::SLOW_PREFIX) || symbol.name == names::STLB {
            symbol.binding = STB_GLOBAL;
        }
    }
    object.sections.push(note_section(scheme, Target::Linux));
    object
}
