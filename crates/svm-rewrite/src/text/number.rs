//! Prints decimal numbers, fast: texts have tens of thousands.

/// Digits of the longest number.
const LONGEST: usize = 10;

/// How many digits a number has.
pub fn digits(n: u32) -> usize {
    n.checked_ilog10().map_or(1, |l| l as usize + 1)
}

/// Appends a number.
pub fn push_number(out: &mut Vec<u8>, n: u32) {
    let mut buffer = [0; LONGEST];
    let len = digits(n);
    let mut rest = n;
    for digit in buffer[..len].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // A copy of constant size needs no call.
    let end = out.len() + len;
    out.extend_from_slice(&buffer);
    out.truncate(end);
}

/// Appends a number that may be negative.
pub fn push_signed(out: &mut Vec<u8>, n: i64) {
    if n < 0 {
        out.push(b'-');
    }
    match u32::try_from(n.unsigned_abs()) {
        Ok(n) => push_number(out, n),
        Err(_) => out.extend_from_slice(n.unsigned_abs().to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_standard_library_prints_them() {
        let ends = [i64::MIN, i64::MAX, -(1 << 32), 1 << 32, u32::MAX.into()];
        let powers = (0..10).flat_map(|n| [10_i64.pow(n) - 1, 10_i64.pow(n), -10_i64.pow(n)]);
        for n in powers.chain(ends) {
            let mut out = Vec::new();
            push_signed(&mut out, n);
            assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
