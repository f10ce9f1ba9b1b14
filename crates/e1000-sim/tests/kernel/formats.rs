//! Formats of `snprintf`, the kernel's own among them.

use e1000_sim::dom0::interface::text;
use e1000_sim::dom0::{CommandError, Dom0};
use e1000_sim::memory::EXCHANGE;

use crate::setup::{MAC, with_dom0, write};

/// `snprintf` with up to three arguments; `{}` is where their bytes lie.
fn format(
    dom0: &mut Dom0<'_, '_>,
    format: &str,
    arguments: [u64; 3],
) -> Result<String, CommandError> {
    let mut bytes = vec![0xffu8; 256];
    bytes.extend_from_slice(format.as_bytes());
    bytes.push(0);
    let at = dom0.give("format", &bytes)?;
    let [a, b, c] = arguments;
    let length = dom0.call("snprintf", &[at, 256, at + 256, a, b, c])?.value;
    let mut out = [0; 256];
    dom0.take(&mut out);
    let text = text(&out);
    assert_eq!(text.len() as u64, length, "{format}");
    Ok(text)
}

#[test]
fn formats_are_the_kernels() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let strings = EXCHANGE.start + 0x1000;
        write(dom0, strings, b"e1000\0");
        write(dom0, strings + 16, &MAC);
        let minus = -5i64 as u64;
        let cases: &[(&str, [u64; 3], &str)] = &[
            ("plain", [0; 3], "plain"),
            ("%d %i %u", [minus, 7, 8], "-5 7 8"),
            ("%x|%X|%#x", [255, 255, 255], "ff|FF|0xff"),
            (
                "%#08x|%08x|%8x",
                [0x2a, 0x2a, 0x2a],
                "0x00002a|0000002a|      2a",
            ),
            ("%-6d|%6d|%+d", [42, 42, 42], "42    |    42|+42"),
            ("%.3d|%5.3d|%-5.2d|", [7, 7, 7], "007|  007|07   |"),
            (
                "%ld %lld %llx",
                [minus, minus, u64::MAX],
                "-5 -5 ffffffffffffffff",
            ),
            ("%hhu %hd %hhx", [300, 0xffff, 0x1234], "44 -1 34"),
            ("%s|%8s|%-8s|", [strings; 3], "e1000|   e1000|e1000   |"),
            ("%.2s|%c|%%", [strings, 65, 0], "e1|A|%"),
            ("%s", [0; 3], "(null)"),
            (
                "%pM|%pm|%px",
                [strings + 16, strings + 16, 0xabc],
                "52:54:00:12:34:56|525400123456|abc",
            ),
            ("%p", [0xabc, 0, 0], "0000000000000abc"),
            (
                "%3phC|%*ph",
                [strings + 16, 2, strings + 16],
                "52:54:00|52 54",
            ),
            ("%*d|%d", [4, 7, 8], "   7|8"),
            ("%o %zu", [8, 9, 0], "10 9"),
            ("a %y b", [1, 2, 3], "a <%y b>"),
        ];
        for (pattern, arguments, expected) in cases {
            assert_eq!(format(dom0, pattern, *arguments)?, *expected, "{pattern}");
        }
        Ok(())
    });
}
