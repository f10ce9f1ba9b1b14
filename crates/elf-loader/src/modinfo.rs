//! A kernel module's `.modinfo`: strings `KEY=VALUE` that end in zeros
//! (`include/linux/moduleparam.h`, `__MODULE_INFO`).

use crate::Object;

/// The values of a key, in the order of the section; none if there is no such section.
/// Values that are not UTF-8 are left out: no key of the kernel has them.
pub fn values_of_key<'o>(object: &'o Object<'_>, key: &str) -> Vec<&'o str> {
    let Some(id) = object.section_named(".modinfo") else {
        return Vec::new();
    };
    let entries = object.section(id).data.split(|byte| *byte == 0);
    let texts = entries.filter_map(|entry| std::str::from_utf8(entry).ok());
    let named = texts.filter_map(|text| text.strip_prefix(key)?.strip_prefix('='));
    named.collect()
}

/// The release of the kernel that it was built for: the first word of `vermagic`.
pub fn release<'o>(object: &'o Object<'_>) -> Option<&'o str> {
    let magic = *values_of_key(object, "vermagic").first()?;
    magic.split_whitespace().next()
}
