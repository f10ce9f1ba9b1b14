//! DER, the distinguished encoding of ASN.1 (X.690): tag, length, contents.

/// The tags that are used here.
pub mod tag {
    pub const INTEGER: u8 = 0x02;
    pub const BIT_STRING: u8 = 0x03;
    pub const OCTET_STRING: u8 = 0x04;
    pub const NULL: u8 = 0x05;
    pub const OBJECT_IDENTIFIER: u8 = 0x06;
    pub const SEQUENCE: u8 = 0x30;
    pub const SET: u8 = 0x31;
    /// `[0] EXPLICIT`.
    pub const CONTEXT_0: u8 = 0xa0;
}

/// A value with its tag and length.
pub fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let mut out = vec![tag];
    match u8::try_from(contents.len()) {
        Ok(short @ ..0x80) => out.push(short),
        _ => {
            let length = contents.len().to_be_bytes();
            let zeros = length.iter().take_while(|byte| **byte == 0).count();
            let length = &length[zeros..];
            out.push(0x80 | length.len() as u8);
            out.extend_from_slice(length);
        }
    }
    out.extend_from_slice(&contents);
    out
}

/// A value that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    pub tag: u8,
    /// Without tag and length.
    pub contents: &'a [u8],
    pub whole: &'a [u8],
}

impl<'a> Value<'a> {
    /// The values in it, in order; `None` if one is damaged.
    pub fn parts(&self) -> Option<Vec<Value<'a>>> {
        let (mut parts, mut rest) = (Vec::new(), self.contents);
        while !rest.is_empty() {
            let (part, after) = read(rest)?;
            parts.push(part);
            rest = after;
        }
        Some(parts)
    }

    /// It, if it has this tag.
    pub fn of(self, tag: u8) -> Option<Value<'a>> {
        (self.tag == tag).then_some(self)
    }
}

/// The first value, and what comes after it.
pub fn read(bytes: &[u8]) -> Option<(Value<'_>, &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk()?;
    let (length, header) = match first {
        ..0x80 => (usize::from(first), 2),
        0x81..=0x84 => {
            let digits = rest.get(..usize::from(first & 0x7f))?;
            let length = digits.iter().fold(0, |n, d| n << 8 | usize::from(*d));
            (length, 2 + digits.len())
        }
        // An indefinite length, or one of more than four bytes: in no certificate.
        0x80 | 0x85.. => return None,
    };
    let (whole, after) = bytes.split_at_checked(header.checked_add(length)?)?;
    let contents = &whole[header..];
    Some((
        Value {
            tag,
            contents,
            whole,
        },
        after,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_every_form_are_read_as_they_are_written() {
        for length in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
            let contents = vec![7; length];
            let whole = value(tag::OCTET_STRING, &[&contents]);
            let (read, rest) = read(&whole).expect("sound");
            assert_eq!(
                (read.tag, read.contents),
                (tag::OCTET_STRING, &contents[..])
            );
            assert!(rest.is_empty());
            assert!(super::read(&whole[..whole.len() - 1]).is_none());
        }
    }
}
